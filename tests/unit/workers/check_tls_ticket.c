/* SPDX-License-Identifier: MIT */
/* Ticket keys: alone, in handshakes, and between processes. */
#include "tests/unit/workers/tls_fixture.h"

#include "shm/clk.h"
#include "workers/tls_ticket.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Of tls_ticket.c: one issues, the others accept. */
#define KEYS_KEPT 32

/* The sanitizers make mlock() do nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOCKS false
#endif
#endif
#ifndef LOCKS
#define LOCKS true
#endif

/* Keys without a server. */
static void make_keys(const char *text, uint32_t nworkers)
{
	load(text);
	ck_assert_msg(
		tls_tickets_create(&keys, cfg, nworkers, err, sizeof(err)) == 0,
		"%s", err);
}

static bool finds(uint32_t table, const struct tls_ticket_key *key,
		  bool *current)
{
	struct tls_ticket_key got;

	if (!tls_ticket_find(keys, table, key->name, &got, current))
		return false;
	ck_assert_int_eq(memcmp(&got, key, sizeof(got)), 0);
	return true;
}

static bool issues(uint32_t table, const struct tls_ticket_key *key)
{
	bool current = false;

	return finds(table, key, &current) && current;
}

static bool accepts(uint32_t table, const struct tls_ticket_key *key)
{
	bool current;

	return finds(table, key, &current);
}

/* ---- works ---- */

START_TEST(a_key_issues_then_accepts_then_is_gone)
{
	struct tls_ticket_key old, new;
	uint64_t now = clk_now(), life = 10 * NS_PER_S;

	make_keys("tls: {tickets: {lifetime: 10s, rotate: 0s}}\n", 4);
	ck_assert_uint_eq(tls_tickets_generation(keys), 1);
	tls_ticket_current(keys, 0, &old);
	ck_assert(issues(0, &old));
	ck_assert_int_eq(tls_tickets_rotate(keys), 0);
	ck_assert_uint_eq(tls_tickets_generation(keys), 2);
	tls_ticket_current(keys, 0, &new);
	ck_assert_int_ne(memcmp(&old, &new, sizeof(old)), 0);
	ck_assert(issues(0, &new));
	ck_assert(!issues(0, &old) && accepts(0, &old));
	tls_tickets_tick(keys, now + life - NS_PER_S);
	ck_assert(accepts(0, &old));
	tls_tickets_tick(keys, clk_now() + life);
	ck_assert(!accepts(0, &old));
	ck_assert(issues(0, &new));
	destroy();
}
END_TEST

START_TEST(ticks_rotate_and_say_when_to_call_again)
{
	struct tls_ticket_key key[4];
	uint64_t now, due = 0;

	make_keys("tls: {tickets: {lifetime: 20s, rotate: 8s}}\n", 2);
	now = clk_now();
	tls_ticket_current(keys, 0, &key[0]);
	for (unsigned i = 1; i < 4; i++) {
		uint64_t at = now + i * 9 * NS_PER_S;

		due = tls_tickets_tick(keys, at);
		ck_assert_uint_eq(tls_tickets_generation(keys), i + 1);
		ck_assert_uint_gt(due, at);
		ck_assert_uint_le(due, at + 8 * NS_PER_S);
		tls_ticket_current(keys, 0, &key[i]);
		ck_assert(issues(0, &key[i]));
	}
	/* Stopped issuing at 9 s, 18 s and 27 s; it is now 27 s. */
	ck_assert(accepts(0, &key[0]));
	tls_tickets_tick(keys, now + 29 * NS_PER_S);
	ck_assert(!accepts(0, &key[0]));
	ck_assert(accepts(0, &key[1]) && accepts(0, &key[2]));
	/* Called when it asks, it keeps every key its time and no longer. */
	for (unsigned i = 0; i < 40; i++)
		due = tls_tickets_tick(keys, due);
	ck_assert(!accepts(0, &key[3]));
	destroy();
}
END_TEST

START_TEST(a_ticket_outlives_a_rotation_and_not_its_lifetime)
{
	struct tls_counts c;
	struct pair p;
	SSL_SESSION *old, *renewed;

	create("tls: {tickets: {lifetime: 10s, rotate: 5s}}\n");
	pair_open(&p, TLS1_3_VERSION);
	handshake(&p, NULL, false);
	old = take_session(&p);
	ck_assert_int_eq(tls_tickets_rotate(keys), 0);
	tls_srv_take_counts(srv);
	handshake(&p, old, true);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.tickets_renewed, 1);
	renewed = take_session(&p);
	/* The old key's time is over, the new one still opens tickets. */
	tls_tickets_tick(keys, clk_now() + 10 * NS_PER_S);
	handshake(&p, old, false);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.tickets_unknown, 1);
	ck_assert_uint_eq(c.tickets_renewed, 0);
	handshake(&p, renewed, true);
	SSL_SESSION_free(old);
	SSL_SESSION_free(renewed);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(tls12_renews_only_when_the_key_is_old)
{
	struct tls_counts c;
	struct pair p;
	SSL_SESSION *s;

	create("");
	pair_open(&p, TLS1_2_VERSION);
	handshake(&p, NULL, false);
	s = take_session(&p);
	tls_tickets_rotate(keys);
	tls_srv_take_counts(srv);
	pair_connect(&p, s);
	pump(&p);
	ck_assert(p.done && tls_conn_resumed(p.server));
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.tickets_renewed, 1);
	ck_assert_uint_eq(c.tickets_issued, 1);
	SSL_SESSION_free(s);
	/* With the ticket it was given now it needs no other. */
	s = SSL_get1_session(p.client);
	pair_drop(&p);
	handshake(&p, s, true);
	c = tls_srv_take_counts(srv);
	ck_assert_uint_eq(c.tickets_renewed, 0);
	ck_assert_uint_eq(c.tickets_issued, 0);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(private_keys_do_not_open_another_workers_ticket)
{
	struct pair p;
	SSL_SESSION *s;

	ck_assert_msg(try_create("tls: {tickets: {shared: false}}\n", 3) == 0,
		      "%s", err);
	pair_open(&p, TLS1_3_VERSION);
	handshake(&p, NULL, false);
	s = take_session(&p);
	for (uint32_t other = 1; other < 3; other++) {
		tls_srv_start(srv, other);
		handshake(&p, s, false);
		ck_assert_uint_eq(tls_srv_take_counts(srv).tickets_unknown, 1);
	}
	tls_srv_start(srv, 0);
	handshake(&p, s, true);
	/* A worker that is replaced is a new one. */
	tls_tickets_renew(keys, 0);
	handshake(&p, s, false);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(shared_keys_open_every_workers_ticket)
{
	struct pair p;
	SSL_SESSION *s;

	ck_assert_int_eq(try_create("", 4), 0);
	pair_open(&p, TLS1_3_VERSION);
	handshake(&p, NULL, false);
	s = take_session(&p);
	for (uint32_t worker = 0; worker < 4; worker++) {
		/* Also of one that has died. */
		tls_tickets_renew(keys, worker);
		tls_srv_start(srv, worker);
		handshake(&p, s, true);
	}
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

START_TEST(renewing_changes_one_workers_keys_alone)
{
	struct tls_ticket_key was[3], is[3];

	make_keys("tls: {tickets: {shared: false}}\n", 3);
	for (uint32_t i = 0; i < 3; i++)
		tls_ticket_current(keys, tls_ticket_table(keys, i), &was[i]);
	tls_tickets_renew(keys, 1);
	for (uint32_t i = 0; i < 3; i++) {
		tls_ticket_current(keys, tls_ticket_table(keys, i), &is[i]);
		ck_assert_int_eq(memcmp(&was[i], &is[i], sizeof(was[i])) == 0,
				 i != 1);
	}
	ck_assert(!accepts(1, &was[1]));
	destroy();
	/* An only worker's private keys are no shared ones. */
	make_keys("tls: {tickets: {shared: false}}\n", 1);
	tls_ticket_current(keys, 0, &was[0]);
	tls_tickets_renew(keys, 0);
	ck_assert(!accepts(0, &was[0]));
	destroy();
}
END_TEST

static void write_keys(const char *name, size_t bytes)
{
	FILE *f = file_open(name, "w");

	for (size_t i = 0; i < bytes; i++)
		fputc((int)(i * 7 % 251), f);
	fclose(f);
}

START_TEST(of_a_key_file_the_first_issues_and_all_accept)
{
	struct tls_ticket_key key[KEYS_KEPT];

	write_keys("keys", sizeof(key));
	make_keys("tls: {tickets: {key_file: @/keys}}\n", 3);
	for (size_t i = 0; i < sizeof(key); i++)
		((uint8_t *)key)[i] = (uint8_t)(i * 7 % 251);
	for (uint32_t i = 0; i < KEYS_KEPT; i++) {
		ck_assert(accepts(0, &key[i]));
		ck_assert_int_eq(issues(0, &key[i]), i == 0);
	}
	/* As nginx has them: name, HMAC key, AES key. */
	ck_assert_uint_eq(key[0].name[1], 7);
	ck_assert_uint_eq(key[0].hmac[0], 16 * 7);
	ck_assert_uint_eq(key[0].aes[0], 48 * 7 % 251);
	ck_assert_int_eq(tls_tickets_rotate(keys), -EPERM);
	ck_assert_uint_eq(tls_tickets_tick(keys, UINT64_MAX - 1), UINT64_MAX);
	tls_tickets_renew(keys, 0);
	ck_assert(issues(0, &key[0]));
	destroy();
}
END_TEST

START_TEST(a_ticket_of_a_key_file_outlives_a_restart)
{
	static const char text[] = "tls: {tickets: {key_file: @/keys}}\n";
	struct pair p;
	SSL_SESSION *s;

	write_keys("keys", 160);
	create(text);
	pair_open(&p, TLS1_3_VERSION);
	handshake(&p, NULL, false);
	s = take_session(&p);
	destroy();
	create(text);
	handshake(&p, s, true);
	SSL_SESSION_free(s);
	pair_close(&p);
	destroy();
}
END_TEST

/* ---- limits ---- */

START_TEST(many_rotations_keep_the_newest_keys)
{
	struct tls_ticket_key key[3 * KEYS_KEPT];

	make_keys("", 1);
	for (unsigned i = 0; i < ARRAY_LEN(key); i++) {
		if (i > 0)
			ck_assert_int_eq(tls_tickets_rotate(keys), 0);
		tls_ticket_current(keys, 0, &key[i]);
	}
	for (unsigned i = 0; i < ARRAY_LEN(key); i++)
		ck_assert_int_eq(accepts(0, &key[i]),
				 i >= ARRAY_LEN(key) - KEYS_KEPT);
	destroy();
}
END_TEST

/* The mapping of the tables, by /proc/self/smaps. */
struct mapping {
	const uint8_t *from, *to;
	bool locked, not_dumped;
};

static bool find_mapping(struct mapping *out, const void *bytes, size_t len)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	struct mapping m = {0};
	bool found = false;
	char line[512], mode[5];
	void *from, *to;

	while (!found && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%p-%p %4s", &from, &to, mode) == 3) {
			m.from = m.to = from;
			/* Anonymous shared memory alone. */
			if (mode[3] == 's' && strstr(line, "/dev/zero"))
				m.to = to;
		}
		if (strncmp(line, "VmFlags:", 8) != 0 || m.from == m.to)
			continue;
		m.locked = strstr(line, " lo") != NULL;
		m.not_dumped = strstr(line, " dd") != NULL;
		found = memmem(m.from, (size_t)(m.to - m.from), bytes, len) !=
			NULL;
	}
	fclose(f);
	*out = m;
	return found;
}

static bool lies_in(const struct mapping *m, const void *bytes, size_t len)
{
	return memmem(m->from, (size_t)(m->to - m->from), bytes, len) != NULL;
}

START_TEST(keys_are_locked_not_dumped_and_cleansed)
{
	struct tls_ticket_key old, new;
	struct mapping m;

	make_keys("tls: {tickets: {lifetime: 10s, rotate: 5s}}\n", 1);
	tls_ticket_current(keys, 0, &old);
	ck_assert(find_mapping(&m, &old, sizeof(old)));
	ck_assert(m.not_dumped);
	if (LOCKS)
		ck_assert(m.locked == (tls_ticket_warning(keys) == NULL));
	tls_tickets_rotate(keys);
	tls_ticket_current(keys, 0, &new);
	ck_assert(lies_in(&m, &old, sizeof(old)));
	ck_assert(lies_in(&m, &new, sizeof(new)));
	tls_tickets_tick(keys, clk_now() + 10 * NS_PER_S);
	ck_assert(!lies_in(&m, old.name, sizeof(old.name)));
	ck_assert(!lies_in(&m, old.hmac, sizeof(old.hmac)));
	ck_assert(!lies_in(&m, old.aes, sizeof(old.aes)));
	destroy();
}
END_TEST

/* A key of which a part was cleansed while it was copied. */
static bool is_torn(const struct tls_ticket_key *key)
{
	static const uint8_t zeros[8];

	return memcmp(key->name, zeros, 8) == 0 ||
	       memcmp(key->hmac + 16, zeros, 8) == 0 ||
	       memcmp(key->aes + TLS_TICKET_AES - 8, zeros, 8) == 0;
}

/* In a process of its own. 0 if all keys were whole. */
static int read_for_long(void)
{
	for (unsigned i = 0; i < 50000; i++) {
		struct tls_ticket_key key, again;
		bool current;

		tls_ticket_current(keys, 0, &key);
		if (is_torn(&key))
			return 1;
		if (!tls_ticket_find(keys, 0, key.name, &again, &current))
			continue;
		if (memcmp(&key, &again, sizeof(key)) != 0)
			return 2;
	}
	return 0;
}

START_TEST(a_reader_sees_whole_keys_while_they_rotate)
{
	pid_t pid;
	int status;

	make_keys("tls: {tickets: {lifetime: 1s, rotate: 1s}}\n", 1);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(read_for_long());
	while (waitpid(pid, &status, WNOHANG) == 0) {
		tls_tickets_rotate(keys);
		tls_tickets_tick(keys, clk_now() + 2 * NS_PER_S);
	}
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	destroy();
}
END_TEST

/* In a process of its own, which ends also if nobody does kill it. */
static _Noreturn void rotate_until_killed(void)
{
	uint64_t end = clk_now() + 60 * NS_PER_S;

	while (clk_now() < end) {
		tls_tickets_rotate(keys);
		tls_tickets_tick(keys, clk_now() + 2 * NS_PER_S);
	}
	_exit(1);
}

/* A writer killed at any moment holds up no reader (who would hang here). */
START_TEST(a_killed_writer_holds_up_no_reader)
{
	struct tls_ticket_key key;

	make_keys("tls: {tickets: {lifetime: 1s, rotate: 1s}}\n", 1);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t until = clk_now() + 100 * NS_PER_US + i * 10007;
		int status;
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			rotate_until_killed();
		while (clk_now() < until)
			tls_ticket_current(keys, 0, &key);
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status));
		tls_ticket_current(keys, 0, &key);
		ck_assert(issues(0, &key));
	}
	destroy();
}
END_TEST

/* ---- refuses ---- */

static const struct {
	const char *text, *says;
} wrong[] = {
	{"tls: {tickets: {key_file: /nope/keys}}\n",
	 "tls.tickets.key_file: /nope/keys: No such file or directory"},
	{"tls: {tickets: {key_file: /dev/null}}\n",
	 "tls.tickets.key_file: /dev/null: 0 bytes; write 1 to 32 keys"},
	{"tls: {tickets: {key_file: '@'}}\n", ": Is a directory"},
	{"tls: {tickets: {key_file: /dev/zero}}\n",
	 "tls.tickets.key_file: /dev/zero: File too large"},
};

START_TEST(a_file_that_holds_no_keys_is_named)
{
	refused(wrong[_i].text, wrong[_i].says);
}
END_TEST

START_TEST(a_key_file_of_odd_length_is_refused)
{
	static const size_t odd[] = {1, 48, 79, 81, 159, 33 * 80};
	char says[60];

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		write_keys("keys", odd[i]);
		snprintf(says, sizeof(says),
			 ": %zu bytes; write 1 to 32 keys "
			 "of 80 bytes",
			 odd[i]);
		refused("tls: {tickets: {key_file: @/keys}}\n", says);
	}
}
END_TEST

/* 0: it runs, and warns. */
static int create_unlocked(void)
{
	struct rlimit none = {0, 0};
	const char *warning;

	if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 ||
	    (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0))
		return 1;
	if (tls_tickets_create(&keys, cfg, 4, err, sizeof(err)) != 0 ||
	    tls_srv_create(&srv, cfg, keys, err, sizeof(err)) != 0)
		return 2;
	warning = tls_srv_warning(srv);
	if (warning == NULL ||
	    strstr(warning, "tls.tickets: the keys cannot be locked") == NULL ||
	    strstr(warning, "ulimit -l is 0 KiB") == NULL)
		return 3;
	destroy();
	return 0;
}

START_TEST(memory_that_cannot_be_locked_is_a_warning)
{
	int status;
	pid_t pid;

	load("");
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(create_unlocked());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	destroy();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tls_ticket");
	TCase *t = add_case(s, "works");

	tcase_add_test(t, a_key_issues_then_accepts_then_is_gone);
	tcase_add_test(t, ticks_rotate_and_say_when_to_call_again);
	tcase_add_test(t, a_ticket_outlives_a_rotation_and_not_its_lifetime);
	tcase_add_test(t, tls12_renews_only_when_the_key_is_old);
	tcase_add_test(t, private_keys_do_not_open_another_workers_ticket);
	tcase_add_test(t, shared_keys_open_every_workers_ticket);
	tcase_add_test(t, renewing_changes_one_workers_keys_alone);
	tcase_add_test(t, of_a_key_file_the_first_issues_and_all_accept);
	tcase_add_test(t, a_ticket_of_a_key_file_outlives_a_restart);
	t = add_case(s, "limits");
	tcase_add_test(t, many_rotations_keep_the_newest_keys);
	tcase_add_test(t, keys_are_locked_not_dumped_and_cleansed);
	tcase_add_test(t, a_reader_sees_whole_keys_while_they_rotate);
	tcase_add_test(t, a_killed_writer_holds_up_no_reader);
	t = add_case(s, "refuses");
	tcase_add_loop_test(t, a_file_that_holds_no_keys_is_named, 0,
			    (int)ARRAY_LEN(wrong));
	tcase_add_test(t, a_key_file_of_odd_length_is_refused);
	if (LOCKS)
		tcase_add_test(t, memory_that_cannot_be_locked_is_a_warning);
	return run_suite(s);
}
