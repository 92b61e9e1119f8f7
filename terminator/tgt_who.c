/* SPDX-License-Identifier: MIT */
/* Which processes the target is made of: those named, and now. */
#include "terminator/tgt_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the processes that were named ---- */

/* What to do when a process that was named does not run. */
static const char *hint(const struct tgt *t)
{
	if (t->source == TGT_FROM_PID_FILE)
		return "is the file older than the server's last start?";
	return "write what `pgrep -d, NAME` prints, or target.pid_file";
}

static int add_root(struct tgt *t, struct tgt_ids *roots, pid_t pid)
{
	struct tgt_proc p;
	struct tgt_id id;

	if (pid == getpid())
		return tgt_fault(t, -EINVAL,
				 "%s: process %d is tterm itself, not a server",
				 t->value, (int)pid);
	if (tgt_proc_stat(pid, &p) < 0 || p.state == 'Z' || p.state == 'X')
		return tgt_fault(t, -ESRCH, "%s: process %d does not run%s; %s",
				 t->value, (int)pid,
				 geteuid() == 0 ? "" : ", or is hidden from us",
				 hint(t));
	id = (struct tgt_id){
		.pid = pid, .parent = p.parent, .start_ticks = p.start_ticks};
	return tgt_ids_add(roots, &id) < 0
		       ? tgt_fault(t, -ENOMEM, "out of memory")
		       : 0;
}

static int roots_of_pids(struct tgt *t, const struct tgt_want *want)
{
	for (size_t i = 0; i < want->npids; i++) {
		pid_t pid = tgt_pid_parse(want->pids[i]);
		int rc;

		if (pid == 0)
			return tgt_fault(
				t, -EINVAL,
				"\"%s\" is not a process id; write numbers "
				"such as [4711, 4712]",
				want->pids[i]);
		rc = add_root(t, &t->roots, pid);
		if (rc < 0)
			return rc;
	}
	tgt_ids_sort(&t->roots);
	return 0;
}

/* Some servers write one process a line; what follows is their own affair. */
static int roots_of_file(struct tgt *t, struct tgt_ids *roots)
{
	char text[4096], *line, *save;
	int rc = tgt_read_file(t->value, text, sizeof(text));
	pid_t pid;

	if (rc < 0)
		return tgt_fault(t, rc,
				 "%s: %s; is the server running, and does its "
				 "configuration write its process id there?",
				 t->value, strerror(-rc));
	line = strtok_r(text, " \t\r\n", &save);
	for (; line != NULL; line = strtok_r(NULL, " \t\r\n", &save)) {
		pid = tgt_pid_parse(line);
		if (pid == 0)
			break;
		rc = add_root(t, roots, pid);
		if (rc < 0)
			return rc;
	}
	if (roots->n == 0)
		return tgt_fault(
			t, -EINVAL,
			"%s: holds no process id; its first line must be a "
			"number, as a server's pid file has it",
			t->value);
	tgt_ids_sort(roots);
	return 0;
}

static int roots_of_address(struct tgt *t, struct tgt_ids *roots)
{
	static const char *const other =
		"write target.pids, target.pid_file or target.cgroup";
	int rc = tgt_listen_pids(t->value, roots);

	if (rc == -EINVAL)
		return tgt_fault(t, rc,
				 "\"%s\" is not an address; write it as "
				 "127.0.0.1:8443 or [::1]:443",
				 t->value);
	if (rc == -ENXIO)
		return tgt_fault(
			t, rc,
			"%s: nothing listens there on this machine; start "
			"the server first, or, if it listens in another "
			"network namespace, %s",
			t->value, other);
	if (rc == -EACCES)
		return tgt_fault(
			t, rc,
			"%s: who listens there cannot be seen (only root "
			"sees into processes of other users); run tterm as "
			"root, or %s",
			t->value, other);
	if (rc < 0)
		return tgt_fault(t, rc, "%s: %s", t->value, strerror(-rc));
	tgt_ids_sort(roots);
	return 0;
}

/* ---- the processes there are now ---- */

static bool is_there(const struct tgt_ids *all, const struct tgt_id *id)
{
	const struct tgt_id *now = tgt_ids_find(all, id->pid);

	return now != NULL && now->start_ticks == id->start_ticks && !now->dead;
}

/*
 * A pid file or a listener names other processes after a restart of the server.
 * Whoever named processes by number means those.
 */
static int renew_roots(struct tgt *t, const struct tgt_id *gone)
{
	struct tgt_ids roots = {0};
	int rc;

	if (t->source == TGT_FROM_PIDS)
		return tgt_fault(t, -ESRCH, "process %d has ended",
				 (int)gone->pid);
	rc = t->source == TGT_FROM_PID_FILE ? roots_of_file(t, &roots)
					    : roots_of_address(t, &roots);
	if (rc < 0) {
		tgt_ids_fini(&roots);
		return rc;
	}
	tgt_ids_fini(&t->roots);
	t->roots = roots;
	return 0;
}

/* The first that runs no more; NULL: all do. */
static const struct tgt_id *gone_root(const struct tgt *t,
				      const struct tgt_ids *all)
{
	for (size_t i = 0; i < t->roots.n; i++)
		if (!is_there(all, &t->roots.item[i]))
			return &t->roots.item[i];
	return NULL;
}

/* All processes of the machine; what took the place of a root is among them. */
static int scan(struct tgt *t, struct tgt_ids *all)
{
	const struct tgt_id *gone;
	int rc = tgt_proc_all(all);

	gone = rc == 0 ? gone_root(t, all) : NULL;
	if (gone != NULL) {
		rc = renew_roots(t, gone);
		if (rc < 0)
			return rc;
		tgt_ids_fini(all);
		rc = tgt_proc_all(all);
	}
	if (rc < 0)
		return tgt_fault(t, rc, "/proc cannot be read: %s",
				 strerror(-rc));
	return 0;
}

/*
 * Named, or counted before: a process whose parent has ended is nobody's
 * descendant any more and still the server's.
 */
static bool is_known(const struct tgt *t, const struct tgt_id *id)
{
	const struct tgt_id *root = tgt_ids_find(&t->roots, id->pid);

	return (root != NULL && root->start_ticks == id->start_ticks) ||
	       tgt_find_proc(&t->last, id->pid, id->start_ticks) != NULL;
}

/*
 * tterm and what it starts are no part of the server, though it may have been
 * started by it. What process 1 adopted is not the server's either, where it
 * was only found listening.
 */
static bool is_child(const struct tgt *t, const struct tgt_ids *all,
		     const bool *in, const struct tgt_id *id)
{
	const struct tgt_id *parent = tgt_ids_find(all, id->parent);

	return parent != NULL && in[parent - all->item] &&
	       id->pid != getpid() &&
	       !(parent->pid == 1 && t->source == TGT_FROM_ADDRESS);
}

static bool mark_children(const struct tgt *t, const struct tgt_ids *all,
			  bool *in)
{
	bool more = false;

	for (size_t i = 0; i < all->n; i++) {
		if (in[i] || !is_child(t, all, in, &all->item[i]))
			continue;
		in[i] = true;
		more = true;
	}
	return more;
}

static int members_of_tree(struct tgt *t, const struct tgt_ids *all,
			   struct tgt_ids *out)
{
	bool *in = calloc(all->n + 1, sizeof(*in));
	int rc = 0;

	if (in == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++)
		in[i] = is_known(t, &all->item[i]);
	while (mark_children(t, all, in))
		continue;
	for (size_t i = 0; i < all->n && rc == 0; i++)
		if (in[i])
			rc = tgt_ids_add(out, &all->item[i]);
	free(in);
	return rc;
}

static int find_tree(struct tgt *t, struct tgt_ids *out)
{
	struct tgt_ids all = {0};
	int rc = scan(t, &all);

	if (rc == 0) {
		rc = members_of_tree(t, &all, out);
		if (rc < 0)
			tgt_fault(t, rc, "out of memory");
	}
	tgt_ids_fini(&all);
	return rc;
}

static int find_group(struct tgt *t, struct tgt_ids *out)
{
	int rc = tgt_group_pids(&t->group, out);

	if (rc < 0)
		return tgt_fault(t, rc, "%s: its processes cannot be read: %s",
				 t->value, strerror(-rc));
	if (tgt_ids_find(out, getpid()) != NULL)
		return tgt_fault(
			t, -EINVAL,
			"%s: tterm itself runs in this group, so its own "
			"CPU time would be counted; give the server a "
			"group of its own, or write target.pids or "
			"target.pid_file",
			t->value);
	return 0;
}

int tgt_members(struct tgt *t, struct tgt_ids *out)
{
	int rc = t->source == TGT_FROM_CGROUP ? find_group(t, out)
					      : find_tree(t, out);

	if (rc == 0 && out->n > TGT_MAX)
		rc = tgt_fault(
			t, -E2BIG,
			"%s: these are %zu processes, and at most %d can be "
			"a target; name the server's own",
			t->value, out->n, TGT_MAX);
	return rc;
}

/* ---- at the start ---- */

static int find_cgroup(struct tgt *t)
{
	int rc = tgt_group_find(&t->group, t->value);

	if (rc == -ENOENT)
		return tgt_fault(
			t, rc,
			"%s: there is no such group; write its folder, or "
			"its path below /sys/fs/cgroup, such as "
			"system.slice/nginx.service",
			t->value);
	if (rc < 0)
		return tgt_fault(
			t, rc,
			"%s: this group counts no CPU time (neither "
			"usage_usec in cpu.stat nor cpuacct.usage); write "
			"the group of the cpuacct controller",
			t->value);
	return 0;
}

int tgt_resolve(struct tgt *t, const struct tgt_want *want)
{
	switch (t->source) {
	case TGT_FROM_PIDS:
		return roots_of_pids(t, want);
	case TGT_FROM_PID_FILE:
		return roots_of_file(t, &t->roots);
	case TGT_FROM_CGROUP:
		return find_cgroup(t);
	case TGT_FROM_ADDRESS:
		return roots_of_address(t, &t->roots);
	}
	return -EINVAL;
}
