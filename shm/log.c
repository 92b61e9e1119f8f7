/* SPDX-License-Identifier: MIT */
#include "shm/log.h"

#include "shm/base.h"
#include "shm/clk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One write of a line goes into a pipe whole up to PIPE_BUF, 4096. */
#define LINE_MAX_BYTES 4096
#define TEXT_MAX       1536
#define ROLE_MAX       32

/* Stands between fields while a line is made: US, unit separator. */
#define FIELD_END '\x1f'

/* The only process-wide variable of the project. */
static struct {
	uint64_t began_ns; /* of the program: a child keeps its parent's */
	enum log_level level;
	char role[ROLE_MAX];
} state = {.level = LOG_INFO, .role = "-"};

void log_init(const char *role, enum log_level level)
{
	if (state.began_ns == 0)
		state.began_ns = clk_now();
	state.level = level;
	log_set_role(role);
}

void log_set_role(const char *role)
{
	snprintf(state.role, sizeof(state.role), "%s", role);
}

enum log_level log_level(void)
{
	return state.level;
}

int log_parse_level(const char *text, enum log_level *out)
{
	static const char *const names[] = {
		[LOG_ERROR] = "error",
		[LOG_WARN] = "warn",
		[LOG_INFO] = "info",
		[LOG_DEBUG] = "debug",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* ---- a line ---- */

struct line {
	char buf[LINE_MAX_BYTES];
	size_t len;
};

/* Keeps room for the newline; what does not fit is cut. */
static void put_byte(struct line *l, char c)
{
	if (l->len < sizeof(l->buf) - 1)
		l->buf[l->len++] = c;
}

static void put_text(struct line *l, const char *text)
{
	while (*text != '\0')
		put_byte(l, *text++);
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

static void put_escaped(struct line *l, char c)
{
	static const char hex[] = "0123456789abcdef";

	if (c == '"' || c == '\\') {
		put_byte(l, '\\');
		put_byte(l, c);
	} else if (c == '\n' || c == '\t' || c == '\r') {
		put_byte(l, '\\');
		put_byte(l, c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
	} else if (is_control(c)) {
		put_text(l, "\\x");
		put_byte(l, hex[(unsigned char)c >> 4]);
		put_byte(l, hex[(unsigned char)c & 15]);
	} else {
		put_byte(l, c);
	}
}

static void put_value(struct line *l, const char *value, size_t len)
{
	bool quote = len == 0;

	for (size_t i = 0; i < len && !quote; i++)
		quote = value[i] == ' ' || value[i] == '"' ||
			value[i] == '\\' || is_control(value[i]);
	if (quote)
		put_byte(l, '"');
	for (size_t i = 0; i < len; i++)
		put_escaped(l, value[i]);
	if (quote)
		put_byte(l, '"');
}

/* "key=value" with the value as it is, or a lone word. */
static void put_field(struct line *l, const char *field, size_t len)
{
	const char *eq = memchr(field, '=', len);
	size_t key = eq != NULL ? (size_t)(eq - field) + 1 : 0;

	put_byte(l, ' ');
	for (size_t i = 0; i < key; i++)
		put_escaped(l, field[i]);
	put_value(l, field + key, len - key);
}

/* Copies one conversion, "%-5.3lu", whole; returns its last letter. */
static const char *copy_conversion(struct line *l, const char *fmt)
{
	put_byte(l, *fmt++);
	while (*fmt != '\0' && strchr("diouxXeEfFgGaAcsp%", *fmt) == NULL)
		put_byte(l, *fmt++);
	if (*fmt == '\0')
		return fmt - 1;
	put_byte(l, *fmt);
	return fmt;
}

/*
 * The caller's format, in which a space outside quotes ends a field, with
 * FIELD_END for these spaces and without the quotes: after the values are in,
 * their own spaces and quotes can be told from the format's. Returns the number
 * of FIELD_ENDs.
 */
static unsigned split_format(struct line *l, const char *fmt)
{
	bool quoted = false;
	unsigned ends = 0;

	for (; *fmt != '\0'; fmt++) {
		if (*fmt == '%') {
			fmt = copy_conversion(l, fmt);
		} else if (*fmt == '"') {
			quoted = !quoted;
		} else if (*fmt == ' ' && !quoted) {
			put_byte(l, FIELD_END);
			ends++;
		} else {
			put_byte(l, *fmt);
		}
	}
	l->buf[l->len] = '\0';
	return ends;
}

static unsigned count_ends(const char *text)
{
	unsigned n = 0;

	for (; *text != '\0'; text++)
		n += *text == FIELD_END;
	return n;
}

static void put_fields(struct line *l, const char *text, unsigned ends)
{
	/* A value with our separator in it cannot be told from two fields. */
	if (count_ends(text) > ends) {
		put_text(l, " text=");
		put_value(l, text, strlen(text));
		return;
	}
	for (;;) {
		size_t len = strcspn(text, (char[]){FIELD_END, '\0'});

		if (len > 0)
			put_field(l, text, len);
		if (text[len] == '\0')
			return;
		text += len + 1;
	}
}

static void put_head(struct line *l, const char *event)
{
	uint64_t ms = state.began_ns == 0
			      ? 0
			      : (clk_now() - state.began_ns) / NS_PER_MS;
	int n;

	n = snprintf(l->buf, sizeof(l->buf), "%llu.%03u %d %s %s",
		     (unsigned long long)(ms / 1000), (unsigned)(ms % 1000),
		     (int)getpid(), state.role, event);
	l->len = n < 0 ? 0 : base_min((uint64_t)n, sizeof(l->buf) - 1);
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	struct line format = {.len = 0}, line;
	char text[TEXT_MAX];
	unsigned ends;
	va_list ap;

	if (level > state.level)
		return;
	ends = split_format(&format, fmt);
	va_start(ap, fmt);
	/* The conversions in it are the caller's, which were checked there. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vsnprintf(text, sizeof(text), format.buf, ap);
#pragma GCC diagnostic pop
	va_end(ap);
	put_head(&line, event);
	put_fields(&line, text, ends);
	line.buf[line.len++] = '\n';
	/* There is no one to tell if the log itself cannot be written. */
	while (write(STDERR_FILENO, line.buf, line.len) < 0 && errno == EINTR)
		;
}
