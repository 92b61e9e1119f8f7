/* SPDX-License-Identifier: MIT */
#include "shm/fmt.h"

#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Writes digits of n from the end, a comma after every third. */
char *fmt_count(char buf[static FMT_LEN], uint64_t n)
{
	char tmp[FMT_LEN];
	size_t at = sizeof(tmp);
	int digits = 0;

	tmp[--at] = '\0';
	do {
		if (digits > 0 && digits % 3 == 0)
			tmp[--at] = ',';
		tmp[--at] = (char)('0' + n % 10);
		n /= 10;
		digits++;
	} while (n > 0);
	memcpy(buf, tmp + at, sizeof(tmp) - at);
	return buf;
}

/* The decimals are made from integers: printf would follow the locale. */
char *fmt_fixed(char buf[static FMT_LEN], double v, int decimals)
{
	char whole[FMT_LEN];
	uint64_t scale = 1, n;

	if (!isfinite(v) || fabs(v) > 1e15) {
		memcpy(buf, "n/a", 4);
		return buf;
	}
	for (int i = 0; i < decimals; i++)
		scale *= 10;
	n = (uint64_t)llround(fabs(v) * (double)scale);
	fmt_count(whole, n / scale);
	snprintf(buf, FMT_LEN, "%s%.24s%s", v < 0 && n ? "-" : "", whole,
		 decimals > 0 ? "." : "");
	for (size_t at = strlen(buf); decimals > 0; decimals--, at++) {
		scale /= 10;
		buf[at] = (char)('0' + n / scale % 10);
		buf[at + 1] = '\0';
	}
	return buf;
}

/* Three significant digits at least, never an exponent. */
static int decimals_of(double v)
{
	double a = fabs(v);

	if (a < 9.995)
		return 2;
	return a < 99.95 ? 1 : 0;
}

char *fmt_rate(char buf[static FMT_LEN], double v, int width)
{
	static const char *const suffix[] = {"", "k", "M", "G", "T"};
	char num[FMT_LEN];
	size_t i = 0;

	fmt_fixed(buf, v, decimals_of(v));
	while (isfinite(v) && strlen(buf) > (size_t)width &&
	       i + 1 < sizeof(suffix) / sizeof(suffix[0])) {
		v /= 1000;
		i++;
		fmt_fixed(num, v, decimals_of(v));
		snprintf(buf, FMT_LEN, "%.30s%s", num, suffix[i]);
	}
	return buf;
}

char *fmt_ms(char buf[static FMT_LEN], uint64_t ns)
{
	double ms = (double)ns / 1e6;

	return fmt_fixed(buf, ms, decimals_of(ms));
}

char *fmt_us(char buf[static FMT_LEN], double ns)
{
	double us = ns / 1e3;

	return fmt_fixed(buf, us, decimals_of(us));
}

char *fmt_bytes(char buf[static FMT_LEN], double bytes)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	char num[FMT_LEN];
	size_t i = 0;

	while (bytes >= 1024 && i + 1 < sizeof(unit) / sizeof(unit[0])) {
		bytes /= 1024;
		i++;
	}
	fmt_fixed(num, bytes, i == 0 ? 0 : 1);
	snprintf(buf, FMT_LEN, "%.30s %s", num, unit[i]);
	return buf;
}

size_t fmt_columns(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		if (((unsigned char)*text & 0xc0) != 0x80)
			n++;
	return n;
}

bool fmt_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
