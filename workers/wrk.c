/* SPDX-License-Identifier: MIT */
#include "workers/wrk.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "shm/ctl.h"
#include "shm/log.h"
#include "workers/acc.h"
#include "workers/env.h"
#include "workers/io.h"
#include "workers/tls_speed.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Word of the control channel's poll; acc.h has the op below. */
#define CTL_WORD (UINT64_C(4) << 56)

/* CPU time is published after so much work, and so often while idle. */
#define PUBLISH_NS   (10 * NS_PER_MS)
#define HEARTBEAT_NS (100 * NS_PER_MS)

/* The core's speed is sampled after so much CPU time: about 0.4 % of it. */
#define SPEED_NS (25 * NS_PER_MS)

/* Buffers per descriptor that the process may have: two hold IO_OUT_MAX. */
#define BUFS_PER_FD 4

enum phase {
	RUNNING,
	DRAINING,
	ENDED
};

struct wrk {
	const struct wrk_args *args; /* borrows */
	struct env env;
	struct acc acc;
	enum phase phase;
	int status; /* exit status */
	uint64_t drain_end_ns;
	uint64_t published_ns;
	uint64_t cpu_ns;	 /* of ours, already counted */
	bool unpublished;	 /* events since then */
	uint64_t overflows;	 /* of the ring, already counted */
	struct tls_speed *speed; /* owns; NULL: not sampled */
	uint64_t speed_at_ns;	 /* CPU time at the last sample */
	int schedstat_fd;	 /* owns; -1: the kernel has none */
	uint64_t delay_ns;	 /* in the run queue, already counted */
};

/* ---- what the master hears ---- */

static void fail(struct wrk *w, const char *text)
{
	/* The master logs it. One that is gone or does not read needs none. */
	(void)ctl_send(w->args->ctl_fd, CTL_FAIL, 0, text);
	w->phase = ENDED;
	w->status = EXIT_RUN;
}

static void fail_errno(struct wrk *w, const char *what, int error)
{
	char text[CTL_TEXT_MAX];

	snprintf(text, sizeof(text), "worker %u: %s: %s", w->args->number, what,
		 strerror(error));
	fail(w, text);
}

static void set_state(struct wrk *w, enum shm_slot_state state)
{
	atomic_store_explicit(&w->env.slot->state, state, memory_order_release);
}

/* ---- publishing ---- */

/* Time ready to run but not running: field 2 of /proc/PID/schedstat (kernel,
 * Documentation/scheduler/sched-stats). Never less than before. */
static uint64_t run_delay(struct wrk *w)
{
	char text[96];
	unsigned long long ran, delay;
	ssize_t n = w->schedstat_fd < 0
			    ? -1
			    : pread(w->schedstat_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return w->delay_ns;
	text[n] = '\0';
	return sscanf(text, "%llu %llu", &ran, &delay) == 2 ? delay
							    : w->delay_ns;
}

static void sample_speed(struct wrk *w, uint64_t cpu)
{
	struct shm_slot *slot = w->env.slot;
	uint64_t took;

	if (w->speed == NULL || cpu - w->speed_at_ns < SPEED_NS)
		return;
	took = tls_speed_sample(w->speed);
	w->speed_at_ns = cpu + took;
	if (took == 0)
		return;
	shm_begin(slot);
	ctr_add(&slot->ctr.speed_samples, 1);
	ctr_add(&slot->ctr.speed_ns, took);
	shm_end(slot);
}

static void publish_cpu(struct wrk *w)
{
	struct shm_slot *slot = w->env.slot;
	uint64_t cpu, delay = run_delay(w);

	sample_speed(w, clk_process_cpu());
	cpu = clk_process_cpu();
	shm_begin(slot);
	ctr_add(&slot->ctr.run_delay_ns, delay - w->delay_ns);
	w->delay_ns = delay;
	/* The slot's sum spans all processes it had; ours began at its end. */
	ctr_add(&slot->ctr.cpu_ns, cpu - w->cpu_ns);
	shm_end(slot);
	w->cpu_ns = cpu;
	w->published_ns = w->env.now;
	w->unpublished = false;
	atomic_store_explicit(&slot->heartbeat_ns, w->env.now,
			      memory_order_relaxed);
}

/* One turn's sums, in one event. */
static void publish_turn(struct wrk *w)
{
	struct env_sums *s = &w->env.sums;
	struct ctr_block *ctr = &w->env.slot->ctr;
	uint64_t overflows = ur_overflows(w->env.ring);

	shm_begin(w->env.slot);
	ctr_add(&ctr->ring_turns, 1);
	ctr_add(&ctr->ring_events, s->events);
	ctr_raise(&ctr->ring_batch_max, s->events);
	ctr_add(&ctr->ring_no_buffers, s->no_buffers);
	ctr_add(&ctr->ring_rearms, s->rearms);
	ctr_add(&ctr->ring_cq_overflow, overflows - w->overflows);
	ctr_add(&ctr->bytes_in, s->bytes_in);
	ctr_add(&ctr->bytes_out, s->bytes_out);
	shm_end(w->env.slot);
	w->overflows = overflows;
	w->unpublished |= s->events > 0;
	*s = (struct env_sums){0};
	if (w->env.now - w->published_ns >=
	    (w->unpublished ? PUBLISH_NS : HEARTBEAT_NS))
		publish_cpu(w);
}

/* ---- the control channel ---- */

static void drain(struct wrk *w)
{
	if (w->phase != RUNNING)
		return;
	w->phase = DRAINING;
	w->drain_end_ns = w->env.now + w->env.cfg->terminator.drain_timeout;
	w->env.draining = true;
	set_state(w, SHM_SLOT_DRAINING);
	acc_stop(&w->acc, &w->env);
	io_drain(&w->env);
}

static void on_message(struct wrk *w, const struct ctl_msg *m)
{
	switch (m->kind) {
	case CTL_DRAIN:
		drain(w);
		break;
	case CTL_QUIT:
		w->phase = ENDED;
		break;
	default:
		log_warn("ctl_unknown", "kind=%u", m->kind);
		break;
	}
}

static void on_ctl(struct wrk *w)
{
	struct ctl_msg m;
	int rc;

	while ((rc = ctl_recv(w->args->ctl_fd, &m)) > 0)
		on_message(w, &m);
	if (rc != -EAGAIN)
		w->phase = ENDED; /* the master is gone */
	else if (w->phase != ENDED)
		ur_readable(w->env.ring, w->args->ctl_fd, CTL_WORD);
}

/* ---- the loop ---- */

static void dispatch(struct wrk *w, const struct ur_event *ev)
{
	w->env.sums.events++;
	switch (ev->data >> 56) {
	case CONN_OP_RECV:
	case CONN_OP_SEND:
		io_event(&w->env, ev);
		break;
	case ACC_OP:
		acc_event(&w->acc, &w->env, ev);
		break;
	default:
		MUST(ev->data == CTL_WORD);
		on_ctl(w);
		break;
	}
}

static uint64_t wait_ns(const struct wrk *w)
{
	uint64_t next =
		w->published_ns + (w->unpublished ? PUBLISH_NS : HEARTBEAT_NS);

	next = base_min(next, io_next(&w->env));
	next = base_min(next, acc_next(&w->acc));
	if (w->phase == DRAINING)
		next = base_min(next, w->drain_end_ns);
	return next > w->env.now ? next - w->env.now : 0;
}

static void check_end(struct wrk *w)
{
	int rc = acc_dead(&w->acc);

	if (w->phase == RUNNING && rc < 0)
		fail_errno(w, "accept", -rc);
	if (w->phase == DRAINING &&
	    (w->env.conns.in_use == 0 || w->env.now >= w->drain_end_ns))
		w->phase = ENDED;
}

static void turn(struct wrk *w)
{
	struct ur_event ev;
	int rc = ur_wait(w->env.ring, wait_ns(w));

	if (rc < 0) {
		fail_errno(w, "io_uring_enter", -rc);
		return;
	}
	w->env.now = clk_now();
	while (ur_next(w->env.ring, &ev))
		dispatch(w, &ev);
	io_expire(&w->env);
	acc_tick(&w->acc, &w->env);
	publish_turn(w);
	check_end(w);
}

/* ---- set-up ---- */

/*
 * The kernel kills us with the master. It may have died before this call: then
 * our parent is another one than the process that made the channel.
 */
static int follow_master(int ctl_fd)
{
	struct ucred master = {0};
	socklen_t len = sizeof(master);

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getsockopt(ctl_fd, SOL_SOCKET, SO_PEERCRED, &master, &len) < 0)
		return -errno;
	return master.pid > 0 && master.pid != getppid() ? -ESRCH : 0;
}

/*
 * Ctrl-C and the like reach the whole process group: what they mean is the
 * master's to say. The master's own mask is not ours.
 */
static int set_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR ? -errno : 0;
}

static int pin(int cpu)
{
	cpu_set_t *set;
	size_t size;
	int rc = 0;

	if (cpu < 0)
		return 0;
	set = CPU_ALLOC((size_t)cpu + 1);
	if (set == NULL)
		return -ENOMEM;
	size = CPU_ALLOC_SIZE((size_t)cpu + 1);
	CPU_ZERO_S(size, set);
	CPU_SET_S((size_t)cpu, size, set);
	if (sched_setaffinity(0, size, set) < 0)
		rc = -errno;
	CPU_FREE(set);
	return rc;
}

/* As a process: 0, or the reason has been told. */
static int set_up_process(struct wrk *w)
{
	const struct wrk_args *args = w->args;
	char name[16], what[64];
	int rc;

	snprintf(name, sizeof(name), "tterm-w%u", args->number);
	prctl(PR_SET_NAME, name);
	rc = follow_master(args->ctl_fd);
	if (rc < 0) {
		fail_errno(w, "cannot follow the master", -rc);
		return rc;
	}
	rc = set_signals();
	if (rc < 0) {
		fail_errno(w, "signals", -rc);
		return rc;
	}
	rc = pin(args->cpu);
	if (rc < 0) {
		snprintf(what, sizeof(what), "cannot pin to CPU %d", args->cpu);
		fail_errno(w, what, -rc);
	}
	return rc;
}

static uint32_t bufs_max(void)
{
	struct rlimit rl = {.rlim_cur = 1024};

	getrlimit(RLIMIT_NOFILE, &rl);
	return (uint32_t)base_min(rl.rlim_cur, UINT32_MAX / BUFS_PER_FD) *
	       BUFS_PER_FD;
}

static int set_up_env(struct wrk *w)
{
	const struct cfg_terminator *t = &w->args->cfg->terminator;
	char why[CTL_TEXT_MAX / 2], text[CTL_TEXT_MAX];
	struct env *env = &w->env;
	int rc;

	env->cfg = w->args->cfg;
	env->tls = w->args->tls;
	env->slot = w->args->slot;
	env->now = clk_now();
	conn_pool_init(&env->conns);
	buf_pool_init(&env->bufs, bufs_max());
	tmr_init(&env->handshake, t->handshake_timeout);
	tmr_init(&env->idle, t->idle_timeout);
	tmr_init(&env->linger, IO_LINGER_NS);
	rc = ur_open(&env->ring, &ur_usual, why, sizeof(why));
	if (rc < 0) {
		snprintf(text, sizeof(text), "worker %u: %s", w->args->number,
			 why);
		fail(w, text);
	}
	return rc;
}

static void start(struct wrk *w)
{
	tls_srv_start(w->env.tls, w->args->number);
	acc_init(&w->acc, w->args);
	acc_start(&w->acc, &w->env);
	ur_readable(w->env.ring, w->args->ctl_fd, CTL_WORD);
	publish_cpu(w);
	set_state(w, SHM_SLOT_RUNNING);
	(void)ctl_send(w->args->ctl_fd, CTL_READY, 0, NULL);
}

/*
 * Ends the process without the handlers and buffers that the master registered
 * and filled before the fork: they are the master's.
 */
static _Noreturn void end(struct wrk *w)
{
	io_abandon(&w->env);
	publish_turn(w);
	publish_cpu(w);
	_exit(w->status);
}

_Noreturn void wrk_main(const struct wrk_args *args)
{
	struct wrk *w = calloc(1, sizeof(*w)); /* ends with the process */

	if (w == NULL)
		_exit(EXIT_RUN);
	w->args = args;
	if (set_up_process(w) < 0 || set_up_env(w) < 0)
		_exit(EXIT_RUN);
	w->schedstat_fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	w->delay_ns = run_delay(w);
	if (tls_speed_open(&w->speed) < 0)
		log_warn("speed", "reason=\"X25519 does not work\"");
	start(w);
	while (w->phase != ENDED)
		turn(w);
	end(w);
}

int wrk_probe(char *features, size_t features_len, char *err, size_t err_len)
{
	return ur_probe(features, features_len, err, err_len);
}

void wrk_describe_states(FILE *out)
{
	conn_describe(out);
}
