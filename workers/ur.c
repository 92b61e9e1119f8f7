/* SPDX-License-Identifier: MIT */
#include "workers/ur.h"

#include "shm/base.h"

#include <liburing.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Words of requests whose events nobody waits for. */
#define DATA_IGNORE UINT64_C(0)
#define BUF_GROUP   0

/* Refusals of a full queue in a row after which the ring counts as broken. */
#define REFUSALS_MAX 100

const struct ur_size ur_usual = {
	.requests = 1024,
	.events = 4096,
	.buffers = 256,
	.buf_bytes = 4096,
};

struct ur {
	struct io_uring ring;
	struct ur_size size;
	struct io_uring_buf_ring *buf_ring; /* owns; a mapping */
	uint8_t *bufs;			    /* owns; a mapping */
	uint32_t batch;			    /* events given out this turn */
	int broken;			    /* 0 or -errno, for good */
	uint64_t overflows;
	struct io_uring_sqe scrap; /* for requests of a broken ring */
	char features[128];
};

struct setup {
	unsigned flags;
	const char *name;
};

/*
 * What task work costs is most of what the flags are for: deferred to our own
 * wait (6.1), or at least without interrupting us (5.19), or as it comes.
 */
static const struct setup setups[] = {
	{IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER |
		 IORING_SETUP_DEFER_TASKRUN,
	 "SINGLE_ISSUER DEFER_TASKRUN"},
	{IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN, "COOP_TASKRUN"},
};

static int setup_ring(struct ur *r, const char **name)
{
	int rc = -EINVAL;

	for (size_t i = 0; i < ARRAY_LEN(setups) && rc == -EINVAL; i++) {
		struct io_uring_params p = {
			.flags = setups[i].flags | IORING_SETUP_CQSIZE,
			.cq_entries = r->size.events,
		};

		rc = io_uring_queue_init_params(r->size.requests, &r->ring, &p);
		*name = setups[i].name;
	}
	return rc;
}

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static size_t bytes_of_bufs(const struct ur *r)
{
	return (size_t)r->size.buffers * r->size.buf_bytes;
}

static size_t bytes_of_buf_ring(const struct ur *r)
{
	return r->size.buffers * sizeof(struct io_uring_buf);
}

static void buf_add(struct ur *r, uint16_t id, int offset)
{
	io_uring_buf_ring_add(r->buf_ring,
			      r->bufs + (size_t)id * r->size.buf_bytes,
			      r->size.buf_bytes, id,
			      io_uring_buf_ring_mask(r->size.buffers), offset);
}

/* liburing 2.3 has no io_uring_setup_buf_ring(): the mapping is our own. */
static int setup_buffers(struct ur *r)
{
	struct io_uring_buf_reg reg = {.ring_entries = r->size.buffers,
				       .bgid = BUF_GROUP};
	int rc = -ENOMEM;

	r->buf_ring = map(bytes_of_buf_ring(r));
	if (r->buf_ring == NULL)
		return rc;
	r->bufs = map(bytes_of_bufs(r));
	if (r->bufs == NULL)
		goto fail_ring;
	reg.ring_addr = (uint64_t)(uintptr_t)r->buf_ring;
	rc = io_uring_register_buf_ring(&r->ring, &reg, 0);
	if (rc < 0)
		goto fail_bufs;
	io_uring_buf_ring_init(r->buf_ring);
	for (uint32_t i = 0; i < r->size.buffers; i++)
		buf_add(r, (uint16_t)i, (int)i);
	io_uring_buf_ring_advance(r->buf_ring, (int)r->size.buffers);
	return 0;
fail_bufs:
	munmap(r->bufs, bytes_of_bufs(r));
fail_ring:
	munmap(r->buf_ring, bytes_of_buf_ring(r));
	return rc;
}

int ur_open(struct ur **out, const struct ur_size *size, char *err,
	    size_t err_len)
{
	struct ur *r = calloc(1, sizeof(*r));
	const char *name = "";
	int rc = -ENOMEM;

	if (r == NULL) {
		snprintf(err, err_len, "out of memory");
		return rc;
	}
	r->size = *size;
	rc = setup_ring(r, &name);
	if (rc < 0) {
		ur_explain(-rc, "", err, err_len);
		goto fail_ring;
	}
	rc = setup_buffers(r);
	if (rc < 0) {
		snprintf(err, err_len, "io_uring's buffer ring: %s%s",
			 strerror(-rc),
			 rc == -EINVAL ? "; Linux 6.1 is needed" : "");
		goto fail_buffers;
	}
	snprintf(r->features, sizeof(r->features), "%s buffer-ring", name);
	*out = r;
	return 0;
fail_buffers:
	io_uring_queue_exit(&r->ring);
fail_ring:
	free(r);
	return rc;
}

void ur_close(struct ur **ring)
{
	struct ur *r = *ring;

	if (r == NULL)
		return;
	*ring = NULL;
	io_uring_queue_exit(&r->ring);
	munmap(r->buf_ring, bytes_of_buf_ring(r));
	munmap(r->bufs, bytes_of_bufs(r));
	free(r);
}

const char *ur_features(const struct ur *ring)
{
	return ring->features;
}

uint64_t ur_overflows(const struct ur *ring)
{
	return ring->overflows;
}

/* ---- turns ---- */

static bool passing(int rc)
{
	return rc == -EAGAIN || rc == -EBUSY || rc == -EINTR;
}

int ur_wait(struct ur *r, uint64_t timeout_ns)
{
	struct __kernel_timespec ts = {
		.tv_sec = (int64_t)(timeout_ns / NS_PER_S),
		.tv_nsec = (int64_t)(timeout_ns % NS_PER_S),
	};
	struct io_uring_cqe *cqe;
	int rc;

	if (r->broken < 0)
		return r->broken;
	rc = io_uring_submit_and_wait_timeout(&r->ring, &cqe, 1, &ts, NULL);
	if (rc < 0 && rc != -ETIME && !passing(rc))
		r->broken = rc;
	if (io_uring_cq_has_overflow(&r->ring))
		r->overflows++;
	r->batch = 0;
	return r->broken;
}

static bool next_cqe(struct ur *r, struct io_uring_cqe *out)
{
	struct io_uring_cqe *cqe;

	if (r->batch == UR_BATCH ||
	    io_uring_peek_batch_cqe(&r->ring, &cqe, 1) == 0)
		return false;
	*out = *cqe;
	r->batch++;
	io_uring_cqe_seen(&r->ring, cqe);
	return true;
}

bool ur_next(struct ur *r, struct ur_event *out)
{
	struct io_uring_cqe cqe;

	do {
		if (!next_cqe(r, &cqe))
			return false;
	} while (cqe.user_data == DATA_IGNORE);
	*out = (struct ur_event){
		.data = cqe.user_data,
		.res = cqe.res,
		.more = (cqe.flags & IORING_CQE_F_MORE) != 0,
	};
	if (cqe.flags & IORING_CQE_F_BUFFER) {
		out->buf_id = (uint16_t)(cqe.flags >> IORING_CQE_BUFFER_SHIFT);
		out->buf = r->bufs + (size_t)out->buf_id * r->size.buf_bytes;
	}
	return true;
}

void ur_give(struct ur *r, const struct ur_event *ev)
{
	if (ev->buf == NULL)
		return;
	buf_add(r, ev->buf_id, 0);
	io_uring_buf_ring_advance(r->buf_ring, 1);
}

/* ---- requests ---- */

/*
 * A place in the queue. Where the kernel does not take a full queue, time and
 * again, it is out of memory: no connection could even be closed then, so the
 * ring is given up, and requests go to a scrap entry until ur_wait() says so.
 */
static struct io_uring_sqe *get_sqe(struct ur *r)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);

	for (int i = 0; sqe == NULL && r->broken == 0; i++) {
		int rc = io_uring_submit(&r->ring);

		if (rc < 0 && (!passing(rc) || i == REFUSALS_MAX))
			r->broken = rc;
		sqe = io_uring_get_sqe(&r->ring);
	}
	return sqe != NULL ? sqe : &r->scrap;
}

void ur_accept(struct ur *r, int fd, bool multishot, uint64_t data)
{
	struct io_uring_sqe *sqe = get_sqe(r);

	if (multishot)
		io_uring_prep_multishot_accept(sqe, fd, NULL, NULL,
					       SOCK_CLOEXEC);
	else
		io_uring_prep_accept(sqe, fd, NULL, NULL, SOCK_CLOEXEC);
	io_uring_sqe_set_data64(sqe, data);
}

void ur_recv(struct ur *r, int fd, uint64_t data)
{
	struct io_uring_sqe *sqe = get_sqe(r);

	io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = BUF_GROUP;
	io_uring_sqe_set_data64(sqe, data);
}

void ur_send(struct ur *r, int fd, const void *p, size_t n, uint64_t data)
{
	struct io_uring_sqe *sqe = get_sqe(r);

	io_uring_prep_send(sqe, fd, p, n, MSG_NOSIGNAL);
	io_uring_sqe_set_data64(sqe, data);
}

void ur_readable(struct ur *r, int fd, uint64_t data)
{
	struct io_uring_sqe *sqe = get_sqe(r);

	io_uring_prep_poll_add(sqe, fd, POLLIN);
	io_uring_sqe_set_data64(sqe, data);
}

void ur_cancel(struct ur *r, uint64_t data)
{
	struct io_uring_sqe *sqe = get_sqe(r);

	io_uring_prep_cancel64(sqe, data, 0);
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	io_uring_sqe_set_data64(sqe, DATA_IGNORE);
}

void ur_shut(struct ur *r, int fd)
{
	struct io_uring_sqe *sqe = get_sqe(r);

	io_uring_prep_close(sqe, fd);
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	io_uring_sqe_set_data64(sqe, DATA_IGNORE);
}

/* ---- why not ---- */

/* The first number of a small file, or `otherwise`. */
static long read_long(const char *root, const char *path, long otherwise)
{
	char name[512], text[64];
	ssize_t n;
	char *end;
	long v;
	int fd;

	snprintf(name, sizeof(name), "%s%s", root, path);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return otherwise;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return otherwise;
	text[n] = '\0';
	v = strtol(text, &end, 10);
	return end != text ? v : otherwise;
}

/* A field of /proc/self/status, such as "Seccomp:" or "CapEff:"; 0 if absent.
 */
static uint64_t read_status(const char *root, const char *field, int base)
{
	char line[256], name[512];
	uint64_t v = 0;
	FILE *f;

	snprintf(name, sizeof(name), "%s/proc/self/status", root);
	f = fopen(name, "re");
	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, field, strlen(field)) == 0)
			v = strtoull(line + strlen(field), NULL, base);
	}
	fclose(f);
	return v;
}

static bool in_group(long gid)
{
	gid_t groups[256];
	int n = getgroups(256, groups);

	if (gid >= 0 && getegid() == (gid_t)gid)
		return true;
	for (int i = 0; i < n; i++) {
		if (gid >= 0 && groups[i] == (gid_t)gid)
			return true;
	}
	return false;
}

/* kernel.io_uring_disabled: 0 for all, 1 for some, 2 for none (Linux 6.6). */
static bool sysctl_forbids(const char *root, long *value, long *group)
{
	uint64_t caps = read_status(root, "CapEff:", 16);

	*value = read_long(root, "/proc/sys/kernel/io_uring_disabled", 0);
	*group = read_long(root, "/proc/sys/kernel/io_uring_group", -1);
	if (*value != 1)
		return *value == 2;
	return !(caps & (UINT64_C(1) << CAP_SYS_ADMIN)) && !in_group(*group);
}

static void explain_eperm(const char *root, char *to, size_t len)
{
	long value, group;

	if (!sysctl_forbids(root, &value, &group)) {
		snprintf(to, len,
			 "io_uring is refused by a seccomp filter (containers "
			 "have one): allow io_uring_setup, io_uring_enter and "
			 "io_uring_register in the profile");
		return;
	}
	if (value == 1)
		snprintf(to, len,
			 "io_uring is refused by sysctl "
			 "kernel.io_uring_disabled=1: join group %ld "
			 "(kernel.io_uring_group) or set it to 0",
			 group);
	else
		snprintf(to, len,
			 "io_uring is refused by sysctl "
			 "kernel.io_uring_disabled=%ld: set it to 0",
			 value);
}

static void explain_enomem(char *to, size_t len)
{
	struct rlimit lim = {0};
	ssize_t need = io_uring_mlock_size(ur_usual.requests, 0);
	char limit[32] = "unlimited";

	/* The size liburing tells is of a completion queue twice as long. */
	if (need > 0)
		need += (ssize_t)((ur_usual.events - 2 * ur_usual.requests) *
				  sizeof(struct io_uring_cqe));
	else
		need = (ssize_t)(ur_usual.requests *
					 sizeof(struct io_uring_sqe) +
				 ur_usual.events * sizeof(struct io_uring_cqe));
	getrlimit(RLIMIT_MEMLOCK, &lim);
	if (lim.rlim_cur != RLIM_INFINITY)
		snprintf(limit, sizeof(limit), "%llu KiB",
			 (unsigned long long)lim.rlim_cur / 1024);
	snprintf(to, len,
		 "io_uring finds no memory: a worker's ring needs %zd KiB of "
		 "locked memory, RLIMIT_MEMLOCK is %s for all processes of a "
		 "user together; raise it (ulimit -l), or the memory limit of "
		 "the control group",
		 (need + 1023) / 1024, limit);
}

static void explain_enosys(const char *root, char *to, size_t len)
{
	struct utsname u = {0};
	bool filter = read_status(root, "Seccomp:", 10) == 2;

	uname(&u);
	snprintf(to, len,
		 "this kernel (%s) has no io_uring%s; Linux 6.1 is needed",
		 u.release,
		 filter ? ", or a seccomp filter hides it: allow "
			  "io_uring_setup, "
			  "io_uring_enter and io_uring_register in the profile"
			: "");
}

void ur_explain(int error, const char *root, char *to, size_t len)
{
	switch (error) {
	case EPERM:
	case EACCES:
		explain_eperm(root, to, len);
		break;
	case ENOMEM:
		explain_enomem(to, len);
		break;
	case ENOSYS:
		explain_enosys(root, to, len);
		break;
	case EINVAL:
		snprintf(to, len,
			 "this kernel's io_uring lacks what is asked of it; "
			 "Linux 6.1 is needed");
		break;
	default:
		snprintf(to, len, "io_uring_setup: %s", strerror(error));
		break;
	}
}

/* ---- probe ---- */

enum {
	PROBE_ACCEPT = 1,
	PROBE_RECV
};

struct probe {
	struct ur *ring;
	int fd[3]; /* owns: listener, client, and what was accepted */
	bool accepts, receives;
};

/* A local listener with a name of the kernel's choice, and a client of it. */
static int probe_sockets(struct probe *p)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(sa);

	p->fd[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	p->fd[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (p->fd[0] < 0 || p->fd[1] < 0)
		return -errno;
	if (bind(p->fd[0], (struct sockaddr *)&sa, sizeof(sa.sun_family)) ||
	    listen(p->fd[0], 1) ||
	    getsockname(p->fd[0], (struct sockaddr *)&sa, &len) ||
	    connect(p->fd[1], (struct sockaddr *)&sa, len))
		return -errno;
	return write(p->fd[1], "x", 1) == 1 ? 0 : -errno;
}

static void probe_event(struct probe *p, const struct ur_event *ev)
{
	if (ev->data == PROBE_ACCEPT && ev->res >= 0) {
		p->accepts = ev->more;
		p->fd[2] = ev->res;
		ur_recv(p->ring, p->fd[2], PROBE_RECV);
	}
	if (ev->data == PROBE_RECV && ev->res == 1)
		p->receives = ev->more && ev->buf != NULL;
	ur_give(p->ring, ev);
}

/* Both answers are there within two turns; a second is for a loaded machine. */
static int probe_try(struct probe *p)
{
	int rc = probe_sockets(p);

	if (rc < 0)
		return rc;
	ur_accept(p->ring, p->fd[0], true, PROBE_ACCEPT);
	for (int turn = 0; turn < 4 && rc == 0 && !p->receives; turn++) {
		struct ur_event ev;

		rc = ur_wait(p->ring, NS_PER_S / 4);
		while (ur_next(p->ring, &ev))
			probe_event(p, &ev);
	}
	return rc;
}

int ur_probe(char *features, size_t features_len, char *err, size_t err_len)
{
	struct probe p = {.fd = {-1, -1, -1}};
	int rc = ur_open(&p.ring, &ur_usual, err, err_len);

	if (rc < 0)
		return rc;
	rc = probe_try(&p);
	if (rc < 0) {
		snprintf(err, err_len, "io_uring does not work here: %s",
			 strerror(-rc));
	} else if (!p.accepts || !p.receives) {
		rc = -EOPNOTSUPP;
		snprintf(err, err_len,
			 "this kernel's io_uring has no multishot %s; Linux "
			 "6.1 is needed",
			 p.accepts ? "receive" : "accept");
	} else {
		snprintf(features, features_len,
			 "%s multishot-accept multishot-recv",
			 ur_features(p.ring));
	}
	ur_close(&p.ring);
	for (size_t i = 0; i < ARRAY_LEN(p.fd); i++) {
		if (p.fd[i] >= 0)
			close(p.fd[i]);
	}
	return rc;
}
