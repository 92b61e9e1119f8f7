/* SPDX-License-Identifier: MIT */
#include "workers/http.h"

#include "shm/base.h"

#include <string.h>

enum http_method {
	METHOD_GET,
	METHOD_HEAD,
	METHOD_OTHER
};

/* What the next byte belongs to. */
enum state {
	S_START,
	S_METHOD,
	S_TARGET,
	S_VERSION,
	S_LINE_LF, /* the LF after a line's CR */
	S_NAME_0,
	S_NAME,
	S_VALUE_0, /* white space before a value */
	S_VALUE,
	S_END_LF, /* the LF that ends the head */
	S_BODY,
	S_CHUNK_0, /* first digit of a chunk's size */
	S_CHUNK_SIZE,
	S_CHUNK_EXT,
	S_CHUNK_LF,
	S_CHUNK_DATA,
	S_DATA_CR,
	S_DATA_LF,
	S_TRAILER_0,
	S_TRAILER,
	S_TRAILER_LF, /* the LF after a trailer's CR */
	S_TRAILERS_END_LF,
	S_DONE,
};

enum form {
	F_START,
	F_SCHEME,
	F_AUTHORITY,
	F_PATH,
	F_QUERY
};

enum field {
	FIELD_OTHER,
	FIELD_HOST,
	FIELD_LENGTH,
	FIELD_CODING,
	FIELD_CONNECTION,
	FIELD_EXPECT,
};

static const struct {
	const char *name;
	enum field field;
} fields[] = {
	{"host", FIELD_HOST},
	{"content-length", FIELD_LENGTH},
	{"transfer-encoding", FIELD_CODING},
	{"connection", FIELD_CONNECTION},
	{"expect", FIELD_EXPECT},
};

void http_init(struct http *h)
{
	memset(h, 0, sizeof(*h));
}

bool http_busy(const struct http *h)
{
	return h->state != S_START;
}

/* RFC 9110, 5.6.2. */
static bool is_token(uint8_t c)
{
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
		return true;
	if (c >= '0' && c <= '9')
		return true;
	return c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool is_control(uint8_t c)
{
	return (c < 0x20 && c != '\t') || c == 0x7f;
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

/* The request is refused and the connection ends: what follows is not read. */
static void refuse(struct http *h, uint16_t status)
{
	h->status = status;
	h->close = true;
	h->cut = true;
	h->state = S_DONE;
}

static void tok_add(struct http *h, uint8_t c)
{
	/* A longer one keeps its last place busy and so equals no name. */
	if (h->tok_len < HTTP_TOKEN_MAX)
		h->tok[h->tok_len++] = (char)c;
}

static bool tok_is(const struct http *h, const char *word)
{
	return strlen(word) == h->tok_len &&
	       memcmp(h->tok, word, h->tok_len) == 0;
}

static void on_start(struct http *h, uint8_t c)
{
	/* RFC 9112, 2.2: empty lines before a request are to be ignored. */
	if (c == '\r' || c == '\n')
		return;
	if (!is_token(c)) {
		refuse(h, 400);
		return;
	}
	h->tok_len = 0;
	tok_add(h, c);
	h->state = S_METHOD;
}

static void on_method(struct http *h, uint8_t c)
{
	if (is_token(c)) {
		tok_add(h, c);
		return;
	}
	if (c != ' ') {
		refuse(h, 400);
		return;
	}
	h->method = METHOD_OTHER;
	if (tok_is(h, "GET"))
		h->method = METHOD_GET;
	if (tok_is(h, "HEAD"))
		h->method = METHOD_HEAD;
	h->tok_len = 0;
	h->state = S_TARGET;
}

/* In `http://name/path` the path begins at the third slash: RFC 9112, 3.2.2. */
static void target_scheme(struct http *h, uint8_t c)
{
	tok_add(h, lower(c));
	if (tok_is(h, "http://") || tok_is(h, "https://"))
		h->form = F_AUTHORITY;
}

static void target_byte(struct http *h, uint8_t c)
{
	if (h->form == F_START)
		h->form = c == '/' ? F_PATH : F_SCHEME;
	if (h->form == F_SCHEME) {
		target_scheme(h, c);
		return;
	}
	if (h->form == F_AUTHORITY && (c == '/' || c == '?'))
		h->form = F_PATH;
	if (h->form == F_PATH && (c == '?' || c == '#'))
		h->form = F_QUERY;
	/* A longer path keeps its last place busy and so is no /bytes/N. */
	if (h->form == F_PATH && h->path_len < HTTP_PATH_MAX)
		h->path[h->path_len++] = (char)c;
}

static void on_target(struct http *h, uint8_t c)
{
	if (c == ' ' && h->target_bytes > 0) {
		/* `*` and `name:port` are for methods we do not have. */
		if (h->form == F_SCHEME && h->method != METHOD_OTHER)
			refuse(h, 400);
		else
			h->state = S_VERSION;
		h->tok_len = 0;
		return;
	}
	if (c <= ' ' || c == 0x7f) {
		refuse(h, 400);
		return;
	}
	if (++h->target_bytes > HTTP_TARGET_MAX) {
		refuse(h, 414);
		return;
	}
	target_byte(h, c);
}

static void version_end(struct http *h, uint8_t c)
{
	bool digits = h->tok_len == 8 && h->tok[5] >= '0' && h->tok[5] <= '9' &&
		      h->tok[6] == '.' && h->tok[7] >= '0' && h->tok[7] <= '9';

	if (!digits || memcmp(h->tok, "HTTP/", 5) != 0) {
		refuse(h, 400);
		return;
	}
	if (h->tok[5] != '1' || h->tok[7] > '1') {
		refuse(h, 505);
		return;
	}
	h->minor = (uint8_t)(h->tok[7] - '0');
	h->state = c == '\r' ? S_LINE_LF : S_NAME_0;
}

static void on_version(struct http *h, uint8_t c)
{
	if (c == '\r' || c == '\n')
		version_end(h, c);
	else if (is_control(c) || h->tok_len > 8)
		refuse(h, 400);
	else
		tok_add(h, c);
}

static void on_line_lf(struct http *h, uint8_t c)
{
	if (c == '\n')
		h->state = S_NAME_0;
	else
		refuse(h, 400); /* a CR alone */
}

static void on_name(struct http *h, uint8_t c)
{
	if (is_token(c)) {
		tok_add(h, lower(c));
		return;
	}
	if (c != ':') {
		refuse(h, 400);
		return;
	}
	h->field = FIELD_OTHER;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		if (tok_is(h, fields[i].name))
			h->field = (uint8_t)fields[i].field;
	}
	h->tok_len = 0;
	h->state = S_VALUE_0;
	if (h->field == FIELD_LENGTH) {
		h->length = 0;
		h->length_space = false;
		h->length_digits = false;
	}
}

static void length_byte(struct http *h, uint8_t c)
{
	if (c == ' ' || c == '\t') {
		h->length_space = true;
		return;
	}
	if (c < '0' || c > '9' || h->length_space) {
		refuse(h, 400);
		return;
	}
	h->length_digits = true;
	/* Stops far above the limit and far below an overflow. */
	if (h->length <= UINT64_MAX / 16)
		h->length = h->length * 10 + (uint64_t)(c - '0');
}

static void length_end(struct http *h)
{
	if (!h->length_digits ||
	    (h->has_length && h->length != h->length_1st)) {
		refuse(h, 400);
		return;
	}
	h->has_length = true;
	h->length_1st = h->length;
}

/* One element of a comma-separated list, in small letters. */
static void list_element(struct http *h)
{
	while (h->tok_len > 0 && (h->tok[h->tok_len - 1] == ' ' ||
				  h->tok[h->tok_len - 1] == '\t'))
		h->tok_len--;
	if (h->tok_len == 0)
		return;
	if (h->field == FIELD_CONNECTION) {
		h->want_close |= tok_is(h, "close");
		h->want_keep |= tok_is(h, "keep-alive");
	}
	if (h->field == FIELD_EXPECT)
		h->expect |= tok_is(h, "100-continue");
	if (h->field == FIELD_CODING) {
		bool chunked = tok_is(h, "chunked");

		h->bad_coding |= !chunked || h->chunked;
		h->chunked |= chunked;
	}
	h->tok_len = 0;
}

static void list_byte(struct http *h, uint8_t c)
{
	if (c == ',')
		list_element(h);
	else if (h->tok_len > 0 || (c != ' ' && c != '\t'))
		tok_add(h, lower(c));
}

static void value_end(struct http *h, uint8_t c)
{
	h->state = c == '\r' ? S_LINE_LF : S_NAME_0;
	switch (h->field) {
	case FIELD_HOST:
		h->hosts = h->hosts == 0 ? 1 : 2;
		break;
	case FIELD_LENGTH:
		length_end(h);
		break;
	case FIELD_CODING:
		h->has_coding = true;
		list_element(h);
		break;
	default:
		list_element(h);
		break;
	}
}

static void on_value(struct http *h, uint8_t c)
{
	if (c == '\r' || c == '\n') {
		value_end(h, c);
		return;
	}
	if (is_control(c)) {
		refuse(h, 400);
		return;
	}
	if (h->state == S_VALUE_0 && (c == ' ' || c == '\t'))
		return;
	h->state = S_VALUE;
	if (h->field == FIELD_LENGTH)
		length_byte(h, c);
	else if (h->field >= FIELD_CODING)
		list_byte(h, c);
}

/* The answer when nothing is wrong with the message. */
static uint16_t usual_status(const struct http *h)
{
	return h->method == METHOD_OTHER ? 405 : 200;
}

static bool head_is_bad(const struct http *h)
{
	if (h->hosts > 1 || (h->minor == 1 && h->hosts == 0))
		return true;
	/* RFC 9112, 6.1: what smuggles a request past a proxy. */
	return h->has_coding && (h->has_length || h->minor == 0);
}

static void head_end(struct http *h)
{
	bool body = h->has_coding || (h->has_length && h->length > 0);

	if (head_is_bad(h)) {
		refuse(h, 400);
		return;
	}
	if (h->has_coding && (h->bad_coding || !h->chunked)) {
		refuse(h, 501);
		return;
	}
	if (h->has_length && h->length > HTTP_BODY_MAX) {
		refuse(h, 413);
		return;
	}
	h->close =
		h->minor == 0 ? !h->want_keep || h->want_close : h->want_close;
	h->status = usual_status(h);
	/*
	 * A client that waits for "100 Continue" gets the final answer at once:
	 * the body has no bearing on it. Whether the body still comes is then
	 * not known, so the connection ends (RFC 9110, 10.1.1).
	 */
	if (body && h->expect && h->minor == 1) {
		refuse(h, h->status);
		return;
	}
	h->left = h->length;
	h->state = h->has_coding ? S_CHUNK_0 : body ? S_BODY : S_DONE;
}

static void on_name_0(struct http *h, uint8_t c)
{
	if (c == '\r') {
		h->state = S_END_LF;
		return;
	}
	if (c == '\n') {
		head_end(h);
		return;
	}
	h->tok_len = 0;
	h->state = S_NAME;
	if (c == ':' || !is_token(c))
		refuse(h, 400); /* among others, a folded line */
	else
		on_name(h, c);
}

static void on_end_lf(struct http *h, uint8_t c)
{
	if (c == '\n')
		head_end(h);
	else
		refuse(h, 400);
}

static int hex(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void chunk_size_end(struct http *h, uint8_t c)
{
	if (c == '\r')
		h->state = S_CHUNK_LF;
	else if (c == '\n')
		h->state = h->left > 0 ? S_CHUNK_DATA : S_TRAILER_0;
	else if (c == ';' || c == ' ' || c == '\t')
		h->state = S_CHUNK_EXT;
	else
		refuse(h, 400);
}

static void on_chunk_size(struct http *h, uint8_t c)
{
	int digit = hex(c);

	if (h->state == S_CHUNK_0)
		h->left = 0;
	if (digit < 0) {
		if (h->state == S_CHUNK_0)
			refuse(h, 400);
		else
			chunk_size_end(h, c);
		return;
	}
	h->state = S_CHUNK_SIZE;
	h->left = h->left * 16 + (uint64_t)digit;
	if (h->left > HTTP_BODY_MAX)
		refuse(h, 413);
}

static void on_chunk_ext(struct http *h, uint8_t c)
{
	if (c == '\r' || c == '\n')
		chunk_size_end(h, c);
	else if (is_control(c))
		refuse(h, 400);
}

/* States in which just one byte is right. */
static void on_exact(struct http *h, uint8_t c, uint8_t want, enum state next)
{
	if (c == want)
		h->state = (uint8_t)next;
	else
		refuse(h, 400);
}

static void on_trailer(struct http *h, uint8_t c)
{
	if (h->state == S_TRAILER_0 && (c == '\r' || c == '\n')) {
		h->state = c == '\r' ? S_TRAILERS_END_LF : S_DONE;
		return;
	}
	if (c == '\r')
		h->state = S_TRAILER_LF;
	else if (c == '\n')
		h->state = S_TRAILER_0;
	else if (is_control(c))
		refuse(h, 400);
	else
		h->state = S_TRAILER;
}

static void on_data_end(struct http *h, uint8_t c)
{
	if (h->state == S_DATA_CR && c == '\r')
		h->state = S_DATA_LF;
	else
		on_exact(h, c, '\n', S_CHUNK_0);
}

static void head_byte(struct http *h, uint8_t c)
{
	if (++h->head_bytes > HTTP_HEAD_MAX) {
		refuse(h, 431);
		return;
	}
	switch ((enum state)h->state) {
	case S_START:
		on_start(h, c);
		break;
	case S_METHOD:
		on_method(h, c);
		break;
	case S_TARGET:
		on_target(h, c);
		break;
	case S_VERSION:
		on_version(h, c);
		break;
	case S_LINE_LF:
		on_line_lf(h, c);
		break;
	case S_NAME_0:
		on_name_0(h, c);
		break;
	case S_NAME:
		on_name(h, c);
		break;
	case S_VALUE_0:
	case S_VALUE:
		on_value(h, c);
		break;
	default:
		on_end_lf(h, c);
		break;
	}
}

static void framing_byte(struct http *h, uint8_t c)
{
	switch ((enum state)h->state) {
	case S_CHUNK_0:
	case S_CHUNK_SIZE:
		on_chunk_size(h, c);
		break;
	case S_CHUNK_EXT:
		on_chunk_ext(h, c);
		break;
	case S_CHUNK_LF:
		on_exact(h, c, '\n', h->left > 0 ? S_CHUNK_DATA : S_TRAILER_0);
		break;
	case S_DATA_CR:
	case S_DATA_LF:
		on_data_end(h, c);
		break;
	case S_TRAILER_LF:
		on_exact(h, c, '\n', S_TRAILER_0);
		break;
	case S_TRAILERS_END_LF:
		on_exact(h, c, '\n', S_DONE);
		break;
	default:
		on_trailer(h, c);
		break;
	}
}

/* Body bytes in one go. Returns how many. */
static size_t skip_data(struct http *h, size_t n)
{
	n = base_min(n, h->left);
	h->left -= n;
	if (h->left == 0)
		h->state = h->state == S_BODY ? S_DONE : S_DATA_CR;
	return n;
}

static size_t body_bytes(struct http *h, const uint8_t *p, size_t n)
{
	size_t used = 1;

	if (h->state == S_BODY || h->state == S_CHUNK_DATA)
		used = skip_data(h, n);
	else
		framing_byte(h, *p);
	h->body_seen += used;
	/* Chunks of one byte are mostly framing: that counts as well. */
	if (h->body_seen > HTTP_BODY_MAX && h->status != 413 &&
	    h->state != S_DONE)
		refuse(h, 413);
	return used;
}

/* A value that decides nothing: up to the end of its line in one go. */
static size_t skip_value(struct http *h, const uint8_t *p, size_t n)
{
	size_t i = 0;

	n = base_min(n, HTTP_HEAD_MAX - h->head_bytes);
	while (i < n && p[i] >= ' ' && p[i] != 0x7f)
		i++;
	h->head_bytes += (uint32_t)i;
	return i;
}

size_t http_feed(struct http *h, const uint8_t *p, size_t n, bool *done)
{
	size_t i = 0;

	while (i < n && h->state != S_DONE) {
		if (h->state >= S_BODY) {
			i += body_bytes(h, p + i, n - i);
			continue;
		}
		if (h->state == S_VALUE && h->field <= FIELD_HOST)
			i += skip_value(h, p + i, n - i);
		if (i < n)
			head_byte(h, p[i++]);
	}
	*done = h->state == S_DONE;
	return i;
}

/* The number in /bytes/N. -1: another path; -2: /bytes/ with no good number. */
static int64_t bytes_of(const struct http *h)
{
	static const char prefix[] = "/bytes/";
	const size_t skip = sizeof(prefix) - 1;
	uint64_t v = 0;

	if (h->path_len < skip || memcmp(h->path, prefix, skip) != 0)
		return -1;
	if (h->path_len == skip || h->path_len == HTTP_PATH_MAX)
		return -2;
	for (size_t i = skip; i < h->path_len; i++) {
		char c = h->path[i];

		if (c < '0' || c > '9')
			return -2;
		v = v * 10 + (uint64_t)(c - '0');
	}
	return v <= HTTP_BYTES_MAX ? (int64_t)v : -2;
}

void http_answer(const struct http *h, uint64_t body, struct http_answer *out)
{
	int64_t bytes = bytes_of(h);

	MUST(h->state == S_DONE);
	*out = (struct http_answer){
		.status = h->status,
		.close = h->close,
		.keep = h->minor == 0 && !h->close,
		.head = h->method == METHOD_HEAD,
		.cut = h->cut,
	};
	if (out->status != 200)
		return;
	if (bytes == -2)
		out->status = 400;
	else
		out->body = bytes >= 0 ? (uint64_t)bytes : body;
}

static const struct {
	uint16_t status;
	const char *line; /* status line's end */
	const char *text; /* what the client's user reads */
} statuses[] = {
	{200, "200 OK", ""},
	{400, "400 Bad Request",
	 "not a request that HTTP/1.1 allows, or /bytes/N with N above 1 "
	 "GiB\n"},
	{405, "405 Method Not Allowed", "only GET and HEAD are answered\n"},
	{413, "413 Content Too Large", "a request's body may have 1 MiB\n"},
	{414, "414 URI Too Long", "a target may have 4 KiB\n"},
	{431, "431 Request Header Fields Too Large",
	 "a request's head may have 8 KiB\n"},
	{501, "501 Not Implemented", "no transfer coding but chunked\n"},
	{505, "505 HTTP Version Not Supported", "only HTTP/1.0 and HTTP/1.1\n"},
};

static char *put(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n);
	return to + n;
}

static char *put_number(char *to, uint64_t v)
{
	char digits[20];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

size_t http_write(const struct http_answer *a, char to[static HTTP_ANSWER_MAX])
{
	const char *text = "";
	char *at = to;
	size_t i = 0;

	while (statuses[i].status != a->status) {
		i++;
		MUST(i < ARRAY_LEN(statuses));
	}
	text = statuses[i].text;
	at = put(at, "HTTP/1.1 ");
	at = put(at, statuses[i].line);
	at = put(at, "\r\nServer: tterm\r\nContent-Type: text/plain\r\n"
		     "Content-Length: ");
	at = put_number(at, a->status == 200 ? a->body : strlen(text));
	if (a->status == 405)
		at = put(at, "\r\nAllow: GET, HEAD");
	if (a->close)
		at = put(at, "\r\nConnection: close");
	if (a->keep)
		at = put(at, "\r\nConnection: keep-alive");
	at = put(at, "\r\n\r\n");
	if (!a->head)
		at = put(at, text);
	return (size_t)(at - to);
}
