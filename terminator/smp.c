/* SPDX-License-Identifier: MIT */
#include "terminator/smp.h"

#include "shm/base.h"
#include "shm/clk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int smp_init(struct smp *s, const struct shm_seg *seg)
{
	memset(s, 0, sizeof(*s));
	s->n = shm_seg_nslots(seg);
	s->snap = calloc(s->n, sizeof(*s->snap));
	s->cpu_ns = calloc(s->n, sizeof(*s->cpu_ns));
	if (s->snap == NULL || s->cpu_ns == NULL)
		goto fail;
	for (uint32_t i = 0; i < s->n; i++)
		if (shm_snap_init(&s->snap[i], seg) < 0)
			goto fail;
	return 0;
fail:
	smp_fini(s);
	return -ENOMEM;
}

void smp_fini(struct smp *s)
{
	if (s->snap != NULL)
		for (uint32_t i = 0; i < s->n; i++)
			shm_snap_fini(&s->snap[i]);
	free(s->snap);
	free(s->cpu_ns);
	memset(s, 0, sizeof(*s));
}

/*
 * First line of /proc/stat: "cpu user nice system idle iowait irq softirq
 * steal", in ticks (proc(5)). Busy is all but idle, iowait and steal.
 */
static void take_machine(struct smp *s)
{
	unsigned long long v[8] = {0};
	uint64_t tick = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");

	if (f == NULL)
		return;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0],
		   &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) == 8) {
		s->machine_ns = (v[0] + v[1] + v[2] + v[5] + v[6]) * tick;
		s->steal_ns = v[7] * tick;
	}
	fclose(f);
}

struct net_row {
	const char *group, *name;
	uint64_t *value;
};

/* These files have pairs of lines, "Group: names" and "Group: values". */
static void take_pair(const struct net_row *row, size_t n, char *names,
		      char *values)
{
	char *np, *vp;
	char *name = strtok_r(names, " \n", &np);
	char *value = strtok_r(values, " \n", &vp);
	const char *group = name;

	for (; name != NULL && value != NULL;
	     name = strtok_r(NULL, " \n", &np),
	     value = strtok_r(NULL, " \n", &vp))
		for (size_t i = 0; i < n; i++)
			if (strcmp(row[i].group, group) == 0 &&
			    strcmp(row[i].name, name) == 0)
				*row[i].value = strtoull(value, NULL, 10);
}

static void take_file(const char *path, const struct net_row *row, size_t n)
{
	char names[4096], values[4096];
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return;
	while (fgets(names, sizeof(names), f) != NULL &&
	       fgets(values, sizeof(values), f) != NULL)
		take_pair(row, n, names, values);
	fclose(f);
}

static void take_net(struct smp_net *net)
{
	const struct net_row ext[] = {
		{"TcpExt:", "ListenOverflows", &net->listen_overflows},
		{"TcpExt:", "ListenDrops", &net->listen_drops},
		{"TcpExt:", "TCPTimeouts", &net->timeouts},
	};
	const struct net_row tcp[] = {
		{"Tcp:", "RetransSegs", &net->retransmits},
	};

	take_file("/proc/net/netstat", ext, ARRAY_LEN(ext));
	take_file("/proc/net/snmp", tcp, ARRAY_LEN(tcp));
}

void smp_take(struct smp *s, const struct shm_seg *seg, const struct kid *kids,
	      uint32_t nkids)
{
	for (uint32_t i = 0; i < s->n; i++) {
		shm_snap(seg, i, &s->snap[i]);
		s->cpu_ns[i] = shm_snap_ctr(seg, &s->snap[i], CTR_ID_cpu_ns);
	}
	for (uint32_t i = 0; i < nkids; i++) {
		uint64_t cpu;

		if (kids[i].pid != 0 && clk_pid_cpu(kids[i].pid, &cpu) == 0)
			s->cpu_ns[kids[i].slot] =
				base_max(kids[i].cpu_base_ns + cpu,
					 s->cpu_ns[kids[i].slot]);
	}
	s->master_ns = clk_process_cpu();
	take_machine(s);
	take_net(&s->net);
	s->taken_ns = clk_now();
}

void smp_diff(struct smp *out, const struct shm_seg *seg,
	      const struct smp *later, const struct smp *earlier)
{
	for (uint32_t i = 0; i < out->n; i++) {
		shm_snap_diff(seg, &out->snap[i], &later->snap[i],
			      &earlier->snap[i]);
		/* A reaped process's CPU is known to the microsecond only. */
		out->cpu_ns[i] =
			base_max(later->cpu_ns[i], earlier->cpu_ns[i]) -
			earlier->cpu_ns[i];
	}
	out->taken_ns = later->taken_ns - earlier->taken_ns;
	out->master_ns = later->master_ns - earlier->master_ns;
	out->machine_ns = later->machine_ns - earlier->machine_ns;
	out->steal_ns = later->steal_ns - earlier->steal_ns;
	out->net.listen_overflows =
		later->net.listen_overflows - earlier->net.listen_overflows;
	out->net.listen_drops =
		later->net.listen_drops - earlier->net.listen_drops;
	out->net.timeouts = later->net.timeouts - earlier->net.timeouts;
	out->net.own_drops = later->net.own_drops - earlier->net.own_drops;
	out->net.retransmits =
		later->net.retransmits - earlier->net.retransmits;
}

void smp_total(struct shm_snap *out, const struct shm_seg *seg,
	       const struct smp *s, uint32_t role)
{
	bool first = true;

	for (uint32_t i = 0; i < s->n; i++) {
		if (s->snap[i].role != role)
			continue;
		if (first)
			shm_snap_copy(out, &s->snap[i]);
		else
			shm_snap_fold(seg, out, &s->snap[i]);
		first = false;
	}
}
