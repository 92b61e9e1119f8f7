/* SPDX-License-Identifier: MIT */
#include "tools/tstat.h"

#include "shm/clk.h"
#include "shm/fmt.h"
#include "tests/unit/shm/seg_fixture.h"

#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <signal.h>
#include <sys/mman.h>

/* ---- running the program ---- */

struct ran {
	int status;
	char *out, *err; /* borrowed, from `texts` */
};

static char *texts[64];
static size_t ntexts;

static void forget(void)
{
	while (ntexts > 0)
		free(texts[--ntexts]);
}

static char *slurp(int fd)
{
	off_t len = lseek(fd, 0, SEEK_END);
	char *text = calloc(1, (size_t)len + 1);

	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(pread(fd, text, (size_t)len, 0), len);
	close(fd);
	ck_assert_uint_lt(ntexts, ARRAY_LEN(texts));
	texts[ntexts++] = text;
	return text;
}

_Noreturn static void child(char *const argv[], int out, int err)
{
	int argc = 0;

	while (argv[argc] != NULL)
		argc++;
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	_exit(tstat_run(argc, (char **)argv));
}

static struct ran finish(pid_t pid, int out, int err)
{
	struct ran r;
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	r.status = WEXITSTATUS(status);
	r.out = slurp(out);
	r.err = slurp(err);
	return r;
}

static struct ran run_args(char *const argv[])
{
	int out = memfd_create("out", MFD_CLOEXEC);
	int err = memfd_create("err", MFD_CLOEXEC);
	pid_t pid;

	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(argv, out, err);
	return finish(pid, out, err);
}

#define RUN(...) run_args((char *[]){(char *)"tstat", __VA_ARGS__, NULL})

/* One line on stderr that begins with our name, nothing on stdout, status 2. */
static void check_refused(const struct ran *r, const char *why)
{
	size_t len = strlen(r->err);

	ck_assert_int_eq(r->status, EXIT_USAGE);
	ck_assert_str_eq(r->out, "");
	ck_assert_int_eq(strncmp(r->err, "tstat: ", 7), 0);
	ck_assert_ptr_eq(strchr(r->err, '\n'), r->err + len - 1);
	ck_assert_msg(strstr(r->err, why) != NULL, "no \"%s\" in: %s", why,
		      r->err);
}

/* ---- a segment as a run leaves it ---- */

static struct shm_seg *seg;

static void fill(struct shm_slot *s, enum shm_role role, uint32_t number,
		 unsigned handshakes)
{
	shm_slot_assign(s, role, number, getpid(), role == SHM_WORKER ? 3 : -1);
	atomic_store(&s->state, SHM_SLOT_RUNNING);
	for (unsigned i = 0; i < handshakes; i++)
		full_handshake(s, NS_PER_MS);
	ctr_set(&s->ctr.cpu_ns, handshakes * NS_PER_MS);
	if (role == SHM_DRIVER) {
		ctr_set(&s->ctr.conn_started, handshakes);
		ctr_set(&s->ctr.conn_accepted, 0);
		ctr_set(&s->ctr.tickets_received, 4711);
	}
}

static void set_up(void)
{
	struct shm_phase phase = {.name = "resumed",
				  .state = SHM_PHASE_MEASURE,
				  .index = 1,
				  .count = 2};
	struct shm_info info = {.name = "quick",
				.version = "1.2.3 abc",
				.library = "OpenSSL 3.0.22",
				.certificate = "ECDSA P-256",
				.groups = "X25519",
				.listen = "127.0.0.1:8443",
				.accept = "reuseport"};

	unsetenv("COLUMNS");
	unsetenv("NO_COLOR");
	name_segment();
	seg = create(4);
	shm_seg_set_info(seg, &info);
	phase.began_ns = clk_now();
	phase.duration_ns = 100 * NS_PER_S;
	shm_seg_set_phase(seg, &phase);
	fill(shm_seg_slot(seg, 0), SHM_WORKER, 0, 1234);
	fill(shm_seg_slot(seg, 1), SHM_WORKER, 1, 66);
	fill(shm_seg_slot(seg, 2), SHM_DRIVER, 0, 1300);
}

static void tear_down(void)
{
	forget();
	shm_seg_close(&seg);
	drop_segment();
}

static void check_width(const char *text, size_t max)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);

		ck_assert_ptr_nonnull(line);
		ck_assert_msg(fmt_columns(line) <= max, "%zu columns: %s",
			      fmt_columns(line), line);
		ck_assert_msg(len == 0 || line[len - 1] != ' ',
			      "space at the end: '%s'", line);
		free(line);
		text += len + (text[len] == '\n');
	}
}

/* ---- the table ---- */

START_TEST(the_table_says_what_runs_and_what_it_did)
{
	struct ran r = RUN(seg_name);
	static const char *const want[] = {
		"quick",
		"running",
		"phase 2 of 2, resumed",
		"measuring",
		" s left",
		"OpenSSL 3.0.22",
		"ECDSA P-256",
		"X25519",
		"127.0.0.1:8443",
		"tterm 1.2.3 abc",
		"worker 0",
		"worker 1",
		"driver 0",
		"1,234",
		"1,300",
		"4,711",
		"n/a",
		"in handshake ok",
		/* 1 ms each, half of it crypto. */
		"  500 ",
		" 1,000 ",
		" 1.00 ",
	};

	ck_assert_str_eq(r.err, "");
	ck_assert_int_eq(r.status, 0);
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		ck_assert_msg(strstr(r.out, want[i]) != NULL,
			      "no \"%s\" in:\n%s", want[i], r.out);
	ck_assert_ptr_null(strstr(r.out, "nan"));
	ck_assert_ptr_null(strchr(r.out, '\033'));
	ck_assert_str_eq(RUN((char *)"--once", seg_name).err, "");
}
END_TEST

START_TEST(the_table_fits_its_width)
{
	static const char *const widths[] = {"40", "64", "80", "100", "200"};
	static const size_t max[] = {40, 64, 80, 100, 100};
	struct ran r;

	/* As large as a counter can be. */
	for (size_t i = 0; i < CTR_IDS; i++)
		ctr_set((_Atomic uint64_t *)&shm_seg_slot(seg, 1)->ctr + i,
			UINT64_MAX / 2);
	setenv("COLUMNS", widths[_i], 1);
	r = RUN(seg_name);
	ck_assert_int_eq(r.status, 0);
	check_width(r.out, max[_i]);
	ck_assert_int_eq(strstr(r.out, "no room for") != NULL, _i < 3);
	ck_assert_ptr_nonnull(strstr(r.out, "worker 1"));
}
END_TEST

START_TEST(a_slot_that_did_nothing_has_no_figures)
{
	struct ran r;
	const char *row;

	fill(shm_seg_slot(seg, 3), SHM_WORKER, 2, 0);
	r = RUN(seg_name);
	row = strstr(r.out, "worker 2");
	ck_assert_ptr_nonnull(row);
	row = strstr(row + 1, "worker 2");
	ck_assert_ptr_nonnull(row);
	/* Seven figures of the second block, none of them a number. */
	for (int i = 0; i < 7; i++) {
		row = strstr(row, "n/a");
		ck_assert_ptr_nonnull(row);
		row += 3;
	}
	ck_assert_ptr_null(strstr(r.out, "nan"));
	ck_assert_ptr_null(strstr(r.out, "inf"));
}
END_TEST

START_TEST(colour_is_for_terminals_and_marks_drivers)
{
	struct style style = {.colour = true, .utf8 = true, .width = 100};
	struct view v;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ck_assert_int_eq(view_take(&v, seg), 0);
	table_print(f, &v, &style);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text, "\033[2mdriver 0"));
	ck_assert_ptr_nonnull(strstr(text, "\xc2\xb5s"));
	ck_assert_ptr_null(strstr(text, "\033[2mworker"));
	view_fini(&v);
	free(text);
}
END_TEST

START_TEST(what_does_not_add_up_is_said)
{
	struct ran r;

	ctr_add(&shm_seg_slot(seg, 1)->ctr.conn_accepted, 1);
	shm_begin(shm_seg_slot(seg, 2));
	r = RUN(seg_name);
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "worker 1: begun is not full"));
	ck_assert_ptr_nonnull(strstr(r.out, "driver 0: stopped inside"));
	ck_assert_ptr_null(strstr(r.out, "in handshake ok"));
}
END_TEST

START_TEST(a_text_cannot_steer_the_terminal)
{
	struct shm_info info = {.name = "a\033[2J\nb",
				.library = "\xff\xfe\a",
				.listen = "x\r\x7f"};
	struct ran r;
	json_t *j;

	shm_seg_set_info(seg, &info);
	r = RUN(seg_name);
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "a?[2J?b"));
	ck_assert_ptr_null(strpbrk(r.out, "\033\a\r\x7f"));
	r = RUN((char *)"--json", seg_name);
	ck_assert_int_eq(r.status, 0);
	j = json_loads(r.out, 0, NULL);
	ck_assert_ptr_nonnull(j);
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(j, "info"), "library")),
			 "??\a");
	json_decref(j);
}
END_TEST

START_TEST(a_segment_without_slots_in_use_says_so)
{
	struct ran r;

	shm_seg_close(&seg);
	seg = create(2);
	r = RUN(seg_name);
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "no worker and no driver yet"));
}
END_TEST

START_TEST(a_span_reads_well)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} spans[] = {
		{0, "0.0 s"},
		{3270 * NS_PER_MS, "3.2 s"},
		{250 * NS_PER_S, "4 min 10 s"},
		{7500 * NS_PER_S, "2 h 5 min"},
		{273600 * NS_PER_S, "3 d 4 h"},
	};
	char b[40];

	for (size_t i = 0; i < ARRAY_LEN(spans); i++) {
		table_span(b, sizeof(b), spans[i].ns);
		ck_assert_str_eq(b, spans[i].want);
	}
}
END_TEST

/* ---- JSON ---- */

static json_t *member(json_t *o, const char *path)
{
	char copy[128], *save, *key;

	snprintf(copy, sizeof(copy), "%s", path);
	for (key = strtok_r(copy, "/", &save); key != NULL;
	     key = strtok_r(NULL, "/", &save)) {
		json_t *next = json_is_array(o)
				       ? json_array_get(o, (size_t)atoi(key))
				       : json_object_get(o, key);

		ck_assert_msg(next != NULL, "no %s of %s", key, path);
		o = next;
	}
	return o;
}

static uint64_t integer(json_t *o, const char *path)
{
	json_t *j = member(o, path);

	ck_assert_msg(json_is_integer(j), "%s is no integer", path);
	return (uint64_t)json_integer_value(j);
}

static void check_buckets(json_t *hist)
{
	json_t *buckets = member(hist, "buckets"), *b;
	uint64_t n = 0;
	size_t i;

	json_array_foreach(buckets, i, b)
	{
		ck_assert_uint_lt(integer(b, "0"), integer(b, "1"));
		n += integer(b, "2");
	}
	ck_assert_uint_eq(n, integer(hist, "count"));
}

START_TEST(the_json_has_every_row_of_every_slot)
{
	struct ran r = RUN((char *)"--json", seg_name);
	json_t *j = json_loads(r.out, JSON_REJECT_DUPLICATES, NULL);

	ck_assert_str_eq(r.err, "");
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(j);
	ck_assert_uint_eq(integer(j, "schema"), 1);
	ck_assert_uint_eq(json_array_size(member(j, "slots")), 3);
	for (uint32_t s = 0; s < 3; s++) {
		json_t *slot = json_array_get(member(j, "slots"), s);

		for (uint32_t i = 0; i < CTR_IDS; i++) {
			_Atomic uint64_t *c =
				(_Atomic uint64_t *)&shm_seg_slot(seg, s)->ctr +
				i;

			ck_assert_uint_eq(integer(member(slot, "counters"),
						  ctr_descs[i].name),
					  *c);
		}
		for (uint32_t i = 0; i < HIST_IDS; i++)
			check_buckets(member(member(slot, "histograms"),
					     ctr_descs[CTR_IDS + i].name));
		ck_assert(json_is_true(member(slot, "identity/holds")));
	}
	json_decref(j);
}
END_TEST

START_TEST(the_json_says_the_rest)
{
	struct ran r;
	json_t *j;

	/* A comma for the point, where that locale is installed. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	r = RUN((char *)"--json", seg_name);
	j = json_loads(r.out, 0, NULL);
	ck_assert_ptr_nonnull(j);
	ck_assert_str_eq(json_string_value(member(j, "scenario")), "quick");
	ck_assert_str_eq(json_string_value(member(j, "info/library")),
			 "OpenSSL 3.0.22");
	ck_assert_str_eq(json_string_value(member(j, "phase/state")),
			 "measuring");
	ck_assert_uint_le(integer(j, "phase/left_ns"), 100 * NS_PER_S);
	ck_assert(json_is_true(member(j, "alive")));
	ck_assert_uint_eq(integer(j, "owner/pid"), (uint64_t)getpid());
	ck_assert_str_eq(json_string_value(member(j, "slots/2/role")),
			 "driver");
	ck_assert_str_eq(json_string_value(member(j, "slots/0/state")),
			 "running");
	ck_assert_uint_eq(integer(j, "slots/0/cpu"), 3);
	ck_assert(json_is_null(member(j, "slots/2/cpu")));
	ck_assert(json_is_false(member(j, "slots/0/torn")));
	ck_assert_uint_lt(integer(j, "slots/0/heartbeat_age_ns"),
			  600 * NS_PER_S);
	ck_assert_uint_eq(integer(j, "total/workers/counters/hs_full"), 1300);
	ck_assert_uint_eq(integer(j, "total/workers/slots"), 2);
	ck_assert_uint_eq(integer(j, "total/drivers/counters/hs_full"), 1300);
	json_decref(j);
}
END_TEST

START_TEST(the_json_has_null_where_there_is_no_figure)
{
	struct ran r = RUN((char *)"--json", seg_name);
	json_t *j = json_loads(r.out, 0, NULL), *h;

	ck_assert_ptr_nonnull(j);
	h = member(j, "slots/0/histograms/hs_resumed_time");
	ck_assert_uint_eq(integer(h, "count"), 0);
	ck_assert(json_is_null(member(h, "mean_ns")));
	ck_assert(json_is_null(member(h, "p999_ns")));
	ck_assert(json_is_null(member(h, "max_ns")));
	ck_assert_uint_eq(json_array_size(member(h, "buckets")), 0);
	h = member(j, "slots/0/histograms/hs_full_time");
	ck_assert_uint_eq(integer(h, "count"), 1234);
	ck_assert_uint_eq(integer(h, "max_ns"), NS_PER_MS);
	ck_assert_double_eq(json_number_value(member(h, "mean_ns")), 1e6);
	ck_assert_uint_ge(integer(h, "p50_ns") * 65, NS_PER_MS * 64);
	ck_assert_uint_le(integer(h, "p50_ns") * 63, NS_PER_MS * 64);
	json_decref(j);
}
END_TEST

/* ---- which segment ---- */

static struct shm_seg *create_named(const char *name)
{
	struct shm_info info = {.name = "other"};
	struct shm_seg *s = NULL;

	ck_assert_int_eq(shm_seg_create(&s, name, 0600, 1, &info, NULL, NULL),
			 0);
	return s;
}

START_TEST(without_a_name_it_is_the_only_one_that_runs)
{
	struct shm_seg *one, *two;
	struct ran r;

	/* While its name is in sight. */
	shm_seg_close(&seg);
	if (!own_shm(""))
		return;
	r = RUN(NULL);
	check_refused(&r, "no tterm is running here");
	r = RUN((char *)"--list");
	ck_assert_int_eq(r.status, 0);
	ck_assert_str_eq(r.out, "");
	one = create_named("one");
	r = RUN(NULL);
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "other"));
	two = create_named("two");
	r = RUN(NULL);
	check_refused(&r, "name one of them: one two");
	r = RUN((char *)"two");
	ck_assert_int_eq(r.status, 0);
	r = RUN((char *)"--list");
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "one "));
	ck_assert_ptr_nonnull(strstr(r.out, "two "));
	ck_assert_ptr_nonnull(strstr(r.out, "alive"));
	shm_seg_close(&one);
	shm_seg_close(&two);
}
END_TEST

START_TEST(a_stale_one_is_marked)
{
	struct ran r;
	int status;
	pid_t pid;

	shm_seg_close(&seg);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		create(1);
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	r = RUN(seg_name);
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "STALE: its master"));
	r = RUN((char *)"--json", seg_name);
	ck_assert_ptr_nonnull(strstr(r.out, "\"alive\":false"));
	r = RUN((char *)"--list");
	ck_assert_ptr_nonnull(strstr(r.out, "stale"));
	r = RUN((char *)"--wait", (char *)"0.1", seg_name);
	check_refused(&r, "it is stale");
}
END_TEST

START_TEST(what_is_listed_but_cannot_be_read_says_why)
{
	struct ran r;
	int fd;

	shm_seg_close(&seg);
	fd = open(seg_file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	close(fd);
	r = RUN((char *)"--list");
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "unreadable"));
}
END_TEST

START_TEST(waiting_ends_when_a_master_is_there)
{
	int out = memfd_create("out", MFD_CLOEXEC);
	int err = memfd_create("err", MFD_CLOEXEC);
	char *argv[] = {(char *)"tstat", (char *)"--wait", (char *)"50",
			seg_name, NULL};
	struct ran r;
	pid_t pid;

	shm_seg_close(&seg);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(argv, out, err);
	/* Before or after the first look: both are right. */
	seg = create(1);
	r = finish(pid, out, err);
	ck_assert_str_eq(r.err, "");
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "scenario"));
}
END_TEST

START_TEST(waiting_has_an_end)
{
	uint64_t began = clk_now();
	struct ran r;

	shm_seg_close(&seg);
	r = RUN((char *)"--wait", (char *)"0.2", seg_name);
	check_refused(&r, "there is none");
	ck_assert_uint_ge(clk_now() - began, 200 * NS_PER_MS);
}
END_TEST

/* ---- refusals ---- */

START_TEST(no_segment_is_one_clear_line)
{
	struct ran r = RUN((char *)"there-is-none-of-this-name");

	check_refused(&r, "there is none");
	r = RUN((char *)"a name");
	check_refused(&r, "a name has letters");
	r = RUN((char *)"/nowhere/at/all");
	check_refused(&r, "there is none");
}
END_TEST

START_TEST(another_layout_is_one_clear_line)
{
	uint32_t layout = 99;
	int fd = open(seg_file, O_RDWR | O_CLOEXEC);
	struct ran r;

	ck_assert_int_eq(pwrite(fd, &layout, sizeof(layout),
				offsetof(struct seg_owner, layout)),
			 sizeof(layout));
	r = RUN(seg_name);
	check_refused(&r, "layout version 99");
	ck_assert_int_eq(ftruncate(fd, 10), 0);
	close(fd);
	r = RUN((char *)"--json", seg_name);
	check_refused(&r, "not a segment of tterm, or is damaged");
}
END_TEST

START_TEST(what_may_not_be_read_is_one_clear_line)
{
	struct ran r;
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		/* Root reads everything: become another. */
		if (geteuid() == 0 && setuid(12345) != 0)
			_exit(77);
		if (geteuid() != 12345 && chmod(seg_file, 0) != 0)
			_exit(77);
		r = RUN(seg_name);
		check_refused(&r, "permission denied");
		forget();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(wrong_arguments_are_one_clear_line)
{
	static const char *const bad[][3] = {
		{"--twice", NULL, NULL},
		{"-x", NULL, NULL},
		{"--wait", NULL, NULL},
		{"--wait", "soon", NULL},
		{"--wait", "-1", NULL},
		{"--wait", "1e3", NULL},
		{"--wait", "", NULL},
		{"--wait", "86401", NULL},
		{"--wait", "99999999999999999999999", NULL},
		{"--once", "--json", NULL},
		{"one", "two", NULL},
		{"--list", "one", NULL},
	};
	struct ran r = RUN((char *)bad[_i][0], (char *)bad[_i][1]);

	check_refused(&r, "tstat --help");
}
END_TEST

START_TEST(help_and_version_are_asked_for_and_so_on_stdout)
{
	struct ran r = RUN((char *)"--help");

	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, "--wait SECONDS"));
	check_width(r.out, 80);
	r = RUN((char *)"--version");
	ck_assert_int_eq(r.status, 0);
	ck_assert_ptr_nonnull(strstr(r.out, TTERM_VERSION));
	ck_assert_str_eq(r.err, "");
}
END_TEST

START_TEST(an_output_that_cannot_be_written_is_no_success)
{
	static const char *const modes[] = {"--once", "--json", "--list",
					    "--help"};
	char *argv[] = {(char *)"tstat", (char *)modes[_i],
			_i < 2 ? seg_name : NULL, NULL};
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	int err = memfd_create("err", MFD_CLOEXEC), status;
	pid_t pid;

	ck_assert_int_ge(full, 0);
	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		child(argv, full, err);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_RUN);
	ck_assert_ptr_nonnull(strstr(slurp(err), "cannot write the output"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tstat");
	TCase *works = tcase_create("works"), *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(works, set_up, tear_down);
	tcase_add_checked_fixture(limits, set_up, tear_down);
	tcase_add_checked_fixture(refuses, set_up, tear_down);
	tcase_set_timeout(works, 60);
	tcase_add_test(works, the_table_says_what_runs_and_what_it_did);
	tcase_add_test(works, colour_is_for_terminals_and_marks_drivers);
	tcase_add_test(works, a_span_reads_well);
	tcase_add_test(works, the_json_has_every_row_of_every_slot);
	tcase_add_test(works, the_json_says_the_rest);
	tcase_add_test(works, without_a_name_it_is_the_only_one_that_runs);
	tcase_add_test(works, waiting_ends_when_a_master_is_there);
	tcase_add_test(works, help_and_version_are_asked_for_and_so_on_stdout);
	tcase_add_loop_test(limits, the_table_fits_its_width, 0, 5);
	tcase_add_test(limits, a_slot_that_did_nothing_has_no_figures);
	tcase_add_test(limits, the_json_has_null_where_there_is_no_figure);
	tcase_add_test(limits, a_segment_without_slots_in_use_says_so);
	tcase_add_test(limits, what_does_not_add_up_is_said);
	tcase_add_test(limits, a_text_cannot_steer_the_terminal);
	tcase_add_test(limits, a_stale_one_is_marked);
	tcase_add_test(limits, what_is_listed_but_cannot_be_read_says_why);
	tcase_add_test(limits, waiting_has_an_end);
	tcase_add_test(refuses, no_segment_is_one_clear_line);
	tcase_add_test(refuses, another_layout_is_one_clear_line);
	tcase_add_test(refuses, what_may_not_be_read_is_one_clear_line);
	tcase_add_loop_test(refuses, wrong_arguments_are_one_clear_line, 0, 12);
	tcase_add_loop_test(
		refuses, an_output_that_cannot_be_written_is_no_success, 0, 4);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
