/* SPDX-License-Identifier: MIT */
#include "terminator/mst.h"

#include "terminator/can.h"
#include "terminator/mst_int.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "shm/ctl.h"
#include "shm/log.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define START_NS	 (30 * NS_PER_S) /* for a worker to become ready */
#define QUIT_NS		 (3 * NS_PER_S)	 /* for a child to end when told */
#define QUICK_DEATH_NS	 NS_PER_S
#define QUICK_DEATHS_MAX 5
#define BACKOFF_NS	 (100 * NS_PER_MS)
#define REST_POLL_NS	 (2 * NS_PER_MS)
#define PROGRESS_NS	 (200 * NS_PER_MS)

enum {
	TAG_SIGNAL = 1,
	TAG_TIMER,
	TAG_PID,
	TAG_CTL
};

static uint64_t tag(uint32_t kind, uint32_t index)
{
	return (uint64_t)kind << 32 | index;
}

void mst_fail(struct mst *m, const char *fmt, ...)
{
	va_list ap;

	if (m->fault[0] == '\0') {
		va_start(ap, fmt);
		vsnprintf(m->fault, sizeof(m->fault), fmt, ap);
		va_end(ap);
	}
	phs_stop(m);
}

uint64_t mst_handshakes(const struct mst *m)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < m->plan.nworkers; i++) {
		const struct ctr_block *c = &shm_seg_slot(m->seg, i)->ctr;

		n += atomic_load_explicit(&c->hs_full, memory_order_relaxed) +
		     atomic_load_explicit(&c->hs_resumed, memory_order_relaxed);
	}
	return n;
}

/* ---- the state, and what readers are told of it ---- */

static uint32_t public_state(enum mst_state s)
{
	switch (s) {
	case MST_PRIME:
		return SHM_PHASE_PRIME;
	case MST_WARMUP:
		return SHM_PHASE_WARMUP;
	case MST_MEASURE:
		return SHM_PHASE_MEASURE;
	case MST_SETTLE:
	case MST_REST:
		return SHM_PHASE_SETTLE;
	case MST_ENDING:
	case MST_OVER:
		return SHM_PHASE_DONE;
	case MST_STARTING:
	case MST_SERVING:
		break;
	}
	return SHM_PHASE_NONE;
}

void mst_enter(struct mst *m, enum mst_state state, uint64_t lasts_ns)
{
	struct shm_phase p = {0};

	m->state = state;
	m->state_began_ns = clk_now();
	m->deadline_ns = lasts_ns > 0 ? m->state_began_ns + lasts_ns : 0;
	m->rest_poll_ns = state == MST_REST ? m->state_began_ns : 0;
	m->hs_at_begin = mst_handshakes(m);
	if (m->phase < m->cfg->nphases)
		snprintf(p.name, sizeof(p.name), "%s",
			 m->cfg->phases[m->phase].name);
	p.state = public_state(state);
	p.index = m->phase;
	p.count = (uint32_t)m->cfg->nphases;
	p.began_ns = m->state_began_ns;
	p.duration_ns =
		state == MST_WARMUP || state == MST_MEASURE ? lasts_ns : 0;
	shm_seg_set_phase(m->seg, &p);
}

/* ---- children ---- */

static int watch(struct mst *m, int fd, uint64_t t)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = t};

	return epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int start_kid(struct mst *m, struct kid *k)
{
	struct wrk_args args = {.cfg = m->cfg, .tls = m->tls};
	struct kid_driver d = {.program = m->driver_path,
			       .segment = cfg_segment_name(m->cfg),
			       .target = lst_target(m->lst),
			       .plain = lst_plain(m->lst),
			       .server_name = tls_srv_name(m->tls),
			       .ndrivers = m->plan.ndrivers,
			       .config_fd = m->config_fd,
			       .trust_fd = m->trust_fd};
	int rc;

	if (strcmp(m->cfg->load.server_name, "auto") != 0)
		d.server_name = m->cfg->load.server_name;
	if (k->kind == KID_WORKER) {
		args.nlisten = lst_fds(m->lst, k->number, args.listen_fd,
				       ARRAY_LEN(args.listen_fd));
		args.nplain = lst_nplain(m->lst);
		rc = kid_start_worker(k, m->seg, &args);
	} else {
		rc = kid_start_driver(k, m->seg, &d);
	}
	if (rc == 0)
		rc = watch(m, k->pid_fd, tag(TAG_PID, k->slot));
	if (rc == 0)
		rc = watch(m, k->ctl_fd, tag(TAG_CTL, k->slot));
	return rc;
}

static void tell(struct kid *k, enum ctl_kind kind, uint32_t phase)
{
	if (k->pid != 0 && ctl_send(k->ctl_fd, kind, phase, NULL) < 0)
		log_warn("child_deaf", "slot=%u kind=%d", k->slot, (int)kind);
}

void mst_end_children(struct mst *m)
{
	for (uint32_t i = 0; i < m->nkids; i++) {
		struct kid *k = &m->kids[i];
		bool drain = m->drain && k->kind == KID_WORKER;

		k->leaving = true;
		k->respawn_ns = 0;
		tell(k, drain ? CTL_DRAIN : CTL_QUIT, 0);
	}
	mst_enter(m, MST_ENDING,
		  QUIT_NS + (m->drain ? m->cfg->terminator.drain_timeout : 0));
}

static void kill_children(struct mst *m)
{
	for (uint32_t i = 0; i < m->nkids; i++) {
		m->kids[i].leaving = true;
		m->kids[i].respawn_ns = 0;
		if (m->kids[i].pid != 0)
			kill(m->kids[i].pid, SIGKILL);
	}
}

static bool all_gone(const struct mst *m)
{
	for (uint32_t i = 0; i < m->nkids; i++)
		if (m->kids[i].pid != 0)
			return false;
	return true;
}

static bool workers_ready(const struct mst *m)
{
	for (uint32_t i = 0; i < m->plan.nworkers; i++)
		if (!m->kids[i].ready)
			return false;
	return true;
}

/* A worker that died is replaced; one that dies at once is given a pause. */
static void replace_worker(struct mst *m, struct kid *k)
{
	uint64_t now = clk_now();

	if (now - k->started_ns < QUICK_DEATH_NS)
		k->quick_deaths++;
	else
		k->quick_deaths = 0;
	if (k->quick_deaths > QUICK_DEATHS_MAX) {
		mst_fail(m,
			 "worker %u died %u times in a row within a second "
			 "of its start%s%s",
			 k->number, k->quick_deaths, k->fault[0] ? ": " : "",
			 k->fault);
		return;
	}
	k->respawn_ns = k->quick_deaths == 0
				? now
				: now + (BACKOFF_NS << k->quick_deaths);
}

static void kid_died(struct mst *m, struct kid *k)
{
	char name[32], how[80];
	int status = kid_reap(k, m->seg);

	kid_name(k, name, sizeof(name));
	kid_explain(status, how, sizeof(how));
	if (k->leaving && (status == 0 || m->signals > 1)) {
		log_debug("child_end", "slot=%u", k->slot);
		return;
	}
	prg_clear(m);
	log_warn("child_died", "child=\"%s\" how=\"%s\" fault=\"%s\"", name,
		 how, k->fault);
	if (k->leaving)
		return;
	if (m->state == MST_STARTING || k->kind == KID_DRIVER) {
		res_doubt(&m->pending, RES_FATAL, "child-died", "%s %s", name,
			  how);
		mst_fail(m, "%s %s%s%s", name, how, k->fault[0] ? ": " : "",
			 k->fault);
		phs_driver_said(
			m); /* the others may have been waiting for it */
	} else if (m->state < MST_ENDING) {
		res_doubt(&m->pending, RES_DOUBT, "worker-died",
			  "%s %s and was replaced: its open connections were "
			  "lost",
			  name, how);
		tls_tickets_renew(m->tickets, k->number);
		replace_worker(m, k);
	}
}

static void kid_said(struct mst *m, struct kid *k)
{
	struct ctl_msg msg;
	int rc = ctl_recv(k->ctl_fd, &msg);

	if (rc == -EAGAIN)
		return;
	if (rc <= 0) { /* it ended; its pidfd tells the rest */
		epoll_ctl(m->epoll_fd, EPOLL_CTL_DEL, k->ctl_fd, NULL);
		return;
	}
	switch (msg.kind) {
	case CTL_READY:
		if (k->kind == KID_DRIVER && msg.phase != m->phase)
			return; /* of a phase that was given up */
		k->ready = true;
		if (k->kind == KID_DRIVER)
			phs_driver_said(m);
		else if (m->state == MST_STARTING && workers_ready(m))
			phs_workers_ready(m);
		break;
	case CTL_IDLE:
		k->idle = true;
		phs_driver_said(m);
		break;
	case CTL_FAIL:
		msg.text[CTL_TEXT_MAX - 1] = '\0';
		snprintf(k->fault, sizeof(k->fault), "%s", msg.text);
		break;
	default:
		log_warn("child_odd", "slot=%u kind=%u", k->slot, msg.kind);
	}
}

/* ---- signals and time ---- */

static void on_signal(struct mst *m)
{
	struct signalfd_siginfo si;

	if (read(m->signal_fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	prg_clear(m);
	if (si.ssi_signo == SIGHUP) {
		int rc = tls_tickets_rotate(m->tickets);

		if (rc < 0)
			log_warn("tickets_keep", "reason=\"%s\"",
				 rc == -EPERM ? "keys come from "
						"tls.tickets.key_file"
					      : strerror(-rc));
		else
			log_info("tickets_rotate", "generation=%llu",
				 (unsigned long long)tls_tickets_generation(
					 m->tickets));
		return;
	}
	if (++m->signals > 1) { /* at once */
		mst_enter(m, MST_ENDING, QUIT_NS);
		kill_children(m);
		return;
	}
	m->report->interrupted = m->cfg->nphases > 0;
	m->drain = si.ssi_signo == SIGTERM;
	phs_stop(m);
}

static void on_time(struct mst *m, uint64_t now)
{
	for (uint32_t i = 0; i < m->nkids; i++) {
		struct kid *k = &m->kids[i];

		if (k->respawn_ns == 0 || k->respawn_ns > now)
			continue;
		k->respawn_ns = 0;
		int rc = start_kid(m, k);

		if (rc < 0)
			mst_fail(m, "worker %u cannot be started again: %s",
				 k->number, strerror(-rc));
	}
	if (now >= m->tickets_due_ns)
		m->tickets_due_ns = tls_tickets_tick(m->tickets, now);
	if (m->state == MST_REST && now >= m->rest_poll_ns) {
		m->rest_poll_ns = now + REST_POLL_NS;
		phs_poll_rest(m);
	}
	if (m->state == MST_MEASURE && now >= m->slice_due_ns)
		phs_slice(m);
	if (m->deadline_ns != 0 && now >= m->deadline_ns) {
		m->deadline_ns = 0;
		if (m->state == MST_STARTING)
			mst_fail(m,
				 "the workers did not become ready within "
				 "%llu s",
				 (unsigned long long)(START_NS / NS_PER_S));
		else if (m->state == MST_ENDING)
			kill_children(m);
		else
			phs_deadline(m);
	}
	if (m->progress && now >= m->progress_ns) {
		m->progress_ns = now + PROGRESS_NS;
		prg_show(m);
	}
}

static uint64_t next_time(const struct mst *m)
{
	uint64_t t = m->tickets_due_ns;

	if (m->deadline_ns != 0)
		t = base_min(t, m->deadline_ns);
	if (m->state == MST_REST)
		t = base_min(t, m->rest_poll_ns);
	if (m->state == MST_MEASURE)
		t = base_min(t, m->slice_due_ns);
	if (m->progress)
		t = base_min(t, m->progress_ns);
	for (uint32_t i = 0; i < m->nkids; i++)
		if (m->kids[i].respawn_ns != 0)
			t = base_min(t, m->kids[i].respawn_ns);
	return t;
}

static int arm_timer(struct mst *m)
{
	struct itimerspec its = {0};
	uint64_t t = next_time(m);

	if (t != UINT64_MAX) {
		its.it_value.tv_sec = (time_t)(t / NS_PER_S);
		its.it_value.tv_nsec = (long)(t % NS_PER_S);
		if (t == 0)
			its.it_value.tv_nsec = 1;
	}
	return timerfd_settime(m->timer_fd, TFD_TIMER_ABSTIME, &its, NULL) < 0
		       ? -errno
		       : 0;
}

static void on_event(struct mst *m, uint64_t t)
{
	uint32_t index = (uint32_t)t;
	uint64_t expirations;
	struct kid *k = &m->kids[index];

	switch (t >> 32) {
	case TAG_SIGNAL:
		on_signal(m);
		break;
	case TAG_TIMER:
		if (read(m->timer_fd, &expirations, sizeof(expirations)) < 0)
			log_debug("timer_empty", "errno=%d", errno);
		break;
	case TAG_CTL:
		if (k->pid != 0)
			kid_said(m, k);
		break;
	case TAG_PID:
		if (k->pid == 0)
			break;
		kid_said(m, k); /* its last words, if they are still there */
		kid_died(m, k);
		break;
	}
}

static int loop(struct mst *m)
{
	struct epoll_event ev[64];

	while (m->state != MST_OVER) {
		int n, rc = arm_timer(m);

		if (rc < 0)
			return rc;
		n = epoll_wait(m->epoll_fd, ev, ARRAY_LEN(ev), -1);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			on_event(m, ev[i].data.u64);
		on_time(m, clk_now());
		if (m->state == MST_ENDING && all_gone(m))
			phs_ended(m);
	}
	return 0;
}

/* ---- set-up ---- */

/* Every connection costs a descriptor: take what the hard limit gives. */
static void raise_limits(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
			log_warn("nofile_limit", "errno=%d", errno);
	}
}

static void join(const struct cfg_list *list, char *buf, size_t len)
{
	buf[0] = '\0';
	for (size_t i = 0; i < list->n; i++) {
		size_t used = strlen(buf);

		snprintf(buf + used, len - used, "%s%s", i > 0 ? ":" : "",
			 list->item[i]);
	}
}

static void fill_info(struct mst *m)
{
	struct shm_info *i = &m->info;

	snprintf(i->name, sizeof(i->name), "%s", m->cfg->scenario);
	snprintf(i->version, sizeof(i->version), "%s %.20s", TTERM_VERSION,
		 base_commit());
	snprintf(i->library, sizeof(i->library), "%s", tls_library());
	snprintf(i->library_built, sizeof(i->library_built), "%s",
		 tls_library_built());
	snprintf(i->certificate, sizeof(i->certificate), "%s",
		 tls_srv_certificate(m->tls));
	join(&m->cfg->tls.groups, i->groups, sizeof(i->groups));
	join(&m->cfg->tls.versions, i->versions, sizeof(i->versions));
	join(&m->cfg->tls.ciphers, i->ciphers, sizeof(i->ciphers));
	snprintf(i->listen, sizeof(i->listen), "%s", lst_text(m->lst));
	snprintf(i->accept, sizeof(i->accept), "%s",
		 cfg_word("ACCEPT", (int)m->cfg->terminator.accept));
}

/* A file in memory that a driver inherits: the scenario, the trust anchors. */
static int text_fd(const char *name, const char *text, size_t len, int *out)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0) {
			int rc = -errno;

			close(fd);
			return rc;
		}
		done += (size_t)n;
	}
	*out = fd;
	return 0;
}

static int read_file(const char *path, char **text, size_t *len)
{
	FILE *f = fopen(path, "re"), *to;
	char buf[4096];
	size_t n;

	if (f == NULL)
		return -errno;
	to = open_memstream(text, len);
	if (to == NULL) {
		fclose(f);
		return -ENOMEM;
	}
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		fwrite(buf, 1, n, to);
	fclose(to);
	fclose(f);
	return 0;
}

static int open_driver_files(struct mst *m, char *err)
{
	size_t len, trust_len;
	char *text = NULL, *file = NULL;
	const char *trust = tls_srv_trust_pem(m->tls, &trust_len);
	FILE *f = open_memstream(&text, &len);
	int rc = f == NULL ? -ENOMEM : cfg_print(m->cfg, f);

	if (f != NULL)
		fclose(f);
	if (rc == 0)
		rc = text_fd("tterm-scenario", text, len, &m->config_fd);
	free(text);
	if (rc == 0 && m->cfg->load.ca != NULL) {
		rc = read_file(m->cfg->load.ca, &file, &trust_len);
		trust = file;
		if (rc < 0)
			snprintf(err, MST_ERR_MAX, "load.ca: %s: %s",
				 m->cfg->load.ca, strerror(-rc));
	}
	if (rc == 0)
		rc = text_fd("tterm-trust", trust, trust_len, &m->trust_fd);
	free(file);
	return rc;
}

/* tdrive stands beside tterm, in the build folder as when installed. */
static int find_driver(struct mst *m, char *err)
{
	char *slash;
	ssize_t n = readlink("/proc/self/exe", m->driver_path,
			     sizeof(m->driver_path) - 8);

	if (n < 0)
		return -errno;
	m->driver_path[n] = '\0';
	slash = strrchr(m->driver_path, '/');
	MUST(slash != NULL);
	strcpy(slash + 1, "tdrive"); /* room was kept */
	if (m->plan.ndrivers > 0 && access(m->driver_path, X_OK) < 0) {
		snprintf(err, MST_ERR_MAX,
			 "%.800s: %s: the load driver must stand beside tterm",
			 m->driver_path, strerror(errno));
		return -ENOENT;
	}
	return 0;
}

static int open_loop(struct mst *m)
{
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &m->old_mask);
	signal(SIGPIPE, SIG_IGN);
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	m->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (m->epoll_fd < 0 || m->signal_fd < 0 || m->timer_fd < 0)
		return -errno;
	rc = watch(m, m->signal_fd, tag(TAG_SIGNAL, 0));
	return rc < 0 ? rc : watch(m, m->timer_fd, tag(TAG_TIMER, 0));
}

static int make_kids(struct mst *m)
{
	m->nkids = m->plan.nworkers + m->plan.ndrivers;
	m->kids = calloc(m->nkids, sizeof(*m->kids));
	if (m->kids == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nkids; i++) {
		struct kid *k = &m->kids[i];
		bool worker = i < m->plan.nworkers;

		k->kind = worker ? KID_WORKER : KID_DRIVER;
		k->slot = i;
		k->number = worker ? i : i - m->plan.nworkers;
		k->cpu = worker ? m->plan.worker_cpu[k->number]
				: m->plan.driver_cpu[k->number];
		k->pid_fd = -1;
		k->ctl_fd = -1;
		k->idle = true;
	}
	return 0;
}

static int open_segment(struct mst *m, char *err)
{
	static const mode_t modes[] = {0600, 0640, 0644};
	const char *name = cfg_segment_name(m->cfg);
	bool took_over = false;
	pid_t owner = 0;
	int rc;

	fill_info(m);
	rc = shm_seg_create(&m->seg, name, modes[m->cfg->segment.mode],
			    m->nkids, &m->info, &took_over, &owner);
	if (rc == -EEXIST)
		snprintf(err, MST_ERR_MAX,
			 "segment %s: process %d is running under this name: "
			 "end it, or set segment.name",
			 name, (int)owner);
	else if (rc == -EPERM || rc == -EACCES)
		snprintf(err, MST_ERR_MAX,
			 "segment %s: /dev/shm/tterm.%s belongs to another "
			 "user: set segment.name",
			 name, name);
	else if (rc == -ENOSPC)
		snprintf(err, MST_ERR_MAX,
			 "segment %s: /dev/shm has no room for %u slots", name,
			 m->nkids);
	else if (rc < 0)
		snprintf(err, MST_ERR_MAX, "segment %s: /dev/shm/tterm.%s: %s",
			 name, name, strerror(-rc));
	else if (took_over)
		log_info("segment_taken_over",
			 "name=%s reason=\"its owner is "
			 "gone\"",
			 name);
	return rc;
}

static int open_all(struct mst *m, char *err)
{
	char warn[256] = "";
	int rc;

	raise_limits();
	rc = can_run(m->cfg, err, MST_ERR_MAX);
	if (rc == 0)
		rc = plan_detect(&m->cpus, "");
	if (rc == 0)
		rc = plan_make(&m->plan, m->cfg, &m->cpus, err, MST_ERR_MAX);
	if (rc == 0)
		rc = find_driver(m, err);
	if (rc == 0)
		rc = wrk_probe(m->ring, sizeof(m->ring), err, MST_ERR_MAX);
	if (rc == 0)
		rc = tls_tickets_create(&m->tickets, m->cfg, m->plan.nworkers,
					err, MST_ERR_MAX);
	if (rc == 0)
		rc = tls_srv_create(&m->tls, m->cfg, m->tickets, err,
				    MST_ERR_MAX);
	if (rc == 0 && tls_srv_warning(m->tls) != NULL)
		log_warn("tls", "reason=\"%s\"", tls_srv_warning(m->tls));
	if (rc == 0)
		rc = lst_open(&m->lst, m->cfg, m->plan.nworkers, err,
			      MST_ERR_MAX, warn, sizeof(warn));
	if (rc == 0 && warn[0] != '\0')
		log_warn("backlog_cut", "reason=\"%s\"", warn);
	if (rc == 0)
		rc = make_kids(m);
	if (rc == 0)
		rc = open_segment(m, err);
	if (rc == 0)
		rc = open_driver_files(m, err);
	if (rc == 0)
		rc = open_loop(m);
	if (rc == 0)
		rc = smp_init(&m->rest_before, m->seg);
	if (rc == 0)
		rc = smp_init(&m->begin, m->seg);
	if (rc == 0)
		rc = smp_init(&m->end, m->seg);
	return rc < 0 ? rc : smp_init(&m->rest_after, m->seg);
}

int mst_open(struct mst **out, const struct cfg *cfg, bool progress, char *err)
{
	struct mst *m = calloc(1, sizeof(*m));
	int rc;

	if (m == NULL)
		return -ENOMEM;
	m->cfg = cfg;
	m->progress = progress;
	m->config_fd = m->trust_fd = -1;
	m->epoll_fd = m->signal_fd = m->timer_fd = -1;
	err[0] = '\0';
	rc = open_all(m, err);
	if (rc < 0) {
		if (err[0] == '\0')
			snprintf(err, MST_ERR_MAX, "cannot start: %s",
				 strerror(-rc));
		mst_close(&m);
		return rc;
	}
	*out = m;
	return 0;
}

/* Three descriptors a child, one a listener, and some twenty more. */
static void explain_start(struct mst *m, int rc)
{
	struct rlimit rl = {0};

	getrlimit(RLIMIT_NOFILE, &rl);
	if (rc == -EMFILE)
		mst_fail(m,
			 "a child cannot be started: %u workers and %u drivers "
			 "need about %u file descriptors here, the hard limit "
			 "is %llu: raise it (ulimit -Hn)",
			 m->plan.nworkers, m->plan.ndrivers, 20 + 4 * m->nkids,
			 (unsigned long long)rl.rlim_max);
	else
		mst_fail(m, "a child cannot be started: %s", strerror(-rc));
}

int mst_run(struct mst *m, struct mst_report *report, char *err)
{
	int rc = 0;

	memset(report, 0, sizeof(*report));
	report->started_real_ns = clk_realtime();
	report->phase = calloc(m->cfg->nphases + 1, sizeof(*report->phase));
	if (report->phase == NULL)
		return -ENOMEM;
	m->report = report;
	m->fault[0] = '\0';
	mst_enter(m, MST_STARTING, START_NS);
	for (uint32_t i = 0; rc == 0 && i < m->nkids; i++)
		rc = start_kid(m, &m->kids[i]);
	if (rc < 0)
		explain_start(m, rc);
	rc = loop(m);
	prg_clear(m);
	if (rc < 0)
		snprintf(err, MST_ERR_MAX, "the master's loop failed: %s",
			 strerror(-rc));
	else if (m->fault[0] != '\0')
		snprintf(err, MST_ERR_MAX, "%s", m->fault);
	else
		return 0;
	return rc < 0 ? rc : -EIO;
}

void mst_report_fini(struct mst_report *report)
{
	if (report->phase != NULL)
		for (uint32_t i = 0; i < report->nphase; i++)
			res_phase_fini(&report->phase[i]);
	free(report->phase);
	report->phase = NULL;
	report->nphase = 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void mst_close(struct mst **mst)
{
	struct mst *m = *mst;

	if (m == NULL)
		return;
	for (uint32_t i = 0; m->kids != NULL && i < m->nkids; i++)
		if (m->kids[i].pid != 0) {
			kill(m->kids[i].pid, SIGKILL);
			kid_reap(&m->kids[i], m->seg);
		}
	if (m->seg != NULL) {
		smp_fini(&m->rest_before);
		smp_fini(&m->begin);
		smp_fini(&m->end);
		smp_fini(&m->rest_after);
	}
	shm_seg_close(&m->seg);
	lst_close(&m->lst);
	tls_srv_close(&m->tls);
	tls_tickets_close(&m->tickets);
	close_fd(m->config_fd);
	close_fd(m->trust_fd);
	close_fd(m->epoll_fd);
	close_fd(m->timer_fd);
	if (m->signal_fd >= 0) {
		close(m->signal_fd);
		sigprocmask(SIG_SETMASK, &m->old_mask, NULL);
	}
	free(m->kids);
	free(m);
	*mst = NULL;
}

const struct shm_seg *mst_seg(const struct mst *m)
{
	return m->seg;
}

const struct plan *mst_plan(const struct mst *m)
{
	return &m->plan;
}

const struct plan_cpus *mst_cpus(const struct mst *m)
{
	return &m->cpus;
}

const char *mst_ring(const struct mst *m)
{
	return m->ring;
}

uint32_t mst_backlog(const struct mst *m)
{
	return lst_backlog(m->lst);
}
