/* SPDX-License-Identifier: MIT */
#include "workers/rsp.h"

#include "shm/base.h"
#include "workers/io.h"

#include <string.h>

/* The body's text repeats every 64 bytes; any 64 bytes on, it reads the same.
 */
#define LINE	 "tterm: one TLS handshake, measured on a real socket. 0123456789\n"
#define LINE_LEN 64
_Static_assert(sizeof(LINE) - 1 == LINE_LEN, "the period of the filler");

#define LINE_4	LINE LINE LINE LINE
#define LINE_16 LINE_4 LINE_4 LINE_4 LINE_4
#define LINE_64 LINE_16 LINE_16 LINE_16 LINE_16

/* A record's worth from any place in a line. */
static const char filler[] = LINE_64 LINE_64 LINE_64 LINE_64 LINE;
_Static_assert(sizeof(filler) - 1 == ENV_SCRATCH + LINE_LEN, "one record");

static const char *filler_at(const struct conn *c)
{
	return filler + c->body_done % LINE_LEN;
}

/* ---- http ---- */

/* The head and as much of the body as one record holds. */
static void http_begin(struct env *env, struct conn *c,
		       const struct http_answer *a)
{
	char *to = (char *)env->out;
	size_t n = http_write(a, to);
	size_t body;

	c->body_done = 0;
	c->body_left = a->head ? 0 : a->body;
	body = base_min(c->body_left, ENV_SCRATCH - n);
	memcpy(to + n, filler, body);
	c->body_done += body;
	c->body_left -= body;
	c->refused = a->status >= 400 && a->status < 500;
	c->answering = true;
	c->last_answer = a->close;
	c->linger = a->cut;
	io_write(env, c, to, n + body);
}

static size_t http_input(struct env *env, struct conn *c, const uint8_t *p,
			 size_t n)
{
	struct http_answer a;
	bool done;
	size_t used = http_feed(&c->http, p, n, &done);

	if (!done)
		return used;
	http_answer(&c->http, env->cfg->terminator.respond.body, &a);
	http_init(&c->http);
	if (env->draining)
		a.close = true;
	c->asked_ns = env->now;
	http_begin(env, c, &a);
	return used;
}

/* ---- all modes ---- */

void rsp_start(struct env *env, struct conn *c)
{
	switch (env->cfg->terminator.respond.mode) {
	case CFG_RESPOND_CLOSE:
		c->last_answer = true;
		break;
	case CFG_RESPOND_SPEAK_FIRST:
		c->last_answer = true;
		c->linger = true;
		c->body_left = env->cfg->terminator.respond.body;
		break;
	case CFG_RESPOND_HTTP:
	case CFG_RESPOND_ECHO:
		break;
	}
}

bool rsp_fill(struct env *env, struct conn *c)
{
	while (c->body_left > 0 && io_room(c)) {
		size_t n = base_min(c->body_left, ENV_SCRATCH);

		io_write(env, c, filler_at(c), n);
		if (c->state != CONN_OPEN)
			return false;
		c->body_done += n;
		c->body_left -= n;
	}
	if (c->body_left > 0)
		return false;
	if (c->answering) {
		c->answering = false;
		c->answered = true;
		conn_mark_answer(c, c->asked_ns, c->refused);
	}
	return io_room(c);
}

size_t rsp_input(struct env *env, struct conn *c, const uint8_t *p, size_t n)
{
	switch (env->cfg->terminator.respond.mode) {
	case CFG_RESPOND_HTTP:
		return http_input(env, c, p, n);
	case CFG_RESPOND_ECHO:
		c->answered = true;
		io_write(env, c, p, n);
		break;
	case CFG_RESPOND_CLOSE:
	case CFG_RESPOND_SPEAK_FIRST:
		break;
	}
	return n;
}

bool rsp_quiet(const struct env *env, const struct conn *c)
{
	if (c->out.bytes > 0 || c->body_left > 0 || c->plain.bytes > 0)
		return false;
	return env->cfg->terminator.respond.mode != CFG_RESPOND_HTTP ||
	       !http_busy(&c->http);
}
