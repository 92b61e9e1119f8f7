#!/bin/bash
# SPDX-License-Identifier: MIT
# The tables (*.def): every macro that rows use is undefined at the end, no row is
# there twice, and what one table names in another exists. Rows begin in column 1.
#
# ROOT=DIR checks another tree. Exit 1 with one line per fault.
set -u
cd "${ROOT:-$(dirname "$0")/..}" || exit 2

faults=0
fault()
{
	echo "tables: $*" >&2
	faults=$((faults + 1))
}

# Lines "MACRO key line": the key is the first argument, or two where one does
# not tell rows apart.
rows()
{
	sed -n -E 's/^([A-Z][A-Z0-9_]*)\((.*)/\1 \2/p' "$1" | awk '{
		macro = $1; sub(/^[^ ]+ */, ""); n = split($0, arg, / *, */)
		key = arg[1]; sub(/\).*/, "", key)
		if (macro ~ /^(ENUM|EDGE)$/)
			key = key "," arg[2]
		gsub(/[ \t]/, "", key)
		print macro, key
	}'
}

check_undef()
{
	local file=$1 macro

	for macro in $(rows "$file" | cut -d' ' -f1 | sort -u); do
		grep -q "^#undef $macro\$" "$file" ||
			fault "$file: $macro is not undefined at the end"
		# After the last row, or the rows behind it would not compile.
		awk -v m="$macro" '
			index($0, m "(") == 1 { row = NR }
			$0 == "#undef " m { undef = NR }
			END { exit !(undef > row) }' "$file" ||
			fault "$file: #undef $macro stands before its last row"
	done
}

check_twice()
{
	local twice

	twice=$(rows "$1" | sort | uniq -d)
	[ -z "$twice" ] || fault "$1: twice: ${twice//$'\n'/; }"
}

# check_known FILE ARG TABLE: argument ARG of every row names a row of TABLE.
check_known()
{
	local file=$1 macro=$2 arg=$3 table=$4 name

	[ -e "$file" ] && [ -e "$table" ] || return
	while read -r name; do
		[ "$name" = - ] && continue
		rows "$table" | awk -v n="$name" '$2 == n { found = 1 }
			END { exit !found }' ||
			fault "$file: $macro names $name, which $table does not have"
	done < <(sed -n -E "s/^$macro\((.*)/\1/p" "$file" |
		awk -F'[ ]*,[ ]*' -v a="$arg" '{ gsub(/[ \t"]/, "", $a); print $a }' |
		sort -u)
}

tables=()
while IFS= read -r f; do
	tables+=("$f")
done < <(find shm config workers terminator tools -name '*.def' | sort)
[ ${#tables[@]} -gt 0 ] || fault "no tables found"

nrows=0
for table in "${tables[@]}"; do
	n=$(rows "$table" | wc -l)
	[ "$n" -gt 0 ] || fault "$table: no rows"
	nrows=$((nrows + n))
	check_undef "$table"
	check_twice "$table"
	grep -rqF "#include \"$table\"" --include='*.[ch]' . ||
		fault "$table: nobody includes it"
done
check_known shm/histograms.def HISTOGRAM 4 shm/counters.def
check_known workers/states.def EDGE 1 workers/states.def
check_known workers/states.def EDGE 2 workers/states.def

[ $faults -eq 0 ] || exit 1
echo "tables: ${#tables[@]} tables, $nrows rows"
