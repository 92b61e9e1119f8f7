#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the end-to-end tests, one after the other (they measure).
#
#   tests/e2e/run.sh [TEST...]    by number, name or file; default: all
#
# Environment: TTERM_BIN where the programs lie, TTERM_VARIANT how they were
# built, KEEP=1 keeps the temporary folders. A test may ask for more time than 60
# seconds by a line "# limit: SECONDS". Exit 1 if any failed.
set -u

here=$(cd "$(dirname "$0")" && pwd)
export TTERM_BIN=${TTERM_BIN:-$here/../../build/release}
export TTERM_VARIANT=${TTERM_VARIANT:-release}
for program in tterm tdrive tstat; do
	[ -x "$TTERM_BIN/$program" ] && continue
	echo "e2e: $TTERM_BIN/$program is not built: make all" >&2
	exit 2
done

slow=1
case $TTERM_VARIANT in asan | tsan | debug) slow=4 ;; esac

choose()
{
	local want file found

	[ $# -gt 0 ] || set -- ''
	for want; do
		found=
		want=${want##*/}
		for file in "$here"/[0-9][0-9]-*.sh; do
			case ${file##*/} in
			"$want" | "$want.sh" | "$want"-*) ;;
			*) [ -z "$want" ] || continue ;;
			esac
			tests+=("$file")
			found=1
		done
		[ -n "$found" ] && continue
		echo "e2e: there is no test $want" >&2
		exit 2
	done
}

# Processes that still carry this test's mark. The mark is in what they inherit,
# so that one which has left its process group is found too.
left_running()
{
	grep -lzxF "TTERM_E2E=$1" /proc/[0-9]*/environ 2>/dev/null |
		sed 's|[^0-9]||g'
}

# Kills what a test left running, and says what it was.
sweep()
{
	local pid

	for pid in $(left_running "$1"); do
		echo "left running: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
		kill -KILL "$pid"
	done 2>/dev/null
}

run_one()
{
	local file=$1 limit status mark begin ms leftover

	limit=$(sed -n 's/^# limit: \([0-9]*\)$/\1/p' "$file")
	limit=$((${limit:-60} * slow))
	mark=$$-$RANDOM$RANDOM
	begin=$(date +%s%N)
	mkdir "$tmp/$mark"
	{
		TTERM_E2E=$mark TMPDIR=$tmp/$mark timeout -k 10 $limit \
			bash "$file" >"$log" 2>&1 </dev/null
	} 2>/dev/null
	status=$?
	leftover=$(sweep $mark)
	[ -n "${KEEP:-}" ] || rm -rf "${tmp:?}/$mark"
	ms=$((($(date +%s%N) - begin) / 1000000))
	word=ok
	note=
	case $status in
	0) ;;
	77)
		word=skip
		note="  $(sed -n 's/^skip: //p' "$log" | tail -n 1)"
		;;
	124 | 137)
		word=FAIL
		note="  not over within $limit s"
		;;
	*) word=FAIL ;;
	esac
	if [ -n "$leftover" ]; then
		word=FAIL
		echo "$leftover" >>"$log"
	fi
	printf '%-5s %-28s %4d.%d s%s\n' "$word" "$(basename "$file" .sh)" \
		$((ms / 1000)) $((ms % 1000 / 100)) "$note"
	[ $word != FAIL ] || sed 's/^/    /' "$log"
}

tests=()
choose "$@"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tterm-e2e.XXXXXX") || exit 1
log=$tmp/log
trap '[ -n "${KEEP:-}" ] || rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
passed=0
failed=0
skipped=0
for file in "${tests[@]}"; do
	run_one "$file"
	case $word in
	ok) passed=$((passed + 1)) ;;
	skip) skipped=$((skipped + 1)) ;;
	FAIL) failed=$((failed + 1)) ;;
	esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
