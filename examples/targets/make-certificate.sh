#!/bin/bash
# SPDX-License-Identifier: MIT
# Makes what the examples' servers need, as tterm's own default: a CA and a server
# certificate for localhost, 127.0.0.1 and ::1.
#
#   make-certificate.sh FOLDER [TYPE]
#
# TYPE is one of tterm's tls.certificate.make: ecdsa-p256 (default), ecdsa-p384,
# ed25519, rsa-2048, rsa-3072, rsa-4096. Into FOLDER, which is made: ca.pem,
# cert.pem, key.pem, and both.pem (key and certificate in one file).
set -eu

folder=${1:?usage: make-certificate.sh FOLDER [TYPE]}
type=${2:-ecdsa-p256}
case $type in
ecdsa-p256) key=(-algorithm EC -pkeyopt ec_paramgen_curve:P-256) ;;
ecdsa-p384) key=(-algorithm EC -pkeyopt ec_paramgen_curve:P-384) ;;
ed25519) key=(-algorithm ED25519) ;;
rsa-2048 | rsa-3072 | rsa-4096)
	key=(-algorithm RSA -pkeyopt "rsa_keygen_bits:${type#rsa-}")
	;;
*)
	echo "make-certificate.sh: $type is no type; see the first lines" >&2
	exit 2
	;;
esac

umask 077
mkdir -p "$folder"
cd "$folder"
openssl genpkey -quiet "${key[@]}" -out ca-key.pem
openssl req -x509 -new -key ca-key.pem -out ca.pem -days 30 \
	-subj "/CN=tterm example CA" \
	-addext "keyUsage=critical,keyCertSign,cRLSign"
openssl genpkey -quiet "${key[@]}" -out key.pem
openssl req -new -key key.pem -out request.pem -subj "/CN=localhost"
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -days 30 \
	-CAcreateserial -out cert.pem -extfile /dev/stdin 2>openssl.log <<-END || {
		basicConstraints = critical, CA:FALSE
		keyUsage = critical, digitalSignature
		extendedKeyUsage = serverAuth
		subjectAltName = DNS:localhost, IP:127.0.0.1, IP:::1
	END
	cat openssl.log >&2
	exit 1
}
cat key.pem cert.pem >both.pem
# Nobody needs to sign with this CA again.
rm -f ca-key.pem ca.srl request.pem openssl.log
