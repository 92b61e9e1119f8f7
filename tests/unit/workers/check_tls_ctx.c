/* SPDX-License-Identifier: MIT */
/* What the scenario asks of TLS: made, read from files, or refused by name. */
#include "tests/unit/workers/tls_fixture.h"

#include <errno.h>

#define YEAR_S (365L * 86400)

static bool library_has(unsigned major, unsigned minor)
{
	return OPENSSL_version_major() > major ||
	       (OPENSSL_version_major() == major &&
		OPENSSL_version_minor() >= minor);
}

/* A client that trusts what tls_srv_trust_pem() says, and nothing else. */
static void trust(struct pair *p)
{
	X509_STORE *store = SSL_CTX_get_cert_store(p->ctx);
	size_t len;
	const char *pem = tls_srv_trust_pem(srv, &len);
	BIO *bio = BIO_new_mem_buf(pem, (int)len);
	X509 *cert;
	int n = 0;

	ck_assert_uint_eq(strlen(pem), len);
	for (; (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL; n++) {
		ck_assert_int_eq(X509_STORE_add_cert(store, cert), 1);
		X509_free(cert);
	}
	ck_assert_int_gt(n, 0);
	ERR_clear_error();
	BIO_free(bio);
	X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
	SSL_CTX_set_verify(p->ctx, SSL_VERIFY_PEER, NULL);
}

/* The server's certificate is verified for this name or address. */
static bool verifies(const char *host, const char *address)
{
	struct pair p;
	bool ok;

	pair_open(&p, TLS1_3_VERSION);
	trust(&p);
	pair_connect(&p, NULL);
	if (host != NULL)
		SSL_set1_host(p.client, host);
	if (address != NULL)
		X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(p.client),
					      address);
	pump(&p);
	ok = p.done;
	pair_close(&p);
	return ok;
}

static int certificates_sent(void)
{
	struct pair p;
	int n;

	pair_open(&p, TLS1_3_VERSION);
	pair_connect(&p, NULL);
	pump(&p);
	ck_assert(p.done);
	n = sk_X509_num(SSL_get_peer_cert_chain(p.client));
	pair_close(&p);
	return n;
}

/* ---- works ---- */

START_TEST(the_library_is_named)
{
	ck_assert_int_eq(strncmp(tls_library(), "OpenSSL 3.", 10), 0);
	ck_assert_int_eq(strncmp(tls_library_built(), "OpenSSL 3.", 10), 0);
	ck_assert_ptr_null(strchr(tls_library() + 8, ' '));
}
END_TEST

START_TEST(the_made_certificate_is_verified_by_name_and_address)
{
	create("");
	ck_assert_str_eq(tls_srv_name(srv), "localhost");
	ck_assert_str_eq(tls_srv_certificate(srv), "ECDSA P-256");
	ck_assert_ptr_null(tls_srv_warning(srv));
	ck_assert(verifies("localhost", NULL));
	ck_assert(verifies(NULL, "127.0.0.1"));
	ck_assert(verifies(NULL, "::1"));
	ck_assert(!verifies("example.org", NULL));
	ck_assert(!verifies(NULL, "127.0.0.2"));
	ck_assert_int_eq(certificates_sent(), 1);
	destroy();
}
END_TEST

START_TEST(the_made_certificate_is_for_a_server_and_a_month)
{
	struct pair p;
	X509 *leaf;
	int days, seconds;

	create("tls: {certificate: {make: ed25519}}\n");
	pair_open(&p, TLS1_3_VERSION);
	pair_connect(&p, NULL);
	pump(&p);
	leaf = SSL_get0_peer_certificate(p.client);
	ck_assert_ptr_nonnull(leaf);
	ck_assert_int_eq(X509_check_purpose(leaf, X509_PURPOSE_SSL_SERVER, 0),
			 1);
	ck_assert_int_eq(X509_check_purpose(leaf, X509_PURPOSE_SSL_CLIENT, 0),
			 0);
	ck_assert_int_eq(X509_check_ca(leaf), 0);
	ck_assert_int_eq(ASN1_TIME_diff(&days, &seconds,
					X509_get0_notBefore(leaf),
					X509_get0_notAfter(leaf)),
			 1);
	ck_assert_int_eq(days, 30);
	ck_assert_int_eq(seconds / 60, 60);
	pair_close(&p);
	destroy();
}
END_TEST

/* A root, an intermediate and a leaf: chain.pem (leaf, intermediate), key. */
static void write_chain(void)
{
	EVP_PKEY *k[3];
	X509 *c[3];

	for (int i = 0; i < 3; i++)
		k[i] = EVP_EC_gen("P-256");
	c[0] = make_cert(k[0],
			 &(struct made){.common_name = "root", .is_ca = true});
	c[1] = make_cert(k[1], &(struct made){.common_name = "middle",
					      .is_ca = true,
					      .issuer = c[0],
					      .issuer_key = k[0]});
	c[2] = make_cert(k[2], &(struct made){.common_name = "leaf",
					      .names = "DNS:one.example,"
						       "DNS:two.example",
					      .issuer = c[1],
					      .issuer_key = k[1]});
	pem_cert("chain.pem", "w", c[2]);
	pem_cert("chain.pem", "a", c[1]);
	pem_key("chain.key", k[2], NULL);
	for (int i = 0; i < 3; i++) {
		EVP_PKEY_free(k[i]);
		X509_free(c[i]);
	}
}

#define FROM_FILES(name) \
	"tls: {certificate: {chain: @/" name ".pem, key: @/" name ".key}}\n"

START_TEST(a_chain_from_files_is_sent_whole_and_verified)
{
	write_chain();
	create(FROM_FILES("chain"));
	ck_assert_str_eq(tls_srv_name(srv), "one.example");
	ck_assert_ptr_null(tls_srv_warning(srv));
	ck_assert_int_eq(certificates_sent(), 2);
	ck_assert(verifies("one.example", NULL));
	ck_assert(verifies("two.example", NULL));
	ck_assert(!verifies("three.example", NULL));
	destroy();
}
END_TEST

START_TEST(one_file_may_hold_certificate_and_key)
{
	EVP_PKEY *key = pem_pair("both", &(struct made){.names = "DNS:a.b"});
	FILE *f = file_open("both.pem", "a");

	ck_assert_int_eq(
		PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
	fclose(f);
	create("tls: {certificate: {chain: @/both.pem, key: @/both.pem}}\n");
	ck_assert(verifies("a.b", NULL));
	EVP_PKEY_free(key);
	destroy();
}
END_TEST

static const struct {
	struct made made;
	const char *name, *warns;
} named[] = {
	{{.common_name = "cn.example"}, "cn.example", NULL},
	{{.common_name = "cn", .names = "DNS:first,DNS:second"}, "first", NULL},
	{{.common_name = "cn", .names = "IP:10.1.2.3"}, "10.1.2.3", NULL},
	{{.common_name = "cn", .names = "IP:10.1.2.3,DNS:later"},
	 "later",
	 NULL},
	{{.common_name = "cn", .names = "IP:fe80::1"}, "fe80::1", NULL},
	{{.names = "DNS:*.example.org"}, "any.example.org", NULL},
	{{.common_name = "cn", .names = "email:a@b.c"}, "cn", NULL},
	{{.common_name = "John Doe\n"}, "", "no name of a server in it"},
	{{.names = "DNS:a b,DNS:good"}, "good", NULL},
	{{.common_name = "x", .from_s = 3600, .to_s = 7200},
	 "x",
	 "certificate 1 of it is not valid yet"},
	{{.common_name = "x", .from_s = -7200, .to_s = -3600},
	 "x",
	 "certificate 1 of it is expired"},
};

START_TEST(names_and_doubts_are_read_from_the_certificate)
{
	EVP_PKEY *key = pem_pair("x", &named[_i].made);
	const char *warning;

	create(FROM_FILES("x"));
	ck_assert_str_eq(tls_srv_name(srv), named[_i].name);
	warning = tls_srv_warning(srv);
	if (named[_i].warns == NULL)
		ck_assert_msg(warning == NULL, "%s", warning);
	else
		ck_assert_msg(warning != NULL &&
				      strstr(warning, named[_i].warns) != NULL,
			      "%s", warning);
	EVP_PKEY_free(key);
	destroy();
}
END_TEST

START_TEST(an_expired_certificate_of_the_chain_is_a_warning)
{
	EVP_PKEY *old, *key = pem_pair("x", &(struct made){.names = "DNS:a"});
	X509 *cert;

	old = EVP_EC_gen("P-256");
	cert = make_cert(old, &(struct made){.common_name = "old",
					     .from_s = -YEAR_S,
					     .to_s = -1});
	pem_cert("x.pem", "a", cert);
	create(FROM_FILES("x"));
	ck_assert_ptr_nonnull(
		strstr(tls_srv_warning(srv), "certificate 2 of it is expired"));
	X509_free(cert);
	EVP_PKEY_free(old);
	EVP_PKEY_free(key);
	destroy();
}
END_TEST

static const struct {
	const char *type, *arg, *shown;
} kinds[] = {
	{"EC", "P-521", "ECDSA P-521"},
	{"EC", "secp256k1", "ECDSA secp256k1"},
	{"ED448", NULL, "ED448"},
	{"RSA", "2048", "RSA 2048"},
};

START_TEST(other_keys_from_files_are_named)
{
	EVP_PKEY *key =
		strcmp(kinds[_i].type, "RSA") == 0 ? EVP_RSA_gen(2048)
		: kinds[_i].arg != NULL
			? EVP_PKEY_Q_keygen(NULL, NULL, "EC", kinds[_i].arg)
			: EVP_PKEY_Q_keygen(NULL, NULL, kinds[_i].type);
	struct made made = {.names = "DNS:a"};
	EVP_PKEY *issuer_key = EVP_EC_gen("P-256");
	X509 *issuer =
		make_cert(issuer_key, &(struct made){.common_name = "ca"});
	X509 *cert;
	int rc;

	made.issuer = issuer;
	made.issuer_key = issuer_key;
	cert = make_cert(key, &made);
	pem_cert("k.pem", "w", cert);
	pem_key("k.key", key, NULL);
	rc = try_create(FROM_FILES("k"), 1);
	/* TLS 1.3 has no signature with that curve, and that is said. */
	if (kinds[_i].arg != NULL && strcmp(kinds[_i].arg, "secp256k1") == 0) {
		ck_assert_int_eq(rc, -EINVAL);
		ck_assert_msg(strstr(err, kinds[_i].shown) != NULL, "%s", err);
		destroy();
		create("tls: {versions: TLSv1.2, certificate: "
		       "{chain: @/k.pem, key: @/k.key}}\n");
	} else {
		ck_assert_msg(rc == 0, "%s", err);
		ck_assert_str_eq(tls_srv_certificate(srv), kinds[_i].shown);
	}
	X509_free(cert);
	X509_free(issuer);
	EVP_PKEY_free(issuer_key);
	EVP_PKEY_free(key);
	destroy();
}
END_TEST

START_TEST(the_hybrid_group_works_or_is_refused_with_the_version)
{
	static const char text[] =
		"tls: {versions: [TLSv1.3], groups: [X25519MLKEM768]}\n";
	char says[100];
	struct pair p;

	if (library_has(3, 5)) {
		create(text);
		pair_open(&p, TLS1_3_VERSION);
		SSL_CTX_set1_groups_list(p.ctx, "X25519MLKEM768");
		handshake(&p, NULL, false);
		SSL_SESSION *s = take_session(&p);

		handshake(&p, s, true);
		SSL_SESSION_free(s);
		pair_close(&p);
		destroy();
		/* It is a group of TLS 1.3 alone. */
		refused("tls: {groups: [X25519MLKEM768]}\n",
			"no TLSv1.2 handshake is possible");
	} else {
		snprintf(says, sizeof(says),
			 "tls.groups: group X25519MLKEM768 needs OpenSSL 3.5; "
			 "this is %s",
			 OpenSSL_version(OPENSSL_VERSION_STRING));
		refused(text, says);
	}
}
END_TEST

START_TEST(several_groups_are_taken_in_their_order)
{
	struct pair p;

	create("tls: {groups: [P-384, X25519, prime256v1]}\n");
	pair_open(&p, TLS1_3_VERSION);
	SSL_CTX_set1_groups_list(p.ctx, "X448:P-256");
	handshake(&p, NULL, false);
	pair_close(&p);
	pair_open(&p, TLS1_2_VERSION);
	SSL_CTX_set1_groups_list(p.ctx, "P-256:X25519:P-384");
	pair_connect(&p, NULL);
	pump(&p);
	ck_assert(p.done);
	ck_assert_int_eq((int)SSL_get_negotiated_group(p.client),
			 NID_secp384r1);
	pair_close(&p);
	destroy();
}
END_TEST

/* ---- refuses ---- */

static const struct {
	const char *text, *says;
} wrong[] = {
	{"tls: {groups: [X25519, NoSuch]}\n", "tls.groups: NoSuch is no group"},
	{"tls: {groups: [X25519, X25519MLKEM99]}\n",
	 "tls.groups: X25519MLKEM99 is no group of OpenSSL 3."},
	{"tls: {groups: [-X25519]}\n", "tls.groups: -X25519 is no group"},
	{"tls: {ciphers: [TLS_NO_SUCH]}\n",
	 "tls.ciphers: TLS_NO_SUCH is unknown to OpenSSL 3."},
	{"tls: {ciphers: [NO-SUCH, TLS_AES_256_GCM_SHA384]}\n",
	 "tls.ciphers: NO-SUCH is unknown to OpenSSL 3."},
	{"tls: {ciphers: [HIGH]}\n", "tls.ciphers: HIGH is unknown"},
	{"tls: {ciphers: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]}\n",
	 "is called ECDHE-ECDSA-AES256-GCM-SHA384 by OpenSSL"},
	{"tls: {ciphers: [TLS_AES_256_GCM_SHA384]}\n", "no suite for TLSv1.2"},
	{"tls: {ciphers: [ECDHE-ECDSA-AES256-GCM-SHA384]}\n",
	 "no suite for TLSv1.3"},
	{"tls: {ciphers: [TLS_AES_256_GCM_SHA384, "
	 "ECDHE-RSA-AES256-GCM-SHA384]}\n",
	 "fits the ECDSA or Ed25519 certificate; add ECDHE-ECDSA-"},
	{"tls: {ciphers: [TLS_AES_256_GCM_SHA384, "
	 "ECDHE-ECDSA-AES256-GCM-SHA384], certificate: {make: rsa-2048}}\n",
	 "fits the RSA certificate; add ECDHE-RSA-"},
	{"tls: {certificate: {chain: /nope/a.pem, key: /nope/a.key}}\n",
	 "tls.certificate.chain: /nope/a.pem: No such file or directory"},
	{"tls: {certificate: {chain: /dev/null, key: /dev/null}}\n",
	 "tls.certificate.chain: /dev/null: no PEM certificate"},
	{"tls: {certificate: {chain: /dev/zero, key: /dev/null}}\n",
	 "tls.certificate.chain: /dev/zero: File too large"},
	{"tls: {certificate: {chain: '@', key: '@'}}\n", ": Is a directory"},
	{"tls: {client_auth: required, ca: /nope/ca.pem}\n",
	 "tls.ca: /nope/ca.pem: No such file or directory"},
	{"tls: {client_auth: optional, ca: /dev/null}\n",
	 "tls.ca: /dev/null: no PEM certificate"},
};

START_TEST(what_cannot_be_is_named)
{
	refused(wrong[_i].text, wrong[_i].says);
}
END_TEST

/* OpenSSL 3.5 takes the second one for the first. */
START_TEST(a_group_under_two_names_is_refused_or_harmless)
{
	static const char text[] =
		"tls: {groups: [X25519, P-256, secp256r1]}\n";

	if (library_has(3, 5)) {
		create(text);
		ck_assert_int_eq(certificates_sent(), 1);
		destroy();
	} else {
		refused(text, "tls.groups: secp256r1 is there twice");
	}
}
END_TEST

/* Right each for itself: known groups of which one version has no use. */
START_TEST(options_that_cannot_work_together_are_refused)
{
	refused("tls: {groups: [ffdhe2048], versions: [TLSv1.2]}\n",
		"tls: no TLSv1.2 handshake is possible with these groups and "
		"ciphers and this certificate (ECDSA P-256)");
	refused("tls: {groups: [brainpoolP256r1], versions: [TLSv1.3]}\n",
		"no TLSv1.3 handshake is possible");
}
END_TEST

START_TEST(files_that_do_not_fit_are_named)
{
	EVP_PKEY *one = pem_pair("one", &(struct made){.names = "DNS:a"});
	EVP_PKEY *two = pem_pair("two", &(struct made){.names = "DNS:a"});
	EVP_PKEY *rsa = EVP_RSA_gen(2048);

	pem_key("rsa.key", rsa, NULL);
	pem_key("locked.key", one, "secret");
	refused("tls: {certificate: {chain: @/one.pem, key: @/two.key}}\n",
		"two.key does not belong to the certificate in ");
	refused("tls: {certificate: {chain: @/one.pem, key: @/rsa.key}}\n",
		"rsa.key does not belong to the certificate in ");
	refused("tls: {certificate: {chain: @/one.pem, key: @/locked.key}}\n",
		"locked.key: the key is encrypted; write it in the clear");
	refused("tls: {certificate: {chain: @/one.pem, key: @/one.pem}}\n",
		"one.pem: no PEM private key in it");
	refused("tls: {certificate: {chain: @/one.key, key: @/one.key}}\n",
		"one.key: no PEM certificate in it");
	refused("tls: {certificate: {chain: @/one.pem, key: /dev/null}}\n",
		"tls.certificate.key: /dev/null: no PEM private key in it");
	refused("tls: {certificate: {chain: @/one.pem, key: /nope.key}}\n",
		"tls.certificate.key: /nope.key: No such file or directory");
	EVP_PKEY_free(one);
	EVP_PKEY_free(two);
	EVP_PKEY_free(rsa);
}
END_TEST

START_TEST(an_old_style_encrypted_key_is_told_as_well)
{
	EVP_PKEY *key = pem_pair("x", &(struct made){.names = "DNS:a"});
	FILE *f = file_open("x.key", "w");

	ck_assert_int_eq(
		PEM_write_PrivateKey_ex(f, key, EVP_aes_128_cbc(),
					(const unsigned char *)"secret", 6,
					NULL, NULL, NULL, NULL),
		1);
	fclose(f);
	refused(FROM_FILES("x"), "x.key: the key is encrypted");
	EVP_PKEY_free(key);
}
END_TEST

START_TEST(a_chain_with_a_damaged_certificate_is_refused)
{
	static char text[16384];
	char *at;
	size_t len;
	FILE *f;

	write_chain();
	f = file_open("chain.pem", "r");
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	at = strstr(text + 30, "-----BEGIN CERTIFICATE");
	ck_assert_ptr_nonnull(at);
	/* The second one ends too early. */
	file_write("chain.pem", text, (size_t)(at - text) + 200);
	refused(FROM_FILES("chain"), "chain.pem: certificate 2 in it cannot");
	/* Or is garbled in the middle. */
	memset(at + 100, '!', 10);
	file_write("chain.pem", text, len);
	refused(FROM_FILES("chain"), "chain.pem: certificate 2 in it cannot");
}
END_TEST

START_TEST(a_key_that_is_too_short_is_refused_by_the_library)
{
	EVP_PKEY *key = EVP_RSA_gen(512);
	X509 *cert = make_cert(key, &(struct made){.names = "DNS:a"});

	pem_cert("x.pem", "w", cert);
	pem_key("x.key", key, NULL);
	refused(FROM_FILES("x"), "does not take the certificate (RSA 512)");
	X509_free(cert);
	EVP_PKEY_free(key);
}
END_TEST

static void add_works(Suite *s)
{
	TCase *t = add_case(s, "works");

	tcase_add_test(t, the_library_is_named);
	tcase_add_test(t, the_made_certificate_is_verified_by_name_and_address);
	tcase_add_test(t, the_made_certificate_is_for_a_server_and_a_month);
	tcase_add_test(t, a_chain_from_files_is_sent_whole_and_verified);
	tcase_add_test(t, one_file_may_hold_certificate_and_key);
	tcase_add_loop_test(t, names_and_doubts_are_read_from_the_certificate,
			    0, (int)ARRAY_LEN(named));
	tcase_add_test(t, an_expired_certificate_of_the_chain_is_a_warning);
	tcase_add_loop_test(t, other_keys_from_files_are_named, 0,
			    (int)ARRAY_LEN(kinds));
	tcase_add_test(t,
		       the_hybrid_group_works_or_is_refused_with_the_version);
	tcase_add_test(t, several_groups_are_taken_in_their_order);
}

int main(void)
{
	Suite *s = suite_create("tls_ctx");
	TCase *t;

	add_works(s);
	t = add_case(s, "refuses");
	tcase_add_loop_test(t, what_cannot_be_is_named, 0,
			    (int)ARRAY_LEN(wrong));
	tcase_add_test(t, a_group_under_two_names_is_refused_or_harmless);
	tcase_add_test(t, options_that_cannot_work_together_are_refused);
	tcase_add_test(t, files_that_do_not_fit_are_named);
	tcase_add_test(t, an_old_style_encrypted_key_is_told_as_well);
	tcase_add_test(t, a_chain_with_a_damaged_certificate_is_refused);
	tcase_add_test(t, a_key_that_is_too_short_is_refused_by_the_library);
	return run_suite(s);
}
