/* SPDX-License-Identifier: MIT */
#include "shm/ctr.h"

#include "shm/base.h"

#include <string.h>

#define COUNTER(name, k, u, l, r, help)                                 \
	_Static_assert(sizeof(#name) <= CTR_NAME_MAX, "name too long"); \
	_Static_assert(sizeof(help) <= CTR_HELP_MAX, "help too long");
#include "shm/counters.def"
#define HISTOGRAM(name, u, r, counter, help)                               \
	_Static_assert(sizeof(#name) <= CTR_NAME_MAX, "name too long");    \
	_Static_assert(sizeof(#counter) <= CTR_NAME_MAX, "name too long"); \
	_Static_assert(sizeof(help) <= CTR_HELP_MAX, "help too long");
#include "shm/histograms.def"

const struct ctr_desc ctr_descs[CTR_IDS + HIST_IDS] = {
#define COUNTER(n, k, u, l, r, h)                                \
	[CTR_ID_##n] = {.name = #n,                              \
			.counter = "-",                          \
			.help = h,                               \
			.kind = CTR_##k,                         \
			.unit = CTR_##u,                         \
			.level = CTR_##l,                        \
			.role = CTR_##r,                         \
			.offset = offsetof(struct ctr_block, n), \
			.size = sizeof(uint64_t)},
#include "shm/counters.def"
#define HISTOGRAM(n, u, r, c, h)                                             \
	[CTR_IDS + HIST_ID_##n] = {.name = #n,                               \
				   .counter = #c,                            \
				   .help = h,                                \
				   .kind = CTR_HISTOGRAM,                    \
				   .unit = CTR_##u,                          \
				   .level = CTR_INFO,                        \
				   .role = CTR_##r,                          \
				   .offset = offsetof(struct hist_block, n), \
				   .size = sizeof(struct hist)},
#include "shm/histograms.def"
};

/* FNV-1a, 64 bits: offset basis and prime of its authors. */
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t fnv(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len-- > 0)
		h = (h ^ *p++) * FNV_PRIME;
	return h;
}

uint64_t ctr_rows_hash(void)
{
	uint64_t h = FNV_BASIS;

	for (size_t i = 0; i < ARRAY_LEN(ctr_descs); i++) {
		const struct ctr_desc *d = &ctr_descs[i];

		/* With the NUL, so that two rows cannot run together. */
		h = fnv(h, d->name, strlen(d->name) + 1);
		h = fnv(h, &d->kind, sizeof(d->kind));
		h = fnv(h, &d->unit, sizeof(d->unit));
		h = fnv(h, &d->role, sizeof(d->role));
	}
	return h;
}

/* The values may come from a segment: any number. */
static const char *word(const char *const *words, size_t n, uint32_t i)
{
	return i < n && words[i] != NULL ? words[i] : "unknown";
}

const char *ctr_kind_name(uint32_t kind)
{
	static const char *const words[] = {
		[CTR_SUM] = "sum",
		[CTR_GAUGE] = "gauge",
		[CTR_MAX] = "max",
		[CTR_HISTOGRAM] = "histogram",
	};

	return word(words, ARRAY_LEN(words), kind);
}

const char *ctr_unit_name(uint32_t unit)
{
	static const char *const words[] = {
		[CTR_COUNT] = "count",
		[CTR_NS] = "ns",
		[CTR_BYTES] = "bytes",
	};

	return word(words, ARRAY_LEN(words), unit);
}

static const char *level_name(uint32_t level)
{
	static const char *const words[] = {
		[CTR_INFO] = "info",
		[CTR_DEBUG] = "debug",
	};

	return word(words, ARRAY_LEN(words), level);
}

const char *ctr_role_name(uint32_t role)
{
	static const char *const words[] = {
		[CTR_WORKER] = "worker",
		[CTR_DRIVER] = "driver",
		[CTR_BOTH] = "both",
	};

	return word(words, ARRAY_LEN(words), role);
}

bool ctr_is_failure(const struct ctr_desc *d)
{
	return d->kind == CTR_SUM &&
	       strncmp(d->name, "failed_", strlen("failed_")) == 0;
}

/* ---- the reference page ---- */

static void describe_counters(FILE *out)
{
	fputs("## Counters\n\n"
	      "| name | kind | unit | level | role | what it counts |\n"
	      "|---|---|---|---|---|---|\n",
	      out);
	for (size_t i = 0; i < CTR_IDS; i++) {
		const struct ctr_desc *d = &ctr_descs[i];

		fprintf(out, "| `%s` | %s | %s | %s | %s | %s |\n", d->name,
			ctr_kind_name(d->kind), ctr_unit_name(d->unit),
			level_name(d->level), ctr_role_name(d->role), d->help);
	}
}

static void describe_histograms(FILE *out)
{
	fputs("\n## Histograms\n\n"
	      "| name | unit | role | counter | what it measures |\n"
	      "|---|---|---|---|---|\n",
	      out);
	for (size_t i = CTR_IDS; i < CTR_IDS + HIST_IDS; i++) {
		const struct ctr_desc *d = &ctr_descs[i];
		bool tied = strcmp(d->counter, "-") != 0;

		fprintf(out, "| `%s` | %s | %s | %s%s%s | %s |\n", d->name,
			ctr_unit_name(d->unit), ctr_role_name(d->role),
			tied ? "`" : "", d->counter, tied ? "`" : "", d->help);
	}
}

static const char page_head[] =
	"<!-- Made by `tterm --describe counters` from shm/counters.def and\n"
	"     shm/histograms.def: change those, then `make docs`. -->\n"
	"# Counters and histograms\n\n"
	"Every worker and every driver has a slot with all of these; `tstat`\n"
	"and `result.json` show them by these names.\n\n"
	"- Kind: a *sum* never falls and adds up over slots; a *gauge* is what "
	"holds\n"
	"  now and adds up over slots; of a *max* the largest over slots "
	"counts.\n"
	"- Role: who writes it. A worker's slot has 0 where the role is "
	"driver, "
	"and\n"
	"  the other way round.\n"
	"- At any moment, in every slot and in total: `conn_accepted` (of a "
	"driver:\n"
	"  `conn_started`) = `hs_full` + `hs_resumed` + all `failed_*` +\n"
	"  `hs_in_progress`.\n"
	"- When a process dies, its sums are kept. What it had in progress "
	"goes "
	"to\n"
	"  `failed_died`, what it had open past the handshake to `died_open`.\n"
	"  A handshake that was being counted at that very moment is counted,\n"
	"  though its CPU time may be missing from the `crypto_*` sums.\n\n";

static void describe_error(FILE *out)
{
	fprintf(out,
		"\n## Error of the histograms\n\n"
		"%d buckets: %d ns wide up to %u ns, then %d to each power of "
		"two up to 2^%d ns (68.7 s).\n"
		"A percentile is the middle of its bucket, so from 512 ns to "
		"68.7 s it is off by at most\n"
		"1/%d of the value (1.6 %%), and below that by at most 8 ns. "
		"Larger values count in the last\n"
		"bucket. The maximum is kept apart and exact, and so is the "
		"mean (sum / count); only a value\n"
		"that was being counted when its process was killed is counted "
		"as the mean.\n"
		"Histograms are merged by adding buckets, never by averaging "
		"percentiles.\n",
		HIST_BUCKETS, 1 << HIST_UNIT_SHIFT,
		1u << (HIST_UNIT_SHIFT + HIST_SUB_BITS + 1), 1 << HIST_SUB_BITS,
		HIST_TOP_BITS, 2 << HIST_SUB_BITS);
}

void ctr_describe(FILE *out)
{
	fputs(page_head, out);
	describe_counters(out);
	describe_histograms(out);
	describe_error(out);
}
