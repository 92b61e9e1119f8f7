/* SPDX-License-Identifier: MIT */
/*
 * The client's side of HTTP/1.1: the request's text, and a reader of answers
 * that takes bytes in pieces of any size. It allocates nothing and keeps no
 * text. Small and strict: an answer is a status line, fields, and a body whose
 * length Content-Length says (none with 204 and 304). Everything else is bad:
 * another protocol, chunks, no length, two lengths that differ, a bare LF.
 */
#ifndef TOOLS_TDRIVE_HTTP_H
#define TOOLS_TDRIVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_PATH_MAX 1024  /* of a request */
#define HTTP_HEAD_MAX 16384 /* of an answer */
#define HTTP_TEXT_MAX 1536  /* a request with the longest path and host */

/*
 * The request for `path`, or for /bytes/N if `body` is not 0. 0, or -E2BIG if
 * the path or the host is too long.
 */
int http_request(char to[static HTTP_TEXT_MAX], const char *path, uint64_t body,
		 const char *host);

/* One connection's reader. Not opaque: it lies in struct seat. */
struct http_reader {
	uint8_t state;
	uint8_t field; /* which field's value this is */
	uint8_t at;    /* of the word that is being compared */
	bool has_length, has_digit, closes;
	uint16_t status;
	uint32_t head_bytes;
	uint64_t length, left;
	char name[20];
};

enum http_result {
	HTTP_MORE, /* all that was fed is used up */
	HTTP_DONE, /* the answer is complete */
	HTTP_BAD,  /* nothing after it can be understood */
};

/* Before each answer. */
void http_expect(struct http_reader *r);

/* Takes up to n bytes; *used says how many, all of them with HTTP_MORE. */
enum http_result http_read(struct http_reader *r, const uint8_t *p, size_t n,
			   size_t *used);

/* Has a byte of the answer been read? */
static inline bool http_begun(const struct http_reader *r)
{
	return r->head_bytes > 0;
}

/* After HTTP_DONE. */
static inline bool http_is_good(const struct http_reader *r)
{
	return r->status >= 200 && r->status < 300;
}

/* After HTTP_DONE: does the server end the connection? */
static inline bool http_closes(const struct http_reader *r)
{
	return r->closes;
}

#endif
