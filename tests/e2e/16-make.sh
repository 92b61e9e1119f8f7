#!/bin/bash
# SPDX-License-Identifier: MIT
# The Makefile compiles again what it must, and nothing else.
. "$(dirname "$0")/lib.sh"

build=$T/build
compiled()
{
	expect 0 make -C "$ROOT" BUILD_ROOT="$build" VARIANT=debug "$@" \
		"$build/debug/libshm.a"
	grep -c '^  CC ' out
}

all=$(compiled COMMIT=one) || exit 1
[ "$all" -gt 1 ] || fail "$all files compiled at first"
[ "$(compiled COMMIT=one)" = 0 ] || fail "nothing changed: $(cat out)"
[ "$(compiled COMMIT=two)" = 1 ] || fail "a new commit: $(cat out)"
has out '^  CC +shm/base.c'
[ "$(compiled COMMIT=two CFLAGS=-DOTHER)" = "$all" ] || fail "new flags: $(cat out)"
grep -q 'shm/counters\.def' "$build"/debug/shm/*.d ||
	fail "no object depends on shm/counters.def"

expect 2 make -C "$ROOT" VARIANT=nonsense all
has err 'nonsense.*release, debug, asan or tsan'
expect 2 make -C "$ROOT" BUILD_ROOT="$build" bench
has err 'make run'
expect 0 make -C "$ROOT" help
for target in all run test lint docs bench install uninstall clean; do
	has out "^make $target "
done
expect 0 make -C "$ROOT" BUILD_ROOT="$build" clean
[ ! -e "$build" ] || fail "clean left $(find "$build")"
