#!/bin/bash
# SPDX-License-Identifier: MIT
# Key-exchange groups: the hybrid one works where the library has it (OpenSSL 3.5)
# and is refused by name where not; it is never silently replaced.
. "$(dirname "$0")/lib.sh"
need openssl

scenario <<'EOF'
load: {connections: 8}
tls: {versions: [TLSv1.3]}
phases:
  - {name: full,    handshake: full,    warmup: 0s, duration: 1500ms}
  - {name: resumed, handshake: resumed, warmup: 0s, duration: 1500ms}
EOF
for group in X25519 P-256 P-384; do
	measure --set "tls.groups=[$group]"
	json "$RESULT" ".terminator.groups == \"$group\""
done
rm -rf results
version=$(openssl version | cut -d' ' -f2)
if [ "$(printf '%s\n' 3.5 "$version" | sort -V | head -n 1)" = 3.5 ]; then
	measure --set 'tls.groups=[X25519MLKEM768]'
	# ClientHello and ServerHello carry about 1.1 KiB more each way.
	json "$RESULT" '.phases[0].workers_total |
		.counters.bytes_in / .full.count > 1400'
else
	expect 2 tterm --set 'tls.groups=[X25519MLKEM768]' scenario.yaml
	has err "X25519MLKEM768 needs OpenSSL 3\\.5; this is $version"
fi
