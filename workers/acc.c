/* SPDX-License-Identifier: MIT */
#include "workers/acc.h"

#include "shm/base.h"
#include "workers/io.h"

#include <errno.h>

_Static_assert((int)ACC_OP >= (int)CONN_OPS, "a word of its own");

void acc_init(struct acc *acc, const struct wrk_args *args)
{
	*acc = (struct acc){
		.n = args->nlisten,
		.multishot =
			args->cfg->terminator.accept == CFG_ACCEPT_REUSEPORT,
	};
	tmr_init(&acc->retries, ACC_BACKOFF_NS);
	for (size_t i = 0; i < acc->n; i++)
		acc->listener[i] = (struct acc_listener){
			.fd = args->listen_fd[i],
			.bare = i + args->nplain >= args->nlisten};
}

static uint64_t word_of(const struct acc *acc, const struct acc_listener *l)
{
	return (uint64_t)ACC_OP << 56 | (uint64_t)(l - acc->listener);
}

static void arm(struct acc *acc, struct env *env, struct acc_listener *l)
{
	tmr_cancel(&l->retry);
	l->state = ACC_ARMED;
	ur_accept(env->ring, l->fd, acc->multishot, word_of(acc, l));
}

void acc_start(struct acc *acc, struct env *env)
{
	for (size_t i = 0; i < acc->n; i++)
		arm(acc, env, &acc->listener[i]);
}

void acc_stop(struct acc *acc, struct env *env)
{
	for (size_t i = 0; i < acc->n; i++) {
		struct acc_listener *l = &acc->listener[i];

		tmr_cancel(&l->retry);
		if (l->state == ACC_ARMED)
			ur_cancel(env->ring, word_of(acc, l));
		l->state = ACC_OFF;
	}
}

static void wait_a_while(struct acc *acc, struct env *env,
			 struct acc_listener *l, bool for_fd)
{
	l->state = ACC_WAITING;
	l->for_fd = for_fd;
	tmr_arm(&acc->retries, &l->retry, env->now);
}

static void count(struct env *env, _Atomic uint64_t *counter)
{
	shm_begin(env->slot);
	ctr_add(counter, 1);
	shm_end(env->slot);
}

/* An accept has ended with an error. */
static void on_error(struct acc *acc, struct env *env, struct acc_listener *l,
		     int error)
{
	switch (-error) {
	case EMFILE:
	case ENFILE:
		count(env, &env->slot->ctr.accept_no_fd);
		wait_a_while(acc, env, l, true);
		return;
	case ENOMEM: /* these pass, sooner or later */
	case ENOBUFS:
		count(env, &env->slot->ctr.accept_errors);
		wait_a_while(acc, env, l, true);
		return;
	case ECONNABORTED: /* these are the connection's, not the listener's */
	case EPROTO:
	case EINTR:
	case ENETDOWN:
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ETIMEDOUT:
	case EPERM: /* a firewall's rule */
		count(env, &env->slot->ctr.accept_errors);
		arm(acc, env, l);
		return;
	default:
		break;
	}
	count(env, &env->slot->ctr.accept_errors);
	l->error = error;
	if (++l->tries < ACC_TRIES_MAX)
		wait_a_while(acc, env, l, false);
	else
		l->state = ACC_GIVEN_UP;
}

void acc_event(struct acc *acc, struct env *env, const struct ur_event *ev)
{
	struct acc_listener *l = &acc->listener[(uint32_t)ev->data];

	if (ev->res >= 0) {
		l->tries = 0;
		io_accepted(env, ev->res, l->bare);
	}
	if (ev->more || l->state != ACC_ARMED)
		return;
	if (ev->res < 0) {
		on_error(acc, env, l, ev->res);
		return;
	}
	if (acc->multishot)
		env->sums.rearms++;
	arm(acc, env, l);
}

void acc_tick(struct acc *acc, struct env *env)
{
	struct tmr *t;

	while ((t = tmr_pop(&acc->retries, env->now)) != NULL)
		arm(acc, env, (struct acc_listener *)(void *)t);
	for (size_t i = 0; env->fd_freed && i < acc->n; i++) {
		struct acc_listener *l = &acc->listener[i];

		if (l->state == ACC_WAITING && l->for_fd)
			arm(acc, env, l);
	}
	env->fd_freed = false;
}

uint64_t acc_next(const struct acc *acc)
{
	return tmr_next(&acc->retries);
}

int acc_dead(const struct acc *acc)
{
	int error = 0;

	for (size_t i = 0; i < acc->n; i++) {
		if (acc->listener[i].state != ACC_GIVEN_UP)
			return 0;
		error = acc->listener[i].error;
	}
	return error;
}
