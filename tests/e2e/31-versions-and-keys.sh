#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Every kind of certificate, full and resumed, in TLS 1.2 and 1.3.
. "$(dirname "$0")/lib.sh"

scenario <<'EOF'
load: {connections: 8}
phases:
  - {name: full,    handshake: full,    warmup: 0s, duration: 300ms}
  - {name: resumed, handshake: resumed, warmup: 0s, duration: 300ms}
EOF
for version in TLSv1.2 TLSv1.3; do
	for make in ecdsa-p256 ecdsa-p384 ed25519 rsa-2048 rsa-3072; do
		measure --set "tls.versions=[$version]" \
			--set "tls.certificate.make=$make"
		# shellcheck disable=SC2016 # $v is jq's
		jq -e --arg v "hs_${version/v1./}" '
			($v | ascii_downcase | sub("tls"; "tls1")) as $k |
			all(.phases[]; .is_result and .identity_ok and
				.both_ends.ok) and
			.phases[0].workers_total.full.count > 0 and
			.phases[1].workers_total.resumed.count > 0 and
			all(.phases[].workers_total; .counters[$k] ==
				.full.count + .resumed.count)
			' "$RESULT" >json.out || fail "$version $make: $(cat out)"
	done
done
