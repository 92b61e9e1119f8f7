/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_addr.h"

#include "shm/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define SCHEME	     "https://"
#define PLAIN_SCHEME "http://"

static int refuse(char *err, size_t len, const char *text, const char *what)
{
	snprintf(err, len, "%.200s: %s", text, what);
	return -EINVAL;
}

/* Copies [from, end) and ends it with a NUL, if it fits and is not empty. */
static bool copy(char *to, size_t size, const char *from, const char *end)
{
	size_t n = (size_t)(end - from);

	if (n == 0 || n >= size)
		return false;
	memcpy(to, from, n);
	to[n] = '\0';
	return true;
}

static bool is_port(const char *text)
{
	unsigned value = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if (*p < '0' || *p > '9' || p - text >= 5)
			return false;
		value = value * 10 + (unsigned)(*p - '0');
	}
	return value >= 1 && value <= 65535;
}

/* Ends of the host and of the port in [text, end); *port NULL: none. */
static bool cut(const char *text, const char *end, const char **host,
		const char **host_end, const char **port)
{
	const char *colon;

	*host = text;
	if (*text == '[') {
		*host = text + 1;
		*host_end = memchr(text, ']', (size_t)(end - text));
		if (*host_end == NULL)
			return false;
		*port = *host_end + 1 == end ? NULL : *host_end + 2;
		return *port == NULL || (*host_end)[1] == ':';
	}
	colon = memchr(text, ':', (size_t)(end - text));
	*host_end = colon != NULL ? colon : end;
	*port = colon != NULL ? colon + 1 : NULL;
	return true;
}

/* What stands behind the scheme. */
static const char *behind_scheme(const char *text, bool *plain)
{
	*plain = strncmp(text, PLAIN_SCHEME, strlen(PLAIN_SCHEME)) == 0;
	if (*plain)
		return text + strlen(PLAIN_SCHEME);
	return strncmp(text, SCHEME, strlen(SCHEME)) == 0
		       ? text + strlen(SCHEME)
		       : text;
}

int addr_parse(struct addr_name *out, const char *text, char *err, size_t len)
{
	struct addr_name name = {.plain = false};
	const char *from = behind_scheme(text, &name.plain);
	const char *end = from + strcspn(from, "/");
	const char *host, *host_end, *port;

	if (*end == '/' && end[1] != '\0')
		return refuse(err, len, text,
			      "write https://host:port here, and the path with "
			      "--path");
	if (!cut(from, end, &host, &host_end, &port) ||
	    !copy(name.host, sizeof(name.host), host, host_end))
		return refuse(err, len, text,
			      "write https://host:port, an IPv6 address in "
			      "brackets");
	if (port == NULL && from == text)
		return refuse(err, len, text, "a port is missing");
	if (port == NULL)
		strcpy(name.port, name.plain ? "80" : "443");
	else if (!copy(name.port, sizeof(name.port), port, end) ||
		 !is_port(name.port))
		return refuse(err, len, text, "the port is 1 to 65535");
	*out = name;
	return 0;
}

int addr_resolve(struct addr_target *out, const struct addr_name *name,
		 char *err, size_t len)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICSERV};
	struct addrinfo *found;
	int rc = getaddrinfo(name->host, name->port, &hints, &found);

	if (rc != 0) {
		snprintf(err, len, "%.200s: %s", name->host, gai_strerror(rc));
		return -EINVAL;
	}
	MUST(found->ai_addrlen <= sizeof(out->sa));
	memset(out, 0, sizeof(*out));
	memcpy(&out->sa, found->ai_addr, found->ai_addrlen);
	out->len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

bool addr_is_numeric(const char *host)
{
	struct in6_addr any;

	return inet_pton(AF_INET, host, &any) == 1 ||
	       inet_pton(AF_INET6, host, &any) == 1;
}

bool addr_rotates(const struct addr_target *target)
{
	return target->sa.any.sa_family == AF_INET &&
	       ntohl(target->sa.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

struct addr_target addr_source(const struct addr_target *target,
			       uint32_t driver, uint64_t turn)
{
	uint32_t first = INADDR_LOOPBACK + driver * ADDR_SOURCES;
	uint32_t addr = first + (uint32_t)(turn % ADDR_SOURCES);

	/* The address past our own range is the next driver's first: harmless,
	 * addresses are set apart for ports, not for safety. */
	if (addr == ntohl(target->sa.v4.sin_addr.s_addr))
		addr = first + ADDR_SOURCES;
	return (struct addr_target){.sa.v4 = {.sin_family = AF_INET,
					      .sin_addr.s_addr = htonl(addr)},
				    .len = sizeof(struct sockaddr_in)};
}

static bool numeric(struct addr_target *out, const char *text)
{
	*out = (struct addr_target){.len = sizeof(out->sa.v4)};
	out->sa.v4.sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &out->sa.v4.sin_addr) == 1)
		return true;
	*out = (struct addr_target){.len = sizeof(out->sa.v6)};
	out->sa.v6.sin6_family = AF_INET6;
	return inet_pton(AF_INET6, text, &out->sa.v6.sin6_addr) == 1;
}

int addr_sources(struct addr_target out[static ADDR_LIST_MAX], uint32_t *n,
		 const struct cfg_list *list, char *err, size_t len)
{
	if (list->n > ADDR_LIST_MAX)
		return refuse(err, len, "source", "too many addresses");
	for (size_t i = 0; i < list->n; i++)
		if (!numeric(&out[i], list->item[i]))
			return refuse(err, len, list->item[i],
				      "a source is an address such as "
				      "127.0.0.2 or ::1");
	*n = (uint32_t)list->n;
	return 0;
}

uint32_t addr_share(uint64_t total, uint32_t drivers, uint32_t number)
{
	return (uint32_t)(total / drivers + (number < total % drivers));
}
