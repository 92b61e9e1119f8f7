/* SPDX-License-Identifier: MIT */
#include "workers/tls_ticket.h"

#include "shm/base.h"
#include "shm/clk.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* lifetime/rotate is at most 14 (options.def): the one that issues, up to 15
 * that only accept, and room for rotations by hand. */
#define KEYS_MAX 32

struct entry {
	struct tls_ticket_key key;
	uint64_t expires_ns; /* clk_now(); UINT64_MAX while it issues */
	uint32_t used;	     /* 0: cleansed */
	uint32_t pad;
};

/* One writer (the master); seq is odd while it writes. */
struct table {
	_Atomic uint32_t seq;
	uint32_t current;
	struct entry entry[KEYS_MAX];
};

struct tls_tickets {
	struct table *table; /* the mapping */
	uint32_t ntables;
	size_t size;
	bool from_file;
	uint64_t lifetime_ns, rotate_ns;
	uint64_t rotated_ns; /* when last */
	uint64_t generation;
	bool locked;
};

static void write_begin(struct table *t)
{
	uint32_t s = atomic_load_explicit(&t->seq, memory_order_relaxed);

	atomic_store_explicit(&t->seq, s + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void write_end(struct table *t)
{
	uint32_t s = atomic_load_explicit(&t->seq, memory_order_relaxed);

	atomic_store_explicit(&t->seq, s + 1, memory_order_release);
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

/* An unused entry, or else the one that expires first. */
static uint32_t free_entry(const struct table *t)
{
	uint32_t best = t->current == 0 ? 1 : 0;

	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		if (i == t->current)
			continue;
		if (t->entry[i].used == 0)
			return i;
		if (t->entry[i].expires_ns < t->entry[best].expires_ns)
			best = i;
	}
	return best;
}

/* A new key issues; the one before accepts until `old_expires`. */
static int put_current(struct table *t, uint64_t old_expires)
{
	struct tls_ticket_key key;
	bool first = t->entry[t->current].used == 0;
	uint32_t to = first ? t->current : free_entry(t);
	int rc = make_key(&key);

	if (rc < 0)
		return rc;
	write_begin(t);
	if (!first)
		t->entry[t->current].expires_ns = old_expires;
	t->entry[to].key = key;
	t->entry[to].used = 1;
	t->entry[to].expires_ns = UINT64_MAX;
	t->current = to;
	write_end(t);
	OPENSSL_cleanse(&key, sizeof(key));
	return 0;
}

static void cleanse_entry(struct table *t, uint32_t i)
{
	write_begin(t);
	OPENSSL_cleanse(&t->entry[i].key, sizeof(t->entry[i].key));
	t->entry[i].used = 0;
	write_end(t);
}

/* ---- create ---- */

static int map_tables(struct tls_tickets *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	t->size = t->ntables * sizeof(*t->table);
	t->size = (t->size + page - 1) / page * page;
	t->table = mmap(NULL, t->size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t->table == MAP_FAILED) {
		t->table = NULL;
		return -errno;
	}
	/* Locking can fail under a small RLIMIT_MEMLOCK; keys then can be
	 * swapped out, which harms nothing that is measured. */
	t->locked = mlock(t->table, t->size) == 0;
	madvise(t->table, t->size, MADV_DONTDUMP);
	return 0;
}

static void take_file_keys(struct tls_tickets *t, const uint8_t *bytes,
			   size_t nkeys)
{
	struct table *tab = &t->table[0];

	for (size_t i = 0; i < nkeys; i++) {
		const uint8_t *b = bytes + i * TLS_TICKET_KEY;
		struct entry *e = &tab->entry[i];

		memcpy(e->key.name, b, TLS_TICKET_NAME);
		memcpy(e->key.hmac, b + TLS_TICKET_NAME, TLS_TICKET_HMAC);
		memcpy(e->key.aes, b + TLS_TICKET_NAME + TLS_TICKET_HMAC,
		       TLS_TICKET_AES);
		e->used = 1;
		e->expires_ns = UINT64_MAX;
	}
}

static int read_key_file(struct tls_tickets *t, const char *path, char *err,
			 size_t len)
{
	uint8_t buf[KEYS_MAX * TLS_TICKET_KEY + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	ssize_t n = -1;

	if (fd >= 0)
		n = read(fd, buf, sizeof(buf));
	if (n < 0) {
		rc = -errno;
		snprintf(err, len, "tls.tickets.key_file: %s: %s", path,
			 strerror(errno));
	} else if (n == 0 || n % TLS_TICKET_KEY != 0 ||
		   n > KEYS_MAX * TLS_TICKET_KEY) {
		rc = -EINVAL;
		snprintf(err, len,
			 "tls.tickets.key_file: %s: %s%zd bytes; write 1 to %d "
			 "keys of %d bytes each (openssl rand %d > FILE)",
			 path, n == (ssize_t)sizeof(buf) ? "more than " : "",
			 n == (ssize_t)sizeof(buf) ? n - 1 : n, KEYS_MAX,
			 TLS_TICKET_KEY, TLS_TICKET_KEY);
	} else {
		take_file_keys(t, buf, (size_t)n / TLS_TICKET_KEY);
	}
	if (fd >= 0)
		close(fd);
	OPENSSL_cleanse(buf, sizeof(buf));
	return rc < 0 ? -EINVAL : 0;
}

static int fill(struct tls_tickets *t, const struct cfg *cfg, char *err,
		size_t len)
{
	if (t->from_file)
		return read_key_file(t, cfg->tls.tickets.key_file, err, len);
	for (uint32_t i = 0; i < t->ntables; i++)
		if (put_current(&t->table[i], 0) < 0) {
			snprintf(err, len,
				 "ticket keys: OpenSSL has no "
				 "random bytes");
			return -EIO;
		}
	return 0;
}

int tls_tickets_create(struct tls_tickets **out, const struct cfg *cfg,
		       uint32_t nworkers, char *err, size_t err_len)
{
	struct tls_tickets *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL) {
		snprintf(err, err_len, "ticket keys: out of memory");
		return -ENOMEM;
	}
	t->ntables = cfg->tls.tickets.shared ? 1 : nworkers;
	t->from_file = cfg->tls.tickets.key_file != NULL;
	t->lifetime_ns = cfg->tls.tickets.lifetime;
	t->rotate_ns = t->from_file ? 0 : cfg->tls.tickets.rotate;
	t->rotated_ns = clk_now();
	t->generation = 1;
	rc = map_tables(t);
	if (rc < 0)
		snprintf(err, err_len, "ticket keys: no memory to map: %s",
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

/* ---- the master, later ---- */

static int rotate_at(struct tls_tickets *t, uint64_t now)
{
	if (t->from_file)
		return -EPERM;
	for (uint32_t i = 0; i < t->ntables; i++)
		if (put_current(&t->table[i], now + t->lifetime_ns) < 0)
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

	if (t->ntables == 1)
		return; /* shared: the others go on with it */
	tab = &t->table[worker % t->ntables];
	for (uint32_t i = 0; i < KEYS_MAX; i++)
		cleanse_entry(tab, i);
	MUST(put_current(tab, 0) == 0);
}

uint64_t tls_tickets_tick(struct tls_tickets *t, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (t->rotate_ns != 0) {
		if (now >= t->rotated_ns + t->rotate_ns)
			rotate_at(t, now);
		next = t->rotated_ns + t->rotate_ns;
	}
	for (uint32_t k = 0; k < t->ntables; k++)
		for (uint32_t i = 0; i < KEYS_MAX; i++) {
			const struct entry *e = &t->table[k].entry[i];

			if (e->used == 0 || e->expires_ns == UINT64_MAX)
				continue;
			if (e->expires_ns <= now)
				cleanse_entry(&t->table[k], i);
			else
				next = base_min(next, e->expires_ns);
		}
	/* A rotation by hand is cleansed in time all the same: look again. */
	return base_min(next, now + base_max(t->lifetime_ns / 4, NS_PER_S));
}

uint64_t tls_tickets_generation(const struct tls_tickets *t)
{
	return t->generation;
}

/* ---- workers ---- */

uint32_t tls_ticket_table(const struct tls_tickets *t, uint32_t worker)
{
	return t->ntables == 1 ? 0 : worker % t->ntables;
}

/* Repeats `copy` until no write came between; the master writes for some
 * nanoseconds an hour, and if it dies in between it takes the workers along. */
static bool consistent(const struct table *t, uint32_t *seq, bool begin)
{
	if (begin) {
		*seq = atomic_load_explicit(&t->seq, memory_order_acquire);
		return *seq % 2 == 0;
	}
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&t->seq, memory_order_relaxed) == *seq;
}

void tls_ticket_current(const struct tls_tickets *t, uint32_t table,
			struct tls_ticket_key *out)
{
	const struct table *tab = &t->table[table];
	uint32_t seq;

	do {
		while (!consistent(tab, &seq, true))
			;
		*out = tab->entry[tab->current % KEYS_MAX].key;
	} while (!consistent(tab, &seq, false));
}

static bool find_once(const struct table *tab, const uint8_t *name,
		      struct tls_ticket_key *out, bool *current)
{
	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		const struct entry *e = &tab->entry[i];

		if (e->used == 0 ||
		    memcmp(e->key.name, name, TLS_TICKET_NAME) != 0)
			continue;
		*out = e->key;
		*current = i == tab->current;
		return true;
	}
	return false;
}

bool tls_ticket_find(const struct tls_tickets *t, uint32_t table,
		     const uint8_t name[TLS_TICKET_NAME],
		     struct tls_ticket_key *out, bool *current)
{
	const struct table *tab = &t->table[table];
	uint32_t seq;
	bool found;

	do {
		while (!consistent(tab, &seq, true))
			;
		found = find_once(tab, name, out, current);
	} while (!consistent(tab, &seq, false));
	return found;
}
