#!/bin/bash
# SPDX-License-Identifier: MIT
# 64 workers on whatever CPUs there are, both ways to accept, and IPv6.
. "$(dirname "$0")/lib.sh"

scenario <<'EOF'
load: {connections: 256, drivers: 2}
phases:
  - {handshake: full, warmup: 300ms, duration: 2s}
EOF
# SO_REUSEPORT deals connections out over all listeners. On a shared one whoever is
# awake takes them, and on two CPUs few of 64 are.
# Each worker's ring needs 160 KiB, of all that a user may lock together.
limit=$(ulimit -l)
[ "$(id -u)" -eq 0 ] || [ "$limit" = unlimited ] || [ "$limit" -ge 16384 ] ||
	skip "64 workers need 10 MiB of locked memory, RLIMIT_MEMLOCK is $limit KiB"
declare -A least=([reuseport]=16 [shared]=2)
for accept in reuseport shared; do
	measure --set workers.count=64 --set "terminator.accept=$accept"
	json "$RESULT" '.phases[0].workers | length == 64' \
		'.phases[0] | .is_result and .identity_ok and .both_ends.ok' \
		"[.phases[0].workers[] | select(.full.count > 0)] |
			length >= ${least[$accept]}"
done
[ -e /proc/net/if_inet6 ] || skip "IPv6 is off"
measure --set 'terminator.listen=["[::1]:0"]' --set workers.count=1
json "$RESULT" '.terminator.listen | startswith("[::1]:")'
