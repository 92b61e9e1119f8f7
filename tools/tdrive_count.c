/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_count.h"

#include <stddef.h>

static const struct {
	const char *name;
	size_t offset; /* in struct ctr_block */
} fails[COUNT_FAILS] = {
#define FAIL(id, row)                   \
	[COUNT_##id] = {"failed_" #row, \
			offsetof(struct ctr_block, failed_##row)}
	FAIL(CONNECT, connect),	  FAIL(NO_PORT, no_port),
	FAIL(NO_FD, no_fd),	  FAIL(EOF, eof),
	FAIL(RESET, reset),	  FAIL(TIMEOUT, timeout),
	FAIL(PROTOCOL, protocol), FAIL(NO_SHARED, no_shared),
	FAIL(VERIFY, verify),	  FAIL(ALERT, alert),
	FAIL(DRAIN, drain),	  FAIL(INTERNAL, internal),
#undef FAIL
};

static const size_t ends[COUNT_ENDS] = {
	[COUNT_CLOSED_SELF] = offsetof(struct ctr_block, conn_closed_self),
	[COUNT_CLOSED_PEER] = offsetof(struct ctr_block, conn_closed_peer),
	[COUNT_END_RESET] = offsetof(struct ctr_block, conn_reset),
	[COUNT_TLS_ERROR] = offsetof(struct ctr_block, conn_tls_error),
};

static _Atomic uint64_t *row(struct ctr_block *ctr, size_t offset)
{
	return (_Atomic uint64_t *)ctr + offset / sizeof(uint64_t);
}

static void add_bytes(struct ctr_block *ctr, struct count_bytes bytes)
{
	ctr_add(&ctr->bytes_in, bytes.in);
	ctr_add(&ctr->bytes_out, bytes.out);
}

const char *count_fail_name(enum count_fail why)
{
	return fails[why].name;
}

void count_started(struct shm_slot *slot)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.conn_started, 1);
	ctr_add(&slot->ctr.conn_open, 1);
	ctr_add(&slot->ctr.hs_in_progress, 1);
	shm_end(slot);
}

void count_plain(struct shm_slot *slot)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.conn_plain, 1);
	ctr_add(&slot->ctr.conn_open, 1);
	shm_end(slot);
}

void count_connected(struct shm_slot *slot, uint64_t connect_ns)
{
	shm_begin(slot);
	hist_record(&slot->hist.connect_time, connect_ns);
	ctr_add(&slot->ctr.conn_connected, 1);
	shm_end(slot);
}

void count_offered(struct shm_slot *slot)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.tickets_offered, 1);
	shm_end(slot);
}

void count_done(struct shm_slot *slot, const struct count_hs *hs,
		struct count_bytes bytes)
{
	struct ctr_block *ctr = &slot->ctr;
	struct hist_block *hist = &slot->hist;

	shm_begin(slot);
	hist_record(hs->resumed ? &hist->hs_resumed_time : &hist->hs_full_time,
		    hs->time_ns);
	hist_record(hs->resumed ? &hist->hs_resumed_cpu : &hist->hs_full_cpu,
		    hs->cpu_ns);
	ctr_add(hs->resumed ? &ctr->hs_resumed : &ctr->hs_full, 1);
	ctr_add(hs->resumed ? &ctr->crypto_resumed_ns : &ctr->crypto_full_ns,
		hs->cpu_ns);
	ctr_add(hs->tls13 ? &ctr->hs_tls13 : &ctr->hs_tls12, 1);
	ctr_add(&ctr->hs_refused, hs->refused);
	ctr_add(&ctr->signatures, hs->signed_by_us);
	ctr_add(&ctr->hs_bytes_in, hs->bytes_in);
	ctr_add(&ctr->hs_bytes_out, hs->bytes_out);
	if (hs->group != 0)
		ctr_add(row(ctr, hs->group), 1);
	if (hs->suite != 0)
		ctr_add(row(ctr, hs->suite), 1);
	if (hs->signature != 0)
		ctr_add(row(ctr, hs->signature), 1);
	ctr_sub(&ctr->hs_in_progress, 1);
	add_bytes(ctr, bytes);
	shm_end(slot);
}

void count_failed(struct shm_slot *slot, enum count_fail why, uint64_t cpu_ns,
		  struct count_bytes bytes)
{
	struct ctr_block *ctr = &slot->ctr;

	shm_begin(slot);
	ctr_add(row(ctr, fails[why].offset), 1);
	ctr_add(&ctr->crypto_failed_ns, cpu_ns);
	ctr_sub(&ctr->hs_in_progress, 1);
	ctr_sub(&ctr->conn_open, 1);
	add_bytes(ctr, bytes);
	shm_end(slot);
}

void count_plain_failed(struct shm_slot *slot, enum count_fail why)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.conn_started, 1);
	ctr_add(row(&slot->ctr, fails[why].offset), 1);
	ctr_sub(&slot->ctr.conn_open, 1);
	shm_end(slot);
}

void count_signed(struct shm_slot *slot)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.signatures, 1);
	shm_end(slot);
}

void count_first_byte(struct shm_slot *slot, uint64_t ns)
{
	shm_begin(slot);
	hist_record(&slot->hist.first_byte, ns);
	shm_end(slot);
}

void count_latency(struct shm_slot *slot, uint64_t ns)
{
	shm_begin(slot);
	hist_record(&slot->hist.conn_latency, ns);
	shm_end(slot);
}

void count_request(struct shm_slot *slot, uint64_t ns, bool bad,
		   struct count_bytes bytes)
{
	shm_begin(slot);
	hist_record(&slot->hist.request_time, ns);
	ctr_add(&slot->ctr.requests, 1);
	ctr_add(&slot->ctr.requests_bad, bad);
	add_bytes(&slot->ctr, bytes);
	shm_end(slot);
}

void count_bad(struct shm_slot *slot, uint64_t n)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.requests_bad, n);
	shm_end(slot);
}

void count_arrivals(struct shm_slot *slot, uint64_t n, uint64_t late)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.arrivals, n);
	ctr_add(&slot->ctr.arrivals_late, late);
	shm_end(slot);
}

void count_tickets(struct shm_slot *slot, uint64_t tickets)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.tickets_received, tickets);
	shm_end(slot);
}

void count_ended(struct shm_slot *slot, enum count_end how, bool missed,
		 struct count_bytes bytes)
{
	struct ctr_block *ctr = &slot->ctr;

	shm_begin(slot);
	ctr_add(row(ctr, ends[how]), 1);
	ctr_add(&ctr->tickets_missed, missed);
	ctr_sub(&ctr->conn_open, 1);
	add_bytes(ctr, bytes);
	shm_end(slot);
}

void count_moved(struct shm_slot *slot, struct count_bytes bytes)
{
	shm_begin(slot);
	add_bytes(&slot->ctr, bytes);
	shm_end(slot);
}

void count_turn(struct shm_slot *slot, uint64_t events, bool overflow)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.ring_turns, 1);
	ctr_add(&slot->ctr.ring_events, events);
	ctr_raise(&slot->ctr.ring_batch_max, events);
	ctr_add(&slot->ctr.ring_cq_overflow, overflow);
	shm_end(slot);
}

void count_speed(struct shm_slot *slot, uint64_t took_ns)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.speed_samples, 1);
	ctr_add(&slot->ctr.speed_ns, took_ns);
	shm_end(slot);
}

void count_alive(struct shm_slot *slot, uint64_t now, uint64_t cpu_ns,
		 uint64_t delay_ns)
{
	shm_begin(slot);
	ctr_add(&slot->ctr.run_delay_ns, delay_ns);
	ctr_set(&slot->ctr.cpu_ns, cpu_ns);
	shm_end(slot);
	atomic_store_explicit(&slot->heartbeat_ns, now, memory_order_relaxed);
}
