/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1, the server's side: a parser of requests that takes bytes in pieces
 * of any size, and the head of the answer. It allocates nothing, knows no
 * socket and keeps no copy of the request: of a head only what decides the
 * answer.
 *
 *     GET or HEAD /bytes/N    N bytes, 0 to 1 GiB
 *     GET or HEAD anything    the body that the scenario asks for
 *     another method          405; its body is read and dropped
 *
 * A request's body is read to its end (at most 1 MiB) before the answer, so
 * that the connection can be used again. What could be understood in two ways
 * (two lengths, a length and chunks, a space before the colon, a folded line, a
 * bare CR) is refused with 400 and the connection closed: RFC 9112, 11.2.
 */
#ifndef WORKERS_HTTP_H
#define WORKERS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX	8192	/* request line and fields: 431 above */
#define HTTP_TARGET_MAX 4096	/* 414 above */
#define HTTP_BODY_MAX	1048576 /* of a request, framing included: 413 above */
#define HTTP_BYTES_MAX	(UINT64_C(1) << 30) /* of /bytes/N */
#define HTTP_ANSWER_MAX 384 /* head of an answer, with a refusal's text */

#define HTTP_TOKEN_MAX 20 /* "transfer-encoding" and a bit */
#define HTTP_PATH_MAX  24 /* "/bytes/1073741824" and a bit */

/* One connection's parser. Not opaque: it lies in struct conn. */
struct http {
	uint8_t state;
	uint8_t form;	/* what the target's bytes are part of */
	uint8_t field;	/* which field's value this is */
	uint8_t method; /* enum http_method */
	uint8_t minor;	/* of the version */
	uint8_t tok_len;
	uint8_t path_len;
	uint8_t hosts; /* Host fields seen, 2 for more */
	bool has_length, has_coding, chunked, bad_coding;
	bool want_close, want_keep, expect;
	bool close;	    /* the connection ends after this answer */
	bool cut;	    /* ... and what follows the head is not read */
	bool length_digits; /* this Content-Length has a digit */
	bool length_space;  /* ... and white space after it */
	uint16_t status;    /* of the answer; 0: not decided */
	uint32_t head_bytes;
	uint32_t target_bytes;
	uint64_t length;     /* Content-Length, or this line's so far */
	uint64_t length_1st; /* the first line's, if there are more */
	uint64_t left;	     /* body or chunk bytes still to come */
	uint64_t body_seen;  /* body bytes with their framing */
	char tok[HTTP_TOKEN_MAX];
	char path[HTTP_PATH_MAX];
};

/* What to send for a request. */
struct http_answer {
	uint16_t status;
	bool close;    /* say so, and close after it */
	bool keep;     /* say keep-alive (HTTP/1.0 asked for it) */
	bool head;     /* HEAD: no body follows */
	bool cut;      /* the client may be sending still */
	uint64_t body; /* filler bytes after the head; 0 for a refusal */
};

/* At the start of a connection and after each answer. */
void http_init(struct http *h);

/*
 * Takes up to n bytes and says how many it used. *done is set when a request is
 * complete or refused: call http_answer() and then http_init(), and feed the
 * rest unless answer.close. All n are used when it is not done.
 */
size_t http_feed(struct http *h, const uint8_t *p, size_t n, bool *done);

/* Has a request begun that is not complete? */
bool http_busy(const struct http *h);

/* After *done. `body` is the scenario's body size. */
void http_answer(const struct http *h, uint64_t body, struct http_answer *out);

/* The answer's head, and a refusal's text, into `to`. Returns the length. */
size_t http_write(const struct http_answer *a, char to[static HTTP_ANSWER_MAX]);

#endif
