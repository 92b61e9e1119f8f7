/* SPDX-License-Identifier: MIT */
#include "shm/ctl.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(sizeof(struct ctl_msg) == 16 + CTL_TEXT_MAX,
	       "no padding: the bytes that are sent are the ones we set");

int ctl_pair(int *master_fd, int *child_fd)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0, fd) < 0)
		return -errno;
	*master_fd = fd[0];
	*child_fd = fd[1];
	return 0;
}

int ctl_send(int fd, enum ctl_kind kind, uint32_t phase, const char *text)
{
	struct ctl_msg msg = {.kind = kind, .phase = phase};
	ssize_t n;

	if (text != NULL)
		snprintf(msg.text, sizeof(msg.text), "%s", text);
	do
		n = send(fd, &msg, sizeof(msg), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n == sizeof(msg))
		return 0;
	if (n >= 0)
		return -EMSGSIZE;
	/* A peer that closed with our messages unread says so but once. */
	if (errno == ECONNRESET || errno == ENOTCONN)
		return -EPIPE;
	return -errno;
}

int ctl_recv(int fd, struct ctl_msg *out)
{
	struct ctl_msg msg;
	ssize_t n;

	/*
	 * ECONNRESET comes once, before what is still queued, when the peer
	 * closed with messages unread: its last words are behind it.
	 */
	do
		n = recv(fd, &msg, sizeof(msg), 0);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	if (n == 0)
		return 0;
	if (n != sizeof(msg))
		return -EBADMSG;
	msg.text[CTL_TEXT_MAX - 1] = '\0';
	*out = msg;
	return 1;
}
