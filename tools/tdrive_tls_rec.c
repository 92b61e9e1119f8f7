/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_tls_rec.h"

#include "shm/base.h"
#include "tools/tdrive_tls_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
	bool out;
	const char *type, *message; /* static texts */
	size_t length;
};

struct ctls_rec {
	struct line line[CTLS_REC_LINES];
	uint32_t lines;
	size_t pending[2]; /* record bodies without a message so far: in, out */
};

/* RFC 8446, B.3 and RFC 5246, 7.4. */
static const struct {
	uint8_t type;
	const char *name;
} messages[] = {
	{0, "HelloRequest"},	    {1, "ClientHello"},
	{2, "ServerHello"},	    {4, "NewSessionTicket"},
	{5, "EndOfEarlyData"},	    {8, "EncryptedExtensions"},
	{11, "Certificate"},	    {12, "ServerKeyExchange"},
	{13, "CertificateRequest"}, {14, "ServerHelloDone"},
	{15, "CertificateVerify"},  {16, "ClientKeyExchange"},
	{20, "Finished"},	    {22, "CertificateStatus"},
	{24, "KeyUpdate"},	    {25, "CompressedCertificate"},
};

/* The random of a HelloRetryRequest begins so (RFC 8446, 4.1.3). */
static const uint8_t retry[] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a};

#define HEADER_LEN    5 /* of a record: type, version, length */
#define RANDOM_OFFSET 6 /* in a ServerHello: behind header and version */

static const char *message_name(const uint8_t *p, size_t len)
{
	if (len >= RANDOM_OFFSET + sizeof(retry) && p[0] == 2 &&
	    memcmp(p + RANDOM_OFFSET, retry, sizeof(retry)) == 0)
		return "HelloRetryRequest";
	for (size_t i = 0; i < ARRAY_LEN(messages); i++)
		if (len > 0 && messages[i].type == p[0])
			return messages[i].name;
	return "Unknown";
}

static void add(struct ctls_rec *rec, bool out, const char *type,
		const char *message, size_t own)
{
	size_t length = rec->pending[out] > 0 ? rec->pending[out] : own;

	rec->pending[out] = 0;
	if (rec->lines == CTLS_REC_LINES)
		return;
	rec->line[rec->lines++] = (struct line){out, type, message, length};
}

/* A record's header. Those whose content is reported to nobody get their line
 * here: a change_cipher_spec, and data in TLS 1.2. */
static void header(struct ctls_rec *rec, bool out, int version,
		   const uint8_t *p, size_t len)
{
	if (len < HEADER_LEN)
		return;
	rec->pending[out] += (size_t)(p[3] << 8 | p[4]);
	if (p[0] == SSL3_RT_CHANGE_CIPHER_SPEC)
		add(rec, out, "change_cipher_spec", "ChangeCipherSpec", 1);
	else if (p[0] == SSL3_RT_APPLICATION_DATA && version == TLS1_2_VERSION)
		add(rec, out, "application_data", "Data", 0);
}

static void heard(int out, int version, int type, const void *p, size_t len,
		  SSL *ssl, void *arg)
{
	struct ctls_rec *rec = arg;
	const uint8_t *bytes = p;

	switch (type) {
	case SSL3_RT_HEADER:
		header(rec, out == 1, SSL_version(ssl), bytes, len);
		break;
	case SSL3_RT_INNER_CONTENT_TYPE: /* TLS 1.3, encrypted */
		if (len > 0 && bytes[0] == SSL3_RT_APPLICATION_DATA)
			add(rec, out == 1, "application_data", "Data", 0);
		break;
	case SSL3_RT_HANDSHAKE:
		add(rec, out == 1, "handshake", message_name(bytes, len), len);
		break;
	case SSL3_RT_ALERT:
		add(rec, out == 1, "alert", "Alert", len);
		break;
	default:
		break;
	}
	(void)version; /* of the record, which TLS 1.3 does not change */
}

int ctls_rec_new(struct ctls_rec **out)
{
	struct ctls_rec *rec = calloc(1, sizeof(*rec));

	if (rec == NULL)
		return -ENOMEM;
	*out = rec;
	return 0;
}

void ctls_rec_free(struct ctls_rec **rec)
{
	free(*rec);
	*rec = NULL;
}

void ctls_rec_follow(struct ctls_rec *rec, struct ctls_conn *conn)
{
	*rec = (struct ctls_rec){.lines = 0};
	SSL_set_msg_callback(conn->ssl, heard);
	SSL_set_msg_callback_arg(conn->ssl, rec);
}

uint32_t ctls_rec_lines(const struct ctls_rec *rec)
{
	return rec->lines;
}

void ctls_rec_line(const struct ctls_rec *rec, uint32_t index,
		   char to[static CTLS_REC_TEXT])
{
	const struct line *l = &rec->line[index];

	snprintf(to, CTLS_REC_TEXT, "%s %s %s %zu", l->out ? "out" : "in",
		 l->type, l->message, l->length);
}
