#!/bin/bash
# SPDX-License-Identifier: MIT
# What `make lint` does, cheapest first; all of it though one part fails. The
# Makefile hands over TTERM_BIN (where tterm lies) and BUILD_ROOT.
#
#   tests/lint.sh [PART...]     only these parts
set -u
cd "$(dirname "$0")/.." || exit 2

build=${BUILD_ROOT:-build}/lint
jobs=$(nproc)

c_files()
{
	find shm config workers terminator tools tests -name '*.c' "$@" | sort
}

shell_files()
{
	{
		find . -path "./${BUILD_ROOT:-build}" -prune -o -name '*.sh' -print
		grep -lE '^#!/bin/(ba)?sh' .ci/*
	} | sort -u
}

# Releases of clang-format differ in what they make of the same file: one is
# gone by, that of Debian 12.
part_format()
{
	local tool version file rc=0

	for tool in clang-format-14 clang-format; do
		version=$($tool --version 2>/dev/null) || continue
		[[ $version =~ version\ 14\. ]] || continue
		while read -r file; do
			"$tool" "$file" | diff -q "$file" - >/dev/null && continue
			echo "$file is not formatted: make format" >&2
			rc=1
		done < <(c_files -o -name '*.h')
		return $rc
	done
	skipped="clang-format 14 is not here"
}

part_shell()
{
	shell_files | xargs shellcheck
}

part_includes()
{
	bash tests/includes.sh --alone
}

part_tables()
{
	bash tests/tables.sh
}

# The pages that the tables make, against what is committed.
part_pages()
{
	local page what rc=0

	while read -r what page; do
		"$TTERM_BIN/tterm" --describe "$what" | diff -u "$page" - && continue
		echo "$page is not what the tables say: make docs" >&2
		rc=1
	done <<-END
		options config/REFERENCE.md
		counters shm/COUNTERS.md
		states workers/STATES.md
	END
	return $rc
}

build_with()
{
	local log=$build/$1.log

	mkdir -p "$build"
	make -s BUILD_ROOT="$build/$1" VARIANT=release CC="$1" WERROR=1 \
		all build-tests >"$log" 2>&1 && return
	grep -vE '^  (CC|AR|LINK) ' "$log" >&2
	return 1
}

part_gcc()
{
	build_with gcc
}

part_clang()
{
	build_with clang
}

part_tidy()
{
	local flags

	flags=$(pkg-config --cflags openssl liburing libcyaml yaml-0.1 jansson check)
	# shellcheck disable=SC2016 # for the inner shell
	c_files | xargs -P "$jobs" -n 4 sh -c '
		flags=$1; shift
		out=$(clang-tidy --quiet "$@" -- -std=gnu11 -D_GNU_SOURCE -I. $flags \
			2>/dev/null) && exit
		printf "%s\n" "$out" >&2; exit 1' sh "$flags"
}

parts=("$@")
[ $# -gt 0 ] || parts=(format shell includes tables pages gcc clang tidy)
unset MAKEFLAGS MFLAGS MAKELEVEL
failed=()
for part in "${parts[@]}"; do
	begin=$SECONDS
	skipped=
	word=ok
	"part_$part" || { word=FAIL && failed+=("$part"); }
	[ -n "$skipped" ] && word="skipped: $skipped"
	printf 'lint: %-9s %3d s  %s\n' "$part" $((SECONDS - begin)) "$word"
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "lint: FAILED: ${failed[*]}" >&2
	exit 1
fi
