/* SPDX-License-Identifier: MIT */
/*
 * Numbers with units, both ways, independent of the locale. What is refused is
 * told in one sentence that names the text and what to write instead.
 */
#ifndef CONFIG_UNIT_H
#define CONFIG_UNIT_H

#include <stddef.h>
#include <stdint.h>

/*
 * "250ns", "250us", "400ms", "5s", "1.5s", "2m", "1h", "7d" in ns, exactly:
 * what is no whole number of ns is refused, as is a bare number. 0, or -EINVAL
 * with one sentence in err ("\"400\" has no unit: write 400ms or 400s").
 */
int unit_duration(const char *text, uint64_t *out_ns, char *err, size_t len);

/* "512B", "1KiB", "64MiB", "1GiB", and kB, MB, GB (powers of ten), in bytes. */
int unit_size(const char *text, uint64_t *out_bytes, char *err, size_t len);

/*
 * "2000/s", "0.5/s", "120/min" in thousandths per second, exactly: what is no
 * whole number of these is refused.
 */
int unit_rate(const char *text, uint64_t *out_milli, char *err, size_t len);

/* "50%", in whole percents. */
int unit_percent(const char *text, uint64_t *out, char *err, size_t len);

/* Decimal digits only: no sign, no 0x, no leading 0, no underscore. */
int unit_uint(const char *text, uint64_t *out, char *err, size_t len);

/* The shortest exact form that is read back as the same. */
void unit_print_duration(uint64_t ns, char *buf, size_t len);
void unit_print_size(uint64_t bytes, char *buf, size_t len);
void unit_print_rate(uint64_t milli, char *buf, size_t len);
void unit_print_percent(uint64_t percent, char *buf, size_t len);

/*
 * A CPU list, "0-3,8": number of CPUs in `cpus` (at most `max`), or -EINVAL
 * with one sentence in err. Order is kept, a CPU named twice is refused.
 */
int unit_cpus(const char *text, int *cpus, size_t max, char *err, size_t len);

/*
 * Text for a message: in double quotes, cut after about 60 bytes, bytes that
 * would move a terminal's cursor as \xNN. Returns buf.
 */
#define UNIT_QUOTE_LEN 280
char *unit_quote(char buf[static UNIT_QUOTE_LEN], const char *text);

#endif
