#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the unit-test programs it is given, one after the other, all of them
# though one fails; each prints Check's closing line. Exit 1 if any failed.
set -u

if [ $# -eq 0 ]; then
	echo "unit: there is no tests/unit/*/check_*.c" >&2
	exit 1
fi
failed=()
for program; do
	timeout -k 5 "${UNIT_LIMIT:-300}" "$program"
	status=$?
	[ $status -eq 0 ] && continue
	[ $status -eq 124 ] && echo "unit: $program: out of time" >&2
	failed+=("${program##*/}($status)")
done
if [ ${#failed[@]} -gt 0 ]; then
	echo "unit: FAILED: ${failed[*]}" >&2
	exit 1
fi
echo "unit: all $# programs passed"
