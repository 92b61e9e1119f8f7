/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_alive.h"

#include "shm/clk.h"
#include "tools/tdrive_count.h"
#include "tools/tdrive_tls_speed.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* CPU time is published when it is this old and there was work. */
#define FRESH_NS (10 * NS_PER_MS)

/* CPU time between two samples of the core's speed, as the workers': a sample
 * takes 0.1 ms, so 0.4 % of it. */
#define SPEED_NS (25 * NS_PER_MS)

/* Time ready to run but not running: field 2 of /proc/PID/schedstat (kernel,
 * Documentation/scheduler/sched-stats). Never less than before. */
static uint64_t run_delay(const struct alive *a)
{
	char text[96], *ran;
	ssize_t n;

	if (a->schedstat_fd < 0)
		return a->delay_ns;
	n = pread(a->schedstat_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return a->delay_ns;
	text[n] = '\0';
	strtoull(text, &ran, 10);
	return base_max(strtoull(ran, NULL, 10), a->delay_ns);
}

void alive_init(struct alive *a, struct shm_slot *slot)
{
	*a = (struct alive){.slot = slot};
	a->cpu_before_ns =
		atomic_load_explicit(&slot->ctr.cpu_ns, memory_order_relaxed);
	a->schedstat_fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	a->delay_ns = run_delay(a);
	/* Without it the core's speed is not known, and all else is. */
	(void)ctls_speed_open(&a->speed);
}

void alive_fini(struct alive *a)
{
	if (a->schedstat_fd >= 0)
		close(a->schedstat_fd);
	a->schedstat_fd = -1;
	ctls_speed_close(&a->speed);
}

static void sample_speed(struct alive *a)
{
	uint64_t cpu = clk_process_cpu(), took;

	if (a->speed == NULL || cpu - a->sampled_ns < SPEED_NS)
		return;
	took = ctls_speed_sample(a->speed);
	a->sampled_ns = cpu + took;
	if (took > 0)
		count_speed(a->slot, took);
}

void alive_show(struct alive *a, uint64_t now, bool worked)
{
	uint64_t delay;

	if (now - a->shown_ns < (worked ? FRESH_NS : ALIVE_HEARTBEAT_NS))
		return;
	a->shown_ns = now;
	sample_speed(a);
	delay = run_delay(a);
	count_alive(a->slot, now, a->cpu_before_ns + clk_process_cpu(),
		    delay - a->delay_ns);
	a->delay_ns = delay;
}
