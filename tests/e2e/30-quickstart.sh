#!/bin/bash
# SPDX-License-Identifier: MIT
# The main job: both rows, the identity, both ends, all from the example itself.
. "$(dirname "$0")/lib.sh"

cp "$ROOT/examples/quickstart.yaml" scenario.yaml
measure --set "scenario=$NAME" \
	--set phases.0.warmup=200ms --set phases.0.duration=1s \
	--set phases.1.warmup=200ms --set phases.1.duration=1s
has out '^worker +cpu +/s +CPU .s +crypto +p50 ms +p99 ms +core/s'
has out '^  all '
has out 'both ends agree: [0-9,]+ full, [0-9,]+ resumed'
hasnt out 'nan|NaN|NO RESULT'
awk '{ gsub(/µ|·|✓|✗/, "x"); if (length($0) > 100) exit 1 }' out ||
	fail "a line is longer than 100 columns"
json "$RESULT" '.schema == "tterm-result" and .schema_version == 1' \
	'.phases | length == 2' \
	'all(.phases[]; .is_result and .identity_ok and .both_ends.ok)' \
	'.phases[0].workers_total.full.count > 50' \
	'.phases[0].workers_total.resumed.count == 0' \
	'.phases[1].workers_total.resumed.count > 50' \
	'.phases[1].workers_total.full.count == 0' \
	'all(.phases[].workers_total.counters;
		.conn_accepted > 0 and .failed_protocol == 0)' \
	'.phases[0].workers_total | .full.cpu_us > .full.crypto_us' \
	'.phases[0].workers_total.counters |
		.signatures - .hs_full | fabs <= 64' \
	'.phases[1].workers_total.counters.signatures == 0' \
	'.phases[1].drivers_total.counters.tickets_missed == 0' \
	'.environment.kernel | length > 0' \
	'.environment.library | startswith("OpenSSL ")' \
	'all(.phases[].workers[].histograms.hs_full_time;
		.count == ([.buckets[][2]] | add // 0))'
# The scenario as run loads again, and the table on disk is the one shown.
expect 0 tterm --check "$(dirname "$RESULT")/scenario.yaml"
grep -q '^  all ' "$(dirname "$RESULT")/table.txt" || fail "no table.txt"
