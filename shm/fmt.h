/* SPDX-License-Identifier: MIT */
/*
 * Numbers as people read them, independent of the locale: thousands by comma,
 * decimals by point, "n/a" where there is no figure. Every function writes a
 * NUL-terminated text into `buf` and returns it.
 */
#ifndef SHM_FMT_H
#define SHM_FMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FMT_LEN 40

/* 1234567 -> "1,234,567" */
char *fmt_count(char buf[static FMT_LEN], uint64_t n);

/*
 * At most `width` characters: "1,234", "123k", "12.3M". A value below 10 gets
 * two decimals, below 100 one. A value that is not finite becomes "n/a".
 */
char *fmt_rate(char buf[static FMT_LEN], double v, int width);

/* `v` with `decimals` places and thousands; "n/a" if not finite. */
char *fmt_fixed(char buf[static FMT_LEN], double v, int decimals);

/* Nanoseconds as milliseconds or microseconds with three significant digits,
 * without the unit: 12345678 -> "12.3" (ms). */
char *fmt_ms(char buf[static FMT_LEN], uint64_t ns);
char *fmt_us(char buf[static FMT_LEN], double ns);

/* "1.4 KiB", "23 B", "1.0 GiB" */
char *fmt_bytes(char buf[static FMT_LEN], double bytes);

/* Columns that a UTF-8 text takes, as long as no letter is a wide one. */
size_t fmt_columns(const char *text);

/* Does the terminal's character set have the signs we draw (setlocale first)?
 */
bool fmt_utf8(void);

#endif
