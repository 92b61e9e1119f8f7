#!/bin/bash
# SPDX-License-Identifier: MIT
# kill -9 of the master: its children go, the next start takes the segment over;
# while a master lives, a second one of its name is refused.
. "$(dirname "$0")/lib.sh"

scenario <<'EOF'
workers: {count: 2}
EOF
serve
master=${started[tterm]}
workers=$(value segment.json '[.slots[].pid | tostring] | join(" ")')
expect 1 tterm scenario.yaml
has err "process $master is running under this name"
segment || fail "the second start harmed the first one's segment"
kill -KILL "$master"
for pid in $workers; do
	eventually 5 _gone "$pid"
done
wait "$master" 2>/dev/null
[ -e "/dev/shm/tterm.$NAME" ] || fail "no stale segment to take over"
expect 2 tstat --json "no-such-$NAME"
serve
segment && json segment.json ".owner.pid == ${started[tterm]}" '.alive'
stop INT
