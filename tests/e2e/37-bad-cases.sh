#!/bin/bash
# SPDX-License-Identifier: MIT
# What can be wrong before a run: each has its own words and exit status.
. "$(dirname "$0")/lib.sh"
need openssl

refused() { # STATUS REGEX OPTION...
	local status=$1 text=$2

	shift 2
	expect "$status" timeout 30 tterm "$@" scenario.yaml
	has err "$text"
	[ ! -e "/dev/shm/tterm.$NAME" ] || fail "a segment was left: $*"
}
scenario <<'EOF'
workers: {count: 1}
load: {connections: 2}
phases: [{duration: 200ms, warmup: 0s}]
EOF
refused 2 'tls\.groups.*X99999.*OpenSSL [0-9.]+' --set 'tls.groups=[X99999]'
refused 2 'tls\.ciphers.*NO_SUCH' --set 'tls.ciphers=[NO_SUCH]'
refused 2 'tls\.certificate\.chain.*none\.pem.*No such file' \
	--set tls.certificate.chain=none.pem --set tls.certificate.key=none.key
openssl req -x509 -newkey rsa:2048 -nodes -keyout a.key -out a.pem -days 2 \
	-subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out b.key \
	2>/dev/null
refused 2 'b\.key' --set tls.certificate.chain=a.pem \
	--set tls.certificate.key=b.key
refused 2 'tls\.tickets\.key_file' --set tls.tickets.key_file=a.pem
refused 1 'result\.dir.*/proc' --set result.dir=/proc/none
refused 1 'terminator\.listen: 192\.0\.2\.1:0' \
	--set 'terminator.listen=["192.0.2.1:0"]'
# A port in use, also by one that shares it by SO_REUSEPORT.
for accept in reuseport shared; do
	expect 0 tterm --check scenario.yaml
	start other tterm --set "scenario=$NAME.other" --set phases=[] \
		--set "terminator.accept=$accept" scenario.yaml
	other_ready() {
		tstat --json "$NAME.other" >other.json &&
			jq -e "$READY" other.json
	}
	eventually 20 other_ready
	address=$(value other.json "$LISTEN")
	refused 1 "terminator\\.listen: .*in use" \
		--set "terminator.listen=['$address']"
	signal other INT
	finished other 0 20
done
# Own certificate from files: works, and is verified by the drivers.
measure --set tls.certificate.chain=a.pem \
	--set tls.certificate.key=a.key
has out 'RSA 2048'
