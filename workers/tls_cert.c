/* SPDX-License-Identifier: MIT */
#include "workers/tls_cert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MADE_DAYS 30
#define HOUR_S	  3600

#define FILE_MAX (1024 * 1024)
#define NAME_CHARS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-*:"

void tls_cert_reason(char *buf, size_t len)
{
	unsigned long e = ERR_get_error();
	const char *reason = ERR_SYSTEM_ERROR(e) ? strerror(ERR_GET_REASON(e))
						 : ERR_reason_error_string(e);

	if (e == 0)
		reason = "no reason given";
	if (reason != NULL)
		snprintf(buf, len, "%s", reason);
	else
		ERR_error_string_n(e, buf, len);
	ERR_clear_error();
}

/* ---- files ---- */

/* All bytes of `fd`; up to `max`. The number, or -errno. */
static ssize_t read_all(int fd, char *to, size_t max)
{
	size_t n = 0;

	while (n < max) {
		ssize_t r = read(fd, to + n, max - n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		n += (size_t)r;
	}
	return (ssize_t)n;
}

int tls_cert_file(const char *path, const char *option, char **bytes, size_t *n,
		  char *err, size_t len)
{
	char *buf = OPENSSL_zalloc(FILE_MAX + 1);
	ssize_t got = -ENOMEM;
	int fd = -1;

	if (buf != NULL) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		got = fd < 0 ? -errno : read_all(fd, buf, FILE_MAX + 1);
	}
	if (fd >= 0)
		close(fd);
	if (got > FILE_MAX)
		got = -EFBIG;
	if (got >= 0) {
		buf[got] = '\0';
		*bytes = buf;
		*n = (size_t)got;
		return 0;
	}
	ERR_clear_error();
	snprintf(err, len, "%s: %s: %s", option, path, strerror((int)-got));
	OPENSSL_clear_free(buf, FILE_MAX + 1);
	return got == -ENOMEM ? -ENOMEM : -EINVAL;
}

/* ---- made in memory ---- */

static EVP_PKEY *make_key(enum cfg_cert kind)
{
	switch (kind) {
	case CFG_CERT_RSA_2048:
		return EVP_RSA_gen(2048);
	case CFG_CERT_RSA_3072:
		return EVP_RSA_gen(3072);
	case CFG_CERT_RSA_4096:
		return EVP_RSA_gen(4096);
	case CFG_CERT_ECDSA_P256:
		return EVP_EC_gen("P-256");
	case CFG_CERT_ECDSA_P384:
		return EVP_EC_gen("P-384");
	case CFG_CERT_ED25519:
		return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	}
	return NULL;
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *ext;
	X509V3_CTX ctx;
	bool ok;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	if (ext == NULL)
		return false;
	ok = X509_add_ext(cert, ext, -1) == 1;
	X509_EXTENSION_free(ext);
	return ok;
}

/* RFC 5280 4.1.2.2: positive, unique, at most 20 octets. */
static bool set_serial(X509 *cert)
{
	uint8_t bytes[16];
	BIGNUM *n;
	bool ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] &= 0x7f;
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = n != NULL &&
	     BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert)) != NULL;
	BN_free(n);
	return ok;
}

static X509 *new_cert(const char *common_name, EVP_PKEY *key, X509 *issuer)
{
	X509 *cert = X509_new();
	X509_NAME *name;

	if (cert == NULL)
		return NULL;
	name = X509_get_subject_name(cert);
	if (X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
	    X509_gmtime_adj(X509_getm_notBefore(cert), -HOUR_S) != NULL &&
	    X509_time_adj_ex(X509_getm_notAfter(cert), MADE_DAYS, 0, NULL) !=
		    NULL &&
	    X509_set_pubkey(cert, key) == 1 &&
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
				       (const unsigned char *)common_name, -1,
				       -1, 0) == 1 &&
	    X509_set_issuer_name(cert, issuer != NULL
					       ? X509_get_subject_name(issuer)
					       : name) == 1)
		return cert;
	X509_free(cert);
	return NULL;
}

static X509 *make_ca(EVP_PKEY *key)
{
	X509 *ca = new_cert("tterm throw-away CA", key, NULL);

	if (ca != NULL &&
	    add_extension(ca, ca, NID_basic_constraints,
			  "critical,CA:TRUE,pathlen:0") &&
	    add_extension(ca, ca, NID_key_usage,
			  "critical,keyCertSign,cRLSign") &&
	    add_extension(ca, ca, NID_subject_key_identifier, "hash") &&
	    X509_sign(ca, key, EVP_sha256()) > 0)
		return ca;
	X509_free(ca);
	return NULL;
}

static X509 *make_leaf(EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key)
{
	X509 *leaf = new_cert("localhost", key, ca);
	/* TLS 1.2 suites without (EC)DHE encrypt to the certificate's key. */
	const char *usage = EVP_PKEY_is_a(key, "RSA")
				    ? "critical,digitalSignature,"
				      "keyEncipherment"
				    : "critical,digitalSignature";

	if (leaf != NULL &&
	    add_extension(leaf, ca, NID_basic_constraints,
			  "critical,CA:FALSE") &&
	    add_extension(leaf, ca, NID_key_usage, usage) &&
	    add_extension(leaf, ca, NID_ext_key_usage, "serverAuth") &&
	    add_extension(leaf, ca, NID_subject_alt_name,
			  "DNS:localhost,IP:127.0.0.1,IP:::1") &&
	    add_extension(leaf, ca, NID_authority_key_identifier, "keyid") &&
	    X509_sign(leaf, ca_key, EVP_sha256()) > 0)
		return leaf;
	X509_free(leaf);
	return NULL;
}

/* The PEM of certificates, as one NUL-terminated text. */
static int to_pem(X509 *first, STACK_OF(X509) * more, char **out, size_t *len)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data, *text;
	size_t n;
	int rc = -ENOMEM;

	if (bio == NULL)
		return -ENOMEM;
	if (first != NULL && PEM_write_bio_X509(bio, first) != 1)
		goto done;
	for (int i = 0; i < sk_X509_num(more); i++)
		if (PEM_write_bio_X509(bio, sk_X509_value(more, i)) != 1)
			goto done;
	n = (size_t)BIO_get_mem_data(bio, &data);
	text = malloc(n + 1);
	if (text == NULL)
		goto done;
	memcpy(text, data, n);
	text[n] = '\0';
	*out = text;
	*len = n;
	rc = 0;
done:
	BIO_free(bio);
	return rc;
}

/* "RSA 2048", "ECDSA P-256", "Ed25519". */
static void name_kind(EVP_PKEY *key, char *buf, size_t len)
{
	char group[40] = "";
	const char *nist = NULL;

	if (EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_is_a(key, "RSA-PSS")) {
		snprintf(buf, len, "%s %d", EVP_PKEY_get0_type_name(key),
			 EVP_PKEY_get_bits(key));
	} else if (EVP_PKEY_is_a(key, "EC")) {
		EVP_PKEY_get_group_name(key, group, sizeof(group), NULL);
		nist = EC_curve_nid2nist(OBJ_sn2nid(group));
		snprintf(buf, len, "ECDSA %s", nist != NULL ? nist : group);
	} else if (EVP_PKEY_is_a(key, "ED25519")) {
		snprintf(buf, len, "Ed25519");
	} else {
		snprintf(buf, len, "%s", EVP_PKEY_get0_type_name(key));
	}
}

int tls_cert_make(struct tls_cert *out, enum cfg_cert kind, char *err,
		  size_t len)
{
	/* The CA signs once: its own kind costs no handshake anything. */
	EVP_PKEY *ca_key = EVP_EC_gen("P-256");
	X509 *ca = ca_key != NULL ? make_ca(ca_key) : NULL;
	int rc = -EIO;

	memset(out, 0, sizeof(*out));
	out->key = make_key(kind);
	if (out->key != NULL && ca != NULL)
		out->leaf = make_leaf(out->key, ca, ca_key);
	if (out->leaf != NULL)
		rc = to_pem(ca, NULL, &out->trust_pem, &out->trust_len);
	if (rc == 0) {
		snprintf(out->name, sizeof(out->name), "localhost");
		name_kind(out->key, out->kind, sizeof(out->kind));
	} else {
		char reason[128];

		tls_cert_reason(reason, sizeof(reason));
		snprintf(err, len,
			 "tls.certificate.make: %s cannot be made: %s",
			 cfg_word("CERT", (int)kind), reason);
		tls_cert_fini(out);
	}
	X509_free(ca);
	EVP_PKEY_free(ca_key);
	return rc;
}

/* ---- from files ---- */

/* 0; or -EINVAL where the one after `stack` is there and cannot be read. */
static int read_certs(BIO *bio, STACK_OF(X509) * stack)
{
	X509 *cert;

	while ((cert = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL)) != NULL)
		if (sk_X509_push(stack, cert) <= 0) {
			X509_free(cert);
			return -ENOMEM;
		}
	return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE &&
			       sk_X509_num(stack) > 0
		       ? 0
		       : -EINVAL;
}

int tls_cert_stack(STACK_OF(X509) * *out, const char *path, const char *option,
		   char *err, size_t len)
{
	STACK_OF(X509) *stack = NULL;
	char *bytes, reason[128];
	BIO *bio = NULL;
	size_t n;
	int rc = tls_cert_file(path, option, &bytes, &n, err, len);

	if (rc < 0)
		return rc;
	stack = sk_X509_new_null();
	bio = BIO_new_mem_buf(bytes, (int)n);
	rc = stack == NULL || bio == NULL ? -ENOMEM : read_certs(bio, stack);
	tls_cert_reason(reason, sizeof(reason)); /* the end of the file, if 0 */
	if (rc == -ENOMEM)
		snprintf(err, len, "%s: %s: out of memory", option, path);
	else if (rc < 0 && sk_X509_num(stack) == 0)
		snprintf(err, len, "%s: %s: no PEM certificate in it (%s)",
			 option, path, reason);
	else if (rc < 0)
		snprintf(err, len,
			 "%s: %s: certificate %d in it cannot be read (%s)",
			 option, path, sk_X509_num(stack) + 1, reason);
	BIO_free(bio);
	OPENSSL_clear_free(bytes, n);
	if (rc == 0)
		*out = stack;
	else
		sk_X509_pop_free(stack, X509_free);
	return rc;
}

/* Nobody is there to type a passphrase. */
static int no_passphrase(char *buf, int size, int rwflag, void *asked)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	*(bool *)asked = true;
	return -1;
}

static int read_key(struct tls_cert *out, const char *path, char *err,
		    size_t len)
{
	static const char option[] = "tls.certificate.key";
	bool asked = false;
	char *bytes, reason[128];
	size_t n;
	BIO *bio;
	int rc = tls_cert_file(path, option, &bytes, &n, err, len);

	if (rc < 0)
		return rc;
	bio = BIO_new_mem_buf(bytes, (int)n);
	if (bio != NULL)
		out->key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase,
						   &asked);
	BIO_free(bio);
	OPENSSL_clear_free(bytes, n);
	tls_cert_reason(reason, sizeof(reason));
	if (out->key != NULL)
		return 0;
	if (asked)
		snprintf(err, len,
			 "%s: %s: the key is encrypted; write it in the clear "
			 "(openssl pkey -in %s -out NEW)",
			 option, path, path);
	else
		snprintf(err, len, "%s: %s: no PEM private key in it (%s)",
			 option, path, reason);
	return -EINVAL;
}

static void use_ip(const ASN1_OCTET_STRING *ip, char *buf, size_t len)
{
	int n = ASN1_STRING_length(ip);

	if (n == 4 || n == 16)
		inet_ntop(n == 4 ? AF_INET : AF_INET6,
			  ASN1_STRING_get0_data(ip), buf, (socklen_t)len);
}

/* A name is printed, sent and compared: a certificate can hold any bytes. */
static bool is_name(const char *name, size_t len)
{
	if (len == 0 || len >= sizeof(((struct tls_cert *)0)->name) - 3)
		return false;
	for (size_t i = 0; i < len; i++)
		if (memchr(NAME_CHARS, name[i], sizeof(NAME_CHARS) - 1) == NULL)
			return false;
	return true;
}

/* A wildcard gets a label in place of its star. */
static bool use_dns(const ASN1_IA5STRING *dns, struct tls_cert *c)
{
	const char *name = (const char *)ASN1_STRING_get0_data(dns);
	size_t len = (size_t)ASN1_STRING_length(dns);

	if (!is_name(name, len))
		return false;
	if (name[0] == '*')
		snprintf(c->name, sizeof(c->name), "any%.*s", (int)len - 1,
			 name + 1);
	else
		snprintf(c->name, sizeof(c->name), "%.*s", (int)len, name);
	return true;
}

static void use_common_name(struct tls_cert *c)
{
	int n = X509_NAME_get_text_by_NID(X509_get_subject_name(c->leaf),
					  NID_commonName, c->name,
					  (int)sizeof(c->name));

	if (n < 0 || !is_name(c->name, (size_t)n))
		c->name[0] = '\0';
}

/* The first DNS name, else the first address, else the common name. */
static void find_name(struct tls_cert *c)
{
	GENERAL_NAMES *names =
		X509_get_ext_d2i(c->leaf, NID_subject_alt_name, NULL, NULL);

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);

		if (n->type == GEN_IPADD && c->name[0] == '\0')
			use_ip(n->d.iPAddress, c->name, sizeof(c->name));
		if (n->type == GEN_DNS && use_dns(n->d.dNSName, c))
			break;
	}
	GENERAL_NAMES_free(names);
	if (c->name[0] == '\0')
		use_common_name(c);
	ERR_clear_error(); /* of an extension that cannot be read */
}

static const char *fault_of_dates(const X509 *cert)
{
	if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
		return "not valid yet";
	if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
		return "expired";
	return NULL;
}

/* What works and still is hardly meant. */
static void warn(struct tls_cert *c, const char *path)
{
	const char *fault = fault_of_dates(c->leaf);
	int at = 1;

	for (int i = 0; fault == NULL && i < sk_X509_num(c->chain); i++) {
		fault = fault_of_dates(sk_X509_value(c->chain, i));
		at = i + 2;
	}
	if (fault != NULL)
		snprintf(c->warning, sizeof(c->warning),
			 "tls.certificate.chain: %.150s: certificate %d of it "
			 "is %s",
			 path, at, fault);
	else if (c->name[0] == '\0')
		snprintf(c->warning, sizeof(c->warning),
			 "tls.certificate.chain: %.150s: no name of a server "
			 "in it",
			 path);
}

/* Matching key, and what is sent, shown and trusted of the certificates. */
static int finish_load(struct tls_cert *out, const char *chain, const char *key,
		       char *err, size_t len)
{
	int rc;

	if (X509_check_private_key(out->leaf, out->key) != 1) {
		ERR_clear_error();
		snprintf(err, len,
			 "tls.certificate.key: %s does not belong to the "
			 "certificate in %s (its first certificate must be the "
			 "server's own)",
			 key, chain);
		return -EINVAL;
	}
	rc = to_pem(out->leaf, out->chain, &out->trust_pem, &out->trust_len);
	if (rc < 0) {
		ERR_clear_error();
		snprintf(err, len, "tls.certificate: out of memory");
		return rc;
	}
	find_name(out);
	name_kind(out->key, out->kind, sizeof(out->kind));
	warn(out, chain);
	return 0;
}

int tls_cert_load(struct tls_cert *out, const char *chain, const char *key,
		  char *err, size_t len)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = tls_cert_stack(&out->chain, chain, "tls.certificate.chain", err,
			    len);
	if (rc == 0) {
		out->leaf = sk_X509_shift(out->chain);
		rc = read_key(out, key, err, len);
	}
	if (rc == 0)
		rc = finish_load(out, chain, key, err, len);
	if (rc < 0)
		tls_cert_fini(out);
	return rc;
}

void tls_cert_fini(struct tls_cert *c)
{
	X509_free(c->leaf);
	EVP_PKEY_free(c->key);
	sk_X509_pop_free(c->chain, X509_free);
	free(c->trust_pem);
	memset(c, 0, sizeof(*c));
}
