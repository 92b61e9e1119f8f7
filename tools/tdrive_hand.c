/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_hand.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "shm/fmt.h"
#include "shm/seg.h"
#include "tools/tdrive_args.h"
#include "tools/tdrive_load.h"
#include "tools/tdrive_phase.h"
#include "tools/tdrive_report.h"
#include "tools/tdrive_tls.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* As the scenario's default, load.ticket_wait. */
#define TICKET_WAIT_NS (500 * NS_PER_MS)

/* As the scenario's, of kind bulk. */
#define BULK_BODY (UINT64_C(64) << 20)

struct hand {
	const struct args *args; /* borrows */
	struct addr_name host;
	struct shm_slot *slot; /* owns, as all below */
	struct ctls *tls;
	struct load *load;
	int signal_fd;
	uint32_t signals; /* SIGINT or SIGTERM so far */
	struct report_take begin, from, to, end;
	struct load_phase phase;
	struct addr_target source[ADDR_LIST_MAX];
	char note[REPORT_NOTES][LOAD_NOTE_MAX];
	uint32_t notes;
	char err[512];
};

/* ---- set-up ---- */

static int make_slot(struct hand *h)
{
	size_t size = sizeof(*h->slot);

	/* A multiple of its alignment, as aligned_alloc() wants it. */
	h->slot = aligned_alloc(_Alignof(struct shm_slot), size);
	if (h->slot == NULL) {
		snprintf(h->err, sizeof(h->err), "out of memory");
		return -ENOMEM;
	}
	memset(h->slot, 0, size);
	return 0;
}

static int bad_list(struct hand *h, const char *option)
{
	snprintf(h->err, sizeof(h->err),
		 "--%s: a name is missing between two commas", option);
	return -EINVAL;
}

/* Colons stand between names too where the library has them so. */
static int cut_lists(struct hand *h, struct ctls_want *want)
{
	const struct args *a = h->args;
	const struct {
		const char *option, *text, *separators;
		struct cfg_list *list;
	} lists[] = {
		{"versions", a->versions, ",:", &want->versions},
		{"groups", a->groups, ",:", &want->groups},
		{"ciphers", a->ciphers, ",:", &want->ciphers},
		{"sigalgs", a->sigalgs, ",:", &want->sigalgs},
		{"alpn", a->alpn, ",", &want->alpn},
		{"provider", a->providers, ",", &want->providers},
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (args_list(lists[i].list, lists[i].text,
			      lists[i].separators) != 0)
			return bad_list(h, lists[i].option);
	return 0;
}

static int open_tls(struct hand *h)
{
	const struct args *a = h->args;
	struct ctls_want want = {.ca_path = a->ca,
				 .certificate = a->certificate,
				 .key = a->key,
				 .name = a->name != NULL ? a->name
							 : h->host.host,
				 /* without TLS nothing is verified */
				 .insecure = a->insecure || h->host.plain};
	int rc = cut_lists(h, &want);

	if (rc == 0)
		rc = ctls_open(&h->tls, &want, h->err, sizeof(h->err));
	args_list_free(&want.versions);
	args_list_free(&want.groups);
	args_list_free(&want.ciphers);
	args_list_free(&want.sigalgs);
	args_list_free(&want.alpn);
	args_list_free(&want.providers);
	return rc;
}

static int open_signals(struct hand *h)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	h->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (h->signal_fd >= 0)
		return 0;
	snprintf(h->err, sizeof(h->err), "signalfd: %s", strerror(errno));
	return -errno;
}

static int cut_sources(struct hand *h, uint32_t *n)
{
	struct cfg_list list;
	int rc = args_list(&list, h->args->source, ",");

	if (rc != 0)
		return bad_list(h, "source");
	rc = addr_sources(h->source, n, &list, h->err, sizeof(h->err));
	args_list_free(&list);
	return rc;
}

/* What the arguments want, as the only one of one driver. */
static void make_phase(struct hand *h)
{
	struct cfg cfg = {.load = {.connections = h->args->connections}};
	struct cfg_phase phase = h->args->phase;

	if (h->host.plain)
		phase.transport = CFG_TRANSPORT_TCP;
	if (phase.kind == CFG_KIND_BULK && phase.body == 0 &&
	    phase.path == NULL)
		phase.body = BULK_BODY;
	h->phase = phase_of(&cfg, &phase, 1, 0);
}

static int open_load(struct hand *h)
{
	struct load_want want = {.host = h->args->name != NULL ? h->args->name
							       : h->host.host,
				 .seats = h->phase.seats,
				 .seats_max = h->phase.most,
				 .timeout_ns = h->args->timeout_ns,
				 .ticket_wait_ns = TICKET_WAIT_NS,
				 .tickets = LOAD_TICKETS_LEARN,
				 .source = h->source,
				 .tls = h->tls,
				 .slot = h->slot};
	int rc = addr_resolve(&want.target, &h->host, h->err, sizeof(h->err));

	want.plain = want.target; /* which it speaks the phase knows */
	if (rc == 0)
		rc = cut_sources(h, &want.nsources);
	if (rc == 0)
		rc = load_open(&h->load, &want, h->err, sizeof(h->err));
	if (rc == 0)
		load_watch(h->load, h->signal_fd);
	return rc;
}

/* ---- the run ---- */

static void take_signals(struct hand *h)
{
	struct signalfd_siginfo info;

	while (read(h->signal_fd, &info, sizeof(info)) == sizeof(info))
		h->signals++;
}

/* The last of them stay: a ramp's end matters more than its beginning. */
static void take_notes(struct hand *h)
{
	if (h->notes == REPORT_NOTES) {
		memmove(h->note[0], h->note[1],
			sizeof(h->note) - sizeof(h->note[0]));
		h->notes--;
	}
	if (load_note(h->load, h->note[h->notes])) {
		h->notes++;
		take_notes(h);
	}
}

static void turn(struct hand *h, uint64_t until_ns)
{
	if (load_turn(h->load, until_ns) != 0)
		take_signals(h);
	take_notes(h);
}

static void live_line(const char *what, const char *of, uint64_t done,
		      uint64_t ns, uint64_t left_ns)
{
	char rate[FMT_LEN];

	if (isatty(STDERR_FILENO) != 1)
		return;
	fprintf(stderr, "\r\033[K%s: %llu s left, %s %s/s", what,
		(unsigned long long)((left_ns + NS_PER_S / 2) / NS_PER_S),
		fmt_rate(rate, (double)done * (double)NS_PER_S / (double)ns, 9),
		of);
	fflush(stderr);
}

static uint64_t value(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* What the live line counts: the smallest piece of the phase's work. */
static const char *work(const struct hand *h, uint64_t *done)
{
	const struct ctr_block *ctr = &h->slot->ctr;

	if (h->phase.requests > 0) {
		*done = value(&ctr->requests);
		return "requests";
	}
	if (h->phase.transport == CFG_TRANSPORT_TCP) {
		*done = value(&ctr->conn_connected);
		return "connections";
	}
	*done = value(&ctr->hs_full) + value(&ctr->hs_resumed);
	return "handshakes";
}

static bool forever(const struct hand *h)
{
	(void)h;
	return false;
}

static bool ready(const struct hand *h)
{
	return load_ready(h->load);
}

/* Turns until `over`, a signal, or the end of `ns`. */
static void go_on(struct hand *h, const char *what, uint64_t ns,
		  bool (*over)(const struct hand *h))
{
	uint64_t start = clk_now(), end = start + ns, tick = start + NS_PER_S;
	uint64_t before, done, shown = start;
	const char *of = work(h, &before);

	for (uint64_t now = start; now < end && h->signals == 0 && !over(h);
	     now = clk_now()) {
		turn(h, base_min(end, tick));
		if (clk_now() < tick)
			continue;
		work(h, &done);
		live_line(what, of, done - before, tick - shown,
			  end > tick ? end - tick : 0);
		before = done;
		shown = tick;
		tick += NS_PER_S;
	}
}

static int measure(struct hand *h)
{
	const struct args *a = h->args;
	int rc;

	report_take(&h->begin, h->slot);
	rc = load_start(h->load, &h->phase, h->err, sizeof(h->err));
	if (rc != 0)
		return rc;
	if (!load_ready(h->load))
		go_on(h, "getting ready", load_ready_by(h->load) - clk_now(),
		      ready);
	go_on(h, "warm-up", a->warmup_ns, forever);
	report_take(&h->from, h->slot);
	go_on(h, "measuring", a->duration_ns, forever);
	report_take(&h->to, h->slot);
	if (isatty(STDERR_FILENO) == 1)
		fputs("\r\033[K", stderr);
	load_stop(h->load);
	/* A second signal ends it without waiting for the rest. */
	while (!load_idle(h->load) && h->signals < 2)
		turn(h, UINT64_MAX);
	report_take(&h->end, h->slot);
	return 0;
}

static int print(struct hand *h)
{
	const struct args *a = h->args;
	struct report r = {.url = a->url,
			   .library = ctls_library(),
			   .ring = load_ring_mode(h->load),
			   .phase = &h->phase,
			   .note = h->note,
			   .notes = h->notes,
			   .asked_ns = a->duration_ns,
			   .interrupted = h->signals > 0};
	int verdict, rc = 0;

	report_diff(&r.took, &h->to, &h->from);
	report_diff(&r.whole, &h->end, &h->begin);
	verdict = report_verdict(&r, h->err, sizeof(h->err));
	if (a->json)
		rc = report_json(&r, stdout);
	else
		report_table(&r, stdout);
	if (rc != 0 || fflush(stdout) != 0) {
		fprintf(stderr, "tdrive: standard output: %s\n",
			strerror(errno));
		return EXIT_RUN;
	}
	return verdict;
}

static int set_up(struct hand *h)
{
	int rc = addr_parse(&h->host, h->args->url, h->err, sizeof(h->err));

	if (rc == 0)
		make_phase(h);
	if (rc == 0)
		rc = make_slot(h);
	if (rc == 0)
		rc = open_tls(h);
	if (rc == 0)
		rc = open_signals(h);
	if (rc == 0)
		rc = open_load(h);
	return rc;
}

int hand_run(const struct args *args)
{
	/* Large: four copies of all histograms. */
	struct hand *h = calloc(1, sizeof(*h));
	int status;

	if (h == NULL)
		return EXIT_RUN;
	h->args = args;
	h->signal_fd = -1;
	status = set_up(h);
	if (status == 0)
		status = measure(h);
	if (status == 0) {
		status = print(h);
	} else {
		fprintf(stderr, "tdrive: %s\n", h->err);
		status = status == -EINVAL ? EXIT_USAGE : EXIT_RUN;
	}
	load_close(&h->load);
	ctls_close(&h->tls);
	if (h->signal_fd >= 0)
		close(h->signal_fd);
	free(h->slot);
	free(h);
	return status;
}
