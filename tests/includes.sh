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

files=()
while IFS= read -r f; do
	files+=("$f")
done < <(find shm config workers terminator tools tests -name '*.[ch]' | sort)
if [ ${#files[@]} -eq 0 ]; then
	echo "includes: no C files found" >&2
	exit 1
fi

faults=0
# Standard input: the names of all files there are. Arguments: files to check.
find shm config workers terminator tools tests -type f |
	awk '
function fault(text)
{
	print "includes: " file ": " text | "cat >&2"
	faults++
}

function check_project(what,	from, to)
{
	from = to = ""
	if (what !~ "/") {
		fault("\"" what "\" is not written from the root")
		return
	}
	from = file; sub("/.*", "", from)
	to = what; sub("/.*", "", to)
	if (index(arrows[from], " " to " ") == 0)
		fault(from "/ may not include " what)
	# The master knows a worker by these two headers only.
	if (from == "terminator" && to == "workers" &&
	    what !~ "^workers/(wrk|tls_ctx)[.]h$")
		fault("of workers/ only wrk.h and tls_ctx.h, not " what)
	if (!(what in there))
		fault("there is no " what)
}

# A test may name the library of what it tests.
function check_library(what)
{
	if (file ~ "^tests/")
		return
	if (what ~ "^liburing([.]h|/)" &&
	    file !~ "^(workers/ur[.][ch]|tools/tdrive_.*)$")
		fault("liburing is for workers/ur.* and tools/tdrive_*")
	if (what ~ "^openssl/" && file !~ "/[^/]*tls[^/]*$")
		fault("OpenSSL is for files named *tls*")
	if (what ~ "^(cyaml/|yaml[.]h)" && file !~ "^config/(raw|yaml)[.]c$")
		fault(what " is for config/raw.c and config/yaml.c")
}

# In x.c its own header comes first (x.h, or x_int.h for what only its folder
# sees), so that a header which leans on another is found where it is written.
function check_first(what,	own)
{
	own = file
	if (sub("[.]c$", ".h", own) == 0 || !(own in there) || what == own)
		return
	sub("[.]h$", "_int.h", own)
	if (what != own)
		fault("its own header does not come first")
}

function end_file(	want)
{
	if (file == "" || file ~ "^tests/" || file ~ "[.]c$")
		return
	want = toupper(file)
	gsub("[/.-]", "_", want)
	if (guard != want)
		fault("no include guard " want)
}

BEGIN {
	arrows["shm"] = " shm "
	arrows["config"] = " config shm "
	arrows["workers"] = " workers config shm "
	arrows["terminator"] = " terminator workers config shm "
	arrows["tools"] = " tools config shm "
	arrows["tests"] = " tests shm config workers terminator tools "
}
FILENAME == "-" { there[$0] = 1; next }
FNR == 1 {
	end_file()
	file = FILENAME
	guard = ""
	first = 1
	if ($0 !~ "SPDX-License-Identifier: MIT")
		fault("the first line is not the SPDX line")
}
/^#ifndef / && guard == "" { guard = $2 }
/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
	what = $0
	sub("^[^<\"]*[<\"]", "", what)
	sub("[>\"].*", "", what)
	if (first)
		check_first(what)
	first = 0
	if ($0 ~ "include[ \t]*\"")
		check_project(what)
	else
		check_library(what)
}
END {
	end_file()
	exit faults > 0
}' - "${files[@]}" || faults=1

if [ "${1:-}" = --alone ]; then
	pkgs=$(pkg-config --cflags openssl liburing libcyaml yaml-0.1 jansson)
	for file in "${files[@]}"; do
		case $file in *.c) continue ;; esac
		# shellcheck disable=SC2086 # flags are words
		${CC:-cc} -std=gnu11 -D_GNU_SOURCE -I. $pkgs -Wall -Wextra \
			-Werror -fsyntax-only -x c -include "$file" /dev/null ||
			{
				echo "includes: $file: does not compile alone" >&2
				faults=1
			}
	done
fi

[ $faults -eq 0 ] || exit 1
echo "includes: ${#files[@]} files, all arrows right"
