#!/bin/bash
# SPDX-License-Identifier: MIT
# Ctrl-C gives what was measured; SIGTERM drains; SIGHUP makes new ticket keys and
# old tickets still resume.
. "$(dirname "$0")/lib.sh"
need openssl

scenario <<'EOF'
load: {connections: 8}
phases:
  - {name: full,    handshake: full,    warmup: 100ms, duration: 60s}
  - {name: resumed, handshake: resumed, warmup: 100ms, duration: 60s}
EOF
start tterm tterm scenario.yaml
measuring() {
	segment && jq -e '.phase.state == "measuring" and
		.total.workers.counters.hs_full > 300' segment.json
}
eventually 30 measuring
signal tterm INT
finished tterm 3 15
has tterm.out 'interrupted: stopped after [0-9.]+ s'
has tterm.out '^  all '
json results/*/result.json '.interrupted' '.phases | length == 1' \
	'.phases[0].workers_total.full.count > 100' '.phases[0].both_ends.ok'
no_segment

# Serving: drain, with a client in the middle of a connection.
scenario <<'EOF'
workers: {count: 2}
terminator: {drain_timeout: 5s}
EOF
serve
printf 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' |
	openssl s_client -connect "$ADDRESS" -tls1_3 -ign_eof -sess_out sess \
		>first.out 2>&1
for _ in 1 2 3; do
	signal tterm HUP
done
resumes() {
	openssl s_client -connect "$ADDRESS" -tls1_3 -sess_in sess </dev/null \
		2>&1 | grep -q '^Reused, TLSv1.3'
}
for _ in 1 2 3 4 5 6; do
	resumes || fail "a ticket from before the rotation was refused"
done
segment && json segment.json '.total.workers.counters.tickets_renewed >= 6' \
	'.total.workers.counters.tickets_unknown == 0'
stop TERM
has tterm.out 'accepted = full \+ resumed \+ failed'

serve
signal tterm INT
finished tterm 0 10

# Twice, in the middle of a phase: at once, whatever is under way.
scenario <<'EOS'
load: {connections: 8}
phases: [{warmup: 100ms, duration: 60s}]
EOS
start tterm tterm scenario.yaml
eventually 30 measuring
pids=$(value segment.json '[.slots[].pid | tostring] | join(" ")')
signal tterm INT
signal tterm INT
eventually 5 _gone "${started[tterm]}"
wait "${started[tterm]}"
for pid in $pids; do
	_gone "$pid" || fail "$pid is left"
done
no_segment

# A driver that dies ends the run, and says so.
start tterm tterm scenario.yaml
eventually 30 measuring
kill -KILL "$(value segment.json '[.slots[] | select(.role == "driver")][0].pid')"
finished tterm 1 15
has tterm.err 'driver 0 was killed by signal 9'
no_segment
