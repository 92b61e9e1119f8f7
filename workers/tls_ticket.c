/* SPDX-License-Identifier: MIT */
#include "workers/tls_ticket.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "workers/tls_cert.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* lifetime/rotate is at most 14 (options.def): the one that issues, up to 15
 * that only accept, and room for rotations by hand. */
#define KEYS_MAX 32

struct entry {
	_Atomic uint32_t life; /* the key's number; 0: cleansed */
	uint32_t pad;
	struct tls_ticket_key key;
	uint64_t expires_ns; /* master only; clk_now(); NEVER while it issues */
};

struct table {
	_Atomic uint32_t current; /* index of the entry that issues */
	struct entry entry[KEYS_MAX];
};

struct tls_tickets {
	struct table *table; /* owns the mapping */
	uint32_t ntables;
	uint32_t lives; /* last number given to a key */
	size_t size;
	bool shared;
	bool from_file;
	uint64_t lifetime_ns, rotate_ns;
	uint64_t rotated_ns; /* when last */
	uint64_t generation;
	char warning[200]; /* "" if none */
};

#define NEVER UINT64_MAX

/* ---- one entry ---- */

static void entry_clear(struct entry *e)
{
	atomic_store_explicit(&e->life, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	OPENSSL_cleanse(&e->key, sizeof(e->key));
}

/* `e` is clear. */
static void entry_fill(struct tls_tickets *t, struct entry *e,
		       const struct tls_ticket_key *key)
{
	e->key = *key;
	e->expires_ns = NEVER;
	t->lives++;
	atomic_store_explicit(&e->life, t->lives, memory_order_release);
}

static bool entry_used(const struct entry *e)
{
	return atomic_load_explicit(&e->life, memory_order_relaxed) != 0;
}

/* Workers. False if there is no key, or no longer: *out is clean then. */
static bool entry_copy(const struct entry *e, struct tls_ticket_key *out)
{
	uint32_t life = atomic_load_explicit(&e->life, memory_order_acquire);

	if (life == 0)
		return false;
	*out = e->key;
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&e->life, memory_order_relaxed) == life)
		return true;
	OPENSSL_cleanse(out, sizeof(*out));
	return false;
}

/* ---- one table ---- */

static uint32_t current_of(const struct table *t)
{
	return atomic_load_explicit(&t->current, memory_order_acquire);
}

/* A clear entry; or the one that expires first, which is cleared. */
static uint32_t free_entry(struct table *t)
{
	uint32_t current = current_of(t), best = current == 0 ? 1 : 0;

	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		if (!entry_used(&t->entry[i]))
			return i;
		if (i != current &&
		    t->entry[i].expires_ns < t->entry[best].expires_ns)
			best = i;
	}
	entry_clear(&t->entry[best]);
	return best;
}

static int make_key(struct tls_ticket_key *key)
{
	return RAND_bytes(key->name, sizeof(key->name)) == 1 &&
			       RAND_priv_bytes(key->hmac, sizeof(key->hmac)) ==
				       1 &&
			       RAND_priv_bytes(key->aes, sizeof(key->aes)) == 1
		       ? 0
		       : -EIO;
}

/* A new key issues; the one before accepts until `old_expires`. 0 or -EIO. */
static int put_current(struct tls_tickets *t, struct table *tab,
		       uint64_t old_expires)
{
	struct tls_ticket_key key;
	uint32_t old = current_of(tab), to;
	int rc = make_key(&key);

	if (rc == 0) {
		to = free_entry(tab);
		entry_fill(t, &tab->entry[to], &key);
		atomic_store_explicit(&tab->current, to, memory_order_release);
		if (to != old)
			tab->entry[old].expires_ns = old_expires;
	}
	OPENSSL_cleanse(&key, sizeof(key));
	return rc;
}

/* ---- create ---- */

/*
 * Locking can fail under a small RLIMIT_MEMLOCK; keys then can be swapped out,
 * which harms nothing that is measured. A worker's own lock is not needed: the
 * pages are the master's.
 */
static void lock_tables(struct tls_tickets *t)
{
	struct rlimit limit = {0};
	int error;

	if (mlock(t->table, t->size) == 0)
		return;
	error = errno;
	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	snprintf(
		t->warning, sizeof(t->warning),
		"tls.tickets: the keys cannot be locked into memory (%s): they "
		"take %zu KiB, and ulimit -l is %llu KiB",
		strerror(error), t->size / 1024,
		(unsigned long long)limit.rlim_cur / 1024);
}

static int map_tables(struct tls_tickets *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map;

	t->size = t->ntables * sizeof(*t->table);
	t->size = (t->size + page - 1) / page * page;
	map = mmap(NULL, t->size, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	t->table = map;
	lock_tables(t);
	(void)madvise(t->table, t->size, MADV_DONTDUMP);
	return 0;
}

static void take_keys(struct tls_tickets *t, struct table *tab,
		      const char *bytes, size_t nkeys)
{
	struct tls_ticket_key key;

	for (size_t i = 0; i < nkeys; i++) {
		memcpy(&key, bytes + i * TLS_TICKET_KEY, sizeof(key));
		entry_fill(t, &tab->entry[i], &key);
	}
	OPENSSL_cleanse(&key, sizeof(key));
}

static int read_key_file(struct tls_tickets *t, const char *path, char *err,
			 size_t len)
{
	char *bytes;
	size_t n;
	int rc = tls_cert_file(path, "tls.tickets.key_file", &bytes, &n, err,
			       len);

	if (rc < 0)
		return rc;
	if (n == 0 || n % TLS_TICKET_KEY != 0 ||
	    n / TLS_TICKET_KEY > KEYS_MAX) {
		snprintf(err, len,
			 "tls.tickets.key_file: %s: %zu bytes; write 1 to %d "
			 "keys of %d bytes each (openssl rand %d > FILE)",
			 path, n, KEYS_MAX, TLS_TICKET_KEY, TLS_TICKET_KEY);
		rc = -EINVAL;
	}
	for (uint32_t i = 0; rc == 0 && i < t->ntables; i++)
		take_keys(t, &t->table[i], bytes, n / TLS_TICKET_KEY);
	OPENSSL_clear_free(bytes, n);
	return rc;
}

static int fill(struct tls_tickets *t, const struct cfg *cfg, char *err,
		size_t len)
{
	if (t->from_file)
		return read_key_file(t, cfg->tls.tickets.key_file, err, len);
	for (uint32_t i = 0; i < t->ntables; i++)
		if (put_current(t, &t->table[i], 0) < 0) {
			snprintf(err, len,
				 "tls.tickets: no keys can be made: OpenSSL "
				 "has no random bytes");
			return -EIO;
		}
	return 0;
}

int tls_tickets_create(struct tls_tickets **out, const struct cfg *cfg,
		       uint32_t nworkers, char *err, size_t err_len)
{
	struct tls_tickets *t = calloc(1, sizeof(*t));
	int rc;

	MUST(nworkers > 0);
	if (t == NULL) {
		snprintf(err, err_len, "tls.tickets: out of memory");
		return -ENOMEM;
	}
	t->shared = cfg->tls.tickets.shared;
	t->ntables = t->shared ? 1 : nworkers;
	t->from_file = cfg->tls.tickets.key_file != NULL;
	t->lifetime_ns = cfg->tls.tickets.lifetime;
	t->rotate_ns = t->from_file ? 0 : cfg->tls.tickets.rotate;
	t->rotated_ns = clk_now();
	t->generation = 1;
	rc = map_tables(t);
	if (rc < 0)
		snprintf(err, err_len, "tls.tickets: no memory for keys: %s",
			 strerror(-rc));
	else
		rc = fill(t, cfg, err, err_len);
	if (rc < 0) {
		tls_tickets_close(&t);
		return rc;
	}
	*out = t;
	return 0;
}

void tls_tickets_close(struct tls_tickets **tickets)
{
	struct tls_tickets *t = *tickets;

	if (t == NULL)
		return;
	if (t->table != NULL) {
		OPENSSL_cleanse(t->table, t->size);
		munmap(t->table, t->size);
	}
	free(t);
	*tickets = NULL;
}

const char *tls_ticket_warning(const struct tls_tickets *t)
{
	return t->warning[0] != '\0' ? t->warning : NULL;
}

/* ---- the master, later ---- */

static int rotate_at(struct tls_tickets *t, uint64_t now)
{
	if (t->from_file)
		return -EPERM;
	for (uint32_t i = 0; i < t->ntables; i++)
		if (put_current(t, &t->table[i], now + t->lifetime_ns) < 0)
			return -EIO;
	t->rotated_ns = now;
	t->generation++;
	return 0;
}

int tls_tickets_rotate(struct tls_tickets *tickets)
{
	return rotate_at(tickets, clk_now());
}

void tls_tickets_renew(struct tls_tickets *t, uint32_t worker)
{
	struct table *tab;

	if (t->shared || t->from_file)
		return; /* the others go on with them */
	tab = &t->table[tls_ticket_table(t, worker)];
	if (put_current(t, tab, 0) < 0)
		return; /* no random bytes: the old keys are still good */
	for (uint32_t i = 0; i < KEYS_MAX; i++)
		if (i != current_of(tab))
			entry_clear(&tab->entry[i]);
}

/* Cleanses what is over; returns when the next one is. */
static uint64_t expire(struct table *tab, uint64_t now)
{
	uint64_t next = NEVER;

	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		struct entry *e = &tab->entry[i];

		if (!entry_used(e) || e->expires_ns == NEVER)
			continue;
		if (e->expires_ns <= now)
			entry_clear(e);
		else
			next = base_min(next, e->expires_ns);
	}
	return next;
}

uint64_t tls_tickets_tick(struct tls_tickets *t, uint64_t now)
{
	uint64_t next;

	if (t->from_file)
		return NEVER;
	/* A rotation by hand between two ticks is found by the next one, so
	 * its old key is cleansed late by a quarter of its time at most. */
	next = now + base_max(t->lifetime_ns / 4, NS_PER_S);
	if (t->rotate_ns != 0) {
		if (now >= t->rotated_ns + t->rotate_ns)
			(void)rotate_at(t, now); /* else at the next tick */
		next = base_min(next, t->rotated_ns + t->rotate_ns);
	}
	for (uint32_t i = 0; i < t->ntables; i++)
		next = base_min(next, expire(&t->table[i], now));
	/* Not at once again, whatever failed. */
	return base_max(next, now + NS_PER_MS);
}

uint64_t tls_tickets_generation(const struct tls_tickets *t)
{
	return t->generation;
}

/* ---- workers ---- */

uint32_t tls_ticket_table(const struct tls_tickets *t, uint32_t worker)
{
	return worker % t->ntables;
}

/* A second turn needs a key that is cleared between the two loads: the writer
 * has stored another `current` before that. */
void tls_ticket_current(const struct tls_tickets *t, uint32_t table,
			struct tls_ticket_key *out)
{
	const struct table *tab = &t->table[table];

	while (!entry_copy(&tab->entry[current_of(tab)], out))
		;
}

bool tls_ticket_find(const struct tls_tickets *t, uint32_t table,
		     const uint8_t name[TLS_TICKET_NAME],
		     struct tls_ticket_key *out, bool *current)
{
	const struct table *tab = &t->table[table];
	struct tls_ticket_key key;

	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		/* The name alone is looked at without care: what it lets pass
		 * is compared again in a copy that is whole. */
		if (memcmp(tab->entry[i].key.name, name, TLS_TICKET_NAME) != 0)
			continue;
		if (!entry_copy(&tab->entry[i], &key))
			continue;
		if (memcmp(key.name, name, TLS_TICKET_NAME) == 0) {
			*current = i == current_of(tab);
			*out = key;
			OPENSSL_cleanse(&key, sizeof(key));
			return true;
		}
		OPENSSL_cleanse(&key, sizeof(key));
	}
	return false;
}
