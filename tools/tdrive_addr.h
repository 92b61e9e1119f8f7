/* SPDX-License-Identifier: MIT */
/*
 * Where connections go, where they come from, and how many there are.
 *
 * One source address gives one connection per free port (28,232 by default),
 * and each stays in TIME_WAIT for a minute after we closed it first. Where the
 * target is IPv4 loopback every address of 127.0.0.0/8 is ours, so each driver
 * rotates through ADDR_SOURCES of its own. ::1 is a single address: there the
 * port range is the limit, and failed_no_port shows it.
 */
#ifndef TOOLS_TDRIVE_ADDR_H
#define TOOLS_TDRIVE_ADDR_H

#include "config/cfg.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDR_SOURCES  64u
#define ADDR_LIST_MAX 64u /* source addresses that can be named */
#define ADDR_HOST_MAX 256
#define ADDR_PORT_MAX 8

struct addr_name {
	char host[ADDR_HOST_MAX]; /* without brackets */
	char port[ADDR_PORT_MAX];
	bool plain; /* http://, no TLS */
};

struct addr_target {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} sa;
	socklen_t len;
};

/*
 * "https://host:port", "http://host:port", "host:port", "[::1]:8443"; without a
 * port the scheme's, where one is given. 0, or -EINVAL with one sentence in
 * err.
 */
int addr_parse(struct addr_name *out, const char *text, char *err, size_t len);

/* By getaddrinfo, the first answer. 0, or -EINVAL with one sentence in err. */
int addr_resolve(struct addr_target *out, const struct addr_name *name,
		 char *err, size_t len);

/* Is it a number (127.0.0.1, ::1) and no name? */
bool addr_is_numeric(const char *host);

/* Can we choose among source addresses (IPv4 loopback)? */
bool addr_rotates(const struct addr_target *target);

/*
 * Source address of the driver's `turn`-th connection, port 0 (the kernel
 * chooses at the connect). Never the target's own address: a dead listener's
 * port could be chosen as source port, and the connection would meet itself.
 */
struct addr_target addr_source(const struct addr_target *target,
			       uint32_t driver, uint64_t turn);

/*
 * The addresses of a list (numbers, no names), port 0. 0 and *n of them in
 * `out`, or -EINVAL with one sentence in err.
 */
int addr_sources(struct addr_target out[static ADDR_LIST_MAX], uint32_t *n,
		 const struct cfg_list *list, char *err, size_t len);

/* Part of `total` that driver `number` of `drivers` takes; the first ones take
 * what an even division leaves over. */
uint32_t addr_share(uint64_t total, uint32_t drivers, uint32_t number);

#endif
