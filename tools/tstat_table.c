/* SPDX-License-Identifier: MIT */
#include "tools/tstat.h"

#include "shm/fmt.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH_MIN 40

struct table {
	FILE *out;
	const struct view *v;
	const struct style *style;
};

/* ---- small pieces ---- */

/* Texts come from the segment: nothing of them may steer the terminal. */
void table_text(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
	}
}

void table_span(char *buf, size_t len, uint64_t ns)
{
	unsigned long long s = ns / NS_PER_S;

	if (s < 60)
		snprintf(buf, len, "%llu.%llu s", s,
			 (unsigned long long)(ns % NS_PER_S / (NS_PER_S / 10)));
	else if (s < 3600)
		snprintf(buf, len, "%llu min %llu s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, len, "%llu h %llu min", s / 3600, s / 60 % 60);
	else
		snprintf(buf, len, "%llu d %llu h", s / 86400, s / 3600 % 24);
}

static const char *sign(const struct table *t, const char *utf8,
			const char *ascii)
{
	return t->style->utf8 ? utf8 : ascii;
}

static void paint(const struct table *t, const char *code)
{
	if (t->style->colour)
		fputs(code, t->out);
}

#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define RED   "\033[31m"
#define PLAIN "\033[0m"

/* ---- the head: items in lines, as many as go in ---- */

struct line {
	const struct table *t;
	int at;
};

static void item(struct line *l, const char *text)
{
	int width = (int)fmt_columns(text);

	if (text[0] == '\0')
		return;
	if (l->at > 0 && l->at + 3 + width > l->t->style->width) {
		fputs("\n  ", l->t->out);
		l->at = 2;
	} else if (l->at > 0) {
		fprintf(l->t->out, " %s ", sign(l->t, "·", "|"));
		l->at += 3;
	}
	table_text(l->t->out, text);
	l->at += width;
}

static void end_line(struct line *l)
{
	fputc('\n', l->t->out);
	l->at = 0;
}

static void head_state(const struct table *t, struct line *l)
{
	const struct shm_phase *p = &t->v->phase;
	char text[SHM_NAME_MAX + 64], span[40];

	if (t->v->alive) {
		item(l, "running");
	} else {
		snprintf(text, sizeof(text), "STALE: its master, %d, is gone",
			 (int)shm_seg_owner(t->v->seg));
		item(l, text);
	}
	if (p->count > 0) {
		snprintf(text, sizeof(text), "phase %u of %u, %s",
			 p->index + 1 < p->count ? p->index + 1 : p->count,
			 p->count, p->name);
		item(l, text);
	}
	item(l, view_phase_state(p));
	if (t->v->alive && view_left_ns(t->v) > 0) {
		table_span(span, sizeof(span), view_left_ns(t->v));
		snprintf(text, sizeof(text), "%s left", span);
		item(l, text);
	}
	table_span(span, sizeof(span), view_up_ns(t->v));
	snprintf(text, sizeof(text), "%s %s", t->v->alive ? "up" : "made",
		 span);
	if (!t->v->alive)
		strncat(text, " ago", sizeof(text) - strlen(text) - 1);
	item(l, text);
}

static void head(const struct table *t)
{
	const struct shm_info *i = &t->v->info;
	struct line l = {.t = t};
	char text[sizeof(i->listen) + 64];

	paint(t, t->v->alive ? BOLD : RED);
	item(&l, i->name[0] != '\0' ? i->name : "(no name)");
	head_state(t, &l);
	paint(t, PLAIN);
	end_line(&l);
	item(&l, i->library);
	item(&l, i->certificate);
	item(&l, i->groups);
	item(&l, i->versions);
	item(&l, i->ciphers);
	if (l.at > 0)
		end_line(&l);
	if (i->listen[0] != '\0') {
		snprintf(text, sizeof(text), "listens on %s (%s)", i->listen,
			 i->accept);
		item(&l, text);
	}
	snprintf(text, sizeof(text), "tterm%s%s, pid %d",
		 i->version[0] != '\0' ? " " : "", i->version,
		 (int)shm_seg_owner(t->v->seg));
	item(&l, text);
	end_line(&l);
}

/* ---- rows ---- */

enum row_kind {
	ROW_SLOT,
	ROW_WORKERS
};

struct row {
	const struct table *t;
	const struct shm_snap *s;
	enum row_kind kind;
};

static uint64_t ctr(const struct row *r, enum ctr_id id)
{
	return shm_snap_ctr(r->t->v->seg, r->s, id);
}

static bool is_driver(const struct row *r)
{
	return r->kind == ROW_SLOT && r->s->role == SHM_DRIVER;
}

/* Whole if it goes into `width`, else with three digits and a letter. */
static const char *count(char b[static FMT_LEN], uint64_t n, int width)
{
	const uint64_t peta = UINT64_C(1000000000000000);

	fmt_count(b, n);
	if (strlen(b) <= (size_t)width)
		return b;
	/* Beyond what any run counts, but a damaged segment may. */
	if (n >= peta)
		snprintf(b, FMT_LEN, "%llue15", (unsigned long long)(n / peta));
	else
		fmt_rate(b, (double)n, width);
	return b;
}

static const char *bytes(char b[static FMT_LEN], uint64_t n, int width)
{
	fmt_bytes(b, (double)n);
	return strlen(b) <= (size_t)width ? b : count(b, n, width);
}

static const char *per(char b[static FMT_LEN], uint64_t ns, uint64_t n,
		       int width)
{
	if (n == 0)
		return "n/a";
	fmt_us(b, (double)ns / (double)n);
	return strlen(b) <= (size_t)width ? b : count(b, ns / n / 1000, width);
}

static const char *quantile(const struct row *r, char b[static FMT_LEN],
			    enum hist_id id, double q)
{
	const struct hist_view *h = shm_snap_hist(r->t->v->seg, r->s, id);

	if (h == NULL || hist_count(h) == 0)
		return "n/a";
	return fmt_ms(b, hist_percentile(h, q));
}

#define CELL(name)                                          \
	static const char *cell_##name(const struct row *r, \
				       char b[static FMT_LEN], int width)

CELL(slot)
{
	(void)width;
	if (r->kind == ROW_WORKERS)
		return "workers";
	snprintf(b, FMT_LEN, "%s %u", view_role(r->s->role), r->s->number);
	return b;
}

CELL(pid)
{
	(void)width;
	if (r->kind != ROW_SLOT)
		return "";
	if (r->s->pid <= 0)
		return "-";
	snprintf(b, FMT_LEN, "%d", r->s->pid);
	return b;
}

CELL(cpu)
{
	(void)width;
	if (r->kind != ROW_SLOT)
		return "";
	if (r->s->cpu < 0)
		return "-";
	snprintf(b, FMT_LEN, "%d", r->s->cpu);
	return b;
}

CELL(state)
{
	(void)b;
	(void)width;
	if (r->kind != ROW_SLOT)
		return "";
	return view_slot_state(r->s->state);
}

CELL(full)
{
	return count(b, ctr(r, CTR_ID_hs_full), width);
}

CELL(resumed)
{
	return count(b, ctr(r, CTR_ID_hs_resumed), width);
}

CELL(failed)
{
	return count(b, shm_snap_failed(r->t->v->seg, r->s), width);
}

CELL(in_progress)
{
	return count(b, ctr(r, CTR_ID_hs_in_progress), width);
}

CELL(open)
{
	return count(b, ctr(r, CTR_ID_conn_open), width);
}

CELL(tickets)
{
	return count(b,
		     ctr(r, is_driver(r) ? CTR_ID_tickets_received
					 : CTR_ID_tickets_issued),
		     width);
}

CELL(requests)
{
	if (is_driver(r))
		return "-";
	return count(b, ctr(r, CTR_ID_requests), width);
}

CELL(crypto_full)
{
	return per(b, ctr(r, CTR_ID_crypto_full_ns), ctr(r, CTR_ID_hs_full),
		   width);
}

CELL(crypto_resumed)
{
	return per(b, ctr(r, CTR_ID_crypto_resumed_ns),
		   ctr(r, CTR_ID_hs_resumed), width);
}

CELL(whole)
{
	return per(b, ctr(r, CTR_ID_cpu_ns),
		   ctr(r, CTR_ID_hs_full) + ctr(r, CTR_ID_hs_resumed), width);
}

CELL(full_p50)
{
	(void)width;
	return quantile(r, b, HIST_ID_hs_full_time, 50);
}

CELL(full_p99)
{
	(void)width;
	return quantile(r, b, HIST_ID_hs_full_time, 99);
}

CELL(resumed_p50)
{
	(void)width;
	return quantile(r, b, HIST_ID_hs_resumed_time, 50);
}

CELL(resumed_p99)
{
	(void)width;
	return quantile(r, b, HIST_ID_hs_resumed_time, 99);
}

CELL(bytes_in)
{
	return bytes(b, ctr(r, CTR_ID_bytes_in), width);
}

CELL(bytes_out)
{
	return bytes(b, ctr(r, CTR_ID_bytes_out), width);
}

/* ---- columns ---- */

struct column {
	const char *head, *sub;
	int width; /* with the space before it; below 0: left-aligned */
	const char *(*cell)(const struct row *r, char b[static FMT_LEN],
			    int width);
};

/* Two blocks, each at most 100 wide; what does not fit goes, from the right. */
static const struct column counts[] = {
	{"", "slot", -11, cell_slot},
	{"", "pid", 8, cell_pid},
	{"", "cpu", 4, cell_cpu},
	{"", "state", 9, cell_state},
	{"", "full", 11, cell_full},
	{"", "resumed", 11, cell_resumed},
	{"", "failed", 8, cell_failed},
	{"in hand-", "shake", 9, cell_in_progress},
	{"", "open", 7, cell_open},
	{"", "tickets", 11, cell_tickets},
	{"", "requests", 11, cell_requests},
};

static const struct column costs[] = {
	{"", "slot", -11, cell_slot},
	{"crypto us", "per full", 10, cell_crypto_full},
	{"crypto us", "per resumed", 12, cell_crypto_resumed},
	{"CPU us", "per h.", 8, cell_whole},
	{"full", "p50 ms", 8, cell_full_p50},
	{"full", "p99 ms", 8, cell_full_p99},
	{"resumed", "p50 ms", 9, cell_resumed_p50},
	{"resumed", "p99 ms", 8, cell_resumed_p99},
	{"bytes", "in", 12, cell_bytes_in},
	{"bytes", "out", 12, cell_bytes_out},
};

/* Spaces are kept back until a text follows: none at the end of a line. */
static void put_cell(const struct table *t, int *spaces, const char *text,
		     int width)
{
	int pad = abs(width) - (int)fmt_columns(text);

	if (pad < 0)
		pad = 0;
	if (width >= 0)
		*spaces += pad;
	if (text[0] != '\0') {
		fprintf(t->out, "%*s%s", *spaces, "", text);
		*spaces = 0;
	}
	if (width < 0)
		*spaces += pad;
}

static size_t fitting(const struct table *t, const struct column *c, size_t n)
{
	int used = 0;

	for (size_t i = 0; i < n; i++) {
		used += c[i].width < 0 ? -c[i].width : c[i].width;
		if (used > t->style->width)
			return i;
	}
	return n;
}

/* "us" as a word becomes the sign, where the terminal has it. */
static void put_head_cell(const struct table *t, int *spaces, const char *text,
			  int width)
{
	const char *us = strstr(text, " us");
	char b[FMT_LEN];

	if (us != NULL && us[3] == '\0') {
		snprintf(b, sizeof(b), "%.*s %s", (int)(us - text), text,
			 sign(t, "µs", "us"));
		text = b;
	}
	put_cell(t, spaces, text, width);
}

static void put_heads(const struct table *t, const struct column *c, size_t n)
{
	bool upper = false;
	int spaces = 0;

	for (size_t i = 0; i < n; i++)
		upper = upper || c[i].head[0] != '\0';
	fputc('\n', t->out);
	paint(t, BOLD);
	for (size_t i = 0; upper && i < n; i++)
		put_head_cell(t, &spaces, c[i].head, c[i].width);
	if (upper)
		fputc('\n', t->out);
	spaces = 0;
	for (size_t i = 0; i < n; i++)
		put_cell(t, &spaces, c[i].sub, c[i].width);
	paint(t, PLAIN);
	fputc('\n', t->out);
}

static void put_row(const struct row *r, const struct column *c, size_t n)
{
	const struct table *t = r->t;
	bool total = r->kind != ROW_SLOT;
	char b[FMT_LEN];
	int spaces = 0;

	if (is_driver(r) || total)
		paint(t, total ? BOLD : DIM);
	for (size_t i = 0; i < n; i++)
		put_cell(t, &spaces, c[i].cell(r, b, abs(c[i].width) - 1),
			 c[i].width);
	if (is_driver(r) || total)
		paint(t, PLAIN);
	fputc('\n', t->out);
}

static void put_role(const struct table *t, uint32_t role,
		     const struct column *c, size_t n)
{
	for (uint32_t i = 0; i < t->v->n; i++) {
		struct row r = {.t = t, .s = &t->v->snap[i], .kind = ROW_SLOT};

		if (r.s->role == role)
			put_row(&r, c, n);
	}
}

/* Breaks the text at spaces, and where a longer line would be hard to read. */
static void paragraph(const struct table *t, const char *text)
{
	int width = t->style->width < 100 ? t->style->width : 100;
	int at = 0;

	while (*text != '\0') {
		int len = (int)strcspn(text, " ");

		if (at > 0 && at + 1 + len > width) {
			fputc('\n', t->out);
			at = 0;
		}
		fprintf(t->out, "%s%.*s", at > 0 ? " " : "", len, text);
		at += len + (at > 0);
		text += len + (text[len] != '\0');
	}
	fputc('\n', t->out);
}

/* The columns that did not go in. */
static void left_out(const struct table *t, const struct column *c, size_t n)
{
	char text[256] = "(no room for:";

	for (size_t i = 0; i < n; i++) {
		size_t used = strlen(text), len = strlen(c[i].head);
		bool word = len > 0 && c[i].head[len - 1] != '-';

		snprintf(text + used, sizeof(text) - used, "%s %s%s%s",
			 i > 0 ? "," : "", c[i].head, word ? " " : "",
			 c[i].sub);
	}
	strncat(text, ")", sizeof(text) - strlen(text) - 1);
	paragraph(t, text);
}

static void block(const struct table *t, const struct column *c, size_t n)
{
	struct row total = {.t = t, .s = &t->v->workers, .kind = ROW_WORKERS};
	size_t all = n;

	n = fitting(t, c, n);
	put_heads(t, c, n);
	put_role(t, SHM_WORKER, c, n);
	put_row(&total, c, n);
	put_role(t, SHM_DRIVER, c, n);
	if (n < all)
		left_out(t, c + n, all - n);
}

/* ---- the foot ---- */

static void doubt(const struct table *t, const struct shm_snap *s,
		  const char *what)
{
	char text[160];

	snprintf(text, sizeof(text), "%s %u: %s", view_role(s->role), s->number,
		 what);
	paint(t, RED);
	paragraph(t, text);
	paint(t, PLAIN);
}

static void foot(const struct table *t)
{
	bool holds = true;

	fputc('\n', t->out);
	for (uint32_t i = 0; i < t->v->n; i++) {
		const struct shm_snap *s = &t->v->snap[i];

		if (s->torn) {
			doubt(t, s,
			      "stopped inside an event: its figures may "
			      "be off by that one");
		} else if (!view_identity(t->v, s).holds) {
			holds = false;
			doubt(t, s,
			      "begun is not full + resumed + failed + in "
			      "handshake: its figures are wrong");
		}
	}
	if (holds)
		fprintf(t->out,
			"accepted = full + resumed + failed + in "
			"handshake %s\n",
			sign(t, "✓", "ok"));
	paragraph(t, "All since the start. Crypto is CPU time in the TLS "
		     "library; CPU per handshake (h.) has everything the "
		     "process used in it. tstat --json has every counter.");
}

void table_print(FILE *out, const struct view *v, const struct style *style)
{
	struct style s = *style;
	struct table t = {.out = out, .v = v, .style = &s};

	if (s.width < WIDTH_MIN)
		s.width = WIDTH_MIN;
	head(&t);
	if (v->n == 0) {
		fputs("\nno worker and no driver yet\n", out);
		return;
	}
	block(&t, counts, ARRAY_LEN(counts));
	block(&t, costs, ARRAY_LEN(costs));
	foot(&t);
}
