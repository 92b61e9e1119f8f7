# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by every end-to-end test. A test runs in a temporary folder of its own
# ($T, the working directory), with tterm, tdrive and tstat in PATH, and uses
# $NAME for its scenario, so that tests can run beside each other. Whatever it
# starts is killed when it ends, however it ends; its logs are shown if it fails.
#
# A test passes by reaching its end. Nothing in a test waits by sleeping: it waits
# for something (`eventually`, `serve`, `finished`), within a bound.
set -u -o pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TTERM_BIN=${TTERM_BIN:-$ROOT/build/release}
VARIANT=${TTERM_VARIANT:-release}
PATH=$TTERM_BIN:$PATH
# A make that runs the tests is not the make that a test runs.
unset MAKEFLAGS MFLAGS MAKELEVEL
TEST=$(basename "$0" .sh)
NAME=e2e-${TEST%%-*}-$$
T=$(mktemp -d "${TMPDIR:-/tmp}/tterm-e2e.XXXXXX") || exit 1
cd "$T" || exit 1
declare -A started=()
# What a sanitizer has to say goes to files, of whichever process: _end() looks.
for _v in ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS; do
	export "$_v=${!_v:+${!_v}:}log_path=$T/sanitizer"
done
# Sanitizers make everything slower: bounds are this many times longer.
SLOW=1
case $VARIANT in asan | tsan | debug) SLOW=4 ;; esac

# ---- the end of a test ----
_end()
{
	local status=$? pid

	trap - EXIT
	for pid in "${started[@]}"; do
		# Started by setsid: the process group has the same number.
		{ kill -KILL -- "-$pid" && wait "$pid"; } 2>/dev/null
	done
	if ls "$T"/sanitizer.* >/dev/null 2>&1; then
		echo "$TEST: a sanitizer found a fault" >&2
		status=1
	fi
	[ $status -eq 0 ] || [ $status -eq 77 ] || _dump
	rm -f "/dev/shm/tterm.$NAME"*
	cd / && [ -n "${KEEP:-}" ] && echo "kept: $T" >&2
	[ -n "${KEEP:-}" ] || rm -rf "$T"
	exit $status
}
trap _end EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

_dump()
{
	local f

	for f in scenario.yaml out err ./*.out ./*.err "$T"/sanitizer.*; do
		[ -s "$f" ] || continue
		echo "---- ${f#./}"
		tail -n 60 "$f"
	done
} >&2

fail()
{
	echo "$TEST: $*" >&2
	exit 1
}

skip()
{
	echo "skip: $*"
	exit 77
}

# need COMMAND...: skips the test where one is not installed.
need()
{
	local c

	for c; do
		command -v "$c" >/dev/null || skip "$c is not installed"
	done
}

# ---- commands that end ----
# expect STATUS COMMAND...: runs it to its end; its output lies in out and err.
expect()
{
	local want=$1 got

	shift
	"$@" >out 2>err
	got=$?
	[ $got -eq "$want" ] || fail "exit status $got, not $want: $*"
}

# has FILE REGEX / hasnt FILE REGEX: grep -E, over what a program printed.
has()
{
	grep -qE -e "$2" "$1" || fail "$1 has no line with: $2"
}

hasnt()
{
	local line

	line=$(grep -m 1 -E -e "$2" "$1") || return 0
	fail "$1 has: $line"
}

# json FILE FILTER...: each jq filter is true of the file.
json()
{
	local file=$1 filter

	shift
	for filter; do
		jq -e "$filter" "$file" >json.out ||
			fail "$file: not true: $filter"
	done
}

# value FILE FILTER: what the jq filter makes of the file; fails on null.
value()
{
	jq -e -r "$2" "$1" || fail "$1: no $2"
}

# ---- commands that go on ----
# eventually SECONDS COMMAND...: until it succeeds, or the test fails.
eventually()
{
	local limit=$(($1 * SLOW)) begin=$SECONDS

	shift
	until "$@" >/dev/null 2>&1; do
		[ $((SECONDS - begin)) -le $limit ] ||
			fail "not within $limit s: $*"
		read -r -t 0.05 <>"$T/.never" || true
	done
}
mkfifo "$T/.never"

# start WORD COMMAND...: in the background, in a process group of its own; output
# in WORD.out and WORD.err, process id in ${started[WORD]}. A shell's background
# job ignores SIGINT: not so here. Returns once signals reach the command itself.
start()
{
	local word=$1

	shift
	setsid env --default-signal=INT,QUIT "$@" >"$word.out" 2>"$word.err" \
		</dev/null &
	started[$word]=$!
	eventually 10 _begun "${started[$word]}"
}

_begun()
{
	local group exe

	_gone "$1" && return
	group=$(cut -d' ' -f5 "/proc/$1/stat")
	exe=$(readlink "/proc/$1/exe")
	case ${exe##*/}:$group in
	setsid:* | env:*) return 1 ;;
	*:"$1") ;;
	*) return 1 ;;
	esac
}

running()
{
	kill -0 "${started[$1]}" 2>/dev/null
}

_gone()
{
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"
}

# finished WORD STATUS SECONDS: ended by itself, so, and nothing of its process
# group is left.
finished()
{
	local pid=${started[$1]} got

	eventually "$3" _gone "$pid"
	wait "$pid"
	got=$?
	[ "$got" -eq "$2" ] || fail "$1 ended with $got, not $2"
	unset "started[$1]"
	_group_gone "$pid" || fail "$1 left processes: $(pgrep -a -g "$pid")"
}

# Dead ones that nobody has reaped yet do not count.
_group_gone()
{
	local pid

	for pid in $(pgrep -g "$1"); do
		_gone "$pid" || return 1
	done
}

# signal WORD SIGNAL
signal()
{
	kill "-$2" "${started[$1]}" || fail "$1 is not running"
}

# ---- tterm ----
# scenario <<EOF ... EOF: scenario.yaml, under this test's name.
scenario()
{
	{
		echo "scenario: $NAME"
		cat
	} >scenario.yaml
}

# What tstat's JSON says of a tterm that accepts, and where.
READY='[.slots[] | select(.role == "worker")] | length > 0 and
	all(.[]; .state == "running")'
LISTEN=.info.listen

# The running segment as JSON, into segment.json.
segment()
{
	tstat --json "$NAME" >segment.json 2>segment.err
}

_ready()
{
	segment && jq -e "$READY" segment.json
}

# serve [OPTION...]: tterm on scenario.yaml in the background; returns once every
# worker accepts. ADDRESS, HOST and PORT are then those of the first listener.
# shellcheck disable=SC2034 # for the tests
serve()
{
	start tterm tterm "$@" scenario.yaml
	eventually 20 _ready_or_ended
	running tterm || fail "tterm ended while starting"
	ADDRESS=$(value segment.json "$LISTEN") || exit 1
	ADDRESS=${ADDRESS%%,*}
	HOST=${ADDRESS%:*}
	HOST=${HOST#[}
	HOST=${HOST%]}
	PORT=${ADDRESS##*:}
}

_ready_or_ended()
{
	! running tterm || _gone "${started[tterm]}" || _ready
}

# stop [SIGNAL]: SIGTERM, say: it must end with 0, leaving nothing.
stop()
{
	signal tterm "${1:-TERM}"
	finished tterm 0 20
	no_segment
}

no_segment()
{
	[ ! -e "/dev/shm/tterm.$NAME" ] || fail "the segment was left behind"
}

# measure [OPTION...]: scenario.yaml to a result. A machine that does other things
# beside the tests makes figures doubtful, and a short window has few handshakes:
# these doubts are right and no fault here. Any other is, but for $ALLOW.
# shellcheck disable=SC2034 # RESULT is for the tests
measure()
{
	local status=0

	rm -rf results
	tterm "$@" scenario.yaml >out 2>err || status=$?
	[ $status -eq 0 ] || [ $status -eq 3 ] ||
		fail "exit status $status: tterm $* scenario.yaml"
	RESULT=$(printf '%s\n' results/*/result.json | tail -n 1)
	[ -s "$RESULT" ] || fail "no result in results/"
	json "$RESULT" '[.doubts[].name, .phases[].doubts[].name] -
		["busy-machine", "few-handshakes", "unsteady", "core-speed",
		"noisy-neighbour", "worker-stalled", "torn-snapshot"'"${ALLOW:+, \"$ALLOW\"}"'] == []'
	no_segment
}

# shellcheck disable=SC2034 # RESULT is for the tests
# run_tterm STATUS [OPTION...]: scenario.yaml to its end; RESULT is its result.
run_tterm()
{
	expect "$1" tterm "${@:2}" scenario.yaml
	RESULT=$(printf '%s\n' results/"$NAME"-*/result.json | tail -n 1)
	[ -s "$RESULT" ] || fail "no result in results/"
	no_segment
}
