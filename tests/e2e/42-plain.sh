#!/bin/bash
# SPDX-License-Identifier: MIT
# The same worker without TLS: plain HTTP beside HTTPS, counted apart.
. "$(dirname "$0")/lib.sh"
need curl wrk

scenario <<'EOF'
workers: {count: 2}
terminator: {listen_plain: ["127.0.0.1:0"]}
EOF
serve
plain=$(value segment.json "$LISTEN" | sed -n 's|.*\(http://[^,]*\).*|\1|p')
[ -n "$plain" ] || fail "no plain listener"
get() { curl -sS --max-time 20 "$@"; }
[ "$(get "$plain/bytes/65536" | wc -c)" -eq 65536 ] || fail "/bytes/65536"
[ "$(get "$plain/bytes/52428800" | wc -c)" -eq 52428800 ] || fail "50 MiB"
[ "$(get -k "https://$ADDRESS/bytes/77" | wc -c)" -eq 77 ] || fail "https"
wrk -t1 -c8 -d1s "$plain/" >wrk.out 2>&1 || fail "wrk"
hasnt wrk.out 'Socket errors|Non-2xx'
segment && json segment.json '.total.workers.counters |
	.conn_plain >= 10 and .conn_accepted == 1 and .hs_full == 1 and
	.requests > 100' 'all(.slots[].identity; .holds)'
rested() {
	segment && jq -e '.total.workers.counters.conn_open == 0' segment.json
}
eventually 5 rested
stop TERM
has tterm.out 'in progress'
