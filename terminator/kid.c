/* SPDX-License-Identifier: MIT */
#include "terminator/kid.h"

#include "shm/base.h"
#include "shm/clk.h"
#include "shm/ctl.h"
#include "shm/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/*
 * A child keeps its own descriptors and no other: not the listeners of other
 * workers, not the control channels of its siblings (whose end of file would
 * otherwise never come).
 */
static void close_all_but(int *keep, size_t n)
{
	unsigned from = 3;

	qsort(keep, n, sizeof(*keep), compare_ints);
	for (size_t i = 0; i < n; i++) {
		unsigned k = (unsigned)keep[i];

		if (k < from)
			continue;
		if (k > from)
			close_range(from, k - 1, 0);
		from = k + 1;
	}
	close_range(from, ~0u, 0);
}

static void run_worker(const struct kid *kid, const struct wrk_args *common,
		       struct shm_slot *slot, int ctl_fd)
{
	struct wrk_args args = *common;
	int keep[WRK_LISTEN_MAX + 1];
	char role[32];

	args.slot = slot;
	args.number = kid->number;
	args.cpu = kid->cpu;
	args.ctl_fd = ctl_fd;
	memcpy(keep, args.listen_fd, args.nlisten * sizeof(*keep));
	keep[args.nlisten] = ctl_fd;
	close_all_but(keep, args.nlisten + 1);
	snprintf(role, sizeof(role), "worker/%u", kid->number);
	log_set_role(role);
	wrk_main(&args);
}

static void keep_over_exec(int fd)
{
	MUST(fcntl(fd, F_SETFD, 0) == 0);
}

static _Noreturn void run_driver(const struct kid *kid,
				 const struct kid_driver *d, int ctl_fd)
{
	char slot[16], number[16], total[16], cpu[16], cf[16], tf[16], ct[16];
	int keep[3] = {d->config_fd, d->trust_fd, ctl_fd};

	snprintf(slot, sizeof(slot), "%u", kid->slot);
	snprintf(number, sizeof(number), "%u", kid->number);
	snprintf(total, sizeof(total), "%u", d->ndrivers);
	snprintf(cpu, sizeof(cpu), "%d", kid->cpu);
	snprintf(cf, sizeof(cf), "%d", d->config_fd);
	snprintf(tf, sizeof(tf), "%d", d->trust_fd);
	snprintf(ct, sizeof(ct), "%d", ctl_fd);
	close_all_but(keep, ARRAY_LEN(keep));
	for (size_t i = 0; i < ARRAY_LEN(keep); i++)
		keep_over_exec(keep[i]);
	execl(d->program, "tdrive", "--managed", "--segment", d->segment,
	      "--slot", slot, "--number", number, "--drivers", total, "--cpu",
	      cpu, "--target", d->target, "--name", d->server_name,
	      "--config-fd", cf, "--ca-fd", tf, "--ctl-fd", ct,
	      d->plain != NULL ? "--plain" : (char *)NULL, d->plain,
	      (char *)NULL);
	char text[CTL_TEXT_MAX];

	snprintf(text, sizeof(text), "%.200s cannot be started: %s", d->program,
		 strerror(errno));
	ctl_send(ctl_fd, CTL_FAIL, 0, text);
	_exit(EXIT_RUN);
}

/* The master's side of a birth. */
static void adopt(struct kid *kid, pid_t pid, int pid_fd, int ctl_fd)
{
	kid->pid = pid;
	kid->pid_fd = pid_fd;
	kid->ctl_fd = ctl_fd;
	kid->ready = false;
	kid->idle = true;
	kid->leaving = false;
	kid->respawn_ns = 0;
	kid->fault[0] = '\0';
	kid->started_ns = clk_now();
}

/*
 * The slot has one writer at a time: the master assigns it, with the pid that
 * only fork() tells, and then lets the child go by closing a pipe it waits on.
 */
static int start(struct kid *kid, struct shm_seg *seg,
		 const struct wrk_args *worker, const struct kid_driver *driver)
{
	int ctl[2], go[2], rc, pid_fd;
	char byte;
	pid_t pid;

	rc = ctl_pair(&ctl[0], &ctl[1]);
	if (rc < 0)
		return rc;
	if (pipe2(go, O_CLOEXEC) < 0) {
		rc = -errno;
		goto fail_pair;
	}
	pid = fork();
	if (pid < 0) {
		rc = -errno;
		goto fail_pipe;
	}
	if (pid == 0) {
		close(go[1]);
		while (read(go[0], &byte, 1) < 0 && errno == EINTR)
			;
		if (worker != NULL)
			run_worker(kid, worker, shm_seg_slot(seg, kid->slot),
				   ctl[1]);
		run_driver(kid, driver, ctl[1]);
	}
	pid_fd = pidfd_open(pid, 0);
	if (pid_fd < 0) {
		rc = -errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		goto fail_pipe;
	}
	shm_slot_assign(shm_seg_slot(seg, kid->slot),
			worker != NULL ? SHM_WORKER : SHM_DRIVER, kid->number,
			pid, kid->cpu);
	adopt(kid, pid, pid_fd, ctl[0]);
	kid->cpu_base_ns =
		atomic_load_explicit(&shm_seg_slot(seg, kid->slot)->ctr.cpu_ns,
				     memory_order_relaxed);
	close(go[0]);
	close(go[1]);
	close(ctl[1]);
	return 0;
fail_pipe:
	close(go[0]);
	close(go[1]);
fail_pair:
	close(ctl[0]);
	close(ctl[1]);
	return rc;
}

int kid_start_worker(struct kid *kid, struct shm_seg *seg,
		     const struct wrk_args *args)
{
	return start(kid, seg, args, NULL);
}

int kid_start_driver(struct kid *kid, struct shm_seg *seg,
		     const struct kid_driver *driver)
{
	return start(kid, seg, NULL, driver);
}

static uint64_t timeval_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * NS_PER_S +
	       (uint64_t)tv->tv_usec * NS_PER_US;
}

int kid_reap(struct kid *kid, struct shm_seg *seg)
{
	struct shm_slot *slot = shm_seg_slot(seg, kid->slot);
	struct rusage use = {0};
	int status = 0;
	bool clean;

	while (wait4(kid->pid, &status, 0, &use) < 0 && errno == EINTR)
		;
	clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	shm_slot_reap(slot,
		      kid->leaving && clean ? SHM_SLOT_ENDED : SHM_SLOT_DEAD);
	/* The kernel's last word: its own may be older by some work. */
	ctr_raise(&slot->ctr.cpu_ns, kid->cpu_base_ns +
					     timeval_ns(&use.ru_utime) +
					     timeval_ns(&use.ru_stime));
	close(kid->pid_fd);
	close(kid->ctl_fd);
	kid->pid_fd = -1;
	kid->ctl_fd = -1;
	kid->pid = 0;
	kid->ready = false;
	kid->idle = true;
	return status;
}

void kid_explain(int status, char *buf, size_t len)
{
	if (WIFSIGNALED(status))
		snprintf(buf, len, "was killed by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(buf, len, "exited with status %d",
			 WEXITSTATUS(status));
}

void kid_name(const struct kid *kid, char *buf, size_t len)
{
	snprintf(buf, len, "%s %u",
		 kid->kind == KID_WORKER ? "worker" : "driver", kid->number);
}
