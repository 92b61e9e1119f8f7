/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_http.h"

#include "shm/base.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What the next byte belongs to. */
enum state {
	S_VERSION, /* "HTTP/1.1 200" */
	S_REASON,
	S_NAME,
	S_SPACE, /* white space before a value */
	S_VALUE,
	S_LF,	  /* the LF after a line's CR */
	S_END_LF, /* the LF that ends the head */
	S_BODY,
	S_DONE,
	S_BAD
};

enum field {
	F_OTHER,
	F_LENGTH,
	F_CODING,
	F_CONNECTION
};

static const struct {
	const char *name;
	enum field field;
} fields[] = {
	{"content-length", F_LENGTH},
	{"transfer-encoding", F_CODING},
	{"connection", F_CONNECTION},
};

int http_request(char to[static HTTP_TEXT_MAX], const char *path, uint64_t body,
		 const char *host)
{
	char bytes[48];
	bool six = strchr(host, ':') != NULL;
	int n;

	snprintf(bytes, sizeof(bytes), "/bytes/%" PRIu64, body);
	if (body > 0)
		path = bytes;
	if (strlen(path) > HTTP_PATH_MAX)
		return -E2BIG;
	n = snprintf(to, HTTP_TEXT_MAX,
		     "GET %s HTTP/1.1\r\nHost: %s%s%s\r\n\r\n", path,
		     six ? "[" : "", host, six ? "]" : "");
	return n < 0 || n >= HTTP_TEXT_MAX ? -E2BIG : 0;
}

void http_expect(struct http_reader *r)
{
	*r = (struct http_reader){.state = S_VERSION};
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* "HTTP/1." digit " " three digits, and then a space or the line's end. */
static enum state in_version(struct http_reader *r, uint8_t c)
{
	static const char start[] = "HTTP/1.";
	uint8_t at = r->at++;

	if (at < sizeof(start) - 1)
		return c == (uint8_t)start[at] ? S_VERSION : S_BAD;
	switch (at - (sizeof(start) - 1)) {
	case 0:
		r->closes = c == '0'; /* unless it says otherwise */
		return c == '0' || c == '1' ? S_VERSION : S_BAD;
	case 1:
		return c == ' ' ? S_VERSION : S_BAD;
	case 2:
	case 3:
	case 4:
		r->status = (uint16_t)(r->status * 10 + (c - '0'));
		return is_digit(c) ? S_VERSION : S_BAD;
	default:
		if (r->status < 200) /* 1xx was not asked for */
			return S_BAD;
		return c == ' ' ? S_REASON : c == '\r' ? S_LF : S_BAD;
	}
}

static enum state in_reason(uint8_t c)
{
	return c == '\r' ? S_LF : c < ' ' && c != '\t' ? S_BAD : S_REASON;
}

static enum state begin_name(struct http_reader *r)
{
	r->at = 0;
	return S_NAME;
}

static enum field field_of(const struct http_reader *r)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strlen(fields[i].name) == r->at &&
		    memcmp(fields[i].name, r->name, r->at) == 0)
			return fields[i].field;
	return F_OTHER;
}

static enum state in_name(struct http_reader *r, uint8_t c)
{
	if (c == '\r' && r->at == 0)
		return S_END_LF;
	if (c == ':' && r->at > 0) {
		r->field = (uint8_t)field_of(r);
		r->at = 0;
		r->has_digit = false;
		if (r->field == F_LENGTH)
			r->left = 0;
		return r->field == F_CODING ? S_BAD : S_SPACE;
	}
	if (c <= ' ' || c == ':' || c >= 0x7f)
		return S_BAD;
	/* One more than the longest name says enough. */
	if (r->at < sizeof(r->name))
		r->name[r->at++] = (char)lower(c);
	return S_NAME;
}

/* A line with a length has ended; `left` holds it. */
static enum state end_length(struct http_reader *r)
{
	if (!r->has_digit || (r->has_length && r->left != r->length))
		return S_BAD;
	r->has_length = true;
	r->length = r->left;
	return S_LF;
}

static enum state in_length(struct http_reader *r, uint8_t c)
{
	if (c == '\r')
		return end_length(r);
	if ((c == ' ' || c == '\t') && r->has_digit) {
		r->at = 1; /* only white space may follow */
		return S_VALUE;
	}
	if (!is_digit(c) || r->at != 0 || r->left > UINT64_MAX / 10 - 1)
		return S_BAD;
	r->has_digit = true;
	r->left = r->left * 10 + (uint64_t)(c - '0');
	return S_VALUE;
}

/* Connection is taken as one word: "close" or "keep-alive". */
static enum state in_connection(struct http_reader *r, uint8_t c)
{
	if (c != '\r') {
		if (r->at < sizeof(r->name))
			r->name[r->at++] = (char)lower(c);
		return S_VALUE;
	}
	if (r->at == 5 && memcmp(r->name, "close", 5) == 0)
		r->closes = true;
	else if (r->at == 10 && memcmp(r->name, "keep-alive", 10) == 0)
		r->closes = false;
	return S_LF;
}

static enum state in_value(struct http_reader *r, uint8_t c)
{
	if (c != '\r' && c < ' ' && c != '\t')
		return S_BAD;
	if (r->field == F_LENGTH)
		return in_length(r, c);
	if (r->field == F_CONNECTION)
		return in_connection(r, c);
	return c == '\r' ? S_LF : S_VALUE;
}

static enum state end_head(struct http_reader *r)
{
	if (r->status == 204 || r->status == 304)
		return S_DONE;
	if (!r->has_length)
		return S_BAD;
	r->left = r->length;
	return r->left > 0 ? S_BODY : S_DONE;
}

static enum state in_head(struct http_reader *r, uint8_t c)
{
	switch ((enum state)r->state) {
	case S_VERSION:
		return in_version(r, c);
	case S_REASON:
		return in_reason(c);
	case S_NAME:
		return in_name(r, c);
	case S_SPACE:
		if (c == ' ' || c == '\t')
			return S_SPACE;
		return in_value(r, c);
	case S_VALUE:
		return in_value(r, c);
	case S_LF:
		return c == '\n' ? begin_name(r) : S_BAD;
	case S_END_LF:
		return c == '\n' ? end_head(r) : S_BAD;
	default:
		return S_BAD;
	}
}

static size_t read_head(struct http_reader *r, const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && r->state < S_BODY) {
		r->state = (uint8_t)in_head(r, p[i++]);
		if (++r->head_bytes > HTTP_HEAD_MAX)
			r->state = S_BAD;
	}
	return i;
}

enum http_result http_read(struct http_reader *r, const uint8_t *p, size_t n,
			   size_t *used)
{
	size_t at = read_head(r, p, n);

	if (r->state == S_BODY) {
		size_t body = base_min(n - at, r->left);

		at += body;
		r->left -= body;
		if (r->left == 0)
			r->state = S_DONE;
	}
	*used = at;
	return r->state == S_DONE  ? HTTP_DONE
	       : r->state == S_BAD ? HTTP_BAD
				   : HTTP_MORE;
}
