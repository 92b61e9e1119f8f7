/* SPDX-License-Identifier: MIT */
/* Who listens on an address: the socket's inode from the kernel's tables of
 * sockets, then the processes that have a descriptor of it. */
#include "terminator/tgt_int.h"

#include "shm/base.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An IPv4 address is kept as the kernel maps it into IPv6, ::ffff:a.b.c.d. */
struct place {
	struct in6_addr addr;
	unsigned port;
};

static struct in6_addr mapped(uint32_t v4)
{
	struct in6_addr a = IN6ADDR_ANY_INIT;

	a.s6_addr[10] = a.s6_addr[11] = 0xff;
	memcpy(&a.s6_addr[12], &v4, sizeof(v4));
	return a;
}

static int parse_address(const char *text, struct place *out)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	struct in_addr v4;
	size_t len;
	pid_t port;

	if (colon == NULL || (size_t)(colon - text) >= sizeof(host))
		return -EINVAL;
	len = (size_t)(colon - text);
	memcpy(host, text, len);
	host[len] = '\0';
	port = tgt_pid_parse(colon + 1);
	if (port < 1 || port > 65535)
		return -EINVAL;
	out->port = (unsigned)port;
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		return inet_pton(AF_INET6, host + 1, &out->addr) == 1 ? 0
								      : -EINVAL;
	}
	if (inet_pton(AF_INET, host, &v4) != 1)
		return -EINVAL;
	out->addr = mapped(v4.s_addr);
	return 0;
}

/* The kernel hands a connection to the listener that fits best. */
enum fit {
	FIT_NONE,
	FIT_ANY6, /* [::], which takes IPv4 too unless it is told not to */
	FIT_ANY4, /* 0.0.0.0 */
	FIT_EXACT
};

static enum fit fit_of(const struct in6_addr *listener,
		       const struct in6_addr *wanted)
{
	struct in6_addr any4 = mapped(0);

	if (memcmp(listener, wanted, sizeof(*wanted)) == 0)
		return FIT_EXACT;
	if (IN6_IS_ADDR_UNSPECIFIED(listener))
		return FIT_ANY6;
	if (memcmp(listener, &any4, sizeof(any4)) == 0 &&
	    IN6_IS_ADDR_V4MAPPED(wanted))
		return FIT_ANY4;
	return FIT_NONE;
}

struct inodes {
	unsigned long long *item; /* owns n */
	size_t n, cap;
	enum fit fit; /* of all of them */
};

static int inodes_add(struct inodes *set, unsigned long long inode)
{
	if (set->n == set->cap) {
		size_t cap = set->cap ? 2 * set->cap : 16;
		void *item = reallocarray(set->item, cap, sizeof(*set->item));

		if (item == NULL)
			return -ENOMEM;
		set->item = item;
		set->cap = cap;
	}
	set->item[set->n++] = inode;
	return 0;
}

/*
 * "  0: 0100007F:1F90 00000000:0000 0A ... uid timeout inode ..."; an address
 * is 1 or 4 words of the host, as they lie in memory; 0A is TCP_LISTEN.
 */
static int take_socket(const char *line, const struct place *want,
		       struct inodes *set)
{
	uint32_t w[4];
	unsigned port, state;
	unsigned long long inode;
	char addr[40];
	struct in6_addr a;
	enum fit fit;

	if (sscanf(line,
		   " %*d: %39[0-9A-F]:%X %*[0-9A-F]:%*X %X %*X:%*X %*X:%*X %*X "
		   "%*d %*d %llu",
		   addr, &port, &state, &inode) != 4)
		return 0;
	if (state != 0x0A || port != want->port)
		return 0;
	if (strlen(addr) == 8 && sscanf(addr, "%8X", &w[0]) == 1)
		a = mapped(w[0]);
	else if (sscanf(addr, "%8X%8X%8X%8X", &w[0], &w[1], &w[2], &w[3]) == 4)
		memcpy(&a, w, sizeof(a));
	else
		return 0;
	fit = fit_of(&a, &want->addr);
	if (fit == FIT_NONE || fit < set->fit)
		return 0;
	if (fit > set->fit)
		set->n = 0;
	set->fit = fit;
	return inodes_add(set, inode);
}

static int take_table(const char *path, const struct place *want,
		      struct inodes *set)
{
	char *line = NULL;
	size_t cap = 0;
	int rc = 0;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return errno == ENOENT ? 0 : -errno;
	while (rc == 0 && getline(&line, &cap, f) > 0)
		rc = take_socket(line, want, set);
	free(line);
	fclose(f);
	return rc;
}

static bool has_inode(const struct inodes *set, const char *link)
{
	unsigned long long inode;

	if (sscanf(link, "socket:[%llu]", &inode) != 1)
		return false;
	for (size_t i = 0; i < set->n; i++)
		if (set->item[i] == inode)
			return true;
	return false;
}

static bool holds(pid_t pid, const struct inodes *set)
{
	char path[32], link[64];
	struct dirent *e;
	bool found = false;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (dir == NULL)
		return false;
	while (!found && (e = readdir(dir)) != NULL) {
		n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		found = has_inode(set, link);
	}
	closedir(dir);
	return found;
}

/*
 * Process 1 counts only if nobody else listens: an init that keeps the sockets
 * of its services is not the server.
 */
static int add_holders(const struct inodes *set, struct tgt_ids *out)
{
	const struct tgt_id *init = NULL;
	struct tgt_ids all = {0};
	size_t before = out->n;
	int rc = tgt_proc_all(&all);

	for (size_t i = 0; rc == 0 && i < all.n; i++) {
		if (all.item[i].pid == getpid() || !holds(all.item[i].pid, set))
			continue;
		if (all.item[i].pid == 1)
			init = &all.item[i];
		else
			rc = tgt_ids_add(out, &all.item[i]);
	}
	if (rc == 0 && init != NULL && out->n == before)
		rc = tgt_ids_add(out, init);
	if (rc == 0 && out->n == before)
		rc = -EACCES;
	tgt_ids_fini(&all);
	return rc;
}

int tgt_listen_pids(const char *address, struct tgt_ids *out)
{
	struct inodes set = {0};
	struct place want;
	int rc = parse_address(address, &want);

	if (rc < 0)
		return rc;
	rc = take_table("/proc/net/tcp", &want, &set);
	if (rc == 0)
		rc = take_table("/proc/net/tcp6", &want, &set);
	if (rc == 0)
		rc = set.n == 0 ? -ENXIO : add_holders(&set, out);
	free(set.item);
	return rc;
}
