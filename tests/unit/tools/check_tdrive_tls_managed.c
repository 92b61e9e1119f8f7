/* SPDX-License-Identifier: MIT */
/* A managed driver, as a child of its own, under a test that plays the master.
 */
#include "tests/unit/tools/tdrive_tls_server.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "shm/ctl.h"
#include "shm/seg.h"
#include "tools/tdrive_args.h"
#include "tools/tdrive_managed.h"

#include <poll.h>

#define SECONDS_AT_MOST 30

static const char scenario[] =
	"scenario: check-tdrive\n"
	"load: {connections: 5, timeout: 400ms, ticket_wait: 50ms}\n"
	"phases:\n"
	"  - {name: full, handshake: full}\n"
	"  - {name: resumed, handshake: resumed}\n";

struct stage {
	struct server server;
	struct shm_seg *seg;
	char name[SHM_NAME_MAX];
	struct shm_slot *slot;
	struct shm_snap snap;
	int ctl;
	pid_t pid;
};

static int memfd_of(const char *text)
{
	int fd = memfd_create("text", 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void make_segment(struct stage *st)
{
	struct shm_info info = {.name = "check-tdrive"};
	bool took_over;

	snprintf(st->name, sizeof(st->name), "check-tdrive.%d", getpid());
	ck_assert_int_eq(shm_seg_create(&st->seg, st->name, 0600, 2, &info,
					&took_over, NULL),
			 0);
	st->slot = shm_seg_slot(st->seg, 1);
	ck_assert_int_eq(shm_snap_init(&st->snap, st->seg), 0);
}

/* The driver's process; `number` of 2 drivers. */
static void make_driver(struct stage *st, const char *yaml, uint32_t number)
{
	char target[64];
	struct args args = {.managed = true,
			    .segment = st->name,
			    .target = target,
			    .name = "localhost",
			    .slot = 1,
			    .number = number,
			    .drivers = 2,
			    .cpu = -1,
			    .config_fd = memfd_of(yaml)};
	int child, go[2];
	char byte;

	snprintf(target, sizeof(target), "127.0.0.1:%u", st->server.port);
	ck_assert_int_eq(
		sscanf(st->server.ca_path, "/proc/self/fd/%d", &args.ca_fd), 1);
	ck_assert_int_eq(ctl_pair(&st->ctl, &child), 0);
	args.ctl_fd = child;
	ck_assert_int_eq(pipe(go), 0);
	st->pid = fork();
	ck_assert_int_ge(st->pid, 0);
	if (st->pid == 0) { /* not before the slot is assigned */
		close(st->ctl);
		close(go[1]);
		_exit(read(go[0], &byte, 1) == 0 ? managed_run(&args) : 99);
	}
	close(child);
	shm_slot_assign(st->slot, SHM_DRIVER, number, st->pid, -1);
	close(go[0]);
	close(go[1]);
}

static struct stage open_stage(struct server_want want, const char *yaml,
			       uint32_t number)
{
	struct stage st = {.server = server_start(want)};

	make_segment(&st);
	make_driver(&st, yaml, number);
	return st;
}

static void tell(struct stage *st, enum ctl_kind kind, uint32_t phase)
{
	ck_assert_int_eq(ctl_send(st->ctl, kind, phase, NULL), 0);
}

/* Waits for the driver's next message. */
static struct ctl_msg hear(struct stage *st)
{
	struct pollfd p = {.fd = st->ctl, .events = POLLIN};
	struct ctl_msg msg;

	ck_assert_int_eq(poll(&p, 1, SECONDS_AT_MOST * 1000), 1);
	ck_assert_int_eq(ctl_recv(st->ctl, &msg), 1);
	return msg;
}

static void expect(struct stage *st, enum ctl_kind kind, uint32_t phase)
{
	struct ctl_msg msg = hear(st);

	ck_assert_msg(msg.kind == kind, "kind %u: %s", msg.kind, msg.text);
	ck_assert_uint_eq(msg.phase, phase);
}

static uint64_t count(struct stage *st, enum ctr_id id)
{
	shm_snap(st->seg, 1, &st->snap);
	ck_assert(!st->snap.torn);
	return shm_snap_ctr(st->seg, &st->snap, id);
}

static void identity_holds(struct stage *st)
{
	uint64_t started = count(st, CTR_ID_conn_started);

	ck_assert_uint_eq(
		started,
		shm_snap_ctr(st->seg, &st->snap, CTR_ID_hs_full) +
			shm_snap_ctr(st->seg, &st->snap, CTR_ID_hs_resumed) +
			shm_snap_ctr(st->seg, &st->snap,
				     CTR_ID_hs_in_progress) +
			shm_snap_failed(st->seg, &st->snap));
	ck_assert_uint_eq(hist_count(shm_snap_hist(st->seg, &st->snap,
						   HIST_ID_hs_full_time)),
			  shm_snap_ctr(st->seg, &st->snap, CTR_ID_hs_full));
}

/* Until the counter has grown by `n`; the identity holds in each snapshot. */
static void wait_for(struct stage *st, enum ctr_id id, uint64_t n)
{
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;
	uint64_t goal = count(st, id) + n;

	while (count(st, id) < goal) {
		identity_holds(st);
		ck_assert_uint_lt(clk_now(), end);
		poll(NULL, 0, 1); /* the driver needs the CPU, too */
	}
}

static int exit_status(struct stage *st)
{
	int status;

	ck_assert_int_eq(waitpid(st->pid, &status, 0), st->pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void close_stage(struct stage *st)
{
	close(st->ctl);
	shm_snap_fini(&st->snap);
	shm_seg_close(&st->seg);
	server_stop(&st->server);
}

START_TEST(driver_runs_the_phases_it_is_told)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 1}, scenario, 0);
	uint64_t full;

	tell(&st, CTL_START, 0);
	expect(&st, CTL_READY, 0);
	ck_assert_uint_eq(st.slot->state, SHM_SLOT_RUNNING);
	wait_for(&st, CTR_ID_hs_full, 20);
	tell(&st, CTL_STOP, 0);
	expect(&st, CTL_IDLE, 0);
	ck_assert_uint_eq(count(&st, CTR_ID_conn_open), 0);
	ck_assert_uint_eq(count(&st, CTR_ID_hs_resumed), 0);
	full = count(&st, CTR_ID_hs_full);

	tell(&st, CTL_START, 1);
	expect(&st, CTL_READY, 1);
	/* 3 of 5 connections are driver 0's, each primed by one handshake. */
	ck_assert_uint_eq(count(&st, CTR_ID_hs_full), full + 3);
	wait_for(&st, CTR_ID_hs_resumed, 20);
	ck_assert_uint_eq(count(&st, CTR_ID_hs_full), full + 3);
	tell(&st, CTL_STOP, 1);
	expect(&st, CTL_IDLE, 1);
	identity_holds(&st);
	ck_assert_uint_eq(count(&st, CTR_ID_hs_in_progress), 0);
	ck_assert_uint_gt(count(&st, CTR_ID_cpu_ns), 0);

	tell(&st, CTL_QUIT, 0);
	ck_assert_int_eq(exit_status(&st), EXIT_GOOD);
	close_stage(&st);
}
END_TEST

/* The slot's next heartbeat after `last`. */
static uint64_t next_beat(struct stage *st, uint64_t last)
{
	uint64_t end = clk_now() + SECONDS_AT_MOST * NS_PER_S;

	while (st->slot->heartbeat_ns == last && clk_now() < end)
		poll(NULL, 0, 1);
	return st->slot->heartbeat_ns;
}

START_TEST(driver_beats_while_it_rests)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 1}, scenario, 0);
	/* The first is the master's, made when it assigned the slot. */
	uint64_t first = next_beat(&st, st.slot->heartbeat_ns);
	uint64_t second = next_beat(&st, first);

	ck_assert_uint_ge(second - first, 90 * NS_PER_MS);
	ck_assert_uint_lt(second - first, 5 * NS_PER_S);
	tell(&st, CTL_QUIT, 0);
	ck_assert_int_eq(exit_status(&st), EXIT_GOOD);
	close_stage(&st);
}
END_TEST

static const char wide_scenario[] =
	"scenario: check-tdrive\n"
	"load: {connections: 4, timeout: 5s, groups: [P-256]}\n"
	"phases:\n"
	"  - {name: seen, handshake: full, records: true}\n"
	"  - {name: open, handshake: resumed, rate: 100/s, duration: 1s}\n";

/* Records come before IDLE; then a phase of another kind follows. */
START_TEST(driver_shows_records_and_runs_an_open_loop)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 2, .renews = true},
			   wide_scenario, 0);
	unsigned records = 0;
	struct ctl_msg msg;

	tell(&st, CTL_START, 0);
	expect(&st, CTL_READY, 0);
	wait_for(&st, CTR_ID_hs_full, 5);
	tell(&st, CTL_STOP, 0);
	for (msg = hear(&st); msg.kind == CTL_RECORD; msg = hear(&st)) {
		ck_assert_int_eq(strncmp(msg.text, "full ", 5), 0);
		records++;
	}
	ck_assert_uint_eq(msg.kind, CTL_IDLE);
	ck_assert_uint_ge(records, 8);
	ck_assert_uint_eq(count(&st, CTR_ID_group_p256),
			  count(&st, CTR_ID_hs_full));

	tell(&st, CTL_START, 1);
	expect(&st, CTL_READY, 1);
	wait_for(&st, CTR_ID_arrivals, 20);
	tell(&st, CTL_STOP, 1);
	expect(&st, CTL_IDLE, 1);
	ck_assert_uint_gt(count(&st, CTR_ID_hs_resumed), 0);
	identity_holds(&st);
	tell(&st, CTL_QUIT, 0);
	ck_assert_int_eq(exit_status(&st), EXIT_GOOD);
	close_stage(&st);
}
END_TEST

START_TEST(driver_ends_when_the_master_does)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 1}, scenario, 0);

	tell(&st, CTL_START, 0);
	expect(&st, CTL_READY, 0);
	close(st.ctl);
	ck_assert_int_eq(exit_status(&st), EXIT_GOOD);
	close_stage(&st);
}
END_TEST

START_TEST(driver_ignores_the_terminal)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 1}, scenario, 0);

	tell(&st, CTL_START, 0);
	expect(&st, CTL_READY, 0);
	kill(st.pid, SIGINT);
	kill(st.pid, SIGTERM);
	wait_for(&st, CTR_ID_hs_full, 5);
	tell(&st, CTL_QUIT, 0);
	ck_assert_int_eq(exit_status(&st), EXIT_GOOD);
	close_stage(&st);
}
END_TEST

START_TEST(driver_is_ready_in_time_without_tickets)
{
	struct stage st = open_stage((struct server_want){.no_tickets = true},
				     scenario, 1);
	uint64_t start = clk_now();

	tell(&st, CTL_START, 1);
	expect(&st, CTL_READY, 1);
	ck_assert_uint_ge(clk_now() - start, 1200 * NS_PER_MS);
	ck_assert_uint_lt(clk_now() - start, 6 * NS_PER_S);
	ck_assert_uint_eq(count(&st, CTR_ID_hs_resumed), 0);
	ck_assert_uint_eq(count(&st, CTR_ID_tickets_offered), 0);
	wait_for(&st, CTR_ID_tickets_missed, 1);
	tell(&st, CTL_STOP, 1);
	expect(&st, CTL_IDLE, 1);
	tell(&st, CTL_QUIT, 0);
	ck_assert_int_eq(exit_status(&st), EXIT_GOOD);
	close_stage(&st);
}
END_TEST

START_TEST(driver_is_idle_in_time_when_the_server_hangs)
{
	struct stage st = open_stage((struct server_want){.kind = SERVER_MUTE},
				     scenario, 0);
	uint64_t start;

	tell(&st, CTL_START, 0);
	expect(&st, CTL_READY, 0);
	start = clk_now();
	tell(&st, CTL_STOP, 0);
	expect(&st, CTL_IDLE, 0);
	ck_assert_uint_lt(clk_now() - start, 5 * NS_PER_S);
	identity_holds(&st);
	ck_assert_uint_eq(count(&st, CTR_ID_hs_in_progress), 0);
	tell(&st, CTL_QUIT, 0);
	ck_assert_int_eq(exit_status(&st), EXIT_GOOD);
	close_stage(&st);
}
END_TEST

static void expect_fail(struct stage *st, const char *says)
{
	struct ctl_msg msg = hear(st);

	ck_assert_uint_eq(msg.kind, CTL_FAIL);
	ck_assert_msg(strstr(msg.text, says) != NULL, "\"%s\"", msg.text);
	ck_assert_int_eq(exit_status(st), EXIT_RUN);
}

START_TEST(driver_fails_on_a_phase_that_is_not_there)
{
	struct stage st =
		open_stage((struct server_want){.tickets = 1}, scenario, 0);

	tell(&st, CTL_START, 2);
	expect_fail(&st, "no phase 2");
	close_stage(&st);
}
END_TEST

static const struct {
	const char *yaml, *says;
} bad_scenarios[] = {
	{"scenario: x\nlod: none\n", "lod"},
	{"scenario: x\ntls: {client_auth: required, ca: /dev/null}\n",
	 "client certificate"},
	{"scenario: x\ntls: {groups: [X25520]}\n", "X25520"},
};

START_TEST(driver_fails_on_a_scenario_it_cannot_run)
{
	struct stage st = open_stage((struct server_want){.tickets = 1},
				     bad_scenarios[_i].yaml, 0);

	expect_fail(&st, bad_scenarios[_i].says);
	close_stage(&st);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tdrive_tls_managed");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(works, driver_runs_the_phases_it_is_told);
	tcase_add_test(works, driver_beats_while_it_rests);
	tcase_add_test(works, driver_shows_records_and_runs_an_open_loop);
	tcase_add_test(works, driver_ends_when_the_master_does);
	tcase_add_test(works, driver_ignores_the_terminal);
	tcase_add_test(limits, driver_is_ready_in_time_without_tickets);
	tcase_add_test(limits, driver_is_idle_in_time_when_the_server_hangs);
	tcase_add_test(refuses, driver_fails_on_a_phase_that_is_not_there);
	tcase_add_loop_test(refuses, driver_fails_on_a_scenario_it_cannot_run,
			    0, ARRAY_LEN(bad_scenarios));
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	tcase_set_timeout(works, 2 * SECONDS_AT_MOST);
	tcase_set_timeout(limits, 2 * SECONDS_AT_MOST);
	tcase_set_timeout(refuses, 2 * SECONDS_AT_MOST);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
