#!/bin/bash
# SPDX-License-Identifier: MIT
# What real clients make of it: curl, openssl s_client, wrk, h2load.
. "$(dirname "$0")/lib.sh"
need curl openssl wrk h2load

scenario <<'EOF'
workers: {count: 2}
terminator: {respond: {body: 2KiB}}
EOF
serve
base=https://$ADDRESS
get() { curl -sS -k --max-time 20 "$@"; }

get "$base/" >body || fail "curl: no answer"
[ "$(wc -c <body)" -eq 2048 ] || fail "body of $(wc -c <body) bytes, not 2048"
[ "$(get "$base/bytes/65536" | wc -c)" -eq 65536 ] || fail "/bytes/65536"
[ "$(get "$base/bytes/0" | wc -c)" -eq 0 ] || fail "/bytes/0"
[ "$(get "$base/bytes/104857600" | wc -c)" -eq 104857600 ] || fail "100 MiB"
get -I "$base/bytes/77" >head.out
has head.out '^HTTP/1.1 200'
has head.out '^[Cc]ontent-[Ll]ength: 77'
code() { get -o /dev/null -w '%{http_code}' "$@"; }
[ "$(code -X DELETE "$base/")" = 405 ] || fail "DELETE is not 405"
[ "$(code -H "X: $(head -c 20000 /dev/zero | tr '\0' x)" "$base/")" = 431 ] ||
	fail "a giant header is not 431"
[ "$(code "$base/bytes/1073741825")" = 413 ] ||
	[ "$(code "$base/bytes/1073741825")" = 400 ] ||
	fail "more than 1 GiB is not refused"
# Three requests on one connection.
[ "$(get -w '%{num_connects} ' -o /dev/null "$base/" -o /dev/null "$base/" \
	-o /dev/null "$base/")" = '1 0 0 ' ] || fail "no keep-alive"

client() { openssl s_client -connect "$ADDRESS" "$@" </dev/null 2>&1; }
client -tls1_3 | grep -q 'TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384' ||
	fail "s_client TLS 1.3"
client -tls1_2 -reconnect >reconnect.out
[ "$(grep -c '^Reused, TLSv1.2' reconnect.out)" -ge 4 ] ||
	fail "s_client -reconnect: $(grep -E '^(New|Reused)' reconnect.out)"
# TLS 1.3: the ticket comes after the handshake, so ask something first.
printf 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' |
	openssl s_client -connect "$ADDRESS" -tls1_3 -ign_eof -sess_out sess \
		>first.out 2>&1
for _ in 1 2 3 4; do
	client -tls1_3 -sess_in sess >again.out
	has again.out '^Reused, TLSv1.3'
done

wrk -t1 -c8 -d1s "$base/" >wrk.out 2>&1 || fail "wrk"
has wrk.out 'requests in'
hasnt wrk.out 'Socket errors|Non-2xx'
h2load --h1 -n 200 -c 4 "$base/" >h2load.out 2>&1 || fail "h2load"
has h2load.out '200 succeeded, 0 failed'
segment || fail "no segment"
json segment.json '.total.workers.counters | .conn_accepted == .hs_full + .hs_resumed +
	.failed_eof + .failed_reset + .failed_protocol + .failed_alert +
	.failed_no_shared + .hs_in_progress' \
	'.total.workers.counters.hs_resumed >= 8' '.total.workers.counters.requests > 200'
stop
