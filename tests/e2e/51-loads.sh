#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Every kind of load that a phase can ask for, against our own workers: each gives
# a result, both ends agree, and the figure it is about is there.
. "$(dirname "$0")/lib.sh"

scenario <<'EOF'
load: {connections: 16}
phases:
  - {name: mix, handshake: mix, resume: 70%, warmup: 200ms, duration: 2s}
  - {name: refused, handshake: refused, warmup: 100ms, duration: 1s}
  - {name: asking, requests: 4, body: 4KiB, warmup: 100ms, duration: 1s}
  - {name: kept, requests: unlimited, warmup: 100ms, duration: 1s}
  - {name: open, rate: 50/s, arrivals: poisson, warmup: 100ms, duration: 2s}
  - {name: rst, close: rst, warmup: 100ms, duration: 1s}
  - {name: notify, close: notify, warmup: 100ms, duration: 1s}
  - {name: chain, handshake: resumed, ticket_use: chain, connections: 2,
     warmup: 100ms, duration: 1s}
  - {name: plain, transport: tcp, requests: 4, warmup: 100ms, duration: 1s}
  - {name: bare, transport: tcp, warmup: 100ms, duration: 1s}
EOF
# Clients that connect and leave do not wait for the worker: where it has to wait
# for its CPU they fill even a long queue.
ALLOW=backlog-overflow measure
phase() { # NAME FILTER...: true of that phase
	local name=$1 filter

	shift
	for filter; do
		json "$RESULT" ".phases[] | select(.name == \"$name\") | $filter"
	done
}
json "$RESULT" '.phases | length == 10' \
	'all(.phases[]; .is_result and .identity_ok and .both_ends.ok)'
phase mix '.drivers_total | .resumed.count / (.full.count + .resumed.count) |
	. > 0.68 and . < 0.72'
phase refused '.workers_total.full.count > 20' \
	'.workers_total.resumed.count == 0' \
	'.drivers_total.counters.hs_refused > 20' \
	'.workers_total.counters.tickets_unknown > 20'
phase asking '.drivers_total.counters | .requests > 3 * .hs_full and
	.requests_bad == 0' \
	'.workers_total.counters | .bytes_out > 4096 * 0.9 * .requests'
phase kept '.work.of == "requests" and .work.count > 200 and .work.cpu_us > 0' \
	'.drivers_total.counters.requests_bad == 0'
phase open '.loop == "open"' '.drivers_total.counters.arrivals |
	. > 50 and . < 160' '.drivers_total.histograms.conn_latency.count > 40'
phase rst '.loop == "closed"' '.workers_total.full.count > 20'
phase notify '.workers_total.counters.conn_closed_peer > 20'
phase chain '.workers_total.resumed.count > 20'
phase plain '.work.of == "requests" and .work.count > 100' \
	'.workers_total.counters | .conn_accepted == 0 and .conn_plain > 20'
phase bare '.work.of == "connections" and .work.count > 100'
has out 'open loop at 50.0/s'
has out 'begun late'
has out '^worker cpu busy % requests/s'
awk '{ gsub(/µ|·|✓|✗/, "x"); if (length($0) > 100) exit 1 }' out ||
	fail "a line is longer than 100 columns"

# What the scenario knows and this version cannot do is refused by name.
expect 2 tterm --set phases.0.kind=bulk --set phases.0.handshake=full \
	scenario.yaml
has err 'cannot do that yet|phases\.0'
