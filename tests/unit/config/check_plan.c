/* SPDX-License-Identifier: MIT */
#include "config/plan.h"

#include "shm/base.h"

#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a made-up root ---- */

static char root[64];

static void setup(void)
{
	strcpy(root, "/tmp/tterm-unit-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static int remove_one(const char *path, const struct stat *st, int flag,
		      struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	ck_assert_int_eq(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Writes a file below the root, with the folders above it. */
static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		ck_assert(mkdir(full, 0700) == 0 || errno == EEXIST);
		*p = '/';
	}
	f = fopen(full, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static struct plan_cpus detect(void)
{
	struct plan_cpus cpus;

	ck_assert_int_eq(plan_detect(&cpus, root), 0);
	return cpus;
}

/* How many CPUs this process has, and the text that says so. */
static uint32_t here(char *buf, size_t len, const char *more)
{
	struct plan_cpus cpus;
	char empty[80];

	snprintf(empty, sizeof(empty), "%s/nothing", root);
	ck_assert_int_eq(plan_detect(&cpus, empty), 0);
	snprintf(buf, len, "affinity allows %u of %u%s", cpus.ncpu, cpus.online,
		 more);
	return cpus.ncpu;
}

static void pin_to_first(void)
{
	cpu_set_t all, one;
	size_t cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

static const char v2_mount[] =
	"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	"35 22 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

static const char v1_mounts[] =
	"30 22 0:26 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	"31 22 0:27 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
	"32 22 0:28 / /cg/cpuacct-only rw - cgroup cgroup rw,cpuacct\n";

START_TEST(without_groups_affinity_decides)
{
	struct plan_cpus cpus = detect();
	char text[256], want[320];
	uint32_t n = here(text, sizeof(text), ", no cgroup quota");
	cpu_set_t mask;

	snprintf(want, sizeof(want), "%u CPU%s: %s", n, n == 1 ? "" : "s",
		 text);
	ck_assert_str_eq(cpus.source, want);
	ck_assert_uint_eq(cpus.usable, n);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(mask), &mask), 0);
	ck_assert_int_eq((int)cpus.ncpu, CPU_COUNT(&mask));
	ck_assert_double_eq(cpus.quota, 0);
	for (uint32_t i = 1; i < cpus.ncpu; i++)
		ck_assert_int_lt(cpus.cpu[i - 1], cpus.cpu[i]);
}
END_TEST

START_TEST(an_affinity_of_one_leaves_one)
{
	struct plan_cpus cpus;
	char want[96];

	put("/proc/self/mountinfo", v2_mount);
	put("/proc/self/cgroup", "0::/a\n");
	put("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
	pin_to_first();
	cpus = detect();
	ck_assert_uint_eq(cpus.usable, 1);
	ck_assert_uint_eq(cpus.ncpu, 1);
	ck_assert_double_eq(cpus.quota, 1.5);
	snprintf(want, sizeof(want),
		 "1 CPU: affinity allows 1 of %ld, cgroup v2 quota 1.5 CPUs in "
		 "/a",
		 sysconf(_SC_NPROCESSORS_ONLN));
	ck_assert_str_eq(cpus.source, want);
}
END_TEST

/* A quota rounds up: one and a half CPUs keep two workers half busy. */
START_TEST(a_quota_of_version_2_is_rounded_up)
{
	static const struct {
		const char *max;
		double quota;
		uint32_t usable; /* of 2 or more */
	} row[] = {
		{"150000 100000\n", 1.5, 2}, {"100000 100000\n", 1, 1},
		{"50000 100000\n", 0.5, 1},  {"1000 100000\n", 0.01, 1},
		{"110000 100000", 1.1, 2},   {"max 100000\n", 0, 1024},
		{"max\n", 0, 1024},	     {"", 0, 1024},
		{"rubbish\n", 0, 1024},	     {"100000 0\n", 0, 1024},
		{"-1 100000\n", 0, 1024},    {"900000 100000\n", 9, 9},
	};
	char text[128];
	uint32_t n = here(text, sizeof(text), "");

	put("/proc/self/mountinfo", v2_mount);
	put("/proc/self/cgroup", "0::/\n");
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct plan_cpus cpus;

		put("/sys/fs/cgroup/cpu.max", row[i].max);
		cpus = detect();
		ck_assert_double_eq_tol(cpus.quota, row[i].quota, 1e-9);
		ck_assert_uint_eq(cpus.usable, base_min(n, row[i].usable));
		ck_assert_uint_eq(cpus.ncpu, n);
	}
}
END_TEST

START_TEST(the_smallest_quota_of_all_levels_counts)
{
	struct plan_cpus cpus;

	put("/proc/self/mountinfo", v2_mount);
	put("/proc/self/cgroup", "0::/slice/pod/box\n");
	put("/sys/fs/cgroup/slice/pod/box/cpu.max", "max 100000\n");
	put("/sys/fs/cgroup/slice/pod/cpu.max", "70000 100000\n");
	put("/sys/fs/cgroup/slice/cpu.max", "400000 100000\n");
	put("/sys/fs/cgroup/other/cpu.max", "10000 100000\n");
	cpus = detect();
	ck_assert_double_eq_tol(cpus.quota, 0.7, 1e-9);
	ck_assert_uint_eq(cpus.usable, 1);
	ck_assert_ptr_nonnull(
		strstr(cpus.source, "cgroup v2 quota 0.7 CPUs in /slice/pod"));
}
END_TEST

START_TEST(a_quota_of_version_1_is_found_by_its_controller)
{
	struct plan_cpus cpus;

	put("/proc/self/mountinfo", v1_mounts);
	put("/proc/self/cgroup", "9:name=systemd:/x\n4:cpuset:/set\n"
				 "3:cpu,cpuacct:/a/b\n0::/\n");
	put("/cg/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
	put("/cg/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
	put("/cg/cpu,cpuacct/a/cpu.cfs_quota_us", "25000\n");
	put("/cg/cpu,cpuacct/a/cpu.cfs_period_us", "50000\n");
	put("/cg/cpuset/set/cpuset.cpus", "0-5,9\n");
	cpus = detect();
	ck_assert_double_eq(cpus.quota, 0.5);
	ck_assert_uint_eq(cpus.usable, 1);
	ck_assert_ptr_nonnull(
		strstr(cpus.source,
		       " (cpuset 0-5,9), cgroup v1 quota 0.5 CPUs in /a"));
}
END_TEST

START_TEST(both_versions_may_be_there)
{
	struct plan_cpus cpus;
	char mounts[600];

	snprintf(mounts, sizeof(mounts), "%s%s", v1_mounts, v2_mount);
	put("/proc/self/mountinfo", mounts);
	put("/proc/self/cgroup", "3:cpu,cpuacct:/a\n0::/b\n");
	put("/cg/cpu,cpuacct/a/cpu.cfs_quota_us", "60000\n");
	put("/cg/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/b/cpu.max", "80000 100000\n");
	cpus = detect();
	ck_assert_double_eq_tol(cpus.quota, 0.6, 1e-9);
	ck_assert_ptr_nonnull(strstr(cpus.source, "cgroup v1"));
	put("/sys/fs/cgroup/b/cpu.max", "30000 100000\n");
	cpus = detect();
	ck_assert_double_eq_tol(cpus.quota, 0.3, 1e-9);
	ck_assert_ptr_nonnull(strstr(cpus.source, "cgroup v2"));
}
END_TEST

/* A container: what is mounted is a group further down, or all we may see. */
START_TEST(a_mount_may_begin_below_the_top)
{
	static const char mount[] =
		"35 22 0:30 /docker/abc /sys/fs/cgroup rw - "
		"cgroup2 cgroup2 rw\n";
	struct plan_cpus cpus;

	put("/proc/self/mountinfo", mount);
	put("/proc/self/cgroup", "0::/docker/abc/in\n");
	put("/sys/fs/cgroup/in/cpu.max", "20000 100000\n");
	put("/sys/fs/cgroup/cpu.max", "90000 100000\n");
	cpus = detect();
	ck_assert_double_eq_tol(cpus.quota, 0.2, 1e-9);
	put("/proc/self/cgroup", "0::/../../elsewhere\n");
	cpus = detect();
	ck_assert_double_eq_tol(cpus.quota, 0.9, 1e-9);
}
END_TEST

START_TEST(without_mountinfo_the_usual_places_are_read)
{
	struct plan_cpus cpus;

	put("/proc/self/cgroup", "0::/a\n");
	put("/sys/fs/cgroup/a/cpu.max", "40000 100000\n");
	cpus = detect();
	ck_assert_double_eq_tol(cpus.quota, 0.4, 1e-9);
	put("/proc/self/cgroup", "2:cpu:/a\n");
	put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "30000\n");
	put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
	cpus = detect();
	ck_assert_double_eq_tol(cpus.quota, 0.3, 1e-9);
}
END_TEST

START_TEST(files_of_rubbish_limit_nothing)
{
	char text[128], deep[4000];
	uint32_t n = here(text, sizeof(text), "");

	put("/proc/self/mountinfo", "\n-\n - \n1 2 3 - cgroup2\n"
				    "1 2 3 / / - - - - -\n\xff\xfe\n");
	put("/proc/self/cgroup", "\n:\n::\n0:\n0::\n0::relative\n3:cpu\n");
	ck_assert_uint_eq(detect().usable, n);
	strcpy(deep, "0::");
	for (int i = 0; i < 700; i++)
		strcat(deep, "/deep");
	put("/proc/self/cgroup", deep);
	ck_assert_uint_eq(detect().usable, n);
}
END_TEST

/* ---- plans ---- */

static struct plan_cpus machine(uint32_t n, double quota)
{
	struct plan_cpus cpus = {.ncpu = n, .online = n, .usable = n};

	for (uint32_t i = 0; i < n; i++)
		cpus.cpu[i] = (int)i;
	cpus.quota = quota;
	if (quota > 0 && quota < n)
		cpus.usable = (uint32_t)(quota + 0.999);
	return cpus;
}

static char auto_pin[] = "auto";
static struct cfg_phase one_phase;

/* All defaults, with one phase. */
static struct cfg scenario(void)
{
	struct cfg cfg = {.phases = &one_phase, .nphases = 1};

	cfg.workers.pin = auto_pin;
	cfg.load.pin = auto_pin;
	return cfg;
}

static struct plan planned(const struct cfg *cfg, const struct plan_cpus *cpus)
{
	struct plan plan;
	char err[256] = "";

	ck_assert_msg(plan_make(&plan, cfg, cpus, err, sizeof(err)) == 0, "%s",
		      err);
	return plan;
}

struct expect {
	uint32_t ncpu;
	uint64_t count, drivers;
	const char *worker_pin, *driver_pin;
	bool sharing;
	const char *why;
};

static const struct expect table[] = {
	{1, 0, 0, "auto", "auto", true,
	 "1 worker on CPU 0, 1 driver sharing it"},
	{2, 0, 0, "auto", "auto", true,
	 "2 workers on CPUs 0-1, 2 drivers sharing them"},
	{3, 0, 0, "auto", "auto", true,
	 "3 workers on CPUs 0-2, 3 drivers sharing them"},
	{4, 0, 0, "auto", "auto", false,
	 "2 workers on CPUs 0-1, 2 drivers on CPUs 2-3"},
	{5, 0, 0, "auto", "auto", false,
	 "2 workers on CPUs 0-1, 3 drivers on CPUs 2-4"},
	{64, 0, 0, "auto", "auto", false,
	 "32 workers on CPUs 0-31, 32 drivers on CPUs 32-63"},
	{8, 0, CFG_NO_DRIVERS, "auto", "auto", false,
	 "8 workers on CPUs 0-7, no drivers"},
	{8, 1, 0, "auto", "auto", false,
	 "1 worker on CPU 0, 4 drivers on CPUs 1-4"},
	{8, 6, 0, "auto", "auto", false,
	 "6 workers on CPUs 0-5, 2 drivers on CPUs 6-7"},
	{2, 1, 0, "auto", "auto", false,
	 "1 worker on CPU 0, 1 driver on CPU 1"},
	{4, 6, 0, "auto", "auto", true,
	 "6 workers on CPUs 0-3, 2 drivers on CPUs 0-1, some of them shared"},
	{4, 6, 4, "auto", "auto", true,
	 "6 workers on CPUs 0-3, 4 drivers sharing them"},
	{4, 0, 5, "auto", "auto", false,
	 "2 workers on CPUs 0-1, 5 drivers on CPUs 2-3"},
	{2, 64, 2, "auto", "auto", true,
	 "64 workers on CPUs 0-1, 2 drivers sharing them"},
	{4, 0, 0, "none", "auto", true,
	 "2 workers not pinned, 2 drivers on CPUs 0-1"},
	{4, 0, 0, "auto", "none", true,
	 "2 workers on CPUs 0-1, 2 drivers not pinned"},
	{4, 0, CFG_NO_DRIVERS, "none", "auto", false,
	 "4 workers not pinned, no drivers"},
	{8, 0, 0, "4,6", "auto", false,
	 "2 workers on CPUs 4,6, 4 drivers on CPUs 0-3"},
	{8, 0, 0, "auto", "0", false,
	 "7 workers on CPUs 1-7, 1 driver on CPU 0"},
	{8, 3, 2, "5", "6-7", false,
	 "3 workers on CPU 5, 2 drivers on CPUs 6-7"},
	{4, 0, 0, "0-3", "auto", true,
	 "4 workers on CPUs 0-3, 2 drivers on CPUs 0-1, some of them shared"},
	{4, 0, 0, "1-2", "2-3", true,
	 "2 workers on CPUs 1-2, 2 drivers on CPUs 2-3, some of them shared"},
	{512, 0, CFG_NO_DRIVERS, "auto", "auto", false,
	 "256 workers on CPUs 0-255, no drivers"},
	{1024, 0, 0, "auto", "auto", false,
	 "256 workers on CPUs 0-255, 256 drivers on CPUs 256-511"},
};

START_TEST(processes_and_cpus_are_as_the_table_says)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct expect *e = &table[i];
		struct plan_cpus cpus = machine(e->ncpu, 0);
		struct cfg cfg = scenario();
		struct plan plan;

		cfg.workers.count = e->count;
		cfg.workers.pin = (char *)e->worker_pin;
		cfg.load.drivers = e->drivers;
		cfg.load.pin = (char *)e->driver_pin;
		plan = planned(&cfg, &cpus);
		ck_assert_str_eq(plan.why, e->why);
		ck_assert_msg(plan.sharing == e->sharing, "%s", e->why);
	}
}
END_TEST

START_TEST(a_target_has_no_workers)
{
	static const struct expect row[] = {
		{1, 0, 0, "auto", "auto", false, "1 driver on CPU 0"},
		{2, 0, 0, "auto", "auto", false, "2 drivers on CPUs 0-1"},
		{3, 0, 0, "auto", "auto", false, "3 drivers on CPUs 0-2"},
		{4, 0, 0, "auto", "auto", false, "2 drivers on CPUs 2-3"},
		{5, 0, 0, "auto", "auto", false, "3 drivers on CPUs 2-4"},
		{8, 0, 1, "auto", "auto", false, "1 driver on CPU 4"},
		{2, 0, 5, "auto", "auto", false, "5 drivers on CPUs 0-1"},
		{8, 0, 0, "auto", "0-1", false, "2 drivers on CPUs 0-1"},
		{8, 0, 3, "auto", "7", false, "3 drivers on CPU 7"},
		{8, 0, 0, "auto", "none", false, "4 drivers not pinned"},
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct plan_cpus cpus = machine(row[i].ncpu, 0);
		struct cfg cfg = scenario();
		char address[] = "127.0.0.1:8443", why[256];
		struct plan plan;

		cfg.has_target = true;
		cfg.target.address = address;
		cfg.load.drivers = row[i].drivers;
		cfg.load.pin = (char *)row[i].driver_pin;
		plan = planned(&cfg, &cpus);
		snprintf(why, sizeof(why),
			 "no workers: the target is 127.0.0.1:8443; %s",
			 row[i].why);
		ck_assert_str_eq(plan.why, why);
		ck_assert_uint_eq(plan.nworkers, 0);
		ck_assert(!plan.sharing);
	}
}
END_TEST

START_TEST(without_phases_there_is_no_load)
{
	struct plan_cpus cpus = machine(8, 0);
	struct cfg cfg = scenario();
	struct plan plan;

	cfg.nphases = 0;
	plan = planned(&cfg, &cpus);
	ck_assert_uint_eq(plan.nworkers, 8);
	ck_assert_uint_eq(plan.ndrivers, 0);
	ck_assert(!plan.sharing);
}
END_TEST

START_TEST(a_quota_leaves_the_first_cpus)
{
	struct plan_cpus cpus = machine(16, 1.5);
	struct cfg cfg = scenario();
	struct plan plan = planned(&cfg, &cpus);

	ck_assert_str_eq(plan.why,
			 "2 workers on CPUs 0-1, 2 drivers sharing them");
	cpus = machine(16, 4.2);
	plan = planned(&cfg, &cpus);
	ck_assert_str_eq(plan.why,
			 "2 workers on CPUs 0-1, 3 drivers on CPUs 2-4");
}
END_TEST

START_TEST(only_allowed_cpus_are_used)
{
	struct plan_cpus cpus = {
		.cpu = {3, 5, 6, 7, 40}, .ncpu = 5, .online = 64, .usable = 5};
	struct cfg cfg = scenario();
	struct plan plan = planned(&cfg, &cpus);

	ck_assert_str_eq(plan.why,
			 "2 workers on CPUs 3,5, 3 drivers on CPUs 6-7,40");
	ck_assert_int_eq(plan.worker_cpu[1], 5);
	ck_assert_int_eq(plan.driver_cpu[2], 40);
}
END_TEST

START_TEST(pin_lists_are_used_in_turn)
{
	struct plan_cpus cpus = machine(8, 0);
	struct cfg cfg = scenario();
	char list[] = "5,2,7";
	struct plan plan;

	cfg.workers.count = 7;
	cfg.workers.pin = list;
	plan = planned(&cfg, &cpus);
	for (int i = 0; i < 7; i++)
		ck_assert_int_eq(plan.worker_cpu[i], i % 3 == 0	  ? 5
						     : i % 3 == 1 ? 2
								  : 7);
	ck_assert_str_eq(plan.why,
			 "7 workers on CPUs 5,2,7, 4 drivers on CPUs 0-1,3-4");
}
END_TEST

/* Every number of CPUs and workers: no CPU that is not there, none twice where
 * there is room, and none shared unless said so. */
START_TEST(any_machine_gets_a_plan_that_holds)
{
	for (uint32_t n = 1; n <= 64; n++) {
		for (uint32_t count = 0; count <= 256; count += 1 + count / 5) {
			struct plan_cpus cpus = machine(n, 0);
			struct cfg cfg = scenario();
			bool used[64] = {false}, both = false;
			struct plan plan;

			cfg.workers.count = count;
			plan = planned(&cfg, &cpus);
			ck_assert_uint_ge(plan.nworkers, 1);
			ck_assert_uint_ge(plan.ndrivers, 1);
			if (count > 0)
				ck_assert_uint_eq(plan.nworkers, count);
			for (uint32_t i = 0; i < plan.nworkers; i++) {
				int cpu = plan.worker_cpu[i];

				ck_assert_int_ge(cpu, 0);
				ck_assert_int_lt(cpu, (int)n);
				ck_assert(!used[cpu] || i >= n);
				used[cpu] = true;
			}
			for (uint32_t i = 0; i < plan.ndrivers; i++) {
				int cpu = plan.driver_cpu[i];

				ck_assert_int_ge(cpu, 0);
				ck_assert_int_lt(cpu, (int)n);
				both = both || used[cpu];
			}
			ck_assert(both == plan.sharing);
		}
	}
}
END_TEST

START_TEST(two_hundred_and_fifty_six_of_each_can_be_asked)
{
	struct plan_cpus cpus = machine(1000, 0);
	struct cfg cfg = scenario();
	struct plan plan;

	cfg.workers.count = 256;
	cfg.load.drivers = 256;
	plan = planned(&cfg, &cpus);
	ck_assert_uint_eq(plan.nworkers, 256);
	ck_assert_uint_eq(plan.ndrivers, 256);
	ck_assert_int_eq(plan.worker_cpu[255], 255);
	ck_assert_int_eq(plan.driver_cpu[0], 256);
	ck_assert_int_eq(plan.driver_cpu[255], 511);
	ck_assert(!plan.sharing);
}
END_TEST

START_TEST(long_lists_of_cpus_are_cut_in_words_only)
{
	struct plan_cpus cpus = {.ncpu = 200, .online = 400, .usable = 200};
	struct cfg cfg = scenario();
	struct plan plan;

	for (uint32_t i = 0; i < cpus.ncpu; i++)
		cpus.cpu[i] = (int)(2 * i);
	plan = planned(&cfg, &cpus);
	ck_assert_uint_eq(plan.nworkers, 100);
	ck_assert_int_eq(plan.worker_cpu[99], 198);
	ck_assert_uint_lt(strlen(plan.why), sizeof(plan.why) - 1);
	ck_assert_ptr_nonnull(strstr(plan.why, "..."));
}
END_TEST

START_TEST(a_cpu_that_is_not_allowed_is_refused)
{
	struct plan_cpus cpus = {
		.cpu = {0, 1, 4}, .ncpu = 3, .online = 8, .usable = 3};
	struct cfg cfg = scenario();
	char list[] = "1,2", err[256];
	struct plan plan = {.nworkers = 77};

	cfg.workers.pin = list;
	ck_assert_int_eq(plan_make(&plan, &cfg, &cpus, err, sizeof(err)),
			 -EINVAL);
	ck_assert_str_eq(err, "workers.pin: CPU 2 is not allowed to this "
			      "process; allowed are 0-1,4");
	cfg.workers.pin = auto_pin;
	cfg.load.pin = list;
	ck_assert_int_eq(plan_make(&plan, &cfg, &cpus, err, sizeof(err)),
			 -EINVAL);
	ck_assert_str_eq(err, "load.pin: CPU 2 is not allowed to this process; "
			      "allowed are 0-1,4");
	ck_assert_uint_eq(plan.nworkers, 77);
}
END_TEST

static TCase *with_root(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return t;
}

static void add_works(TCase *t)
{
	tcase_add_test(t, without_groups_affinity_decides);
	tcase_add_test(t, an_affinity_of_one_leaves_one);
	tcase_add_test(t, a_quota_of_version_2_is_rounded_up);
	tcase_add_test(t, the_smallest_quota_of_all_levels_counts);
	tcase_add_test(t, a_quota_of_version_1_is_found_by_its_controller);
	tcase_add_test(t, both_versions_may_be_there);
	tcase_add_test(t, a_mount_may_begin_below_the_top);
	tcase_add_test(t, without_mountinfo_the_usual_places_are_read);
	tcase_add_test(t, processes_and_cpus_are_as_the_table_says);
	tcase_add_test(t, a_target_has_no_workers);
	tcase_add_test(t, without_phases_there_is_no_load);
	tcase_add_test(t, a_quota_leaves_the_first_cpus);
	tcase_add_test(t, only_allowed_cpus_are_used);
	tcase_add_test(t, pin_lists_are_used_in_turn);
}

int main(void)
{
	Suite *s = suite_create("plan");
	TCase *limits, *refuses;
	SRunner *r;
	int failed;

	add_works(with_root(s, "works"));
	limits = with_root(s, "limits");
	tcase_add_test(limits, files_of_rubbish_limit_nothing);
	tcase_add_test(limits, any_machine_gets_a_plan_that_holds);
	tcase_add_test(limits, two_hundred_and_fifty_six_of_each_can_be_asked);
	tcase_add_test(limits, long_lists_of_cpus_are_cut_in_words_only);
	refuses = with_root(s, "refuses");
	tcase_add_test(refuses, a_cpu_that_is_not_allowed_is_refused);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
