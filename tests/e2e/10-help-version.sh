#!/bin/bash
# SPDX-License-Identifier: MIT
# Every program says what it is, on the right stream and with the right status.
. "$(dirname "$0")/lib.sh"

for program in tterm tdrive tstat; do
	expect 0 $program --help
	has out "^Usage: $program"
	[ ! -s err ] || fail "$program --help writes to the error stream"
	! grep -nE '^.{101}' out || fail "$program --help is wider than 100"

	expect 0 $program --version
	has out "^$program [0-9]+\.[0-9]+\.[0-9]+ \(.+\)"

	expect 2 $program --no-such-option
	[ ! -s out ] || fail "$program prints an error to its output"
	has err 'no-such-option'
done
expect 0 tterm --version
has out '^OpenSSL 3\.'
expect 2 tterm
has err 'no scenario'
expect 2 tterm --describe nothing
has err 'options.*counters.*states'
for page in options counters states; do
	expect 0 tterm --describe $page
	has out '^# '
done
