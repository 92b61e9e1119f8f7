#!/bin/bash
# SPDX-License-Identifier: MIT
# The include arrows: who may include whom, and which files may name a library.
#
#   terminator -> workers -> config -> shm        tools -> config, shm
#
#   tests/includes.sh            checks the text of all files (instant)
#   tests/includes.sh --alone    and compiles each header by itself
#
# ROOT=DIR checks another tree. Exit 1 with one line per fault.
set -u
cd "${ROOT:-$(dirname "$0")/..}" || exit 2

faults=0
fault()
{
	echo "includes: $*" >&2
	faults=$((faults + 1))
}

# Folders that files of folder $1 may include from.
arrows()
{
	case $1 in
	shm) echo "shm" ;;
	config) echo "config shm" ;;
	workers) echo "workers config shm" ;;
	terminator) echo "terminator workers config shm" ;;
	tools) echo "tools config shm" ;;
	tests) echo "tests shm config workers terminator tools" ;;
	esac
}

# The master knows a worker by these two headers only.
check_project()
{
	local file=$1 what=$2 from=${1%%/*} to=${2%%/*}

	case $what in
	*/*) ;;
	*)
		fault "$file: \"$what\" is not written from the root"
		return
		;;
	esac
	[[ " $(arrows "$from") " == *" $to "* ]] ||
		fault "$file: $from/ may not include $what"
	case $from:$what in
	terminator:workers/wrk.h | terminator:workers/tls_ctx.h) ;;
	terminator:workers/*)
		fault "$file: of workers/ only wrk.h and tls_ctx.h, not $what"
		;;
	esac
	[ -e "$what" ] || fault "$file: there is no $what"
}

# A test may name the library of what it tests.
check_library()
{
	local file=$1 what=$2

	case $file in tests/*) return ;; esac
	case $what in
	liburing.h | liburing/*)
		case $file in
		workers/ur.[ch] | tools/tdrive_*) ;;
		*) fault "$file: liburing is for workers/ur.* and tools/tdrive_*" ;;
		esac
		;;
	openssl/*)
		case ${file##*/} in
		*tls*) ;;
		*) fault "$file: OpenSSL is for files named *tls*" ;;
		esac
		;;
	cyaml/* | yaml.h)
		case $file in
		config/raw.c | config/yaml.c) ;;
		*) fault "$file: $what is for config/raw.c and config/yaml.c" ;;
		esac
		;;
	esac
}

# In x.c its own header comes first (x.h, or x_int.h for what only its folder
# sees), so that a header which leans on another is found where it is written.
check_own_first()
{
	local file=$1 own first

	own=${file%.c}.h
	[ "$own" != "$file" ] && [ -e "$own" ] || return
	first=$(sed -n -E 's/^#include "([^"]+)".*/\1/p; /^#include </q' "$file" |
		head -n 1)
	[ "$first" = "$own" ] || [ "$first" = "${own%.h}_int.h" ] ||
		fault "$file: include $own first"
}

check_shape()
{
	local file=$1 guard

	head -n 1 "$file" | grep -q 'SPDX-License-Identifier: MIT' ||
		fault "$file: the first line is not the SPDX line"
	case $file in
	tests/* | *.c) return ;;
	esac
	guard=$(tr 'a-z/.-' 'A-Z___' <<<"$file")
	grep -q "^#ifndef $guard\$" "$file" ||
		fault "$file: no include guard $guard"
}

files=()
while IFS= read -r f; do
	files+=("$f")
done < <(find shm config workers terminator tools tests -name '*.[ch]' | sort)
[ ${#files[@]} -gt 0 ] || fault "no C files found"

for file in "${files[@]}"; do
	while read -r kind what; do
		case $kind in
		project) check_project "$file" "$what" ;;
		library) check_library "$file" "$what" ;;
		esac
	done < <(sed -n -E 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]+)".*/project \1/p
		s/^[[:space:]]*#[[:space:]]*include[[:space:]]*<([^>]+)>.*/library \1/p' "$file")
	case $file in *.c) check_own_first "$file" ;; esac
	check_shape "$file"
done

if [ "${1:-}" = --alone ]; then
	pkgs=$(pkg-config --cflags openssl liburing libcyaml yaml-0.1 jansson)
	for file in "${files[@]}"; do
		case $file in *.c) continue ;; esac
		# shellcheck disable=SC2086 # flags are words
		${CC:-cc} -std=gnu11 -D_GNU_SOURCE -I. $pkgs -Wall -Wextra \
			-Werror -fsyntax-only -x c -include "$file" /dev/null ||
			fault "$file: does not compile alone"
	done
fi

[ $faults -eq 0 ] || exit 1
echo "includes: ${#files[@]} files, all arrows right"
