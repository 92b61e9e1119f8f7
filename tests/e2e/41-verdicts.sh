#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Arranged situations, each with its own name in the result: a full listen queue, a
# worker stopped for a second, private ticket keys, too short a phase.
. "$(dirname "$0")/lib.sh"

doubtful() { # OPTION...: to its end, whatever the status; RESULT is its result
	rm -rf results
	tterm "$@" scenario.yaml >out 2>err
	RESULT=$(printf '%s\n' results/*/result.json | tail -n 1)
	[ -s "$RESULT" ] || fail "no result: $*"
}
named() {
	json "$RESULT" "[.phases[].doubts[].name] | index(\"$1\") != null"
	has out "$1"
}

scenario <<'EOF'
workers: {count: 1}
load: {connections: 16}
phases:
  - {handshake: full, warmup: 100ms, duration: 2s}
EOF
# A queue of one place, and a worker that cannot empty it in time.
doubtful --set terminator.backlog=1 --set load.connections=200
named backlog-overflow

# Stopped for more than half a second in the middle of the window.
rm -rf results
start tterm tterm --set phases.0.duration=4s scenario.yaml
measuring() {
	segment && jq -e '.phase.state == "measuring" and
		.total.workers.counters.hs_full > 50' segment.json
}
eventually 20 measuring
pid=$(value segment.json '[.slots[] | select(.role == "worker")][0].pid')
kill -STOP "$pid"
silent() {
	segment && jq -e '[.slots[] | select(.role == "worker")][0] |
		.heartbeat_age_ns > 1200000000' segment.json
}
eventually 10 silent
kill -CONT "$pid"
finished tterm 3 30
cp tterm.out out
RESULT=$(echo results/*/result.json)
named worker-stalled
json "$RESULT" '.phases[0].slices.longest_silence_ns > 600000000'

# Private keys: no result, and the reason is named.
doubtful --set tls.tickets.shared=false --set workers.count=4 \
	--set phases.0.handshake=resumed
named not-resumed
has out 'tls.tickets.shared'

doubtful --set phases.0.duration=20ms --set load.connections=2
json "$RESULT" '[.phases[].doubts[].name] |
	any(. == "few-handshakes" or . == "no-handshakes")'
