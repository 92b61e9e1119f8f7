/* SPDX-License-Identifier: MIT */
/*
 * What the control groups above this process grant it: CPU quota, versions 1
 * and 2 (on some machines both are there), every level up to the root.
 */
#ifndef CONFIG_CGROUP_H
#define CONFIG_CGROUP_H

struct cgroup {
	double quota;	 /* CPUs' worth, the smallest of all levels; 0: none */
	int version;	 /* of the quota's group: 1 or 2; 0 without quota */
	char where[64];	 /* its folder below the mount point; cut if longer */
	char cpuset[64]; /* "0-3": the CPUs of the process's own group, or "" */
};

/*
 * Reads files below `root` ("" in production). What is absent or unreadable
 * limits nothing. 0 or -ENOMEM.
 */
int cgroup_read(struct cgroup *out, const char *root);

#endif
