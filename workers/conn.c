/* SPDX-License-Identifier: MIT */
#include "workers/conn.h"

#include "shm/base.h"
#include "workers/tls_conn.h"

#include <stdlib.h>
#include <string.h>

#define SLAB_CONNS 64

/* A word: op 8 bits | generation 24 bits | index 32 bits. */
#define GENERATION_MASK UINT32_C(0xffffff)

static const struct {
	const char *name;
	bool open;
	bool shaking;
	const char *waits;
} states[] = {
#define STATE(name, open, shaking, waits) {#name, open, shaking, waits},
#define EDGE(...)
#include "workers/states.def"
};

static const struct {
	enum conn_state from, to;
	const char *why;
} edges[] = {
#define STATE(...)
#define EDGE(from, to, why) {CONN_##from, CONN_##to, why},
#include "workers/states.def"
};

/* ---- pool ---- */

void conn_pool_init(struct conn_pool *pool)
{
	*pool = (struct conn_pool){0};
}

void conn_pool_fini(struct conn_pool *pool)
{
	MUST(pool->in_use == 0);
	for (uint32_t i = 0; i < pool->nslabs; i++)
		free(pool->slab[i]);
	free(pool->slab);
	*pool = (struct conn_pool){0};
}

/* Slabs never move: what is in flight points into them. */
static int pool_grow(struct conn_pool *pool)
{
	struct conn **more, *slab;

	more = realloc(pool->slab, (pool->nslabs + 1) * sizeof(*more));
	if (more == NULL)
		return -1;
	pool->slab = more;
	slab = calloc(SLAB_CONNS, sizeof(*slab));
	if (slab == NULL)
		return -1;
	for (uint32_t i = SLAB_CONNS; i-- > 0;) {
		slab[i].index = pool->nslabs * SLAB_CONNS + i;
		slab[i].generation = 1;
		slab[i].fd = -1;
		slab[i].next_free = pool->free;
		pool->free = &slab[i];
	}
	pool->slab[pool->nslabs++] = slab;
	return 0;
}

struct conn *conn_new(struct conn_pool *pool, int fd)
{
	struct conn *c;

	if (pool->free == NULL && pool_grow(pool) < 0)
		return NULL;
	c = pool->free;
	pool->free = c->next_free;
	pool->in_use++;
	c->next_free = NULL;
	c->fd = fd;
	http_init(&c->http);
	return c;
}

void conn_reap(struct conn_pool *pool, struct conn **conn)
{
	struct conn *c = *conn;
	uint32_t index = c->index;
	uint32_t generation = c->generation;

	MUST(c->inflight == 0 && c->fd == -1 && !tmr_armed(&c->tmr));
	MUST(c->out.head == NULL && c->raw.head == NULL);
	MUST(c->plain.head == NULL && conn_edge(c->state, CONN_FREE));
	tls_conn_free(&c->tls);
	/* All zero is state FREE. */
	memset(c, 0, sizeof(*c));
	c->index = index;
	c->generation = (generation + 1) & GENERATION_MASK;
	c->fd = -1;
	c->next_free = pool->free;
	pool->free = c;
	pool->in_use--;
	*conn = NULL;
}

struct conn *conn_at(const struct conn_pool *pool, uint32_t index)
{
	if (index / SLAB_CONNS >= pool->nslabs)
		return NULL;
	return &pool->slab[index / SLAB_CONNS][index % SLAB_CONNS];
}

/* ---- words and loans ---- */

uint64_t conn_word(const struct conn *c, enum conn_op op)
{
	return (uint64_t)op << 56 | (uint64_t)c->generation << 32 | c->index;
}

enum conn_op conn_word_op(uint64_t word)
{
	return (enum conn_op)(word >> 56);
}

struct conn *conn_of_word(const struct conn_pool *pool, uint64_t word)
{
	struct conn *c = conn_at(pool, (uint32_t)word);

	MUST(c != NULL && c->inflight > 0);
	MUST(c->generation == ((uint32_t)(word >> 32) & GENERATION_MASK));
	return c;
}

void conn_lend(struct conn *c)
{
	MUST(c->inflight < UINT8_MAX);
	c->inflight++;
}

void conn_return(struct conn *c)
{
	MUST(c->inflight > 0);
	c->inflight--;
}

/* ---- states ---- */

bool conn_edge(enum conn_state from, enum conn_state to)
{
	for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
		if (edges[i].from == from && edges[i].to == to)
			return true;
	}
	return false;
}

const char *conn_state_name(enum conn_state state)
{
	MUST((size_t)state < ARRAY_LEN(states));
	return states[state].name;
}

static void move_gauge(_Atomic uint64_t *gauge, bool before, bool after)
{
	if (after && !before)
		ctr_add(gauge, 1);
	if (before && !after)
		ctr_sub(gauge, 1);
}

void conn_set_state(struct conn *c, enum conn_state to, struct ctr_block *ctr)
{
	MUST(conn_edge(c->state, to));
	move_gauge(&ctr->conn_open, states[c->state].open, states[to].open);
	move_gauge(&ctr->hs_in_progress, states[c->state].shaking,
		   states[to].shaking);
	c->state = (uint8_t)to;
}

void conn_mark_answer(struct conn *c, uint64_t at_ns, bool refused)
{
	struct conn_mark *last = c->nmarks > 0 ? &c->mark[c->nmarks - 1] : NULL;

	if (last == NULL || (last->at_ns != at_ns && c->nmarks < CONN_MARKS)) {
		last = &c->mark[c->nmarks++];
		*last = (struct conn_mark){.at_ns = at_ns};
	}
	last->end = c->sent + c->out.bytes;
	last->requests++;
	last->refused += refused;
}

/* ---- the page ---- */

void conn_describe(FILE *out)
{
	fputs("# States of a connection\n\n"
	      "Made from `workers/states.def` by `tterm --describe states`. "
	      "Where no edge is drawn,\n"
	      "the worker aborts rather than take it.\n\n"
	      "```mermaid\nstateDiagram-v2\n",
	      out);
	fputs("    [*] --> HANDSHAKE: accepted\n", out);
	for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
		const char *from = states[edges[i].from].name;
		const char *to = states[edges[i].to].name;

		if (edges[i].from == CONN_FREE)
			continue;
		if (edges[i].to == CONN_FREE)
			to = "[*]";
		/* A colon in a label would end it. */
		fprintf(out, "    %s --> %s: ", from, to);
		for (const char *p = edges[i].why; *p != '\0'; p++)
			fputc(*p == ':' ? ',' : *p, out);
		fputc('\n', out);
	}
	fputs("```\n\n| state | open | in handshake | waits for |\n"
	      "|---|---|---|---|\n",
	      out);
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		fprintf(out, "| %s | %s | %s | %s |\n", states[i].name,
			states[i].open ? "yes" : "no",
			states[i].shaking ? "yes" : "no", states[i].waits);
	fputs("\n| from | to | why |\n|---|---|---|\n", out);
	for (size_t i = 0; i < ARRAY_LEN(edges); i++)
		fprintf(out, "| %s | %s | %s |\n", states[edges[i].from].name,
			states[edges[i].to].name, edges[i].why);
}
