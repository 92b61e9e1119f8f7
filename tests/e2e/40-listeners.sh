#!/bin/bash
# SPDX-License-Identifier: MIT
# Several addresses at once, the wildcard, and a server that nobody visited: "n/a"
# and never a NaN.
. "$(dirname "$0")/lib.sh"
need curl

scenario <<'EOF'
workers: {count: 2}
EOF
six=
[ -e /proc/net/if_inet6 ] && six=', "[::1]:0"'
serve --set "terminator.listen=[\"127.0.0.1:0\", \"0.0.0.0:0\"$six]"
for address in $(value segment.json "$LISTEN" | tr -d ,); do
	address=${address/0.0.0.0/127.0.0.9}
	curl -sS -k --max-time 10 -o body "https://$address/bytes/100" ||
		fail "$address does not answer"
	[ "$(wc -c <body)" -eq 100 ] || fail "$address: wrong body"
done
stop INT
has tterm.out '^  all '
hasnt tterm.out 'nan|NaN|inf'

serve
stop INT
has tterm.out '^  all +n/a +n/a'
hasnt tterm.out 'nan|NaN|inf'
