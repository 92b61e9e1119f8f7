/* SPDX-License-Identifier: MIT */
/*
 * The log: one event, one line, on stderr:
 *
 *     2.041 4711 worker/3 worker_exit slot=3 status=1
 *
 * seconds since the program started, pid, role, event word, key=value. Lower
 * layers return errors; the layer that decides logs. Nothing per connection
 * above DEBUG. The log is the only process-wide variable of the project.
 */
#ifndef SHM_LOG_H
#define SHM_LOG_H

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG
};

/* Once in main, and again in a forked child with its role. `role` is copied. */
void log_init(const char *role, enum log_level level);
void log_set_role(const char *role);
enum log_level log_level(void);

/* "error", "warn", "info", "debug": 0, or -EINVAL. */
int log_parse_level(const char *text, enum log_level *out);

/*
 * `fmt` is fields with a space between them: "slot=%u why=\"%s\"". A value with
 * a space, quote, backslash or control character, or none at all, is put in
 * quotes and escaped, whether the format has quotes around it or not; the
 * quotes only say that spaces of the format itself belong to the value.
 */
void log_line(enum log_level level, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(event, ...) log_line(LOG_ERROR, event, __VA_ARGS__)
#define log_warn(event, ...)  log_line(LOG_WARN, event, __VA_ARGS__)
#define log_info(event, ...)  log_line(LOG_INFO, event, __VA_ARGS__)
#define log_debug(event, ...) log_line(LOG_DEBUG, event, __VA_ARGS__)

#endif
