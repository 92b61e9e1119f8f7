#!/bin/bash
# SPDX-License-Identifier: MIT
# Coordinated omission: in an open loop a server that stands still for a second
# shows in the latencies, for they count from when a connection was due.
. "$(dirname "$0")/lib.sh"

scenario <<'EOF'
workers: {count: 2}
load: {connections: 16}
phases:
  - {name: open, rate: 100/s, warmup: 200ms, duration: 4s}
EOF
start tterm tterm scenario.yaml
measuring() {
	segment && jq -e '.phase.state == "measuring" and
		.total.workers.counters.hs_full > 60' segment.json
}
eventually 20 measuring
pids=$(value segment.json '[.slots[] | select(.role == "worker").pid |
	tostring] | join(" ")')
# shellcheck disable=SC2086 # several
kill -STOP $pids
silent() {
	segment && jq -e '[.slots[] | select(.role == "worker") |
		.heartbeat_age_ns] | min > 1100000000' segment.json
}
eventually 10 silent
# shellcheck disable=SC2086 # several
kill -CONT $pids
finished tterm 3 30
RESULT=$(echo results/*/result.json)
json "$RESULT" '.phases[0].loop == "open"' \
	'any(.phases[0].doubts[]; .name == "worker-stalled")'
# Nearest rank from the buckets: [low, high, count].
percentile() {
	value "$RESULT" ".phases[0].drivers_total.histograms.conn_latency as \$h |
		(\$h.count * $1 | ceil) as \$rank |
		reduce \$h.buckets[] as \$b ({n: 0, v: null};
			if .v == null and .n + \$b[2] >= \$rank
			then .v = \$b[0] else .n += \$b[2] end) |
		.v / 1e6 | floor"
}
[ "$(percentile 0.99)" -ge 900 ] || fail "p99 of $(percentile 0.99) ms"
[ "$(percentile 0.5)" -lt 300 ] || fail "p50 of $(percentile 0.5) ms"
has tterm.out 'open loop at 100'
