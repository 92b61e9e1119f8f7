#!/bin/bash
# SPDX-License-Identifier: MIT
# Shared ticket keys: a ticket of one worker resumes on every other. Private ones
# are the control: resumption falls to about one in four, and that is no result.
. "$(dirname "$0")/lib.sh"

scenario <<'EOF'
workers: {count: 4}
load: {connections: 24}
phases:
  - {handshake: resumed, warmup: 200ms, duration: 1500ms}
EOF
measure
json "$RESULT" '.phases[0].workers | length == 4' \
	'all(.phases[0].workers[]; .resumed.count > 10 and .full.count == 0)' \
	'.phases[0].workers_total.counters.tickets_unknown == 0'
rm -rf results
run_tterm 1 --set tls.tickets.shared=false
has out 'NO RESULT.*not-resumed'
hasnt out '^  all '
json "$RESULT" '.status == "failed"' '.phases[0].is_result | not' \
	'.phases[0].workers_total | .full.count + .resumed.count |. > 100' \
	'.phases[0].workers_total |
		.resumed.count / (.full.count + .resumed.count) |
		. > 0.10 and . < 0.45' \
	'.phases[0].workers_total.counters.tickets_unknown > 50' \
	'.phases[0].both_ends.ok'
