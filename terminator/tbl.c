/* SPDX-License-Identifier: MIT */
#include "terminator/tbl.h"

#include "shm/base.h"
#include "shm/fmt.h"

#include <math.h>
#include <string.h>

struct tbl {
	FILE *out;
	const struct mst *mst;
	const struct shm_seg *seg;
	const struct cfg *cfg;
	const struct mst_report *report;
	struct tbl_style style;
};

static const char *sign(const struct tbl *t, const char *utf8,
			const char *ascii)
{
	return t->style.utf8 ? utf8 : ascii;
}

/* printf pads by bytes; a cell is padded by columns. */
static void cell(const struct tbl *t, const char *text, int width)
{
	int pad = width - (int)fmt_columns(text);

	fprintf(t->out, "%*s%s", pad > 0 ? pad : 0, "", text);
}

static void paint(const struct tbl *t, const char *code)
{
	if (t->style.colour)
		fputs(code, t->out);
}

static const char *ns_cell(char buf[static FMT_LEN], double ns, bool ms)
{
	if (!isfinite(ns))
		return "n/a";
	return ms ? fmt_ms(buf, (uint64_t)ns) : fmt_us(buf, ns);
}

/* Half a row: /s, CPU us, crypto us, p50 ms, p99 ms, core/s. 41 columns. */
static void half(const struct tbl *t, const struct res_cost *c)
{
	char b[FMT_LEN];

	cell(t, c->n > 0 ? fmt_rate(b, c->per_s, 6) : "n/a", 7);
	cell(t, ns_cell(b, c->whole_ns, false), 7);
	cell(t, ns_cell(b, c->crypto_ns, false), 7);
	cell(t, ns_cell(b, c->p50_ns, true), 7);
	cell(t, ns_cell(b, c->p99_ns, true), 7);
	cell(t, c->n > 0 ? fmt_rate(b, c->core_per_s, 6) : "n/a", 7);
}

static void half_head(const struct tbl *t)
{
	cell(t, "/s", 7);
	cell(t, sign(t, "CPU µs", "CPU us"), 7);
	cell(t, "crypto", 7);
	cell(t, "p50 ms", 7);
	cell(t, "p99 ms", 7);
	cell(t, "core/s", 7);
}

static void saved(const struct tbl *t, const struct res_cost *f,
		  const struct res_cost *r)
{
	char b[FMT_LEN], text[FMT_LEN + 4];
	double share = 100 * res_saved(f, r);

	snprintf(text, sizeof(text), "%s %%", fmt_fixed(b, share, 0));
	cell(t, isfinite(share) ? text : "n/a", 6);
}

/* Name and CPU of a row, 10 columns. */
static void label(const struct tbl *t, const char *name, int cpu)
{
	if (cpu >= 0)
		fprintf(t->out, "%-6s%4d", name, cpu);
	else
		fprintf(t->out, "%-10s", name);
}

static void pair_row(const struct tbl *t, const char *name, int cpu,
		     const struct res_cost *f, const struct res_cost *r,
		     bool with_saved)
{
	label(t, name, cpu);
	half(t, f);
	half(t, r);
	if (with_saved)
		saved(t, f, r);
	fputc('\n', t->out);
}

static struct res_cost cost_of(const struct tbl *t, const struct res_phase *p,
			       uint32_t slot, enum res_kind kind)
{
	return res_cost(t->seg, &p->measured.snap[slot],
			p->measured.cpu_ns[slot], p->measured.taken_ns, kind);
}

static struct res_cost total_of(const struct tbl *t, const struct res_phase *p,
				bool drivers, enum res_kind kind)
{
	return res_cost(t->seg, drivers ? &p->drivers : &p->workers,
			drivers ? p->drivers_cpu_ns : p->workers_cpu_ns,
			p->measured.taken_ns, kind);
}

static void pair_head(const struct tbl *t)
{
	paint(t, "\033[1m");
	fprintf(t->out, "%-10s%42s%42s%6s\n", "", "full handshakes",
		"resumed handshakes", "saved");
	fprintf(t->out, "%-6s%4s", "worker", "cpu");
	half_head(t);
	half_head(t);
	cell(t, "by it", 6);
	paint(t, "\033[0m");
	fputc('\n', t->out);
}

/* Side by side; `f` and `r` may be the same phase. */
static void pair_table(const struct tbl *t, const struct res_phase *f,
		       const struct res_phase *r)
{
	const struct plan *plan = mst_plan(t->mst);
	struct res_cost a, b;
	char name[16];

	pair_head(t);
	for (uint32_t i = 0; i < plan->nworkers; i++) {
		a = cost_of(t, f, i, RES_FULL);
		b = cost_of(t, r, i, RES_RESUMED);
		snprintf(name, sizeof(name), "%3u", i);
		pair_row(t, name, plan->worker_cpu[i], &a, &b, true);
	}
	a = total_of(t, f, false, RES_FULL);
	b = total_of(t, r, false, RES_RESUMED);
	paint(t, "\033[1m");
	pair_row(t, "  all", -1, &a, &b, true);
	paint(t, "\033[0m");
	if (plan->ndrivers == 0 || f->cfg == NULL)
		return;
	a = total_of(t, f, true, RES_FULL);
	b = total_of(t, r, true, RES_RESUMED);
	paint(t, "\033[2m");
	pair_row(t, "drivers", -1, &a, &b, false);
	paint(t, "\033[0m");
}

static void single_row(const struct tbl *t, const char *name, int cpu,
		       const struct shm_snap *snap, uint64_t cpu_ns,
		       uint64_t window_ns, const struct res_cost *c)
{
	char b[FMT_LEN];

	label(t, name, cpu);
	cell(t, fmt_fixed(b, 100 * (double)cpu_ns / (double)window_ns, 0), 7);
	half(t, c);
	cell(t, fmt_count(b, shm_snap_ctr(t->seg, snap, CTR_ID_hs_full)), 11);
	cell(t, fmt_count(b, shm_snap_ctr(t->seg, snap, CTR_ID_hs_resumed)),
	     11);
	cell(t, fmt_count(b, shm_snap_failed(t->seg, snap)), 8);
	fputc('\n', t->out);
}

static const char *handshake_words(const struct cfg_phase *p)
{
	if (p->transport == CFG_TRANSPORT_TCP)
		return p->requests > 0 ? "requests without TLS"
				       : "connections without TLS";
	if (!res_of_handshakes(p))
		return "requests on kept TLS connections";
	switch (p->handshake) {
	case CFG_HANDSHAKE_RESUMED:
		return "resumed handshakes";
	case CFG_HANDSHAKE_MIX:
		return "full and resumed handshakes mixed";
	case CFG_HANDSHAKE_REFUSED:
		return "full handshakes after a refused ticket";
	case CFG_HANDSHAKE_FULL:
		break;
	}
	return "full handshakes";
}

/* "NAME: ..., closed loop of 32 connections, 5.0 s" */
static void phase_title(const struct tbl *t, const struct res_phase *p)
{
	uint64_t n = p->cfg->connections != CFG_AUTO ? p->cfg->connections
						     : t->cfg->load.connections;
	char a[FMT_LEN], b[FMT_LEN];

	paint(t, "\033[1m");
	fprintf(t->out, "%s: %s", p->cfg->name, handshake_words(p->cfg));
	if (p->cfg->rate > 0)
		fprintf(t->out, ", open loop at %s/s",
			fmt_rate(a, (double)p->cfg->rate / 1000, 9));
	else
		fprintf(t->out, ", closed loop of %s connections",
			fmt_count(a, n));
	fprintf(t->out, ", %s s\n",
		fmt_fixed(b, (double)p->measured.taken_ns / 1e9, 1));
	paint(t, "\033[0m");
}

/* A histogram of the drivers as "p50 / p99 ms", or "n/a". */
static const char *two(const struct tbl *t, const struct res_phase *p,
		       enum hist_id id, char buf[static 2 * FMT_LEN])
{
	const struct hist_view *h = shm_snap_hist(t->seg, &p->drivers, id);
	char a[FMT_LEN], b[FMT_LEN];

	if (h == NULL || hist_count(h) == 0)
		return "n/a";
	snprintf(buf, 2 * FMT_LEN, "%s / %s ms",
		 fmt_ms(a, hist_percentile(h, 50)),
		 fmt_ms(b, hist_percentile(h, 99)));
	return buf;
}

static bool has(const struct tbl *t, const struct res_phase *p, enum hist_id id)
{
	const struct hist_view *h = shm_snap_hist(t->seg, &p->drivers, id);

	return h != NULL && hist_count(h) > 0;
}

/* What the clients saw: only of what this phase has. */
static void clients(const struct tbl *t, const struct res_phase *p)
{
	uint64_t due = shm_snap_ctr(t->seg, &p->drivers, CTR_ID_arrivals);
	uint64_t late = shm_snap_ctr(t->seg, &p->drivers, CTR_ID_arrivals_late);
	uint64_t asked = shm_snap_ctr(t->seg, &p->drivers, CTR_ID_requests);
	char a[2 * FMT_LEN], b[2 * FMT_LEN], c[FMT_LEN];

	fprintf(t->out, "%-9sconnect p50 / p99 %s", "clients",
		two(t, p, HIST_ID_connect_time, a));
	if (p->cfg->rate > 0)
		fprintf(t->out,
			", whole connection from when it was due %s\n"
			"%9s%s were due, %s of them begun late",
			two(t, p, HIST_ID_conn_latency, b), "",
			fmt_count(a, due), fmt_count(c, late));
	if (has(t, p, HIST_ID_first_byte))
		fprintf(t->out, ", first byte %s",
			two(t, p, HIST_ID_first_byte, a));
	if (asked > 0)
		fprintf(t->out, "\n%9s%s requests/s, p50 / p99 %s", "",
			fmt_rate(c,
				 (double)asked * 1e9 /
					 (double)p->measured.taken_ns,
				 9),
			two(t, p, HIST_ID_request_time, a));
	fputs("\n\n", t->out);
}

static void work_row(const struct tbl *t, const char *name, int cpu,
		     const struct res_phase *p, const struct shm_snap *snap,
		     uint64_t cpu_ns)
{
	uint64_t window = p->measured.taken_ns, n = res_work(t->seg, p, snap);
	double cost = res_work_ns(t->seg, p, snap, cpu_ns);
	char b[FMT_LEN];

	label(t, name, cpu);
	cell(t, fmt_fixed(b, 100 * (double)cpu_ns / (double)window, 0), 7);
	cell(t, fmt_rate(b, (double)n * 1e9 / (double)window, 9), 11);
	cell(t, ns_cell(b, cost, false), 9);
	cell(t, fmt_rate(b, 1e9 / cost, 9), 11);
	cell(t, fmt_count(b, n), 13);
	/* Drivers know a connection's bytes when it ends. */
	if (snap->role == SHM_WORKER)
		cell(t,
		     fmt_bytes(b, (double)shm_snap_ctr(t->seg, snap,
						       CTR_ID_bytes_out) *
					  1e9 / (double)window),
		     13);
	fputc('\n', t->out);
}

/* A phase of requests, or of connections without TLS. */
static void work_table(const struct tbl *t, const struct res_phase *p)
{
	const struct plan *plan = mst_plan(t->mst);
	char name[16];

	paint(t, "\033[1m");
	fprintf(t->out, "%-6s%4s%7s%11s%*s%11s%13s%13s\n", "worker", "cpu",
		"busy %", p->cfg->requests > 0 ? "requests/s" : "conns/s",
		t->style.utf8 ? 10 : 9, sign(t, "CPU µs", "CPU us"), "core/s",
		p->cfg->requests > 0 ? "requests" : "connections", "sent/s");
	paint(t, "\033[0m");
	for (uint32_t i = 0; i < plan->nworkers; i++) {
		snprintf(name, sizeof(name), "%3u", i);
		work_row(t, name, plan->worker_cpu[i], p, &p->measured.snap[i],
			 p->measured.cpu_ns[i]);
	}
	paint(t, "\033[1m");
	work_row(t, "  all", -1, p, &p->workers, p->workers_cpu_ns);
	paint(t, "\033[0m\033[2m");
	work_row(t, "drivers", -1, p, &p->drivers, p->drivers_cpu_ns);
	paint(t, "\033[0m");
	clients(t, p);
}

/* One phase, one kind. */
static void single_table(const struct tbl *t, const struct res_phase *p)
{
	const struct plan *plan = mst_plan(t->mst);
	bool resumed = p->cfg->handshake == CFG_HANDSHAKE_RESUMED;
	enum res_kind kind = resumed ? RES_RESUMED : RES_FULL;
	struct res_cost c;
	char name[16];

	phase_title(t, p);
	if (!res_of_handshakes(p->cfg)) {
		work_table(t, p);
		return;
	}
	if (p->cfg->handshake == CFG_HANDSHAKE_MIX) {
		pair_table(t, p, p);
		clients(t, p);
		return;
	}
	paint(t, "\033[1m");
	fprintf(t->out, "%-6s%4s", "worker", "cpu");
	cell(t, "busy %", 7);
	half_head(t);
	fprintf(t->out, "%11s%11s%8s\n", "full", "resumed", "failed");
	paint(t, "\033[0m");
	for (uint32_t i = 0; i < plan->nworkers; i++) {
		c = cost_of(t, p, i, kind);
		snprintf(name, sizeof(name), "%3u", i);
		single_row(t, name, plan->worker_cpu[i], &p->measured.snap[i],
			   p->measured.cpu_ns[i], p->measured.taken_ns, &c);
	}
	c = total_of(t, p, false, kind);
	paint(t, "\033[1m");
	single_row(t, "  all", -1, &p->workers, p->workers_cpu_ns,
		   p->measured.taken_ns, &c);
	paint(t, "\033[0m");
	c = total_of(t, p, true, kind);
	paint(t, "\033[2m");
	single_row(t, "drivers", -1, &p->drivers, p->drivers_cpu_ns,
		   p->measured.taken_ns, &c);
	paint(t, "\033[0m");
	clients(t, p);
}

/* ---- head and foot ---- */

#define WIDTH  100
#define INDENT 10 /* of lines that go on */
#define LABEL  9

/* Words from column `at` on, folded so that none reaches beyond WIDTH. */
static void fold(const struct tbl *t, const char *text, size_t at)
{
	bool first = true;

	while (*text != '\0') {
		size_t len = strcspn(text, " ");
		char word[128];

		snprintf(word, sizeof(word), "%.*s", (int)len, text);
		if (at + 1 + fmt_columns(word) > WIDTH) {
			fprintf(t->out, "\n%*s", INDENT, "");
			at = INDENT;
			first = true;
		}
		fprintf(t->out, "%s%s", first ? "" : " ", word);
		at += fmt_columns(word) + (first ? 0 : 1);
		first = false;
		text += len + (text[len] == ' ' ? 1 : 0);
	}
	fputc('\n', t->out);
}

/* What was really negotiated, by the workers' counts. */
static const char *version_of(const struct tbl *t)
{
	uint64_t v12 = 0, v13 = 0;

	for (uint32_t i = 0; i < t->report->nphase; i++) {
		const struct shm_snap *s = &t->report->phase[i].workers;

		v12 += shm_snap_ctr(t->seg, s, CTR_ID_hs_tls12);
		v13 += shm_snap_ctr(t->seg, s, CTR_ID_hs_tls13);
	}
	if (v12 > 0)
		return v13 > 0 ? "TLS 1.2 and 1.3" : "TLS 1.2";
	return v13 > 0 ? "TLS 1.3" : "no handshake";
}

static void head(const struct tbl *t)
{
	const char *dot = sign(t, "·", "|");
	struct shm_info info;

	shm_seg_info(t->seg, &info);
	paint(t, "\033[1m");
	fprintf(t->out, "%s", info.name);
	paint(t, "\033[0m");
	fprintf(t->out, "   %s %s %s %s %s %s %s\n", info.library, dot,
		info.certificate, dot, info.groups, dot, version_of(t));
	fprintf(t->out, "%s\nauto: %s\n\n", mst_plan(t->mst)->why,
		mst_cpus(t->mst)->source);
}

static bool is_result(const struct res_phase *p)
{
	return !res_fatal(&p->doubts);
}

static void check_sign(const struct tbl *t, bool ok)
{
	paint(t, ok ? "\033[32m" : "\033[31m");
	fputs(ok ? sign(t, "✓", "ok") : sign(t, "✗", "FAILED"), t->out);
	paint(t, "\033[0m");
}

static void agreement(const struct tbl *t)
{
	uint64_t full = 0, resumed = 0;
	bool ok = true, any = false;
	char a[FMT_LEN], b[FMT_LEN];

	for (uint32_t i = 0; i < t->report->nphase; i++) {
		const struct res_phase *p = &t->report->phase[i];

		if (p->cfg == NULL)
			continue;
		any = true;
		full += p->agree.server_full;
		resumed += p->agree.server_resumed;
		ok = ok && p->agree.ok;
	}
	if (!any)
		return;
	fprintf(t->out, "%-9s%s: %s full, %s resumed ", "",
		ok ? "both ends agree" : "the two ends disagree; workers",
		fmt_count(a, full), fmt_count(b, resumed));
	check_sign(t, ok);
	fprintf(t->out, "   (warm-up included)\n");
}

static void checks(const struct tbl *t)
{
	bool identity = true;
	double jain = NAN;
	char b[FMT_LEN];

	for (uint32_t i = 0; i < t->report->nphase; i++) {
		const struct res_phase *p = &t->report->phase[i];

		identity = identity && p->identity;
		if (isfinite(p->jain) && !(p->jain >= jain))
			jain = p->jain;
	}
	fprintf(t->out,
		"%-9saccepted = full + resumed + failed "
		"+ in progress ",
		"checks");
	check_sign(t, identity);
	fprintf(t->out, "   balance %s (Jain; 1 is even)\n",
		fmt_fixed(b, jain, 2));
	agreement(t);
}

/* The machine's busy time that is none of ours, in the worst phase. */
static void other_cpu(const struct tbl *t)
{
	double worst = 0;
	char b[FMT_LEN];

	for (uint32_t i = 0; i < t->report->nphase; i++) {
		const struct res_phase *p = &t->report->phase[i];

		worst = fmax(worst,
			     (double)p->unattributed_ns /
				     ((double)p->measured.taken_ns * p->ncpu));
	}
	fprintf(t->out,
		"%-9s%s %% of the machine's CPU time was used by "
		"others or by interrupts\n",
		"others", fmt_fixed(b, 100 * worst, 1));
}

/* The speed of the cores, and costs as if it had been the same throughout. */
static void speeds(const struct tbl *t)
{
	const struct mst_report *r = t->report;
	double ref = res_reference_ns(t->seg, r->phase, r->nphase);
	char b[FMT_LEN], c[FMT_LEN];

	for (uint32_t i = 0; i < r->nphase; i++) {
		const struct res_phase *p = &r->phase[i];
		double speed = res_speed(t->seg, &p->workers, ref);
		bool resumed = p->cfg != NULL &&
			       p->cfg->handshake == CFG_HANDSHAKE_RESUMED;
		struct res_cost k =
			total_of(t, p, false, resumed ? RES_RESUMED : RES_FULL);

		if (!isfinite(speed) || p->cfg == NULL || !is_result(p))
			continue;
		if (!res_of_handshakes(p->cfg))
			continue;
		fprintf(t->out,
			"%-9s%s: cores at %s %% of the run's mean speed; "
			"scaled to it %s %s per handshake\n",
			i == 0 ? "speed" : "", p->cfg->name,
			fmt_fixed(b, 100 * speed, 0),
			ns_cell(c, k.whole_ns * speed, false),
			sign(t, "µs", "us"));
	}
}

static void limits(const struct tbl *t)
{
	const char *last = NULL;

	for (uint32_t i = 0; i < t->report->nphase; i++) {
		const struct res_phase *p = &t->report->phase[i];

		if (last != NULL && strcmp(last, p->limited_by) == 0)
			continue;
		fprintf(t->out, "%-*slimited by ", LABEL,
			last == NULL ? "rates" : "");
		fold(t, p->limited_by, LABEL + 11);
		last = p->limited_by;
	}
}

static const char *const words[] = {
	[RES_NOTE] = "note", [RES_DOUBT] = "doubt", [RES_FATAL] = "NO RESULT"};
static const char *const colours[] = {[RES_NOTE] = "\033[36m",
				      [RES_DOUBT] = "\033[33m",
				      [RES_FATAL] = "\033[31m"};

static void doubts_of(const struct tbl *t, const char *where,
		      const struct res_doubts *d)
{
	for (uint32_t i = 0; i < d->n; i++) {
		const struct res_doubt *r = &d->item[i];
		char line[sizeof(r->text) + sizeof(r->name) + SHM_NAME_MAX + 8];

		paint(t, colours[r->level]);
		fprintf(t->out, "%-10s",
			r->accepted ? "accepted" : words[r->level]);
		paint(t, "\033[0m");
		snprintf(line, sizeof(line), "%s%s%s: %s", where,
			 where[0] != '\0' ? ": " : "", r->name, r->text);
		fold(t, line, INDENT);
	}
}

static void doubts(const struct tbl *t)
{
	doubts_of(t, "", &t->report->doubts);
	for (uint32_t i = 0; i < t->report->nphase; i++) {
		const struct res_phase *p = &t->report->phase[i];

		doubts_of(t, p->cfg != NULL ? p->cfg->name : "serving",
			  &p->doubts);
	}
}

/* The full and the resumed phase of a run that has just one of each. */
static bool find_pair(const struct tbl *t, const struct res_phase **full,
		      const struct res_phase **resumed)
{
	*full = *resumed = NULL;
	if (t->report->nphase != 2)
		return false;
	for (uint32_t i = 0; i < 2; i++) {
		const struct res_phase *p = &t->report->phase[i];

		if (p->cfg == NULL || !is_result(p))
			return false;
		if (p->cfg->handshake == CFG_HANDSHAKE_FULL)
			*full = p;
		else
			*resumed = p;
	}
	return *full != NULL && *resumed != NULL;
}

static void tables(const struct tbl *t)
{
	const struct res_phase *full, *resumed;

	if (t->report->served && t->report->nphase == 1) {
		pair_table(t, &t->report->phase[0], &t->report->phase[0]);
		fputc('\n', t->out);
		return;
	}
	if (find_pair(t, &full, &resumed)) {
		pair_table(t, full, resumed);
		fputc('\n', t->out);
		return;
	}
	for (uint32_t i = 0; i < t->report->nphase; i++)
		if (is_result(&t->report->phase[i]))
			single_table(t, &t->report->phase[i]);
}

void tbl_print(FILE *out, const struct mst *mst, const struct cfg *cfg,
	       const struct mst_report *report, struct tbl_style style)
{
	struct tbl t = {.out = out,
			.mst = mst,
			.seg = mst_seg(mst),
			.cfg = cfg,
			.report = report,
			.style = style};

	if (report->nphase == 0)
		return;
	head(&t);
	tables(&t);
	checks(&t);
	speeds(&t);
	limits(&t);
	other_cpu(&t);
	doubts(&t);
}
