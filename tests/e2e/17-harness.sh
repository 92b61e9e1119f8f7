#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh and lib.sh: a test that fails, hangs or leaves a process running is told
# from one that passes, and nothing outlives it.
. "$(dirname "$0")/lib.sh"

mkdir -p suite bin
cp "$ROOT"/tests/e2e/{lib,run}.sh suite
for program in tterm tdrive tstat; do
	printf '#!/bin/sh\necho "$@"\n' >bin/$program
	chmod +x bin/$program
done

# suite STATUS SUMMARY MESSAGE: the test on standard input, run alone.
suite()
{
	{
		echo '# limit: 1'
		# shellcheck disable=SC2016 # for the test
		echo '. "$(dirname "$0")/lib.sh"'
		cat
	} >suite/50-it.sh
	TTERM_VARIANT=release TTERM_BIN=$T/bin expect "$1" bash suite/run.sh 50
	[ "$(tail -n 1 out)" = "$2" ] || fail "last line: $(tail -n 1 out)"
	has out "$3"
}

pass='1 passed, 0 failed, 0 skipped'
fail='0 passed, 1 failed, 0 skipped'
suite 0 "$pass" '^ok +50-it' <<'EOT'
expect 0 tterm hello
has out hello
start it sleep 73130
signal it INT
finished it 130 3
EOT
suite 0 '0 passed, 0 failed, 1 skipped' 'no-such-tool is not installed' <<'EOT'
need no-such-tool
EOT
suite 1 "$fail" 'exit status 0, not 3' <<'EOT'
expect 3 tterm hello
EOT
suite 1 "$fail" 'some log' <<'EOT'
start it sh -c 'echo some log; exec sleep 73131'
eventually 1 test -s it.out
fail oops
EOT
suite 1 "$fail" 'not over within 1 s' <<'EOT'
start it sleep 73132
eventually 60 false
EOT
suite 1 "$fail" 'left running: [0-9]+ sleep 73133' <<'EOT'
setsid sleep 73133 &
eventually 1 pgrep -fx 'sleep 73133'
EOT
suite 1 "$fail" 'it left processes: [0-9]+ sleep 73134' <<'EOT'
start it sh -c 'sleep 73134 & exit 0'
finished it 0 1
EOT
suite 1 "$fail" 'a sanitizer found a fault' <<'EOT'
echo 'heap-buffer-overflow' >"$T/sanitizer.1"
EOT
! pgrep -fx 'sleep 7313[0-4]' || fail "still running"
