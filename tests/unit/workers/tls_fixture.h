/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the server's TLS share: a server made from a scenario, a
 * client of OpenSSL's own, and the bytes between them moved by hand. A folder
 * per test for the files it makes.
 */
#ifndef TESTS_UNIT_WORKERS_TLS_FIXTURE_H
#define TESTS_UNIT_WORKERS_TLS_FIXTURE_H

#include "shm/base.h"
#include "workers/tls_conn.h"
#include "workers/tls_ctx.h"

#include <check.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_CAP (64 * 1024)

/* One test's; a test runs in a process of its own. */
static struct tls_tickets *keys;
static struct tls_srv *srv;
static struct cfg *cfg;
static char err[1024];
static char dir[] = "/tmp/check-tls.XXXXXX";

/* ---- files ---- */

static inline void dir_open(void)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static inline void dir_close(void)
{
	char command[80];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

/* The path of a file in the test's folder. The caller frees. */
static inline char *path_of(const char *name)
{
	char *path = NULL;

	ck_assert_int_gt(asprintf(&path, "%s/%s", dir, name), 0);
	return path;
}

static inline FILE *file_open(const char *name, const char *mode)
{
	char *path = path_of(name);
	FILE *f = fopen(path, mode);

	ck_assert_ptr_nonnull(f);
	free(path);
	return f;
}

static inline void file_write(const char *name, const void *data, size_t len)
{
	FILE *f = file_open(name, "w");

	ck_assert_uint_eq(fwrite(data, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
}

/* ---- the server ---- */

/* `text` follows the scenario's name; every @ in it is the test's folder. */
static inline void load(const char *text)
{
	FILE *f = file_open("scenario.yaml", "w");
	char *path = path_of("scenario.yaml");

	fputs("scenario: check\n", f);
	for (; *text != '\0'; text++)
		if (*text == '@')
			fputs(dir, f);
		else
			fputc(*text, f);
	fclose(f);
	ck_assert_int_eq(cfg_load(&cfg, path, NULL, 0, stderr), 0);
	free(path);
}

static inline int try_create(const char *text, uint32_t nworkers)
{
	int rc;

	load(text);
	err[0] = '\0';
	rc = tls_tickets_create(&keys, cfg, nworkers, err, sizeof(err));
	if (rc == 0)
		rc = tls_srv_create(&srv, cfg, keys, err, sizeof(err));
	if (rc == 0)
		tls_srv_start(srv, 0);
	return rc;
}

static inline void create(const char *text)
{
	ck_assert_msg(try_create(text, 1) == 0, "%s", err);
}

static inline void destroy(void)
{
	tls_srv_close(&srv);
	tls_tickets_close(&keys);
	cfg_free(&cfg);
}

/* It is refused, with these words, and leaves nothing behind. */
static inline void refused(const char *text, const char *says)
{
	int rc = try_create(text, 1);

	ck_assert_msg(rc < 0, "taken: %s", text);
	ck_assert_int_eq(rc, -EINVAL);
	ck_assert_msg(strstr(err, says) != NULL, "\"%s\" is not in \"%s\"",
		      says, err);
	ck_assert_msg(strchr(err, '\n') == NULL, "%s", err);
	ck_assert_uint_eq(ERR_peek_error(), 0);
	ck_assert_ptr_null(srv);
	destroy();
}

/* ---- a client and a server, with the bytes between them ---- */

struct pair {
	SSL_CTX *ctx;
	SSL *client;
	BIO *to_client, *from_client;
	struct tls_conn *server;
	uint8_t buf[OUT_CAP];
	struct tls_out out;
	SSL_SESSION *session;	/* the latest ticket */
	enum tls_status status; /* of the server's last step */
	bool done;		/* the server's handshake */
	size_t out_cap, chunk;	/* how narrow the way is */
	size_t flights;		/* outputs the server made */
};

static inline int keep_session(SSL *ssl, SSL_SESSION *s)
{
	struct pair *p = SSL_get_app_data(ssl);

	SSL_SESSION_free(p->session);
	p->session = s;
	return 1;
}

static inline void pair_open(struct pair *p, int version)
{
	memset(p, 0, sizeof(*p));
	p->out_cap = OUT_CAP;
	p->chunk = OUT_CAP;
	p->ctx = SSL_CTX_new(TLS_client_method());
	ck_assert_ptr_nonnull(p->ctx);
	SSL_CTX_set_min_proto_version(p->ctx, version);
	SSL_CTX_set_max_proto_version(p->ctx, version);
	SSL_CTX_set_session_cache_mode(
		p->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(p->ctx, keep_session);
}

static inline void pair_connect(struct pair *p, SSL_SESSION *offer)
{
	p->client = SSL_new(p->ctx);
	p->to_client = BIO_new(BIO_s_mem());
	p->from_client = BIO_new(BIO_s_mem());
	SSL_set_bio(p->client, p->to_client, p->from_client);
	SSL_set_connect_state(p->client);
	SSL_set_app_data(p->client, p);
	if (offer != NULL) {
		/* OpenSSL spoils a TLS 1.3 session when it has resumed once. */
		SSL_SESSION *copy = SSL_SESSION_dup(offer);

		ck_assert_int_eq(SSL_set_session(p->client, copy), 1);
		SSL_SESSION_free(copy);
	}
	p->out = (struct tls_out){.data = p->buf, .cap = p->out_cap};
	p->server = tls_conn_new(srv, &p->out);
	ck_assert_ptr_nonnull(p->server);
	p->status = TLS_AGAIN;
	p->done = false;
	p->flights = 0;
}

static inline void pair_drop(struct pair *p)
{
	tls_conn_free(&p->server);
	ck_assert_ptr_null(p->server);
	/* Or OpenSSL spoils the session of a connection that was cut. */
	if (p->client != NULL)
		SSL_set_shutdown(p->client,
				 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(p->client);
	p->client = NULL;
}

static inline void pair_close(struct pair *p)
{
	pair_drop(p);
	SSL_SESSION_free(p->session);
	SSL_CTX_free(p->ctx);
}

static inline bool flush_out(struct pair *p)
{
	bool some = p->out.len > 0;

	if (some)
		BIO_write(p->to_client, p->buf, (int)p->out.len);
	p->flights += some;
	p->out.len = 0;
	return some;
}

/* The server's turn on some bytes. True if anything moved. */
static inline bool serve(struct pair *p, const void *data, size_t len)
{
	bool moved = len > 0;

	tls_conn_feed(p->server, data, len);
	do {
		if (p->done)
			break;
		p->status = tls_conn_handshake(p->server);
		p->done = p->status == TLS_OK;
		moved |= flush_out(p);
	} while (p->status == TLS_AGAIN && tls_conn_wants_room(p->server));
	return moved;
}

static inline bool client_step(struct pair *p)
{
	char buf[256];

	if (!SSL_is_init_finished(p->client))
		return SSL_do_handshake(p->client) == 1;
	return SSL_read(p->client, buf, sizeof(buf)) > 0;
}

/* Until nothing moves any more, or the server's handshake is over. */
static inline void pump(struct pair *p)
{
	uint8_t buf[OUT_CAP];
	int idle = 0;

	while (idle < 3 && !p->done && p->status == TLS_AGAIN) {
		int n;

		client_step(p);
		n = BIO_read(p->from_client, buf, (int)p->chunk);
		idle = serve(p, buf, n > 0 ? (size_t)n : 0) ? 0 : idle + 1;
		ck_assert(p->status == TLS_ERR ||
			  tls_conn_left(p->server) == 0);
	}
	client_step(p);
	ERR_clear_error();
}

static inline void handshake(struct pair *p, SSL_SESSION *offer, bool resumed)
{
	pair_connect(p, offer);
	pump(p);
	ck_assert_msg(p->done, "status %d, cause %d", p->status,
		      tls_conn_cause(p->server));
	ck_assert(SSL_is_init_finished(p->client));
	ck_assert_int_eq(tls_conn_resumed(p->server), resumed);
	ck_assert_int_eq(SSL_session_reused(p->client), resumed);
	pair_drop(p);
}

/* The session that came, taken out of the pair. */
static inline SSL_SESSION *take_session(struct pair *p)
{
	SSL_SESSION *s = p->session;

	ck_assert_ptr_nonnull(s);
	p->session = NULL;
	return s;
}

/* ---- certificates ---- */

struct made {
	const char *common_name;
	const char *names; /* subjectAltName; NULL: none */
	bool is_ca;
	long from_s, to_s; /* validity, relative to now */
	X509 *issuer;	   /* NULL: signs itself */
	EVP_PKEY *issuer_key;
};

static inline void add_extension(X509 *cert, int nid, const char *value)
{
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	ck_assert_ptr_nonnull(ext);
	ck_assert_int_eq(X509_add_ext(cert, ext, -1), 1);
	X509_EXTENSION_free(ext);
}

static inline X509 *make_cert(EVP_PKEY *key, const struct made *m)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);
	const EVP_MD *md = EVP_PKEY_is_a(key, "ED25519") && m->issuer == NULL
				   ? NULL
				   : EVP_sha256();

	X509_set_version(cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1 + (long)getpid());
	X509_gmtime_adj(X509_getm_notBefore(cert), m->from_s);
	X509_gmtime_adj(X509_getm_notAfter(cert),
			m->to_s != 0 ? m->to_s : 3600);
	X509_set_pubkey(cert, key);
	if (m->common_name != NULL)
		X509_NAME_add_entry_by_txt(
			name, "CN", MBSTRING_ASC,
			(const unsigned char *)m->common_name, -1, -1, 0);
	X509_set_issuer_name(cert, m->issuer != NULL
					   ? X509_get_subject_name(m->issuer)
					   : name);
	if (m->names != NULL)
		add_extension(cert, NID_subject_alt_name, m->names);
	if (m->is_ca)
		add_extension(cert, NID_basic_constraints, "CA:TRUE");
	ck_assert_int_gt(
		X509_sign(cert, m->issuer != NULL ? m->issuer_key : key, md),
		0);
	return cert;
}

static inline void pem_cert(const char *name, const char *mode, X509 *cert)
{
	FILE *f = file_open(name, mode);

	ck_assert_int_eq(PEM_write_X509(f, cert), 1);
	fclose(f);
}

/* Encrypted with a passphrase unless that is NULL. */
static inline void pem_key(const char *name, EVP_PKEY *key, const char *phrase)
{
	FILE *f = file_open(name, "w");

	ck_assert_int_eq(PEM_write_PKCS8PrivateKey(
				 f, key, phrase ? EVP_aes_256_cbc() : NULL,
				 phrase, phrase ? (int)strlen(phrase) : 0, NULL,
				 NULL),
			 1);
	fclose(f);
}

/* NAME.pem and NAME.key of a certificate that signs itself. */
static inline EVP_PKEY *pem_pair(const char *name, const struct made *m)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = make_cert(key, m);
	char file[64];

	snprintf(file, sizeof(file), "%s.pem", name);
	pem_cert(file, "w", cert);
	snprintf(file, sizeof(file), "%s.key", name);
	pem_key(file, key, NULL);
	X509_free(cert);
	return key;
}

/* ---- running ---- */

static inline TCase *add_case(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	/* Sanitizers and valgrind take their time. */
	tcase_set_timeout(t, 240);
	tcase_add_checked_fixture(t, dir_open, dir_close);
	suite_add_tcase(s, t);
	return t;
}

static inline int run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}

#endif
