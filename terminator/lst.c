/* SPDX-License-Identifier: MIT */
#include "terminator/lst.h"

#include "shm/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDR_TEXT 64

struct addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} u;
	socklen_t len;
};

struct lst {
	size_t naddr;  /* all addresses: those with TLS come first */
	size_t nplain; /* the last ones, without TLS */
	uint32_t nper; /* sockets per address: workers, or 1 */
	uint32_t backlog;
	int *fd; /* owns; naddr * nper, address by address */
	char text[1024];
	char target[ADDR_TEXT];
	char plain[ADDR_TEXT];
};

/* The scenario's check has seen to the syntax: HOST:PORT or [HOST]:PORT. */
static int parse(struct addr *out, const char *text)
{
	char host[ADDR_TEXT];
	const char *colon = strrchr(text, ':');
	size_t n;
	uint16_t port;

	if (colon == NULL)
		return -EINVAL;
	port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	n = (size_t)(colon - text);
	if (n >= 2 && text[0] == '[') {
		text++;
		n -= 2;
	}
	if (n >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, host, &out->u.v4.sin_addr) == 1) {
		out->u.v4.sin_family = AF_INET;
		out->u.v4.sin_port = port;
		out->len = sizeof(out->u.v4);
		return 0;
	}
	if (inet_pton(AF_INET6, host, &out->u.v6.sin6_addr) == 1) {
		out->u.v6.sin6_family = AF_INET6;
		out->u.v6.sin6_port = port;
		out->len = sizeof(out->u.v6);
		return 0;
	}
	return -EINVAL;
}

/* `reach`: an address to connect to instead of the wildcard. */
static void print(const struct addr *a, bool reach, char *buf, size_t len)
{
	char host[INET6_ADDRSTRLEN];

	if (a->u.sa.sa_family == AF_INET) {
		struct in_addr in = a->u.v4.sin_addr;

		if (reach && in.s_addr == htonl(INADDR_ANY))
			in.s_addr = htonl(INADDR_LOOPBACK);
		inet_ntop(AF_INET, &in, host, sizeof(host));
		snprintf(buf, len, "%s:%u", host, ntohs(a->u.v4.sin_port));
		return;
	}
	struct in6_addr in6 = a->u.v6.sin6_addr;

	if (reach && IN6_IS_ADDR_UNSPECIFIED(&in6))
		in6 = in6addr_loopback;
	inet_ntop(AF_INET6, &in6, host, sizeof(host));
	snprintf(buf, len, "[%s]:%u", host, ntohs(a->u.v6.sin6_port));
}

static int set_on(int fd, int level, int option)
{
	int on = 1;

	return setsockopt(fd, level, option, &on, sizeof(on)) < 0 ? -errno : 0;
}

static int bind_one(const struct cfg *cfg, const struct addr *a, bool reuseport,
		    int *out)
{
	int rc, off = 0;
	int fd = socket(a->u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	rc = set_on(fd, SOL_SOCKET, SO_REUSEADDR);
	if (rc == 0 && reuseport)
		rc = set_on(fd, SOL_SOCKET, SO_REUSEPORT);
	/* Accepted sockets inherit it, which saves a system call for each. */
	if (rc == 0 && cfg->terminator.nodelay)
		rc = set_on(fd, IPPROTO_TCP, TCP_NODELAY);
	if (rc == 0 && a->u.sa.sa_family == AF_INET6)
		rc = cfg->terminator.v6only
			     ? set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY)
		     : setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off,
				  sizeof(off)) < 0
			     ? -errno
			     : 0;
	if (rc == 0 && bind(fd, &a->u.sa, a->len) < 0)
		rc = -errno;
	if (rc < 0) {
		close(fd);
		return rc;
	}
	*out = fd;
	return 0;
}

/*
 * SO_REUSEPORT would let us share the port with another program of the same
 * user that uses it too, and the kernel would then deal connections out to
 * both: every figure would be wrong. A listener without it on the same address
 * first proves that nobody is there. Port 0 needs no proof: the kernel picks a
 * free one.
 */
static int prove_free(const struct cfg *cfg, const struct addr *a)
{
	int fd, rc;

	rc = bind_one(cfg, a, false, &fd);
	if (rc < 0)
		return rc;
	rc = listen(fd, 1) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static uint32_t somaxconn(void)
{
	unsigned n = 0;
	FILE *f = fopen("/proc/sys/net/core/somaxconn", "re");

	if (f == NULL)
		return UINT32_MAX;
	if (fscanf(f, "%u", &n) != 1)
		n = UINT32_MAX;
	fclose(f);
	return n;
}

static void explain(int rc, bool plain, const char *address, char *err,
		    size_t len)
{
	const char *hint = "";

	if (rc == -EADDRINUSE)
		hint = "; another program listens there (see `ss -ltnp`): "
		       "choose another port, or 0 for a free one";
	else if (rc == -EACCES)
		hint = "; ports below net.ipv4.ip_unprivileged_port_start "
		       "need root or CAP_NET_BIND_SERVICE";
	else if (rc == -EADDRNOTAVAIL)
		hint = "; no interface of this machine has that address";
	else if (rc == -EAFNOSUPPORT)
		hint = "; this kernel has no support for that address family";
	else if (rc == -EMFILE || rc == -ENFILE)
		hint = "; raise the limit of open files (`ulimit -n`)";
	snprintf(err, len, "terminator.listen%s: %s: %s%s",
		 plain ? "_plain" : "", address, strerror(-rc), hint);
}

/* All sockets of one address; the first one's port serves the others. */
/* What transport: tcp needs when nothing is said. */
static const char any_plain[] = "127.0.0.1:0";

static size_t count_plain(const struct cfg *cfg)
{
	if (cfg->terminator.listen_plain.n > 0)
		return cfg->terminator.listen_plain.n;
	for (size_t i = 0; i < cfg->nphases; i++)
		if (cfg->phases[i].transport == CFG_TRANSPORT_TCP)
			return 1;
	return 0;
}

/* The text of address i, and whether it is a plain one. */
static const char *address_of(const struct cfg *cfg, size_t i, bool *plain)
{
	const struct cfg_terminator *t = &cfg->terminator;

	*plain = i >= t->listen.n;
	if (!*plain)
		return t->listen.item[i];
	return t->listen_plain.n > 0 ? t->listen_plain.item[i - t->listen.n]
				     : any_plain;
}

/* Keeps what it was bound to. */
static void note_address(struct lst *l, const struct addr *a, size_t i,
			 bool plain)
{
	char one[ADDR_TEXT];
	size_t used = strlen(l->text);

	print(a, false, one, sizeof(one));
	snprintf(l->text + used, sizeof(l->text) - used, "%s%s%s",
		 i > 0 ? ", " : "", plain ? "http://" : "", one);
	if (i == 0)
		print(a, true, l->target, sizeof(l->target));
	if (plain && l->plain[0] == '\0')
		print(a, true, l->plain, sizeof(l->plain));
}

static int open_address(struct lst *l, const struct cfg *cfg, size_t i)
{
	bool plain;
	bool reuseport = cfg->terminator.accept == CFG_ACCEPT_REUSEPORT;
	struct addr a;
	int rc = parse(&a, address_of(cfg, i, &plain));

	if (rc == 0 && a.u.v4.sin_port != 0)
		rc = prove_free(cfg, &a);
	for (uint32_t w = 0; rc == 0 && w < l->nper; w++) {
		int *fd = &l->fd[i * l->nper + w];

		rc = bind_one(cfg, &a, reuseport, fd);
		if (rc == 0 && listen(*fd, (int)l->backlog) < 0)
			rc = -errno;
		a.len = sizeof(a.u);
		if (rc == 0 && getsockname(*fd, &a.u.sa, &a.len) < 0)
			rc = -errno;
	}
	if (rc == 0)
		note_address(l, &a, i, plain);
	return rc;
}

int lst_open(struct lst **out, const struct cfg *cfg, uint32_t nworkers,
	     char *err, size_t err_len, char *warn, size_t warn_len)
{
	bool shared = cfg->terminator.accept == CFG_ACCEPT_SHARED;
	uint32_t limit = somaxconn();
	struct lst *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->nplain = count_plain(cfg);
	l->naddr = cfg->terminator.listen.n + l->nplain;
	l->nper = shared ? 1 : nworkers;
	l->backlog = (uint32_t)base_min(cfg->terminator.backlog, limit);
	l->fd = malloc(l->naddr * l->nper * sizeof(*l->fd));
	if (l->fd == NULL) {
		free(l);
		return -ENOMEM;
	}
	for (size_t i = 0; i < l->naddr * l->nper; i++)
		l->fd[i] = -1;
	for (size_t i = 0; i < l->naddr; i++) {
		int rc = open_address(l, cfg, i);

		if (rc < 0) {
			bool plain;
			const char *text = address_of(cfg, i, &plain);

			explain(rc, plain, text, err, err_len);
			lst_close(&l);
			return rc;
		}
	}
	warn[0] = '\0';
	if (cfg->terminator.backlog > limit)
		snprintf(warn, warn_len,
			 "terminator.backlog: %llu is cut to %u by "
			 "net.core.somaxconn",
			 (unsigned long long)cfg->terminator.backlog, limit);
	*out = l;
	return 0;
}

void lst_close(struct lst **lst)
{
	struct lst *l = *lst;

	if (l == NULL)
		return;
	for (size_t i = 0; i < l->naddr * l->nper; i++)
		if (l->fd[i] >= 0)
			close(l->fd[i]);
	free(l->fd);
	free(l);
	*lst = NULL;
}

size_t lst_fds(const struct lst *lst, uint32_t worker, int *fds, size_t max)
{
	uint32_t w = lst->nper == 1 ? 0 : worker;

	MUST(lst->naddr <= max && w < lst->nper);
	for (size_t i = 0; i < lst->naddr; i++)
		fds[i] = lst->fd[i * lst->nper + w];
	return lst->naddr;
}

const char *lst_text(const struct lst *lst)
{
	return lst->text;
}

const char *lst_target(const struct lst *lst)
{
	return lst->target;
}

uint32_t lst_backlog(const struct lst *lst)
{
	return lst->backlog;
}

const char *lst_plain(const struct lst *lst)
{
	return lst->nplain > 0 ? lst->plain : NULL;
}

size_t lst_nplain(const struct lst *lst)
{
	return lst->nplain;
}

uint64_t lst_drops(const struct lst *lst)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < lst->naddr * lst->nper; i++) {
		uint32_t info[SK_MEMINFO_VARS] = {0};
		socklen_t len = sizeof(info);

		if (getsockopt(lst->fd[i], SOL_SOCKET, SO_MEMINFO, info,
			       &len) == 0)
			sum += info[SK_MEMINFO_DROPS];
	}
	return sum;
}
