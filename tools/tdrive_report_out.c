/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_report.h"

#include "config/unit.h"
#include "shm/fmt.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define JSON_VERSION 2

static const char record_word[] = "record ";

static double per(uint64_t value, uint64_t of)
{
	return (double)value / (double)of; /* not finite for 0: "n/a" */
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static bool is_plain(const struct report *r)
{
	return r->phase->transport == CFG_TRANSPORT_TCP;
}

static bool is_record(const char *note)
{
	return strncmp(note, record_word, strlen(record_word)) == 0;
}

/* ---- table: times ---- */

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

static const struct {
	const char *name;
	enum hist_id id;
	const char *means;
} time_rows[] = {
	{"connect", HIST_ID_connect_time, NULL},
	{"full", HIST_ID_hs_full_time, "handshake, from the connect's end"},
	{"resumed", HIST_ID_hs_resumed_time,
	 "handshake, from the connect's end"},
	{"first byte", HIST_ID_first_byte,
	 "from the end of the handshake or the connect"},
	{"request", HIST_ID_request_time, "from begun to complete"},
	{"connection", HIST_ID_conn_latency, NULL},
};

static bool has_times(const struct report *r, size_t row)
{
	enum hist_id id = time_rows[row].id;

	return hist_count(&r->took.hist[id]) > 0 &&
	       !(id == HIST_ID_hs_resumed_time && report_none_resumed(r));
}

static void loop_note(const struct report *r, FILE *out)
{
	bool open = r->phase->rate > 0 || r->phase->kind == CFG_KIND_RAMP;

	if (hist_count(&r->took.hist[HIST_ID_conn_latency]) == 0)
		return;
	if (open)
		fputs("connection: from when it was due to the end of its "
		      "work, so a stall shows in all\n"
		      "that were due meanwhile\n",
		      out);
	else if (r->phase->kind == CFG_KIND_BURST)
		fputs("connection: from the burst's instant to the end of its "
		      "work\n",
		      out);
	else
		fputs("connection: from its begin to the end of its work; a "
		      "closed loop sends less while\n"
		      "the server stalls, so these times leave that out "
		      "(coordinated omission): see --rate\n",
		      out);
}

static void times(const struct report *r, FILE *out)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(time_rows); i++) {
		if (!has_times(r, i))
			continue;
		if (!any)
			fprintf(out, "\n%-12s%10s%10s%10s%10s\n", "time",
				"p50   ", "p90   ", "p99   ", "max   ");
		any = true;
		time_row(out, time_rows[i].name,
			 &r->took.hist[time_rows[i].id]);
	}
	for (size_t i = 0; i < ARRAY_LEN(time_rows); i++)
		if (has_times(r, i) && time_rows[i].means != NULL)
			fprintf(out, "%s: %s\n", time_rows[i].name,
				time_rows[i].means);
	loop_note(r, out);
}

/* ---- table: rates ---- */

static void handshake_row(const struct report *r, FILE *out)
{
	const uint64_t *ctr = r->took.ctr;
	uint64_t n = report_handshakes(&r->took);
	char a[FMT_LEN], b[FMT_LEN];

	fprintf(out, "%-12s%10s /s      %s full, ", "handshakes",
		fmt_fixed(a, (double)n / seconds(r->took.ns), 0),
		fmt_count(b, ctr[CTR_ID_hs_full]));
	if (!report_none_resumed(r))
		fprintf(out, "%s resumed, ",
			fmt_count(b, ctr[CTR_ID_hs_resumed]));
	if (ctr[CTR_ID_hs_refused] > 0)
		fprintf(out, "%s with a refused ticket, ",
			fmt_count(b, ctr[CTR_ID_hs_refused]));
	fprintf(out, "%s failed, in %s s\n",
		fmt_count(a, report_failed(&r->took)),
		fmt_fixed(b, seconds(r->took.ns), 2));
}

static void connection_row(const struct report *r, FILE *out)
{
	const uint64_t *ctr = r->took.ctr;
	char a[FMT_LEN], b[FMT_LEN], c[FMT_LEN];

	fprintf(out, "%-12s%10s /s      without TLS, %s failed, in %s s\n",
		"connections",
		fmt_fixed(a,
			  (double)ctr[CTR_ID_conn_connected] /
				  seconds(r->took.ns),
			  0),
		fmt_count(b, report_failed(&r->took)),
		fmt_fixed(c, seconds(r->took.ns), 2));
}

static void request_row(const struct report *r, FILE *out)
{
	const uint64_t *ctr = r->took.ctr;
	char a[FMT_LEN], b[FMT_LEN], c[FMT_LEN];

	if (r->phase->requests == 0)
		return;
	fprintf(out, "%-12s%10s /s      %s answered, %s of them bad or lost\n",
		"requests",
		fmt_fixed(a, (double)ctr[CTR_ID_requests] / seconds(r->took.ns),
			  0),
		fmt_count(b, ctr[CTR_ID_requests]),
		fmt_count(c, ctr[CTR_ID_requests_bad]));
}

static void arrivals_row(const struct report *r, FILE *out)
{
	const uint64_t *ctr = r->took.ctr;
	char a[FMT_LEN], b[FMT_LEN], c[FMT_LEN];

	if (ctr[CTR_ID_arrivals] == 0)
		return;
	fprintf(out,
		"%-12s%10s /s      %s due, %s of them late for want of a "
		"place\n",
		"arrivals",
		fmt_fixed(a, (double)ctr[CTR_ID_arrivals] / seconds(r->took.ns),
			  0),
		fmt_count(b, ctr[CTR_ID_arrivals]),
		fmt_count(c, ctr[CTR_ID_arrivals_late]));
}

static void held_row(const struct report *r, FILE *out)
{
	char a[FMT_LEN];

	if (r->phase->kind == CFG_KIND_IDLE)
		fprintf(out, "%-12s%10s         open at the end\n", "held",
			fmt_count(a, r->took.ctr[CTR_ID_conn_open]));
}

/* What CPU time is divided by: the smallest piece of the phase's work. */
static uint64_t pieces(const struct report *r, const char **name)
{
	const uint64_t *ctr = r->took.ctr;

	if (ctr[CTR_ID_conn_connected] == 0 && r->phase->requests > 0) {
		*name = "request";
		return ctr[CTR_ID_requests];
	}
	*name = is_plain(r) ? "connection" : "handshake";
	return is_plain(r) ? ctr[CTR_ID_conn_connected]
			   : report_handshakes(&r->took);
}

static void cpu_row(const struct report *r, FILE *out)
{
	const char *name;
	uint64_t n = pieces(r, &name);
	char a[FMT_LEN], b[FMT_LEN];

	fprintf(out,
		"%-12s%10s us      per %s, all of tdrive; it used %s %% of a "
		"CPU\n",
		"client CPU", fmt_fixed(a, per(r->took.cpu_ns, n) / 1e3, 0),
		name, fmt_fixed(b, 100 * per(r->took.cpu_ns, r->took.ns), 0));
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

static void bytes_rows(const struct report *r, FILE *out)
{
	const uint64_t *ctr = r->took.ctr;
	uint64_t n = report_handshakes(&r->took);
	char a[FMT_LEN], b[FMT_LEN];

	if (n > 0)
		fprintf(out,
			"%-12s%10s B       received, %s B sent, per handshake "
			"until its end\n",
			"bytes",
			fmt_fixed(a, per(ctr[CTR_ID_hs_bytes_in], n), 0),
			fmt_fixed(b, per(ctr[CTR_ID_hs_bytes_out], n), 0));
	if (r->phase->requests == 0)
		return;
	fprintf(out, "%-12s%10s MiB/s   received in all\n", "",
		fmt_fixed(a,
			  (double)ctr[CTR_ID_bytes_in] / 0x1p20 /
				  seconds(r->took.ns),
			  1));
	if (r->phase->kind == CFG_KIND_BULK)
		fprintf(out, "%-12s%10s ms      of client CPU per GiB\n", "",
			fmt_fixed(a,
				  (double)r->took.cpu_ns / 1e6 * 0x1p30 /
					  (double)ctr[CTR_ID_bytes_in],
				  0));
}

/* ---- table: what was agreed on, what failed, what was noted ---- */

static const struct {
	const char *prefix, *title;
} agreed[] = {
	{"hs_tls", "version"},
	{"group_", "group"},
	{"suite_", "cipher"},
	{"sig_", "signature"},
};

static void agreed_row(const struct report *r, size_t row, FILE *out)
{
	const char *prefix = agreed[row].prefix, *between = "";
	char a[FMT_LEN];

	for (uint32_t i = 0; i < CTR_IDS; i++) {
		const char *name = ctr_descs[i].name;

		if (strncmp(name, prefix, strlen(prefix)) != 0 ||
		    r->took.ctr[i] == 0)
			continue;
		if (between[0] == '\0')
			fprintf(out, "%-12s", agreed[row].title);
		fprintf(out, "%s%s %s", between, name + strlen(prefix),
			fmt_count(a, r->took.ctr[i]));
		between = ", ";
	}
	if (between[0] != '\0')
		fputc('\n', out);
}

static void agreements(const struct report *r, FILE *out)
{
	char a[FMT_LEN];

	for (size_t i = 0; i < ARRAY_LEN(agreed); i++)
		agreed_row(r, i, out);
	if (r->took.ctr[CTR_ID_signatures] > 0)
		fprintf(out, "%-12s%10s         made by the client\n",
			"signatures",
			fmt_count(a, r->took.ctr[CTR_ID_signatures]));
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

static void print_note(const char *note, FILE *out)
{
	unsigned long long ns;
	unsigned n, slow, failed;
	char rate[32], verdict[8];

	if (sscanf(note, "burst %u %llu %u %u", &n, &ns, &slow, &failed) == 4) {
		fprintf(out, "burst       %10u         slowest", n);
		time_cell(out, ns);
		fprintf(out, ", %u over 500 ms, %u failed\n", slow, failed);
	} else if (sscanf(note, "ramp %31s %llu %7s", rate, &ns, verdict) ==
		   3) {
		fprintf(out, "ramp        %10s         p99", rate);
		time_cell(out, ns);
		fprintf(out, "  %s\n", verdict);
	} else {
		fprintf(out, "%s\n", note);
	}
}

static void notes(const struct report *r, FILE *out)
{
	for (uint32_t i = 0; i < r->notes; i++) {
		const char *note = r->note[i];

		if (i == 0)
			fputc('\n', out);
		if (is_record(note))
			fprintf(out, "%s\n", note + strlen(record_word));
		else
			print_note(note, out);
	}
}

void report_table(const struct report *r, FILE *out)
{
	const uint64_t *ctr = r->took.ctr;
	char why[256], loop[REPORT_LOOP_LEN];
	int verdict = report_verdict(r, why, sizeof(why));

	report_loop(r, loop);
	fprintf(out, "%s   %s   %s   %s\n", r->url,
		is_plain(r) ? "no TLS"
			    : cfg_word("HANDSHAKE", (int)r->phase->handshake),
		loop, r->library);
	if (is_plain(r))
		connection_row(r, out);
	else
		handshake_row(r, out);
	arrivals_row(r, out);
	request_row(r, out);
	held_row(r, out);
	cpu_row(r, out);
	crypto_row(out, "full", ctr[CTR_ID_crypto_full_ns],
		   ctr[CTR_ID_hs_full]);
	if (!report_none_resumed(r))
		crypto_row(out, "resumed", ctr[CTR_ID_crypto_resumed_ns],
			   ctr[CTR_ID_hs_resumed]);
	bytes_rows(r, out);
	agreements(r, out);
	failures(r, out);
	times(r, out);
	notes(r, out);
	if (report_busy(r))
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
		    (report_none_resumed(r) && is_resumed_row(d->name)))
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
		    (report_none_resumed(r) && is_resumed_row(d->name)))
			continue;
		json_object_set_new(all, d->name, json_times(&r->took.hist[i]));
	}
	return all;
}

/* Those that are records, without the word, or those that are not. */
static json_t *json_notes(const struct report *r, bool records)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < r->notes; i++) {
		const char *note = r->note[i];

		if (is_record(note) != records)
			continue;
		json_array_append_new(
			all, json_string(note +
					 (records ? strlen(record_word) : 0)));
	}
	return all;
}

int report_json(const struct report *r, FILE *out)
{
	const struct load_phase *p = r->phase;
	bool open = p->rate > 0 || p->kind == CFG_KIND_RAMP;
	uint64_t n = report_handshakes(&r->took);
	char why[256], loop[REPORT_LOOP_LEN];
	int verdict = report_verdict(r, why, sizeof(why));
	json_t *all;
	int rc;

	report_loop(r, loop);
	all = json_pack(
		"{si ss ss ss ss ss ss ss ss ss ss so si sf so so so so si ss "
		"so so so so}",
		"schema", JSON_VERSION, "program", "tdrive", "version",
		TTERM_VERSION, "commit", base_commit(), "library", r->library,
		"url", r->url, "kind", cfg_word("KIND", (int)p->kind),
		"handshake", cfg_word("HANDSHAKE", (int)p->handshake),
		"transport", cfg_word("TRANSPORT", (int)p->transport), "loop",
		open ? "open" : "closed", "load", loop, "rate_per_s",
		p->rate > 0 ? json_real((double)p->rate / 1e3) : json_null(),
		"connections", (int)base_max(p->seats, p->most), "seconds",
		seconds(r->took.ns), "handshakes_per_s",
		json_number((double)n / seconds(r->took.ns)),
		"cpu_ns_per_handshake", json_number(per(r->took.cpu_ns, n)),
		"cpu_share", json_number(per(r->took.cpu_ns, r->took.ns)),
		"limited_by_driver", json_boolean(report_busy(r)),
		"exit_status", verdict, "why", why, "counters",
		json_counters(r), "histograms", json_histograms(r), "notes",
		json_notes(r, false), "records", json_notes(r, true));
	if (all == NULL)
		return -ENOMEM;
	rc = json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(all);
	if (rc != 0 || fputc('\n', out) == EOF)
		return -EIO;
	return 0;
}
