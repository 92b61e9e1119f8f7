/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_report.h"

#include "shm/clk.h"
#include "shm/fmt.h"
#include "tools/tdrive_count.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define JSON_VERSION 1

/* More than this of one CPU, and the driver itself sets the pace. */
#define BUSY_SHARE 0.95

/* ---- figures ---- */

void report_take(struct report_take *out, const struct shm_slot *slot)
{
	const _Atomic uint64_t *ctr = (const _Atomic uint64_t *)&slot->ctr;
	const struct hist *hist = (const struct hist *)&slot->hist;

	out->ns = clk_now();
	out->cpu_ns = clk_process_cpu();
	for (uint32_t i = 0; i < CTR_IDS; i++)
		out->ctr[i] =
			atomic_load_explicit(&ctr[i], memory_order_relaxed);
	for (uint32_t i = 0; i < HIST_IDS; i++)
		hist_copy(&out->hist[i], &hist[i]);
}

void report_diff(struct report_take *to, const struct report_take *later,
		 const struct report_take *earlier)
{
	to->ns = later->ns - earlier->ns;
	to->cpu_ns = later->cpu_ns - earlier->cpu_ns;
	for (uint32_t i = 0; i < CTR_IDS; i++)
		to->ctr[i] = ctr_descs[i].kind == CTR_SUM
				     ? later->ctr[i] - earlier->ctr[i]
				     : later->ctr[i];
	for (uint32_t i = 0; i < HIST_IDS; i++)
		hist_diff(&to->hist[i], &later->hist[i], &earlier->hist[i]);
}

uint64_t report_handshakes(const struct report_take *took)
{
	return took->ctr[CTR_ID_hs_full] + took->ctr[CTR_ID_hs_resumed];
}

uint64_t report_failed(const struct report_take *took)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < CTR_IDS; i++)
		if (ctr_is_failure(&ctr_descs[i]))
			sum += took->ctr[i];
	return sum;
}

static double per(uint64_t value, uint64_t of)
{
	return (double)value / (double)of; /* not finite for 0: "n/a" */
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

/* ---- verdict ---- */

/* The cause that failed most. */
static const char *worst(const struct report_take *took)
{
	const char *name = "";
	uint64_t most = 0;

	for (uint32_t i = 0; i < CTR_IDS; i++) {
		if (!ctr_is_failure(&ctr_descs[i]) || took->ctr[i] <= most)
			continue;
		most = took->ctr[i];
		name = ctr_descs[i].name;
	}
	return name;
}

static bool none_resumed(const struct report *r)
{
	return r->handshake == CFG_HANDSHAKE_RESUMED &&
	       r->took.ctr[CTR_ID_hs_resumed] == 0;
}

int report_verdict(const struct report *r, char *why, size_t len)
{
	uint64_t done = report_handshakes(&r->took);
	uint64_t failed = report_failed(&r->took);

	why[0] = '\0';
	if (done == 0) {
		snprintf(why, len,
			 failed > 0
				 ? "no handshake succeeded, most failed by %s"
				 : "no handshake ended in that time%s",
			 failed > 0 ? worst(&r->took) : "");
		return EXIT_RUN;
	}
	if (none_resumed(r)) {
		snprintf(why, len,
			 "resumed handshakes were asked for and none was "
			 "resumed: %s",
			 r->whole.ctr[CTR_ID_tickets_received] == 0
				 ? "the server sent no ticket"
				 : "the server accepted no ticket");
		return EXIT_RUN;
	}
	if (failed > 0)
		snprintf(why, len, "%llu connections failed, most by %s",
			 (unsigned long long)failed, worst(&r->took));
	else if (r->handshake == CFG_HANDSHAKE_RESUMED &&
		 r->took.ctr[CTR_ID_hs_full] > 0)
		snprintf(why, len, "%llu of %llu handshakes were not resumed",
			 (unsigned long long)r->took.ctr[CTR_ID_hs_full],
			 (unsigned long long)done);
	else if (r->interrupted)
		snprintf(why, len, "interrupted after %.1f of %.1f s",
			 seconds(r->took.ns), seconds(r->asked_ns));
	return why[0] != '\0' ? EXIT_DOUBTFUL : EXIT_GOOD;
}

/* ---- table ---- */

/* "98.7 us", "1.23 ms", "2.00 s": ten columns. */
static void time_cell(FILE *out, uint64_t ns)
{
	char buf[FMT_LEN];

	if (ns < NS_PER_MS)
		fprintf(out, "%7s us", fmt_us(buf, (double)ns));
	else if (ns < NS_PER_S)
		fprintf(out, "%7s ms", fmt_ms(buf, ns));
	else
		fprintf(out, "%7s s ", fmt_fixed(buf, seconds(ns), 2));
}

static void time_row(FILE *out, const char *name, const struct hist_view *h)
{
	static const double q[] = {50, 90, 99};

	if (hist_count(h) == 0)
		return;
	fprintf(out, "%-12s", name);
	for (size_t i = 0; i < ARRAY_LEN(q); i++)
		time_cell(out, hist_percentile(h, q[i]));
	time_cell(out, h->max);
	fputc('\n', out);
}

static void times(const struct report *r, FILE *out)
{
	const struct hist_view *h = r->took.hist;

	if (hist_count(&h[HIST_ID_connect_time]) == 0)
		return;
	fprintf(out, "\n%-12s%10s%10s%10s%10s\n", "time", "p50   ", "p90   ",
		"p99   ", "max   ");
	time_row(out, "connect", &h[HIST_ID_connect_time]);
	time_row(out, "full", &h[HIST_ID_hs_full_time]);
	if (!none_resumed(r))
		time_row(out, "resumed", &h[HIST_ID_hs_resumed_time]);
	fputs("(full, resumed: from the end of the connect to the end of the "
	      "handshake)\n",
	      out);
}

static void rates(const struct report *r, FILE *out)
{
	const uint64_t *ctr = r->took.ctr;
	uint64_t n = report_handshakes(&r->took);
	char a[FMT_LEN], b[FMT_LEN], c[FMT_LEN];

	fprintf(out, "%-12s%10s /s      %s full, ", "handshakes",
		fmt_fixed(a, (double)n / seconds(r->took.ns), 0),
		fmt_count(b, ctr[CTR_ID_hs_full]));
	if (!none_resumed(r))
		fprintf(out, "%s resumed, ",
			fmt_count(b, ctr[CTR_ID_hs_resumed]));
	fprintf(out, "%s failed, in %s s\n",
		fmt_count(a, report_failed(&r->took)),
		fmt_fixed(c, seconds(r->took.ns), 2));
	fprintf(out,
		"%-12s%10s us      per handshake, all of tdrive; it used %s %% "
		"of a CPU\n",
		"client CPU", fmt_fixed(a, per(r->took.cpu_ns, n) / 1e3, 0),
		fmt_fixed(b, 100 * per(r->took.cpu_ns, r->took.ns), 0));
}

static void crypto_row(FILE *out, const char *name, uint64_t ns, uint64_t n)
{
	char a[FMT_LEN];

	if (n > 0)
		fprintf(out,
			"%-12s%10s us      in the TLS library, per %s "
			"handshake\n",
			"", fmt_fixed(a, per(ns, n) / 1e3, 0), name);
}

static void bytes_row(const struct report *r, FILE *out)
{
	uint64_t n = report_handshakes(&r->took);
	char a[FMT_LEN], b[FMT_LEN];

	fprintf(out, "%-12s%10s B       received, %s B sent, per handshake\n",
		"bytes", fmt_fixed(a, per(r->took.ctr[CTR_ID_bytes_in], n), 0),
		fmt_fixed(b, per(r->took.ctr[CTR_ID_bytes_out], n), 0));
}

/* "Failed: the peer closed." says "failed" twice in its row. */
static const char *after_colon(const char *help)
{
	const char *colon = strstr(help, ": ");

	return colon != NULL ? colon + 2 : help;
}

static void failures(const struct report *r, FILE *out)
{
	char a[FMT_LEN];

	for (uint32_t i = 0; i < CTR_IDS; i++)
		if (ctr_is_failure(&ctr_descs[i]) && r->took.ctr[i] > 0)
			fprintf(out, "%-12s%10s         %s: %s\n", "failed",
				fmt_count(a, r->took.ctr[i]),
				ctr_descs[i].name + strlen("failed_"),
				after_colon(ctr_descs[i].help));
}

static bool busy(const struct report *r)
{
	return per(r->took.cpu_ns, r->took.ns) > BUSY_SHARE;
}

void report_table(const struct report *r, FILE *out)
{
	const uint64_t *ctr = r->took.ctr;
	char why[256];
	int verdict = report_verdict(r, why, sizeof(why));

	fprintf(out, "%s   %s handshakes   %u connections   %s\n", r->url,
		cfg_word("HANDSHAKE", (int)r->handshake), r->connections,
		r->library);
	rates(r, out);
	crypto_row(out, "full", ctr[CTR_ID_crypto_full_ns],
		   ctr[CTR_ID_hs_full]);
	if (!none_resumed(r))
		crypto_row(out, "resumed", ctr[CTR_ID_crypto_resumed_ns],
			   ctr[CTR_ID_hs_resumed]);
	bytes_row(r, out);
	failures(r, out);
	times(r, out);
	if (busy(r))
		fputs("limited by: this driver, one process of one thread, "
		      "which had no CPU time left\n",
		      out);
	if (verdict != EXIT_GOOD)
		fprintf(out, "%s: %s\n",
			verdict == EXIT_RUN ? "failed" : "doubtful", why);
}

/* ---- JSON ---- */

static json_t *json_number(double v)
{
	return v - v == 0 ? json_real(v) : json_null(); /* finite? */
}

static json_t *json_times(const struct hist_view *h)
{
	if (hist_count(h) == 0)
		return json_null();
	return json_pack("{sI sf sI sI sI sI}", "count",
			 (json_int_t)hist_count(h), "mean_ns", hist_mean(h),
			 "p50_ns", (json_int_t)hist_percentile(h, 50), "p90_ns",
			 (json_int_t)hist_percentile(h, 90), "p99_ns",
			 (json_int_t)hist_percentile(h, 99), "max_ns",
			 (json_int_t)h->max);
}

/* A resumed figure where none was resumed is none at all. */
static bool is_resumed_row(const char *name)
{
	return strstr(name, "resumed") != NULL;
}

static json_t *json_counters(const struct report *r)
{
	json_t *all = json_object();

	for (uint32_t i = 0; i < CTR_IDS; i++) {
		const struct ctr_desc *d = &ctr_descs[i];

		if ((d->role & CTR_DRIVER) == 0 ||
		    (none_resumed(r) && is_resumed_row(d->name)))
			continue;
		json_object_set_new(all, d->name,
				    json_integer((json_int_t)r->took.ctr[i]));
	}
	return all;
}

static json_t *json_histograms(const struct report *r)
{
	json_t *all = json_object();

	for (uint32_t i = 0; i < HIST_IDS; i++) {
		const struct ctr_desc *d = &ctr_descs[CTR_IDS + i];

		if ((d->role & CTR_DRIVER) == 0 ||
		    (none_resumed(r) && is_resumed_row(d->name)))
			continue;
		json_object_set_new(all, d->name, json_times(&r->took.hist[i]));
	}
	return all;
}

int report_json(const struct report *r, FILE *out)
{
	uint64_t n = report_handshakes(&r->took);
	char why[256];
	int verdict = report_verdict(r, why, sizeof(why));
	json_t *all = json_pack(
		"{si ss ss ss ss ss ss si sf so so so so si ss so so}",
		"schema", JSON_VERSION, "program", "tdrive", "version",
		TTERM_VERSION, "commit", base_commit(), "library", r->library,
		"url", r->url, "handshake",
		cfg_word("HANDSHAKE", (int)r->handshake), "connections",
		(int)r->connections, "seconds", seconds(r->took.ns),
		"handshakes_per_s",
		json_number((double)n / seconds(r->took.ns)),
		"cpu_ns_per_handshake", json_number(per(r->took.cpu_ns, n)),
		"cpu_share", json_number(per(r->took.cpu_ns, r->took.ns)),
		"limited_by_driver", json_boolean(busy(r)), "exit_status",
		verdict, "why", why, "counters", json_counters(r), "histograms",
		json_histograms(r));
	int rc;

	if (all == NULL)
		return -ENOMEM;
	rc = json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(all);
	if (rc != 0 || fputc('\n', out) == EOF)
		return -EIO;
	return 0;
}
