#!/bin/bash
# SPDX-License-Identifier: MIT
# A worker killed in the middle of a run is replaced, the run says so, the sums
# hold and nothing is left behind.
. "$(dirname "$0")/lib.sh"

scenario <<'EOF'
workers: {count: 2}
load: {connections: 8}
phases:
  - {name: full, handshake: full, warmup: 100ms, duration: 3s}
EOF
start tterm tterm scenario.yaml
measuring() {
	segment && jq -e '.phase.state == "measuring" and
		.total.workers.counters.hs_full > 20' segment.json
}
eventually 20 measuring
pid=$(value segment.json '[.slots[] | select(.role == "worker")][1].pid')
kill -KILL "$pid"
replaced() {
	segment && jq -e '[.slots[] | select(.role == "worker")][1] |
		.generation == 2 and .state == "running"' segment.json
}
eventually 5 replaced
finished tterm 3 30
has tterm.out 'doubt .*worker-died: worker 1 was killed by signal 9'
has tterm.err 'child_died'
RESULT=$(echo results/*/result.json)
json "$RESULT" '.status == "doubtful"' '.phases[0].identity_ok' \
	'.phases[0].workers[1].generation == 2' \
	'.phases[0].workers[1].full.count > 0'
no_segment
