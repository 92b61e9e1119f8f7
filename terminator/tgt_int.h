/* SPDX-License-Identifier: MIT */
/* Between the files of tgt_: /proc, listening sockets, cgroups. */
#ifndef TERMINATOR_TGT_INT_H
#define TERMINATOR_TGT_INT_H

#include "terminator/tgt.h"

#include <limits.h>

/* One process, so far as the tree of processes needs it. */
struct tgt_id {
	pid_t pid, parent;
	uint64_t start_ticks;
	bool dead; /* a zombie */
};

struct tgt_ids {
	struct tgt_id *item; /* owns n */
	size_t n, cap;
};

/* 0 or -ENOMEM. */
int tgt_ids_add(struct tgt_ids *ids, const struct tgt_id *id);
void tgt_ids_fini(struct tgt_ids *ids);
/* In order of pid, each once. */
void tgt_ids_sort(struct tgt_ids *ids);
/* NULL when it is not there. `ids` is sorted. */
struct tgt_id *tgt_ids_find(const struct tgt_ids *ids, pid_t pid);

/* A decimal number from 1 to INT_MAX and nothing else; 0 when it is not. */
pid_t tgt_pid_parse(const char *text);

/* A file of some KiB at most, cut to len - 1 bytes and terminated. 0 or -errno.
 */
int tgt_read_file(const char *path, char *buf, size_t len);

/* /proc/PID/stat: all but before, resident and proportional sets; the CPU's
 * total is user + system. 0, -ESRCH, or another -errno. */
int tgt_proc_stat(pid_t pid, struct tgt_proc *out);
void tgt_proc_memory(struct tgt_proc *p);

/* Adds all processes of the machine, sorted. 0 or -errno. */
int tgt_proc_all(struct tgt_ids *out);

/*
 * Adds the processes that listen on the address. 0, -EINVAL: no address,
 * -ENXIO: nobody listens, -EACCES: the listener's processes cannot be seen, or
 * another -errno.
 */
int tgt_listen_pids(const char *address, struct tgt_ids *out);

struct tgt_group {
	int version;
	char path[PATH_MAX];
	char memory[PATH_MAX]; /* file of the bytes in use; "": none */
};

/*
 * Finds the group by its folder, or by its path below the usual mounts.
 * 0, -ENOENT: there is none, -ENODATA: it counts no CPU time.
 */
int tgt_group_find(struct tgt_group *out, const char *value);

/* Adds the processes in it and in the groups below it. 0 or -errno. */
int tgt_group_pids(const struct tgt_group *g, struct tgt_ids *out);

/* 0 or -errno; memory is 0 where it is not counted. */
int tgt_group_read(const struct tgt_group *g, struct tgt_cpu *cpu,
		   uint64_t *memory_bytes);

/* Which key says what the target is. */
enum tgt_source_key {
	TGT_FROM_PIDS,
	TGT_FROM_PID_FILE,
	TGT_FROM_CGROUP,
	TGT_FROM_ADDRESS
};

/* "target.pids" and so on. */
extern const char *const tgt_keys[];

struct tgt {
	enum tgt_source_key source;
	char value[PATH_MAX]; /* of its key; of target.pids joined by ", " */
	char about[PATH_MAX + 32];
	char name[64];
	struct tgt_group group;
	struct tgt_ids roots; /* owns; without a cgroup: those named or found */
	struct tgt_sample last; /* owns; what tgt_sample() goes on from */
	uint64_t last_boot_ns;	/* when it looked for processes, since boot */
	bool opened;
	char why[PATH_MAX + 512];
};

/* Keeps "KEY: what is wrong" for tgt_why(); returns `rc`. */
int tgt_fault(struct tgt *t, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* NULL when that process is not in the sample. */
const struct tgt_proc *tgt_find_proc(const struct tgt_sample *s, pid_t pid,
				     uint64_t start_ticks);

/* Finds the roots or the group, once. 0, or -errno told by tgt_fault(). */
int tgt_resolve(struct tgt *t, const struct tgt_want *want);

/* Adds all processes of the target that there are now. As tgt_resolve(). */
int tgt_members(struct tgt *t, struct tgt_ids *out);

#endif
