/* SPDX-License-Identifier: MIT */
#include "config/unit.h"

#include "shm/base.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* No machine numbers its CPUs higher; keeps a range in a CPU list short. */
#define CPU_LIMIT 65536

struct unit {
	const char *name;
	uint64_t scale;
};

/* Largest first, as unit_print() tries them. */
static const struct unit durations[] = {
	{"d", 86400 * NS_PER_S},
	{"h", 3600 * NS_PER_S},
	{"m", 60 * NS_PER_S},
	{"s", NS_PER_S},
	{"ms", NS_PER_MS},
	{"us", NS_PER_US},
	{"ns", 1},
};

static const struct unit sizes[] = {
	{"GiB", UINT64_C(1) << 30},
	{"GB", 1000000000},
	{"MiB", 1 << 20},
	{"MB", 1000000},
	{"KiB", 1 << 10},
	{"kB", 1000},
	{"B", 1},
};

/*
 * A minute's worth of thousandths per second is a second's sixtieth: so read
 * and then divided, either unit is exact.
 */
#define RATE_PARTS 60

static const struct unit rates[] = {
	{"/s", UINT64_C(1000) * RATE_PARTS},
	{"/min", 1000},
};

static const struct unit percents[] = {
	{"%", 1},
};

/* What a kind of number is called, and what a message proposes. */
struct kind {
	const struct unit *units;
	size_t nunits;
	const char *example;	 /* for a text that has no number at all */
	const char *small, *big; /* units for a bare number; big may be NULL */
	const char *names;
	const char *least; /* of which it must be a whole number */
};

static const struct kind duration = {durations,
				     ARRAY_LEN(durations),
				     "a time such as 5s or 400ms",
				     "ms",
				     "s",
				     "ns, us, ms, s, m, h or d",
				     "ns"};
static const struct kind size = {sizes,
				 ARRAY_LEN(sizes),
				 "a size such as 512B or 1KiB",
				 "B",
				 "KiB",
				 "B, KiB, MiB, GiB, kB, MB or GB",
				 "B"};
static const struct kind rate = {rates,
				 ARRAY_LEN(rates),
				 "a rate such as 2000/s or 120/min",
				 "/s",
				 "/min",
				 "/s or /min",
				 "thousandths per second"};
static const struct kind percent = {
	percents, ARRAY_LEN(percents), "a percentage such as 50%", "%", NULL,
	"%",	  "percents"};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t digits(const char *p)
{
	size_t n = 0;

	while (is_digit(p[n]))
		n++;
	return n;
}

/*
 * May this byte go to a terminal as it is? U+0080 to U+009F move cursors as
 * well: 0xc2 and a byte below 0xa0.
 */
static bool harmless(unsigned char before, unsigned char c, unsigned char next)
{
	return c >= 0x20 && c != 0x7f && !(c == 0xc2 && next < 0xa0) &&
	       !(before == 0xc2 && c >= 0x80 && c < 0xa0);
}

char *unit_quote(char buf[static UNIT_QUOTE_LEN], const char *text)
{
	size_t n = 0, seen = 0;
	unsigned char before = 0;

	buf[n++] = '"';
	for (; text[seen] != '\0' && seen < 60; seen++) {
		unsigned char c = (unsigned char)text[seen];
		unsigned char next = (unsigned char)text[seen + 1];

		if (c == '"' || c == '\\')
			n += (size_t)sprintf(buf + n, "\\%c", c);
		else if (harmless(before, c, next))
			buf[n++] = (char)c;
		else
			n += (size_t)sprintf(buf + n, "\\x%02x", c);
		before = c;
	}
	/* Not in the middle of a UTF-8 character. */
	for (; ((unsigned char)text[seen] & 0xc0) == 0x80 && seen < 64 &&
	       harmless(before, (unsigned char)text[seen], 0);
	     seen++) {
		before = 0;
		buf[n++] = text[seen];
	}
	strcpy(buf + n, text[seen] == '\0' ? "\"" : "\"...");
	return buf;
}

/* Writes `"text" sentence`. */
__attribute__((format(printf, 4, 5))) static int refuse(char *err, size_t len,
							const char *text,
							const char *fmt, ...)
{
	char quoted[UNIT_QUOTE_LEN], sentence[160];
	va_list args;

	va_start(args, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, args);
	va_end(args);
	snprintf(err, len, "%s %s", unit_quote(quoted, text), sentence);
	return -EINVAL;
}

/* Faults that all numbers share, by the first characters. */
static int refuse_start(const char *text, const char *example, char *err,
			size_t len)
{
	if (text[0] == '\0')
		return refuse(err, len, text, "is empty: write %s", example);
	if (text[0] == '-' && is_digit(text[1]))
		return refuse(err, len, text, "is negative: write %s", example);
	if (text[0] == '+' && is_digit(text[1]))
		return refuse(err, len, text, "has a sign: leave the + out");
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return refuse(err, len, text,
			      "is hexadecimal: write it in decimal digits");
	if (text[0] == '.' && is_digit(text[1]))
		return refuse(err, len, text,
			      "begins with a point: write 0 before it");
	if (!is_digit(text[0]))
		return refuse(err, len, text, "is not a number: write %s",
			      example);
	if (text[0] == '0' && is_digit(text[1]))
		return refuse(err, len, text,
			      "begins with 0: leave the leading 0 out");
	return 0;
}

/* Digits at p as a number; false if it does not fit. */
static bool to_number(const char *p, size_t n, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(p[i] - '0'), &v))
			return false;
	*out = v;
	return true;
}

int unit_uint(const char *text, uint64_t *out, char *err, size_t len)
{
	size_t n = digits(text);
	int rc = refuse_start(text, "a whole number such as 4", err, len);

	if (rc < 0)
		return rc;
	if (text[n] == '_' || text[n] == ',' || text[n] == '\'')
		return refuse(err, len, text,
			      "has a %c: write the digits alone", text[n]);
	if (text[n] != '\0')
		return refuse(err, len, text,
			      "is not a whole number: write digits alone");
	if (!to_number(text, n, out))
		return refuse(err, len, text, "is too large for any option");
	return 0;
}

/* A decimal number: `whole`, then `nfrac` digits after the point. */
struct decimal {
	uint64_t whole, frac;
	size_t nfrac;
	const char *end;
};

static int read_decimal(const char *text, struct decimal *d, char *err,
			size_t len)
{
	size_t n = digits(text);
	const char *p = text + n;

	*d = (struct decimal){.end = p};
	if (!to_number(text, n, &d->whole))
		return refuse(err, len, text, "is too large for any option");
	if (*p != '.')
		return 0;
	n = digits(p + 1);
	d->end = p + 1 + n;
	if (n == 0)
		return refuse(err, len, text,
			      "has no digit after the point: leave it out");
	while (n > 0 && p[n] == '0')
		n--;
	d->nfrac = n;
	/* 10^18 is the largest power of ten below 2^64 with room to spare. */
	if (n > 18)
		return refuse(err, len, text, "has too many decimals");
	to_number(p + 1, n, &d->frac);
	return 0;
}

static const struct unit *find_unit(const struct kind *kind, const char *name)
{
	for (size_t i = 0; i < kind->nunits; i++)
		if (strcmp(kind->units[i].name, name) == 0)
			return &kind->units[i];
	return NULL;
}

static int refuse_unit(const char *text, const char *unit,
		       const struct kind *kind, char *err, size_t len)
{
	int n = (int)(unit - text < 24 ? unit - text : 24);

	if (unit[0] == '\0' && kind->big == NULL)
		return refuse(err, len, text, "has no unit: write %.*s%s", n,
			      text, kind->small);
	if (unit[0] == '\0')
		return refuse(err, len, text,
			      "has no unit: write %.*s%s or %.*s%s", n, text,
			      kind->small, n, text, kind->big);
	if (unit[0] == ' ' && find_unit(kind, unit + strspn(unit, " ")) != NULL)
		return refuse(err, len, text, "has a space: write %.*s%s", n,
			      text, unit + strspn(unit, " "));
	if (unit[0] == '_' || unit[0] == ',')
		return refuse(err, len, text,
			      "has a %c: write the digits alone", unit[0]);
	return refuse(err, len, text, "has no known unit: units are %s",
		      kind->names);
}

/* *out = d * scale, if that is a whole number. */
static int scale_up(const char *text, const struct decimal *d,
		    const struct kind *kind, uint64_t scale, uint64_t *out,
		    char *err, size_t len)
{
	unsigned __int128 v, power = 1;

	for (size_t i = 0; i < d->nfrac; i++)
		power *= 10;
	v = (unsigned __int128)d->frac * scale;
	if (v % power != 0)
		return refuse(err, len, text,
			      "is no whole number of %s: write fewer decimals",
			      kind->least);
	v = v / power + (unsigned __int128)d->whole * scale;
	if (v > UINT64_MAX)
		return refuse(err, len, text, "is too large for any option");
	*out = (uint64_t)v;
	return 0;
}

static int with_unit(const char *text, const struct kind *kind, uint64_t *out,
		     char *err, size_t len)
{
	const struct unit *unit;
	struct decimal d = {0};
	int rc = refuse_start(text, kind->example, err, len);

	if (rc == 0)
		rc = read_decimal(text, &d, err, len);
	if (rc < 0)
		return rc;
	unit = find_unit(kind, d.end);
	if (unit == NULL)
		return refuse_unit(text, d.end, kind, err, len);
	return scale_up(text, &d, kind, unit->scale, out, err, len);
}

int unit_duration(const char *text, uint64_t *out_ns, char *err, size_t len)
{
	return with_unit(text, &duration, out_ns, err, len);
}

int unit_size(const char *text, uint64_t *out_bytes, char *err, size_t len)
{
	return with_unit(text, &size, out_bytes, err, len);
}

int unit_percent(const char *text, uint64_t *out, char *err, size_t len)
{
	return with_unit(text, &percent, out, err, len);
}

int unit_rate(const char *text, uint64_t *out_milli, char *err, size_t len)
{
	char near[40];
	uint64_t v;
	int rc = with_unit(text, &rate, &v, err, len);

	if (rc < 0)
		return rc;
	if (v % RATE_PARTS != 0) {
		unit_print_rate(v / RATE_PARTS + 1, near, sizeof(near));
		return refuse(err, len, text,
			      "is no whole number of %s: write %s", rate.least,
			      near);
	}
	*out_milli = v / RATE_PARTS;
	return 0;
}

/*
 * v in this unit, if that is exact with at most three decimals and not below 1
 * ("0.4s" is as short as 400ms but harder to read).
 */
static bool print_in(const struct unit *unit, uint64_t v, char *buf, size_t len)
{
	uint64_t whole = v / unit->scale, rest = v % unit->scale;
	unsigned __int128 thousandths = (unsigned __int128)rest * 1000;
	char frac[8] = "";

	if (whole == 0 || thousandths % unit->scale != 0)
		return false;
	if (rest != 0) {
		snprintf(frac, sizeof(frac), ".%03u",
			 (unsigned)(thousandths / unit->scale));
		for (size_t n = strlen(frac); frac[n - 1] == '0'; n--)
			frac[n - 1] = '\0';
	}
	snprintf(buf, len, "%" PRIu64 "%s%s", whole, frac, unit->name);
	return true;
}

static void print(const struct kind *kind, uint64_t v, char *buf, size_t len)
{
	char best[40], this[40];

	snprintf(best, sizeof(best), "%" PRIu64 "%s", v,
		 v == 0 && kind == &duration
			 ? "s"
			 : kind->units[kind->nunits - 1].name);
	for (size_t i = kind->nunits; i-- > 0;)
		if (print_in(&kind->units[i], v, this, sizeof(this)) &&
		    strlen(this) <= strlen(best))
			strcpy(best, this);
	snprintf(buf, len, "%s", best);
}

void unit_print_duration(uint64_t ns, char *buf, size_t len)
{
	print(&duration, ns, buf, len);
}

void unit_print_size(uint64_t bytes, char *buf, size_t len)
{
	print(&size, bytes, buf, len);
}

void unit_print_rate(uint64_t milli, char *buf, size_t len)
{
	char frac[8];
	int n = snprintf(frac, sizeof(frac), ".%03u", (unsigned)(milli % 1000));

	while (frac[n - 1] == '0')
		frac[--n] = '\0';
	snprintf(buf, len, "%" PRIu64 "%s/s", milli / 1000, n > 1 ? frac : "");
}

void unit_print_percent(uint64_t value, char *buf, size_t len)
{
	snprintf(buf, len, "%" PRIu64 "%%", value);
}

/* "3" or "3-5" at *p; moves *p behind it. */
static int read_range(const char **p, uint64_t *first, uint64_t *last)
{
	size_t n = digits(*p);

	if (n == 0 || !to_number(*p, n, first))
		return -EINVAL;
	*p += n;
	*last = *first;
	if (**p != '-')
		return 0;
	(*p)++;
	n = digits(*p);
	if (n == 0 || !to_number(*p, n, last))
		return -EINVAL;
	*p += n;
	return 0;
}

static bool among(const int *cpus, size_t n, int cpu)
{
	for (size_t i = 0; i < n; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}

static int add_range(const char *text, uint64_t first, uint64_t last, int *cpus,
		     size_t *n, size_t max, char *err, size_t len)
{
	if (last < first)
		return refuse(err, len, text,
			      "has a range that falls: write the lower CPU "
			      "first");
	if (last >= CPU_LIMIT)
		return refuse(err, len, text, "names a CPU above %d",
			      CPU_LIMIT - 1);
	for (uint64_t cpu = first; cpu <= last; cpu++) {
		if (among(cpus, *n, (int)cpu))
			return refuse(err, len, text, "names CPU %d twice",
				      (int)cpu);
		if (*n == max)
			return refuse(err, len, text,
				      "names more than %zu CPUs", max);
		cpus[(*n)++] = (int)cpu;
	}
	return 0;
}

int unit_cpus(const char *text, int *cpus, size_t max, char *err, size_t len)
{
	const char *p = text;
	uint64_t first, last;
	size_t n = 0;
	int rc;

	do {
		if (read_range(&p, &first, &last) < 0 ||
		    (*p != '\0' && *p != ','))
			return refuse(err, len, text,
				      "is not a CPU list: write one such as "
				      "0-3,8");
		rc = add_range(text, first, last, cpus, &n, max, err, len);
		if (rc < 0)
			return rc;
	} while (*p++ == ',');
	return (int)n;
}
