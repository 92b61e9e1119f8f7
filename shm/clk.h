/* SPDX-License-Identifier: MIT */
/*
 * Clocks. All time is uint64_t nanoseconds. `clk_now` is CLOCK_MONOTONIC (about
 * 30 ns a call); the CPU clocks are system calls (about 700 ns), so they are
 * read once per step of work and never per byte.
 */
#ifndef SHM_CLK_H
#define SHM_CLK_H

#include <stdint.h>
#include <sys/types.h>

uint64_t clk_now(void);

/* CPU time, user + system, of the calling thread. */
uint64_t clk_thread_cpu(void);

/* CPU time, user + system, of the calling process with all its threads. */
uint64_t clk_process_cpu(void);

/*
 * CPU time of another process, to the nanosecond and up to this moment.
 * 0, or -ESRCH when there is no such process.
 */
int clk_pid_cpu(pid_t pid, uint64_t *out_ns);

/*
 * When a process started, in clock ticks since boot (field 22 of
 * /proc/PID/stat): with the pid it names one process for ever.
 * 0, -ESRCH (a zombie counts as gone), or another -errno.
 */
int clk_pid_start(pid_t pid, uint64_t *out_ticks);

/* Wall clock in ns since 1970, for file names and reports only. */
uint64_t clk_realtime(void);

#endif
