#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# The examples of other servers as targets: their configurations are what they say,
# and tterm prices them. Those that are not installed are named at the end.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
targets=$ROOT/examples/targets
need openssl curl

free_port() { # that nobody listens on
	local port

	for _ in {1..100}; do
		port=$((20000 + RANDOM % 10000))
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue
		echo $port
		return
	done
	fail "no free port"
}

# with STATUS SERVER COMMAND...: as `expect`, with the server on $PORT.
with() {
	expect "$1" env RUN=run PORT="$PORT" BACKEND_PORT="$BACKEND_PORT" \
		bash "$targets/with.sh" "${@:2}"
}

# Both versions, cipher and group, two tickets, 1 KiB.
# shellcheck disable=SC2317 # with() runs it, in a shell of its own
settings() {
	printf 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' |
		openssl s_client -connect "127.0.0.1:$1" -tls1_3 -ign_eof \
			-CAfile run/ca.pem -verify_return_error >tls13.out 2>&1
	openssl s_client -connect "127.0.0.1:$1" -tls1_2 -CAfile run/ca.pem \
		-verify_return_error </dev/null >tls12.out 2>&1
	openssl s_client -connect "127.0.0.1:$1" -groups P-256 \
		</dev/null >group.out 2>&1
	curl -sS --cacert run/ca.pem -o body.out "https://localhost:$1/"
}

check_settings() {
	export -f settings
	with 0 "$1" bash -c "settings $PORT"
	has tls13.out 'TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384'
	has tls13.out 'Verif.*OK'
	has tls13.out '(Temp Key|Negotiated TLS1.3 group): X25519'
	[ "$(grep -c 'Post-Handshake New Session Ticket' tls13.out)" -eq 2 ] ||
		fail "$1 does not send two tickets"
	has tls12.out 'TLSv1.2, Cipher is ECDHE-ECDSA-AES256-GCM-SHA384'
	has tls12.out 'ticket lifetime hint: 7200'
	hasnt group.out 'Cipher is (TLS_|ECDHE)'
	[ "$(wc -c <body.out)" -eq 1024 ] || fail "the body of $1 is not 1 KiB"
}

# The driver alone: every ticket is taken.
check_resumption() {
	with 0 "$1" tdrive "https://127.0.0.1:$PORT" --ca run/ca.pem \
		--name localhost --handshake resumed --warmup 100ms \
		--duration 500ms --connections 8 --json
	json out '.counters | .hs_resumed > 20 and .hs_full == 0'
}

# tterm, and what the server's processes have used when it has ended, in ns: their
# run time, by the scheduler.
# shellcheck disable=SC2317 # with() runs it, in a shell of its own
priced() {
	tterm --set "scenario=$NAME" --set "target.address=127.0.0.1:$PORT" \
		--set phases.0.duration=1s --set phases.0.warmup=100ms \
		--set phases.1.duration=1s --set phases.1.warmup=100ms "$1"
	echo $? >status.out
	for pid in $(cat "$2") $(pgrep -P "$(cat "$2")"); do
		cut -d' ' -f1 "/proc/$pid/schedstat"
	done | awk '{ sum += $1 } END { print sum }' >used.out
}

# The figures are of this server and hold most of what it used; the rest is start
# and warm-up.
check_price() {
	local used

	export -f priced
	export NAME PORT
	rm -rf results
	with 0 "$1" bash -c "priced $targets/$1.yaml run/$1.pid"
	has status.out '^[03]$'
	RESULT=$(printf '%s\n' results/*/result.json | tail -n 1)
	[ -s "$RESULT" ] || fail "no result in results/"
	json "$RESULT" '.phases | length == 2' \
		'.phases[0].drivers_total.counters | .hs_full > 50 and .hs_resumed == 0' \
		'.phases[1].drivers_total.counters | .hs_resumed > 50 and .hs_full == 0' \
		'all(.phases[]; .is_result)' \
		"all(.phases[].target; .name == \"$1\" and .memory_bytes > 500000)" \
		'all(.phases[].target; .cpu_ns > 0 and .processes != [])' \
		'all(.phases[].target; [.processes[].cpu_ns] | add > 0)'
	used=$(cat used.out)
	json "$RESULT" "[.phases[].target.cpu_ns] | add |
		. <= $used * 1.02 and . >= $used * 0.4"
	has out "$1"
	no_segment
}

# A master that cannot price targets yet says so; then nothing is pretended.
is_wired() {
	local status=0

	tterm --check "$targets/nginx.yaml" >check.out 2>check.err || status=$?
	[ $status -eq 0 ] && return
	has check.err 'target: this version of tterm cannot do that yet'
	return 1
}

missing=
tested=
wired=yes
is_wired || wired=
for server in nginx haproxy hitch; do
	if ! command -v $server >/dev/null; then
		missing+=" $server"
		continue
	fi
	PORT=$(free_port) || exit 1
	BACKEND_PORT=$(free_port) || exit 1
	check_settings $server
	check_resumption $server
	[ -z "$wired" ] || check_price $server
	tested+=" $server"
done
[ -n "$tested" ] || skip "not installed:$missing"
[ -n "$wired" ] || skip "targets are not wired yet (but$tested: settings and" \
	"resumption are right)"
[ -z "$missing" ] || skip "not installed:$missing (but$tested: right)"
