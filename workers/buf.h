/* SPDX-License-Identifier: MIT */
/*
 * Buffers of one size from a pool of the worker's own, and chains of them.
 *
 * A connection holds buffers only while it has bytes under way; drained ones go
 * back at once and are taken again first, while they are warm in the cache. A
 * buffer is large for streaming, but a handshake's flight touches only its
 * first page, so an untouched rest costs address space and no memory.
 */
#ifndef WORKERS_BUF_H
#define WORKERS_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two largest TLS records (16 KiB + 256 + 5 each, RFC 5246 6.2.3) and a bit. */
#define BUF_TOTAL (36 * 1024)

struct buf {
	struct buf *next; /* owns, in a chain */
	uint32_t off;	  /* first byte not yet consumed */
	uint32_t end;	  /* one after the last byte filled */
	uint8_t data[BUF_TOTAL - 16];
};

_Static_assert(sizeof(struct buf) == BUF_TOTAL, "no padding");

#define BUF_CAP sizeof(((struct buf *)0)->data)

struct buf_block;

struct buf_pool {
	struct buf *free;	  /* owns */
	struct buf_block *blocks; /* owns */
	uint32_t in_use;
	uint32_t max; /* never more than so many */
	uint32_t made;
};

/* Allocates nothing yet. */
void buf_pool_init(struct buf_pool *pool, uint32_t max);
/* All buffers must be back. */
void buf_pool_fini(struct buf_pool *pool);

/* An empty buffer, owned by the caller; NULL at the limit or without memory. */
struct buf *buf_get(struct buf_pool *pool);
void buf_put(struct buf_pool *pool, struct buf **b);

struct buf_chain {
	struct buf *head, *tail; /* owns; NULL when empty */
	size_t bytes;		 /* not yet consumed */
};

/*
 * Room at the chain's end: at least one byte at *at, *len says how much. Takes
 * a buffer when the last one is full. 0 or -ENOMEM.
 */
int buf_room(struct buf_pool *pool, struct buf_chain *chain, uint8_t **at,
	     size_t *len);
/* `n` bytes of the room just given were filled. */
void buf_filled(struct buf_chain *chain, size_t n);

/* Copies all of it, or nothing. 0 or -ENOMEM. */
int buf_append(struct buf_pool *pool, struct buf_chain *chain, const void *p,
	       size_t n);

/* The first bytes, as far as they lie together; 0 when empty. */
size_t buf_front(const struct buf_chain *chain, const uint8_t **at);
/* Drops `n` bytes (at most what buf_front() gave); empty buffers go back. */
void buf_consume(struct buf_pool *pool, struct buf_chain *chain, size_t n);
/* Gives back everything. */
void buf_clear(struct buf_pool *pool, struct buf_chain *chain);

#endif
