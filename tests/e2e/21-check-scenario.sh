#!/bin/bash
# SPDX-License-Identifier: MIT
# --check and --print-config: what is refused says where, and what to write.
. "$(dirname "$0")/lib.sh"

for example in "$ROOT"/examples/*.yaml; do
	expect 0 tterm --check "$example"
	[ ! -s err ] || fail "--check of $example writes to the error stream"
done
no_segment
[ ! -e results ] || fail "--check made a result folder"

# What is printed loads to the same.
scenario </dev/null
expect 0 tterm --check scenario.yaml
expect 0 tterm --print-config scenario.yaml
mv out first.yaml
expect 0 tterm --print-config first.yaml
diff first.yaml out >&2 || fail "--print-config does not load to the same"
expect 0 tterm --print-config --set tls.tickets.rotate=0s scenario.yaml
has out 'rotate: *0'

# refused MESSAGE, of the scenario on standard input
refused()
{
	scenario
	expect 2 tterm --check scenario.yaml
	has err "^(tterm: )?scenario\.yaml:[0-9]+.*$1"
	[ ! -s out ] || fail "an error on the output"
}

refused 'handshake_timeout' <<'END'
terminator: {handshake_timeot: 10s}
END
refused '400ms' <<'END'
terminator: {handshake_timeout: 400}
END
refused 'backlog' <<'END'
terminator: {backlog: 0}
END
refused 'backlog' <<'END'
terminator: {backlog: 10, backlog: 20}
END
refused 'reuseport' <<'END'
terminator: {accept: sharde}
END
expect 2 tterm --check nowhere.yaml
has err 'nowhere\.yaml'
