/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_managed.h"

#include "config/cfg.h"
#include "shm/clk.h"
#include "shm/ctl.h"
#include "shm/log.h"
#include "shm/seg.h"
#include "tools/tdrive_args.h"
#include "tools/tdrive_load.h"
#include "tools/tdrive_phase.h"
#include "tools/tdrive_tls.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

enum duty {
	RESTING,
	PRIMING,
	RUNNING,
	STOPPING,
	LEAVING
};

struct managed {
	const struct args *args; /* borrows */
	struct cfg *cfg;	 /* owns, as all below */
	struct shm_seg *seg;
	struct ctls *tls;
	struct load *load;
	struct addr_target source[ADDR_LIST_MAX];
	enum duty duty;
	uint32_t phase;
	char err[CTL_TEXT_MAX];
};

static int fail(struct managed *m, const char *what, int rc)
{
	snprintf(m->err, sizeof(m->err), "%s: %s", what, strerror(-rc));
	return rc;
}

/* ---- set-up ---- */

static void fd_path(char *path, size_t len, int fd)
{
	snprintf(path, len, "/proc/self/fd/%d", fd);
}

static int load_config(struct managed *m)
{
	char path[64], *text = NULL;
	size_t len = 0;
	FILE *errs = open_memstream(&text, &len);
	int rc;

	if (errs == NULL)
		return fail(m, "scenario", -errno);
	fd_path(path, sizeof(path), m->args->config_fd);
	rc = cfg_load(&m->cfg, path, NULL, 0, errs);
	fclose(errs);
	if (rc != 0)
		snprintf(m->err, sizeof(m->err), "scenario: %.*s",
			 (int)strcspn(text, "\n"), text);
	free(text);
	if (rc == 0 && m->cfg->tls.client_auth == CFG_CLIENT_AUTH_REQUIRED &&
	    m->cfg->load.certificate == NULL) {
		snprintf(m->err, sizeof(m->err),
			 "tls.client_auth: required needs a client "
			 "certificate: set load.certificate and load.key");
		rc = -EINVAL;
	}
	return rc;
}

static int join_segment(struct managed *m)
{
	int rc = shm_seg_join(&m->seg, m->args->segment);

	if (rc != 0)
		return fail(m, "segment", rc);
	if (m->args->slot >= shm_seg_nslots(m->seg)) {
		snprintf(m->err, sizeof(m->err),
			 "segment: no slot %u, there are %u", m->args->slot,
			 shm_seg_nslots(m->seg));
		return -ERANGE;
	}
	return 0;
}

static int pin(struct managed *m)
{
	char what[32];
	cpu_set_t set;

	if (m->args->cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET((size_t)m->args->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0)
		return 0;
	snprintf(what, sizeof(what), "CPU %d", m->args->cpu);
	return fail(m, what, -errno);
}

static const struct cfg_list *either(const struct cfg_list *ours,
				     const struct cfg_list *theirs)
{
	return ours->n > 0 ? ours : theirs;
}

/* Is there anything in the file of trusted certificates? */
static bool has_trust(const struct managed *m)
{
	struct stat st;

	return fstat(m->args->ca_fd, &st) != 0 || st.st_size > 0;
}

static int open_tls(struct managed *m)
{
	const struct cfg_tls *tls = &m->cfg->tls;
	const struct cfg_load *load = &m->cfg->load;
	char path[64];
	struct ctls_want want = {
		.versions = *either(&load->versions, &tls->versions),
		.groups = *either(&load->groups, &tls->groups),
		/* With its own list the driver alone decides what it offers. */
		.server_chooses = load->groups.n == 0 && !m->cfg->has_target,
		.ciphers = *either(&load->ciphers, &tls->ciphers),
		.sigalgs = load->sigalgs,
		.alpn = load->alpn,
		.providers = load->providers,
		.certificate = load->certificate,
		.key = load->key,
		.ca_path = has_trust(m) ? path : NULL,
		.name = m->args->name};

	fd_path(path, sizeof(path), m->args->ca_fd);
	return ctls_open(&m->tls, &want, m->err, sizeof(m->err));
}

static int resolve(struct managed *m, const char *text, struct addr_target *out)
{
	struct addr_name name;
	int rc = addr_parse(&name, text, m->err, sizeof(m->err));

	if (rc == 0)
		rc = addr_resolve(out, &name, m->err, sizeof(m->err));
	return rc;
}

static enum load_tickets tickets_of(const struct cfg *cfg)
{
	const struct cfg_tickets *tickets = &cfg->tls.tickets;

	if (cfg->has_target)
		return LOAD_TICKETS_LEARN;
	return tickets->enabled && tickets->per_handshake > 0
		       ? LOAD_TICKETS_WAIT
		       : LOAD_TICKETS_NONE;
}

static int open_load(struct managed *m)
{
	const struct cfg *cfg = m->cfg;
	struct load_want want = {.host = m->args->name,
				 .driver = m->args->number,
				 .drivers = m->args->drivers,
				 .timeout_ns = cfg->load.timeout,
				 .ticket_wait_ns = cfg->load.ticket_wait,
				 .tickets = tickets_of(cfg),
				 .source = m->source,
				 .tls = m->tls,
				 .slot = shm_seg_slot(m->seg, m->args->slot)};
	int rc = resolve(m, m->args->target, &want.target);

	phase_seats(cfg, m->args->drivers, m->args->number, &want.seats,
		    &want.seats_max);
	if (rc == 0 && m->args->plain != NULL)
		rc = resolve(m, m->args->plain, &want.plain);
	/* A target is one address; which it speaks the phase knows. */
	else if (rc == 0 && cfg->has_target)
		want.plain = want.target;
	if (rc == 0)
		rc = addr_sources(m->source, &want.nsources, &cfg->load.source,
				  m->err, sizeof(m->err));
	if (rc == 0)
		rc = load_open(&m->load, &want, m->err, sizeof(m->err));
	if (rc != 0)
		return rc;
	load_watch(m->load, m->args->ctl_fd);
	atomic_store_explicit(&want.slot->state, SHM_SLOT_RUNNING,
			      memory_order_relaxed);
	return 0;
}

static int set_up(struct managed *m)
{
	int rc = load_config(m);

	if (rc == 0)
		rc = join_segment(m);
	if (rc == 0)
		rc = pin(m);
	if (rc == 0)
		rc = open_tls(m);
	if (rc == 0)
		rc = open_load(m);
	return rc;
}

/* ---- the loop ---- */

static int answer(struct managed *m, enum ctl_kind kind)
{
	int rc = ctl_send(m->args->ctl_fd, kind, m->phase, NULL);

	if (rc == -EPIPE) { /* the master is gone */
		m->duty = LEAVING;
		return 0;
	}
	return rc != 0 ? fail(m, "control channel", rc) : 0;
}

static int start(struct managed *m, uint32_t phase)
{
	const struct cfg_phase *p;
	struct load_phase want;
	char why[256];
	int rc;

	if (phase >= m->cfg->nphases) {
		snprintf(m->err, sizeof(m->err), "no phase %u, there are %zu",
			 phase, m->cfg->nphases);
		return -ERANGE;
	}
	p = &m->cfg->phases[phase];
	m->phase = phase;
	m->duty = PRIMING;
	want = phase_of(m->cfg, p, m->args->drivers, m->args->number);
	rc = load_start(m->load, &want, why, sizeof(why));
	if (rc != 0)
		snprintf(m->err, sizeof(m->err), "phase %.63s: %s", p->name,
			 why);
	return rc;
}

static int obey(struct managed *m, const struct ctl_msg *msg)
{
	switch (msg->kind) {
	case CTL_START:
		return start(m, msg->phase);
	case CTL_STOP:
		m->duty = STOPPING;
		load_stop(m->load);
		return 0;
	case CTL_QUIT:
		m->duty = LEAVING;
		return 0;
	default:
		snprintf(m->err, sizeof(m->err),
			 "control channel: message of kind %u is not for a "
			 "driver",
			 msg->kind);
		return -EPROTO;
	}
}

static int listen_to_master(struct managed *m)
{
	struct ctl_msg msg;
	int rc;

	while ((rc = ctl_recv(m->args->ctl_fd, &msg)) == 1) {
		rc = obey(m, &msg);
		if (rc != 0 || m->duty == LEAVING)
			return rc;
	}
	if (rc == -EAGAIN)
		return 0;
	if (rc != 0 && rc != -ECONNRESET)
		return fail(m, "control channel", rc);
	m->duty = LEAVING;
	return 0;
}

/* A master that does not read misses lines, and nothing it decides by. */
static void pass_notes(struct managed *m)
{
	static const char record[] = "record ";
	char note[LOAD_NOTE_MAX];

	while (load_note(m->load, note)) {
		bool is_record = strncmp(note, record, strlen(record)) == 0;

		(void)ctl_send(m->args->ctl_fd,
			       is_record ? CTL_RECORD : CTL_NOTE, m->phase,
			       note + (is_record ? strlen(record) : 0));
	}
}

/* Says what the master waits for, as soon as it is so. */
static int report(struct managed *m)
{
	pass_notes(m);
	if (m->duty == PRIMING && load_ready(m->load)) {
		m->duty = RUNNING;
		return answer(m, CTL_READY);
	}
	if (m->duty == STOPPING && load_idle(m->load)) {
		m->duty = RESTING;
		return answer(m, CTL_IDLE);
	}
	return 0;
}

static int serve(struct managed *m)
{
	int rc = 0;

	while (rc == 0 && m->duty != LEAVING) {
		uint64_t until = m->duty == PRIMING ? load_ready_by(m->load)
						    : UINT64_MAX;

		if (load_turn(m->load, until) != 0)
			rc = listen_to_master(m);
		if (rc == 0)
			rc = report(m);
	}
	return rc;
}

int managed_run(const struct args *args)
{
	struct managed m = {.args = args};
	char role[32];
	int rc;

	/* The master decides when we end, and we end with it. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(role, sizeof(role), "driver/%u", args->number);
	log_set_role(role);
	rc = set_up(&m);
	if (rc == 0)
		rc = serve(&m);
	if (rc != 0 && ctl_send(args->ctl_fd, CTL_FAIL, m.phase, m.err) != 0)
		log_error("driver_failed", "why=\"%s\"", m.err);
	load_close(&m.load);
	ctls_close(&m.tls);
	shm_seg_close(&m.seg);
	cfg_free(&m.cfg);
	return rc == 0 ? EXIT_GOOD : EXIT_RUN;
}
