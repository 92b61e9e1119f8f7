#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# What the drivers offer on their own: a client certificate, versions, groups,
# ciphers, signature algorithms, ALPN, source addresses.
# shellcheck disable=SC2016 # $w and $d are jq's
. "$(dirname "$0")/lib.sh"
need openssl

ec() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "$@" 2>/dev/null; }
ec -x509 -keyout ca.key -out ca.pem -days 2 -subj /CN=ca
ec -keyout client.key -out client.csr -subj /CN=client
openssl x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
	-out client.pem -days 2 2>/dev/null
scenario <<'EOF'
load: {connections: 8}
phases:
  - {name: full,    handshake: full,    warmup: 0s, duration: 500ms}
  - {name: resumed, handshake: resumed, warmup: 0s, duration: 500ms}
EOF
tried() { # FILTER OPTION...: the filter is true of the full phase
	local filter=$1

	shift
	measure "$@"
	json "$RESULT" 'all(.phases[]; .is_result and .both_ends.ok)' \
		".phases[0] | .workers_total.counters as \$w |
			.drivers_total.counters as \$d | $filter"
}
# The client signs in each full handshake and in no resumed one.
tried '$d.signatures > 0 and ($d.signatures - $d.hs_full | fabs) <= 16' \
	--set tls.client_auth=required --set tls.ca=ca.pem \
	--set load.certificate=client.pem --set load.key=client.key
json "$RESULT" '.phases[1].drivers_total.counters.signatures == 0'
tried '$w.hs_tls12 == $w.hs_full and $w.hs_tls13 == 0' \
	--set 'load.versions=[TLSv1.2]'
tried '$w.group_p256 == $w.hs_full' \
	--set 'tls.groups=[X25519,P-256]' --set 'load.groups=[P-256]'
tried '$w.suite_aes128 == $w.hs_full' --set 'load.ciphers=[TLS_AES_128_GCM_SHA256]' \
	--set 'tls.ciphers=[TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256,
		ECDHE-ECDSA-AES256-GCM-SHA384]'
tried '$w.sig_ecdsa_p256 == $w.hs_full' --set 'load.alpn=[http/1.1]' \
	--set 'load.sigalgs=[ecdsa_secp256r1_sha256]' \
	--set 'load.source=[127.0.0.77, 127.0.0.78]'
# Nothing in common is a failure by cause at both ends, and no result.
expect 1 tterm --set 'load.sigalgs=[rsa_pss_rsae_sha256]' scenario.yaml
has out 'NO RESULT'
expect 2 tterm --set tls.client_auth=required --set tls.ca=ca.pem scenario.yaml
has err 'load\.certificate'
