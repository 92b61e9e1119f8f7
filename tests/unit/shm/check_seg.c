/* SPDX-License-Identifier: MIT */
#include "tests/unit/shm/seg_fixture.h"

#include "shm/clk.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>

/* ---- works ---- */

START_TEST(what_the_master_says_a_reader_reads)
{
	struct shm_seg *seg = create(3), *reader = NULL;
	struct shm_info info;
	struct shm_phase phase = {.name = "full",
				  .state = SHM_PHASE_MEASURE,
				  .index = 1,
				  .count = 2,
				  .began_ns = 42};
	char want[SHM_NAME_MAX + 8];

	ck_assert_int_eq(shm_seg_attach(&reader, seg_name, NULL), 0);
	snprintf(want, sizeof(want), "/tterm.%s", seg_name);
	ck_assert_str_eq(shm_seg_name(reader), want);
	ck_assert_uint_eq(shm_seg_nslots(reader), 3);
	ck_assert_int_eq(shm_seg_owner(reader), getpid());
	ck_assert(shm_seg_alive(reader));
	ck_assert_uint_eq(shm_seg_generation(reader), shm_seg_generation(seg));
	ck_assert_uint_le(shm_seg_created_ns(reader), clk_now());
	shm_seg_info(reader, &info);
	ck_assert_str_eq(info.name, "scenario");
	snprintf(info.listen, sizeof(info.listen), "127.0.0.1:8443");
	shm_seg_set_info(seg, &info);
	shm_seg_set_phase(seg, &phase);
	memset(&info, 0, sizeof(info));
	shm_seg_info(reader, &info);
	ck_assert_str_eq(info.listen, "127.0.0.1:8443");
	ck_assert_str_eq(info.library, "Library 1");
	memset(&phase, 0, sizeof(phase));
	shm_seg_phase(reader, &phase);
	ck_assert_str_eq(phase.name, "full");
	ck_assert_uint_eq(phase.state, SHM_PHASE_MEASURE);
	ck_assert_uint_eq(phase.began_ns, 42);
	shm_seg_close(&reader);
	shm_seg_close(&seg);
	ck_assert_ptr_null(seg);
	shm_seg_close(&seg);
	ck_assert_int_eq(access(seg_file, F_OK), -1);
}
END_TEST

START_TEST(a_segment_is_found_by_name_object_and_path)
{
	struct shm_seg *seg = create(1), *reader = NULL;
	char object[SHM_NAME_MAX + 8];

	snprintf(object, sizeof(object), "/tterm.%s", seg_name);
	ck_assert_int_eq(shm_seg_attach(&reader, object, NULL), 0);
	ck_assert_str_eq(shm_seg_name(reader), object);
	shm_seg_close(&reader);
	ck_assert_int_eq(shm_seg_attach(&reader, seg_file, NULL), 0);
	ck_assert_str_eq(shm_seg_name(reader), seg_file);
	shm_seg_close(&reader);
	shm_seg_close(&seg);
	ck_assert_int_eq(shm_seg_attach(&reader, seg_name, NULL), -ENOENT);
	ck_assert_ptr_null(reader);
}
END_TEST

START_TEST(a_driver_that_joins_writes_where_the_master_reads)
{
	struct shm_seg *seg = create(2), *driver = NULL;
	struct shm_snap snap;

	shm_slot_assign(shm_seg_slot(seg, 1), SHM_DRIVER, 0, getpid(), 5);
	ck_assert_int_eq(shm_seg_join(&driver, seg_name), 0);
	full_handshake(shm_seg_slot(driver, 1), NS_PER_MS);
	ck_assert_int_eq(shm_snap_init(&snap, seg), 0);
	shm_snap(seg, 1, &snap);
	ck_assert(!snap.torn);
	ck_assert_uint_eq(get(seg, &snap, CTR_ID_hs_full), 1);
	ck_assert_uint_eq(snap.role, SHM_DRIVER);
	ck_assert_uint_eq(snap.state, SHM_SLOT_STARTING);
	ck_assert_int_eq(snap.cpu, 5);
	ck_assert_int_eq(snap.pid, getpid());
	ck_assert_uint_eq(snap.generation, 1);
	shm_snap_fini(&snap);
	shm_seg_close(&driver);
	/* Only the creator unlinks. */
	ck_assert_int_eq(access(seg_file, F_OK), 0);
	shm_seg_close(&seg);
}
END_TEST

START_TEST(the_mode_is_as_asked_whatever_the_umask)
{
	struct shm_info info = {.name = "x"};
	struct shm_seg *seg = NULL;
	struct stat st;

	umask(077);
	ck_assert_int_eq(
		shm_seg_create(&seg, seg_name, 0644, 1, &info, NULL, NULL), 0);
	ck_assert_int_eq(stat(seg_file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
	shm_seg_close(&seg);
	umask(0);
	seg = create(1);
	ck_assert_int_eq(stat(seg_file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	shm_seg_close(&seg);
}
END_TEST

START_TEST(a_forked_child_that_closes_leaves_the_name)
{
	struct shm_seg *seg = create(1);
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		shm_seg_close(&seg);
		_exit(seg == NULL ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(access(seg_file, F_OK), 0);
	shm_seg_close(&seg);
}
END_TEST

START_TEST(closing_leaves_an_object_that_took_the_name)
{
	struct shm_seg *seg = create(1);
	int fd;

	unlink(seg_file);
	fd = open(seg_file, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	shm_seg_close(&seg);
	ck_assert_int_eq(access(seg_file, F_OK), 0);
}
END_TEST

struct found {
	const char *name;
	unsigned n;
};

static void look(const char *name, void *arg)
{
	struct found *f = arg;

	f->n += strcmp(name, f->name) == 0;
}

START_TEST(each_tells_the_names_of_segments)
{
	struct found f = {.name = seg_name};
	struct shm_seg *seg = create(1);

	ck_assert_int_eq(shm_seg_each(look, &f), 0);
	ck_assert_uint_eq(f.n, 1);
	shm_seg_close(&seg);
	f.n = 0;
	ck_assert_int_eq(shm_seg_each(look, &f), 0);
	ck_assert_uint_eq(f.n, 0);
}
END_TEST

/* ---- another build's segment ---- */

/* Slot 0 gets counts; then the object is copied, its rows in reverse order. */
static int reversed_copy(char path[static 64], size_t *row_offset)
{
	struct shm_seg *seg = create(1);
	struct seg_head head;
	unsigned char *data;
	size_t len;
	int fd;

	for (int i = 0; i < 5; i++)
		full_handshake(shm_seg_slot(seg, 0), NS_PER_MS);
	ctr_add(&shm_seg_slot(seg, 0)->ctr.failed_eof, 3);
	data = load_object(&len);
	memcpy(&head, data, sizeof(head));
	for (uint32_t i = 0; i < CTR_IDS; i++)
		memcpy(data + head.desc_offset + i * sizeof(struct ctr_desc),
		       &ctr_descs[CTR_IDS - 1 - i], sizeof(struct ctr_desc));
	for (uint32_t i = 0; i < HIST_IDS; i++)
		memcpy(data + head.desc_offset +
			       (CTR_IDS + i) * sizeof(struct ctr_desc),
		       &ctr_descs[CTR_IDS + HIST_IDS - 1 - i],
		       sizeof(struct ctr_desc));
	fd = store_copy(path, data, len);
	free(data);
	shm_seg_close(&seg);
	*row_offset = head.desc_offset;
	return fd;
}

START_TEST(rows_of_another_build_are_found_by_name)
{
	struct shm_seg *seg = NULL;
	struct shm_snap snap;
	char path[64];
	size_t at;

	close(reversed_copy(path, &at));
	ck_assert_int_eq(shm_seg_attach(&seg, path, NULL), 0);
	unlink(path);
	ck_assert_int_eq(shm_snap_init(&snap, seg), 0);
	shm_snap(seg, 0, &snap);
	ck_assert_uint_eq(get(seg, &snap, CTR_ID_hs_full), 5);
	ck_assert_uint_eq(get(seg, &snap, CTR_ID_conn_accepted), 5);
	ck_assert_uint_eq(shm_snap_failed(seg, &snap), 3);
	ck_assert(counts_agree(seg, &snap));
	ck_assert_str_eq(shm_seg_desc(seg, 0)->name,
			 ctr_descs[CTR_IDS - 1].name);
	ck_assert_str_eq(shm_seg_desc(seg, CTR_IDS)->name,
			 ctr_descs[CTR_IDS + HIST_IDS - 1].name);
	shm_snap_fini(&snap);
	shm_seg_close(&seg);
}
END_TEST

START_TEST(a_row_that_another_build_lacks_is_nothing)
{
	size_t at, row = CTR_IDS - 1 - CTR_ID_hs_full;
	size_t hist = CTR_IDS + HIST_IDS - 1 - HIST_ID_hs_full_time;
	struct shm_seg *seg = NULL;
	struct shm_snap snap;
	char path[64];
	int fd = reversed_copy(path, &at);

	ck_assert_int_eq(pwrite(fd, "hs_other", 9,
				(off_t)(at + row * sizeof(struct ctr_desc))),
			 9);
	ck_assert_int_eq(pwrite(fd, "other", 6,
				(off_t)(at + hist * sizeof(struct ctr_desc))),
			 6);
	close(fd);
	ck_assert_int_eq(shm_seg_attach(&seg, path, NULL), 0);
	unlink(path);
	ck_assert_int_eq(shm_snap_init(&snap, seg), 0);
	shm_snap(seg, 0, &snap);
	ck_assert_uint_eq(get(seg, &snap, CTR_ID_hs_full), 0);
	ck_assert_ptr_null(shm_snap_hist(seg, &snap, HIST_ID_hs_full_time));
	ck_assert_uint_eq(get(seg, &snap, CTR_ID_conn_accepted), 5);
	shm_snap_fini(&snap);
	shm_seg_close(&seg);
}
END_TEST

START_TEST(a_driver_of_another_build_may_not_join)
{
	struct shm_seg *seg = NULL;
	char path[64];
	size_t at;

	close(reversed_copy(path, &at));
	ck_assert_int_eq(shm_seg_join(&seg, path), -EPROTO);
	unlink(path);
	ck_assert_ptr_null(seg);
}
END_TEST

START_TEST(another_layout_is_named)
{
	uint32_t layout = SHM_LAYOUT_VERSION + 41, version = 0;
	struct shm_seg *seg = NULL;
	char path[64];
	size_t at;
	int fd = reversed_copy(path, &at);

	ck_assert_int_eq(pwrite(fd, &layout, sizeof(layout),
				offsetof(struct seg_owner, layout)),
			 sizeof(layout));
	close(fd);
	ck_assert_int_eq(shm_seg_attach(&seg, path, &version), -EPROTO);
	ck_assert_uint_eq(version, layout);
	ck_assert_int_eq(shm_seg_attach(&seg, path, NULL), -EPROTO);
	unlink(path);
}
END_TEST

START_TEST(an_unfinished_one_is_not_yet_there)
{
	struct shm_seg *seg = NULL;
	uint32_t no = 0;
	char path[64];
	size_t at;
	int fd = reversed_copy(path, &at);

	ck_assert_int_eq(
		pwrite(fd, &no, sizeof(no), offsetof(struct seg_head, ready)),
		sizeof(no));
	close(fd);
	ck_assert_int_eq(shm_seg_attach(&seg, path, NULL), -EAGAIN);
	unlink(path);
}
END_TEST

/* ---- taking over ---- */

/* A master that is killed and leaves its segment; its zombie is reaped or not.
 */
static pid_t leave_stale(bool reap)
{
	siginfo_t si;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		create(2);
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(
		waitid(P_PID, (id_t)pid, &si, WEXITED | (reap ? 0 : WNOWAIT)),
		0);
	return pid;
}

START_TEST(a_stale_segment_is_taken_over)
{
	struct shm_info info = {.name = "new"};
	struct shm_seg *old = NULL, *seg = NULL;
	bool took_over = false;
	pid_t owner = 7, dead = leave_stale(_i == 0);

	ck_assert_int_eq(shm_seg_attach(&old, seg_name, NULL), 0);
	ck_assert_int_eq(shm_seg_owner(old), dead);
	ck_assert(!shm_seg_alive(old));
	ck_assert_int_eq(shm_seg_create(&seg, seg_name, 0600, 1, &info,
					&took_over, &owner),
			 0);
	ck_assert(took_over);
	ck_assert_int_eq(owner, 7);
	ck_assert_uint_ne(shm_seg_generation(seg), shm_seg_generation(old));
	ck_assert(shm_seg_alive(seg));
	shm_seg_close(&old);
	shm_seg_close(&seg);
}
END_TEST

START_TEST(a_pid_that_was_given_anew_is_another_process)
{
	struct shm_seg *seg = create(1), *next = NULL;
	struct shm_info info = {.name = "new"};
	struct seg_owner o;
	bool took_over = false;
	int fd = open(seg_file, O_RDWR | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &o, sizeof(o), 0), sizeof(o));
	o.start_ticks--;
	ck_assert_int_eq(pwrite(fd, &o, sizeof(o), 0), sizeof(o));
	close(fd);
	ck_assert_int_eq(shm_seg_create(&next, seg_name, 0600, 1, &info,
					&took_over, NULL),
			 0);
	ck_assert(took_over);
	/* The old one's end must not take the new one's name away. */
	shm_seg_close(&seg);
	ck_assert_int_eq(access(seg_file, F_OK), 0);
	shm_seg_close(&next);
}
END_TEST

START_TEST(what_is_no_segment_has_no_owner)
{
	struct shm_info info = {.name = "new"};
	struct shm_seg *seg = NULL;
	bool took_over = false;
	int fd = open(seg_file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	if (_i == 1)
		ck_assert_int_eq(write(fd, "junk", 4), 4);
	close(fd);
	ck_assert_int_eq(shm_seg_attach(&seg, seg_name, NULL), -EBADMSG);
	ck_assert_int_eq(shm_seg_create(&seg, seg_name, 0600, 1, &info,
					&took_over, NULL),
			 0);
	ck_assert(took_over);
	shm_seg_close(&seg);
}
END_TEST

#define RIVALS 4

/* Exit status of one who wants the name: 1 got it, 0 did not, else a fault. */
static int rival(int go, int told, int end)
{
	struct shm_info info = {.name = "rival"};
	struct shm_seg *seg = NULL;
	pid_t owner = 0;
	char byte;
	int rc;

	if (read(go, &byte, 1) != 0)
		return 10;
	rc = shm_seg_create(&seg, seg_name, 0600, 1, &info, NULL, &owner);
	if (rc != 0 && (rc != -EEXIST || owner <= 0))
		return 11;
	if (write(told, "x", 1) != 1 || read(end, &byte, 1) != 0)
		return 12;
	shm_seg_close(&seg);
	return rc == 0;
}

/* All wait for the end of one pipe, and go when it is closed. */
static unsigned race(void)
{
	int go[2], told[2], end[2], status;
	unsigned winners = 0;
	pid_t pid[RIVALS];
	char byte;

	ck_assert_int_eq(pipe(go) | pipe(told) | pipe(end), 0);
	for (int i = 0; i < RIVALS; i++) {
		pid[i] = fork();
		ck_assert_int_ge(pid[i], 0);
		if (pid[i] == 0) {
			close(go[1]);
			close(end[1]);
			_exit(rival(go[0], told[1], end[0]));
		}
	}
	close(go[1]);
	for (int i = 0; i < RIVALS; i++)
		ck_assert_int_eq(read(told[0], &byte, 1), 1);
	close(end[1]);
	for (int i = 0; i < RIVALS; i++) {
		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
		winners += (unsigned)WEXITSTATUS(status);
	}
	close(go[0]);
	close(end[0]);
	close(told[0]);
	close(told[1]);
	return winners;
}

START_TEST(of_masters_that_start_at_once_one_gets_the_name)
{
	for (int i = 0; i < 40; i++) {
		if (i % 2 == 0)
			leave_stale(true);
		ck_assert_uint_eq(race(), 1);
		ck_assert_int_eq(access(seg_file, F_OK), -1);
	}
}
END_TEST

START_TEST(one_who_holds_the_lock_for_ever_is_not_waited_for_ever)
{
	struct shm_info info = {.name = "new"};
	struct shm_seg *seg = NULL;
	int fd;

	leave_stale(true);
	fd = open(seg_file, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(
		shm_seg_create(&seg, seg_name, 0600, 1, &info, NULL, NULL),
		-EBUSY);
	ck_assert_ptr_null(seg);
	close(fd);
	seg = create(1);
	shm_seg_close(&seg);
}
END_TEST

/* ---- refuses ---- */

START_TEST(a_live_master_keeps_its_name)
{
	struct shm_info info = {.name = "second"};
	uint32_t layout = SHM_LAYOUT_VERSION + 1;
	struct shm_seg *seg = create(1), *second = NULL;
	bool took_over = false;
	pid_t owner = 0;
	int fd = open(seg_file, O_RDWR | O_CLOEXEC);

	/* Of another layout too, of which nothing else can be read. */
	if (_i == 1)
		ck_assert_int_eq(pwrite(fd, &layout, sizeof(layout),
					offsetof(struct seg_owner, layout)),
				 sizeof(layout));
	close(fd);
	ck_assert_int_eq(shm_seg_create(&second, seg_name, 0600, 1, &info,
					&took_over, &owner),
			 -EEXIST);
	ck_assert_int_eq(owner, getpid());
	ck_assert(!took_over);
	ck_assert_ptr_null(second);
	ck_assert_int_eq(
		shm_seg_create(&second, seg_name, 0600, 1, &info, NULL, NULL),
		-EEXIST);
	shm_seg_close(&seg);
}
END_TEST

START_TEST(a_name_that_cannot_be_is_refused)
{
	static const char *const bad[] = {
		"", "a/b", "/a", "a b", "\xc3\xa9", "a\n", "..//x", "a*",
	};
	struct shm_info info = {.name = "x"};
	struct shm_seg *seg = NULL;
	char longest[SHM_NAME_MAX + 1];

	memset(longest, 'a', SHM_NAME_MAX);
	longest[SHM_NAME_MAX] = '\0';
	ck_assert_int_eq(
		shm_seg_create(&seg, longest, 0600, 1, &info, NULL, NULL),
		-EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_int_eq(shm_seg_create(&seg, bad[i], 0600, 1, &info,
						NULL, NULL),
				 -EINVAL);
	ck_assert_int_eq(shm_seg_attach(&seg, "", NULL), -EINVAL);
	ck_assert_int_eq(shm_seg_attach(&seg, "a b", NULL), -EINVAL);
	ck_assert_int_eq(shm_seg_attach(&seg, "/tterm.", NULL), -EINVAL);
	ck_assert_ptr_null(seg);
}
END_TEST

START_TEST(a_number_of_slots_out_of_range_is_refused)
{
	struct shm_info info = {.name = "x"};
	struct shm_seg *seg = NULL;

	ck_assert_int_eq(
		shm_seg_create(&seg, seg_name, 0600, 0, &info, NULL, NULL),
		-EINVAL);
	ck_assert_int_eq(shm_seg_create(&seg, seg_name, 0600, SHM_SLOTS_MAX + 1,
					&info, NULL, NULL),
			 -EINVAL);
	ck_assert_int_eq(shm_seg_create(&seg, seg_name, 0600, SHM_SLOTS_MAX,
					&info, NULL, NULL),
			 0);
	shm_seg_close(&seg);
}
END_TEST

START_TEST(another_users_object_is_left_alone)
{
	struct shm_info info = {.name = "x"};
	struct shm_seg *seg = NULL;
	int fd = open(seg_file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	pid_t pid;
	int status;

	ck_assert_int_ge(fd, 0);
	/* Either the file gets another owner or, where only root may do that,
	 * its maker is the other user. */
	if (geteuid() != 0) {
		close(fd);
		return;
	}
	ck_assert_int_eq(fchown(fd, 12345, 12345), 0);
	ck_assert_int_eq(
		shm_seg_create(&seg, seg_name, 0600, 1, &info, NULL, NULL),
		-EPERM);
	ck_assert_int_eq(fchown(fd, 0, 0), 0);
	close(fd);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (setgid(12345) != 0 || setuid(12345) != 0)
			_exit(1);
		_exit(shm_seg_create(&seg, seg_name, 0600, 1, &info, NULL,
				     NULL) == -EPERM &&
				      shm_seg_attach(&seg, seg_name, NULL) ==
					      -EACCES
			      ? 0
			      : 2);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(access(seg_file, F_OK), 0);
}
END_TEST

START_TEST(a_link_in_the_names_place_is_not_followed)
{
	struct shm_info info = {.name = "x"};
	struct shm_seg *seg = NULL;
	char target[64];

	close(store_copy(target, "precious", 8));
	ck_assert_int_eq(symlink(target, seg_file), 0);
	ck_assert_int_eq(
		shm_seg_create(&seg, seg_name, 0600, 1, &info, NULL, NULL),
		-ENOTSUP);
	ck_assert_int_eq(shm_seg_attach(&seg, seg_name, NULL), -ELOOP);
	ck_assert_int_eq(shm_seg_join(&seg, seg_name), -ELOOP);
	ck_assert_int_eq(access(target, F_OK), 0);
	unlink(target);
}
END_TEST

START_TEST(what_is_no_file_is_no_segment)
{
	struct shm_seg *seg = NULL;

	ck_assert_int_eq(mkfifo(seg_file, 0600), 0);
	ck_assert_int_eq(shm_seg_attach(&seg, seg_name, NULL), -EBADMSG);
	unlink(seg_file);
	ck_assert_int_eq(shm_seg_attach(&seg, "/dev/", NULL), -EBADMSG);
	ck_assert_int_eq(shm_seg_attach(&seg, "/dev/null", NULL), -EBADMSG);
}
END_TEST

/* In a child with a small /dev/shm of its own, if the system lets us. */
START_TEST(a_full_memory_file_system_is_said_at_once)
{
	struct shm_info info = {.name = "x"};
	struct shm_seg *seg = NULL;
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (!own_shm("size=64k"))
			_exit(77);
		_exit(shm_seg_create(&seg, seg_name, 0600, 4, &info, NULL,
				     NULL) == -ENOSPC &&
				      access(seg_file, F_OK) == -1
			      ? 0
			      : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) != 77)
		ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(a_file_that_shrinks_later_gives_nothing_and_no_crash)
{
	struct shm_seg *seg = NULL;
	struct shm_snap snap;
	struct shm_phase phase;
	struct shm_info info;
	char path[64];
	size_t at;
	int fd = reversed_copy(path, &at);

	ck_assert_int_eq(shm_seg_attach(&seg, path, NULL), 0);
	unlink(path);
	ck_assert_int_eq(shm_snap_init(&snap, seg), 0);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	close(fd);
	shm_snap(seg, 0, &snap);
	ck_assert(snap.torn);
	ck_assert_uint_eq(get(seg, &snap, CTR_ID_hs_full), 0);
	shm_seg_info(seg, &info);
	ck_assert_str_eq(info.name, "");
	shm_seg_phase(seg, &phase);
	ck_assert_str_eq(phase.name, "");
	shm_snap_fini(&snap);
	shm_seg_close(&seg);
}
END_TEST

/* ---- damaged objects ---- */

/* Everything that a reader does with what it could attach. */
static int use(const char *path)
{
	struct shm_seg *seg = NULL;
	struct shm_info info;
	struct shm_phase phase;
	struct shm_snap snap, sum;
	int rc = shm_seg_attach(&seg, path, NULL);

	if (rc < 0)
		return rc;
	shm_seg_info(seg, &info);
	ck_assert_ptr_nonnull(memchr(info.listen, '\0', sizeof(info.listen)));
	shm_seg_phase(seg, &phase);
	ck_assert_ptr_nonnull(memchr(phase.name, '\0', sizeof(phase.name)));
	shm_seg_alive(seg);
	ck_assert_int_eq(shm_snap_init(&snap, seg), 0);
	ck_assert_int_eq(shm_snap_init(&sum, seg), 0);
	for (uint32_t i = 0; i < shm_seg_nslots(seg); i++) {
		shm_snap(seg, i, &snap);
		shm_snap_fold(seg, &sum, &snap);
	}
	shm_snap_failed(seg, &sum);
	for (uint32_t i = 0; i < shm_seg_nhist(seg); i++)
		hist_percentile(&sum.hist[i], 99);
	shm_snap_fini(&snap);
	shm_snap_fini(&sum);
	shm_seg_close(&seg);
	return 0;
}

static uint64_t seed = 88172645463325252u;
static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static bool is_refusal(int rc)
{
	return rc == -EBADMSG || rc == -EPROTO || rc == -EAGAIN;
}

/* A copy of a sound object: `data` is what it holds. */
static int sound_copy(char path[static 64], unsigned char **data, size_t *len)
{
	struct shm_seg *seg = create(2);
	int fd;

	full_handshake(shm_seg_slot(seg, 0), NS_PER_MS);
	*data = load_object(len);
	shm_seg_close(&seg);
	fd = store_copy(path, *data, *len);
	ck_assert_int_eq(use(path), 0);
	return fd;
}

/* A slot whose number is odd makes a reader wait 100 ms: here it is even. */
static void calm(unsigned char *data)
{
	struct seg_head h;
	uint32_t even = 2;

	memcpy(&h, data, sizeof(h));
	memcpy(data + offsetof(struct seg_head, info_seq), &even, sizeof(even));
	memcpy(data + offsetof(struct seg_head, phase_seq), &even,
	       sizeof(even));
}

START_TEST(random_bytes_over_head_and_rows_do_no_harm)
{
	unsigned char *data, *bad;
	unsigned refused = 0;
	struct seg_head h;
	char path[64];
	size_t len;
	int fd = sound_copy(path, &data, &len);

	memcpy(&h, data, sizeof(h));
	bad = malloc(h.slot_offset);
	ck_assert_ptr_nonnull(bad);
	for (int i = 0; i < 4000; i++) {
		/* Half of them in the head's numbers, where it matters. */
		size_t room = i % 2 == 0 ? offsetof(struct seg_head, info)
					 : h.slot_offset;
		uint64_t n = 1 + rnd() % 4;

		memcpy(bad, data, h.slot_offset);
		for (uint64_t k = 0; k < n; k++)
			bad[rnd() % room] = (unsigned char)rnd();
		calm(bad);
		ck_assert_int_eq(pwrite(fd, bad, h.slot_offset, 0),
				 (ssize_t)h.slot_offset);
		if (use(path) < 0)
			refused++;
	}
	ck_assert_uint_gt(refused, 1000);
	close(fd);
	unlink(path);
	free(bad);
	free(data);
}
END_TEST

START_TEST(every_number_of_the_head_may_lie)
{
	/* From head_size to the counters of writes, 32 bits at a time. */
	size_t first = offsetof(struct seg_head, ready);
	size_t end = offsetof(struct seg_head, info_seq);
	unsigned char *data;
	char path[64];
	size_t len;
	int fd = sound_copy(path, &data, &len);

	for (size_t at = first; at < end; at += 4) {
		uint32_t was;

		memcpy(&was, data + at, sizeof(was));
		const uint32_t lies[] = {0,	     1,		 was - 1,
					 was + 1,    was - 64,	 was + 64,
					 was * 2,    was + 4096, 0x7fffffff,
					 0x80000000, 0xfffffff8, 0xffffffc0,
					 UINT32_MAX};

		for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
			int rc;

			ck_assert_int_eq(pwrite(fd, &lies[i], 4, (off_t)at), 4);
			rc = use(path);
			ck_assert_msg(rc == 0 || is_refusal(rc),
				      "offset %zu, value %u: %d", at, lies[i],
				      rc);
		}
		ck_assert_int_eq(pwrite(fd, &was, 4, (off_t)at), 4);
	}
	ck_assert_int_eq(use(path), 0);
	close(fd);
	unlink(path);
	free(data);
}
END_TEST

START_TEST(sizes_that_lie_are_refused)
{
	static const struct {
		size_t at;
		uint32_t value;
	} lies[] = {
#define LIE(member, v) {offsetof(struct seg_head, member), v}
		LIE(head_size, 0),
		LIE(head_size, 8),
		LIE(total_size, UINT32_MAX),
		LIE(total_size, 4096),
		LIE(nslots, 0),
		LIE(nslots, 3),
		LIE(nslots, UINT32_MAX),
		LIE(nctr, 0),
		LIE(nctr, 4000),
		LIE(nctr, UINT32_MAX),
		LIE(nhist, 200),
		LIE(nhist, UINT32_MAX),
		LIE(desc_size, 0),
		LIE(desc_size, 8),
		LIE(desc_offset, 0),
		LIE(desc_offset, UINT32_MAX - 7),
		LIE(slot_size, 0),
		LIE(slot_size, 64),
		LIE(slot_size, 0xffffffc0),
		LIE(slot_offset, 0),
		LIE(slot_offset, 64),
		LIE(slot_offset, 0xffffffc0),
		LIE(ctr_offset, 0),
		LIE(ctr_offset, 0xfffffff8),
		LIE(ctr_offset, 65),
		LIE(hist_offset, 0),
		LIE(hist_offset, 0xfffffff8),
		LIE(hist_buckets, 0),
		LIE(hist_buckets, 895),
		LIE(hist_unit_shift, 0),
		LIE(hist_sub_bits, 6),
#undef LIE
	};
	unsigned char *data;
	char path[64];
	size_t len;
	int fd = sound_copy(path, &data, &len);

	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		ck_assert_int_eq(
			pwrite(fd, &lies[i].value, 4, (off_t)lies[i].at), 4);
		ck_assert_msg(use(path) == -EBADMSG, "offset %zu, value %u",
			      lies[i].at, lies[i].value);
		ck_assert_int_eq(
			pwrite(fd, data + lies[i].at, 4, (off_t)lies[i].at), 4);
	}
	close(fd);
	unlink(path);
	free(data);
}
END_TEST

START_TEST(rows_that_lie_are_refused)
{
	unsigned char *data;
	struct ctr_desc d;
	char path[64];
	size_t len;
	int fd = sound_copy(path, &data, &len);
	struct seg_head h;
	off_t at;

	memcpy(&h, data, sizeof(h));
	at = h.desc_offset + 5 * (off_t)sizeof(d);
	for (int i = 0; i < 10; i++) {
		memcpy(&d, data + at, sizeof(d));
		switch (i) {
		case 0:
			memset(d.name, 'a', sizeof(d.name));
			break;
		case 1:
			d.name[0] = '\0';
			break;
		case 2:
			d.name[0] = '\033';
			break;
		case 3:
			memset(d.help, 'a', sizeof(d.help));
			break;
		case 4:
			d.help[3] = '\n';
			break;
		case 5:
			memset(d.counter, 'a', sizeof(d.counter));
			break;
		case 6:
			d.kind = CTR_HISTOGRAM;
			break;
		case 7:
			d.offset = UINT32_MAX - 7;
			break;
		case 8:
			d.offset = 4;
			break;
		default:
			d.size = 16;
		}
		ck_assert_int_eq(pwrite(fd, &d, sizeof(d), at), sizeof(d));
		ck_assert_msg(use(path) == -EBADMSG, "case %d", i);
	}
	close(fd);
	unlink(path);
	free(data);
}
END_TEST

START_TEST(a_truncated_object_is_refused)
{
	unsigned char *data;
	char path[64];
	size_t len;
	int fd = sound_copy(path, &data, &len);

	for (size_t size = len; size-- > 0;) {
		if (size > 1000 && size < len - 10)
			size -= base_min(size - 1000, rnd() % 512);
		ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
		ck_assert_int_eq(use(path), -EBADMSG);
	}
	close(fd);
	unlink(path);
	free(data);
}
END_TEST

START_TEST(nothing_but_random_bytes_is_refused)
{
	unsigned char data[4096];
	char path[64];
	int fd = store_copy(path, "", 0);

	for (int i = 0; i < 1000; i++) {
		for (size_t k = 0; k < sizeof(data); k++)
			data[k] = (unsigned char)rnd();
		if (i % 2 == 1)
			memcpy(data, SEG_MAGIC, 8);
		ck_assert_int_eq(pwrite(fd, data, sizeof(data), 0),
				 sizeof(data));
		ck_assert(is_refusal(use(path)));
	}
	close(fd);
	unlink(path);
}
END_TEST

static void add_works(TCase *t)
{
	tcase_add_test(t, what_the_master_says_a_reader_reads);
	tcase_add_test(t, a_segment_is_found_by_name_object_and_path);
	tcase_add_test(t, a_driver_that_joins_writes_where_the_master_reads);
	tcase_add_test(t, the_mode_is_as_asked_whatever_the_umask);
	tcase_add_test(t, a_forked_child_that_closes_leaves_the_name);
	tcase_add_test(t, closing_leaves_an_object_that_took_the_name);
	tcase_add_test(t, each_tells_the_names_of_segments);
	tcase_add_test(t, rows_of_another_build_are_found_by_name);
	tcase_add_test(t, a_row_that_another_build_lacks_is_nothing);
	tcase_add_loop_test(t, a_stale_segment_is_taken_over, 0, 2);
	tcase_add_test(t, a_pid_that_was_given_anew_is_another_process);
	tcase_add_loop_test(t, what_is_no_segment_has_no_owner, 0, 2);
}

static void add_limits(TCase *t)
{
	tcase_add_test(t, of_masters_that_start_at_once_one_gets_the_name);
	tcase_add_test(t,
		       one_who_holds_the_lock_for_ever_is_not_waited_for_ever);
	tcase_add_test(t, a_number_of_slots_out_of_range_is_refused);
	tcase_add_test(t, a_full_memory_file_system_is_said_at_once);
	tcase_add_test(t, a_file_that_shrinks_later_gives_nothing_and_no_crash);
	tcase_add_test(t, random_bytes_over_head_and_rows_do_no_harm);
	tcase_add_test(t, every_number_of_the_head_may_lie);
}

static void add_refuses(TCase *t)
{
	tcase_add_loop_test(t, a_live_master_keeps_its_name, 0, 2);
	tcase_add_test(t, a_name_that_cannot_be_is_refused);
	tcase_add_test(t, another_users_object_is_left_alone);
	tcase_add_test(t, a_link_in_the_names_place_is_not_followed);
	tcase_add_test(t, what_is_no_file_is_no_segment);
	tcase_add_test(t, a_driver_of_another_build_may_not_join);
	tcase_add_test(t, another_layout_is_named);
	tcase_add_test(t, an_unfinished_one_is_not_yet_there);
	tcase_add_test(t, sizes_that_lie_are_refused);
	tcase_add_test(t, rows_that_lie_are_refused);
	tcase_add_test(t, a_truncated_object_is_refused);
	tcase_add_test(t, nothing_but_random_bytes_is_refused);
}

int main(void)
{
	static const char *const names[] = {"works", "limits", "refuses"};
	static void (*const add[])(TCase *) = {add_works, add_limits,
					       add_refuses};
	Suite *s = suite_create("seg");
	SRunner *r = srunner_create(s);
	int failed;

	for (size_t i = 0; i < ARRAY_LEN(add); i++) {
		TCase *t = tcase_create(names[i]);

		tcase_add_checked_fixture(t, name_segment, drop_segment);
		tcase_set_timeout(t, 60);
		add[i](t);
		suite_add_tcase(s, t);
	}
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
