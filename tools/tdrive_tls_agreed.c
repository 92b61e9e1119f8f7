/* SPDX-License-Identifier: MIT */
/* What a handshake agreed on, as rows of the counters. */
#include "tools/tdrive_tls.h"

#include "shm/base.h"
#include "tools/tdrive_tls_int.h"

/* Groups that OpenSSL has no NID for: this, and the number of the group. */
#define NO_NID	       0x1000000
#define X25519MLKEM768 4588 /* IANA, TLS supported groups */

#define ROW(name) offsetof(struct ctr_block, name)

struct row {
	int nid;
	size_t at;
};

static const struct row groups[] = {
	{NID_X25519, ROW(group_x25519)},
	{NID_X9_62_prime256v1, ROW(group_p256)},
	{NID_secp384r1, ROW(group_p384)},
	{NO_NID + X25519MLKEM768, ROW(group_hybrid)},
};

static const struct row suites[] = {
	{NID_aes_128_gcm, ROW(suite_aes128)},
	{NID_aes_256_gcm, ROW(suite_aes256)},
	{NID_chacha20_poly1305, ROW(suite_chacha)},
};

static const struct {
	int type;
	int digest; /* 0: whichever */
	size_t at;
} signatures[] = {
	{EVP_PKEY_EC, NID_sha256, ROW(sig_ecdsa_p256)},
	{EVP_PKEY_EC, NID_sha384, ROW(sig_ecdsa_p384)},
	{EVP_PKEY_ED25519, 0, ROW(sig_ed25519)},
	{EVP_PKEY_RSA_PSS, 0, ROW(sig_rsa_pss)},
	{EVP_PKEY_RSA, 0, ROW(sig_rsa_pkcs1)},
};

static size_t find(const struct row *rows, size_t n, int nid, size_t other)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].nid == nid)
			return rows[i].at;
	return other;
}

/* By the server; the client's own is ctls_signed(). */
static size_t signature(const SSL *ssl)
{
	int type = NID_undef, digest = NID_undef;

	SSL_get_peer_signature_type_nid(ssl, &type);
	SSL_get_peer_signature_nid((SSL *)(uintptr_t)ssl, &digest);
	for (size_t i = 0; i < ARRAY_LEN(signatures); i++)
		if (signatures[i].type == type &&
		    (signatures[i].digest == 0 ||
		     signatures[i].digest == digest))
			return signatures[i].at;
	return ROW(sig_other);
}

void ctls_agreed(const struct ctls_conn *conn, struct count_hs *hs)
{
	SSL *ssl = conn->ssl;

	hs->resumed = SSL_session_reused(ssl) == 1;
	hs->tls13 = SSL_version(ssl) == TLS1_3_VERSION;
	hs->refused = conn->used != NULL && !hs->resumed;
	hs->signed_by_us = ctls_signed(conn);
	hs->group = find(groups, ARRAY_LEN(groups),
			 (int)SSL_get_negotiated_group(ssl), ROW(group_other));
	hs->suite = find(suites, ARRAY_LEN(suites),
			 SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(ssl)),
			 ROW(suite_other));
	hs->signature = hs->resumed ? 0 : signature(ssl);
}

bool ctls_signed(const struct ctls_conn *conn)
{
	int type;

	/* Set when the library chose how to sign, which it then does. */
	return conn->ssl != NULL &&
	       SSL_get_signature_type_nid(conn->ssl, &type) == 1;
}
