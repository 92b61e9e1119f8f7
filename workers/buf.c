/* SPDX-License-Identifier: MIT */
#include "workers/buf.h"

#include "shm/base.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* One mmap() per block: 2.25 MiB of address space, used as it is touched. */
#define BLOCK_BUFS 64

/* Lies in a page of its own before the block's buffers. */
struct buf_block {
	struct buf_block *next; /* owns */
};

#define BLOCK_HEAD  4096
#define BLOCK_BYTES (BLOCK_HEAD + (size_t)BLOCK_BUFS * sizeof(struct buf))

void buf_pool_init(struct buf_pool *pool, uint32_t max)
{
	*pool = (struct buf_pool){.max = max};
}

void buf_pool_fini(struct buf_pool *pool)
{
	MUST(pool->in_use == 0);
	while (pool->blocks != NULL) {
		struct buf_block *b = pool->blocks;

		pool->blocks = b->next;
		munmap(b, BLOCK_BYTES);
	}
	pool->free = NULL;
	pool->made = 0;
}

static int pool_grow(struct buf_pool *pool)
{
	struct buf_block *block;
	struct buf *bufs;

	block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return -ENOMEM;
	block->next = pool->blocks;
	pool->blocks = block;
	bufs = (struct buf *)(void *)((char *)block + BLOCK_HEAD);
	for (uint32_t i = BLOCK_BUFS; i-- > 0;) {
		bufs[i].next = pool->free;
		pool->free = &bufs[i];
	}
	pool->made += BLOCK_BUFS;
	return 0;
}

struct buf *buf_get(struct buf_pool *pool)
{
	struct buf *b;

	if (pool->in_use >= pool->max)
		return NULL;
	if (pool->free == NULL && pool_grow(pool) < 0)
		return NULL;
	b = pool->free;
	pool->free = b->next;
	pool->in_use++;
	b->next = NULL;
	b->off = 0;
	b->end = 0;
	return b;
}

void buf_put(struct buf_pool *pool, struct buf **b)
{
	if (*b == NULL)
		return;
	MUST(pool->in_use > 0);
	pool->in_use--;
	(*b)->next = pool->free;
	pool->free = *b;
	*b = NULL;
}

int buf_room(struct buf_pool *pool, struct buf_chain *chain, uint8_t **at,
	     size_t *len)
{
	struct buf *b = chain->tail;

	if (b == NULL || b->end == BUF_CAP) {
		b = buf_get(pool);
		if (b == NULL)
			return -ENOMEM;
		if (chain->tail != NULL)
			chain->tail->next = b;
		else
			chain->head = b;
		chain->tail = b;
	}
	*at = b->data + b->end;
	*len = BUF_CAP - b->end;
	return 0;
}

void buf_filled(struct buf_chain *chain, size_t n)
{
	MUST(chain->tail != NULL && n <= BUF_CAP - chain->tail->end);
	chain->tail->end += (uint32_t)n;
	chain->bytes += n;
}

int buf_append(struct buf_pool *pool, struct buf_chain *chain, const void *p,
	       size_t n)
{
	size_t room = chain->tail != NULL ? BUF_CAP - chain->tail->end : 0;
	const uint8_t *from = p;

	/* Checked first, so that nothing is left half copied. */
	if (n > room &&
	    (n - room + BUF_CAP - 1) / BUF_CAP > pool->max - pool->in_use)
		return -ENOMEM;
	while (n > 0) {
		uint8_t *at;
		size_t len;
		int rc = buf_room(pool, chain, &at, &len);

		if (rc < 0)
			return rc;
		len = base_min(len, n);
		memcpy(at, from, len);
		buf_filled(chain, len);
		from += len;
		n -= len;
	}
	return 0;
}

size_t buf_front(const struct buf_chain *chain, const uint8_t **at)
{
	struct buf *b = chain->head;

	if (b == NULL)
		return 0;
	*at = b->data + b->off;
	return b->end - b->off;
}

void buf_consume(struct buf_pool *pool, struct buf_chain *chain, size_t n)
{
	struct buf *b = chain->head;

	MUST(n <= chain->bytes);
	if (n == 0)
		return;
	MUST(b != NULL && n <= b->end - b->off);
	b->off += (uint32_t)n;
	chain->bytes -= n;
	if (b->off < b->end)
		return;
	chain->head = b->next;
	if (chain->head == NULL)
		chain->tail = NULL;
	buf_put(pool, &b);
}

void buf_clear(struct buf_pool *pool, struct buf_chain *chain)
{
	while (chain->head != NULL) {
		struct buf *b = chain->head;

		chain->head = b->next;
		buf_put(pool, &b);
	}
	chain->tail = NULL;
	chain->bytes = 0;
}
