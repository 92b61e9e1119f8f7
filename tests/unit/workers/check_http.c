/* SPDX-License-Identifier: MIT */
#include "workers/http.h"

#include "shm/base.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define BODY	1024
#define HOST	"Host: a\r\n"
#define PENDING 0 /* as a status: not complete yet */

/* Feeds `text` in pieces of `step` bytes up to the first complete request. */
static size_t feed(struct http *h, const char *text, size_t n, size_t step,
		   bool *done)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t used = 0;

	*done = false;
	while (used < n && !*done) {
		size_t piece = base_min(step, n - used);
		size_t k = http_feed(h, p + used, piece, done);

		ck_assert_uint_le(k, piece);
		ck_assert(*done || k == piece);
		used += k;
	}
	return used;
}

static const struct {
	const char *text;
	uint16_t status; /* PENDING: more is needed */
	bool close;
	uint64_t body; /* of a 200 */
} rows[] = {
	{"GET / HTTP/1.1\r\n" HOST "\r\n", 200, false, BODY},
	{"HEAD / HTTP/1.1\r\n" HOST "\r\n", 200, false, BODY},
	{"\r\n\nGET / HTTP/1.1\r\n" HOST "\r\n", 200, false, BODY},
	{"GET / HTTP/1.1\n"
	 "Host: a\n\n",
	 200, false, BODY},
	{"GET /bytes/0 HTTP/1.1\r\n" HOST "\r\n", 200, false, 0},
	{"GET /bytes/65536 HTTP/1.1\r\n" HOST "\r\n", 200, false, 65536},
	{"GET /bytes/7?x=/y#z HTTP/1.1\r\n" HOST "\r\n", 200, false, 7},
	{"GET /bytes/1073741824 HTTP/1.1\r\n" HOST "\r\n", 200, false,
	 UINT64_C(1) << 30},
	{"GET /bytes/1073741825 HTTP/1.1\r\n" HOST "\r\n", 400, false, 0},
	{"GET /bytes/ HTTP/1.1\r\n" HOST "\r\n", 400, false, 0},
	{"GET /bytes/1x HTTP/1.1\r\n" HOST "\r\n", 400, false, 0},
	{"GET /bytes/-1 HTTP/1.1\r\n" HOST "\r\n", 400, false, 0},
	{"GET /bytes/00000000000000000000000000000001 HTTP/1.1\r\n" HOST "\r\n",
	 400, false, 0},
	{"GET /bytes HTTP/1.1\r\n" HOST "\r\n", 200, false, BODY},
	{"GET https://a.example/bytes/9 HTTP/1.1\r\n" HOST "\r\n", 200, false,
	 9},
	{"GET HTTP://a HTTP/1.1\r\n" HOST "\r\n", 200, false, BODY},
	{"GET a/b HTTP/1.1\r\n" HOST "\r\n", 400, true, 0},
	{"GET * HTTP/1.1\r\n" HOST "\r\n", 400, true, 0},
	/* the connection's end */
	{"GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200, true,
	 BODY},
	{"GET / HTTP/1.1\r\n" HOST "connection: x, CLOSE ,y\r\n\r\n", 200, true,
	 BODY},
	{"GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", 200, false,
	 BODY},
	{"GET / HTTP/1.0\r\n\r\n", 200, true, BODY},
	{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 200, false, BODY},
	{"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", 200, true,
	 BODY},
	/* methods */
	{"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 405, false, 0},
	{"CONNECT a:443 HTTP/1.1\r\n" HOST "\r\n", 405, false, 0},
	{"DELETE /x HTTP/1.1\r\n" HOST "\r\n", 405, false, 0},
	{"get / HTTP/1.1\r\n" HOST "\r\n", 405, false, 0},
	{"GETGETGETGETGETGETGETGETGET / HTTP/1.1\r\n" HOST "\r\n", 405, false,
	 0},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, true, 0},
	/* bodies */
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 405, false,
	 0},
	{"POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nab", PENDING,
	 false, 0},
	{"GET / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 200, false,
	 BODY},
	{"GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 200, false,
	 BODY},
	{"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n", 413, true,
	 0},
	{"PUT / HTTP/1.1\r\n" HOST
	 "Content-Length: 99999999999999999999999999999\r\n\r\n",
	 413, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n"
	 "Content-Length: 1\r\n\r\nx",
	 405, false, 0},
	{"PUT / HTTP/1.1\r\n" HOST
	 "Content-Length: 2\r\nExpect: 100-Continue\r\n\r\n",
	 405, true, 0},
	{"PUT / HTTP/1.0\r\nContent-Length: 2\r\n"
	 "Expect: 100-continue\r\n\r\nab",
	 405, true, 0},
	{"GET / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n", 200, false,
	 BODY},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "4\r\nabcd\r\nA;x=\"y\"\r\n0123456789\r\n00\r\nT: v\r\n\r\n",
	 405, false, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
	 "0\r\n\r\n",
	 405, false, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "0\r\n",
	 PENDING, false, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "100001\r\n",
	 413, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "FFFFFFFFFFFFFFFFFF\r\n",
	 413, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "\r\n",
	 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "-1\r\n",
	 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "1\r\nab",
	 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	 "1\rx",
	 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n",
	 501, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", 501, true,
	 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: \r\n\r\n", 501, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n"
	 "Transfer-Encoding: chunked\r\n\r\n",
	 501, true, 0},
	/* what could be understood in two ways */
	{"PUT / HTTP/1.1\r\n" HOST
	 "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	 400, true, 0},
	{"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST
	 "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
	 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n", 400, true,
	 0},
	{"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n\r\n", 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n", 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n", 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 400, true, 0},
	{"PUT / HTTP/1.1\r\n" HOST "Content-Length: \t2\t \r\n\r\nxy", 405,
	 false, 0},
	{"GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 400, true, 0},
	{"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400, true, 0},
	{"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400, true, 0},
	{"GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n", 400, true, 0},
	{"GET / HTTP/1.1\r\n" HOST "A: b\x01\r\n\r\n", 400, true, 0},
	{"GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", 400, true, 0},
	{"GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n", 400, true, 0},
	{"GET / HTTP/1.1\r\n\r\n", 400, true, 0},
	{"GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400, true, 0},
	{"GET / HTTP/1.1\r\nHost:\r\n\r\n", 200, false, BODY},
	/* request lines */
	{"GET / HTTP/1.2\r\n", 505, true, 0},
	{"GET / HTTP/2.0\r\n", 505, true, 0},
	{"GET / HTTP/0.9\r\n", 505, true, 0},
	{"GET / HTTP/11\r\n", 400, true, 0},
	{"GET / http/1.1\r\n", 400, true, 0},
	{"GET / HTTP/1.1 \r\n", 400, true, 0},
	{"GET / HTTP/1.10\r\n", 400, true, 0},
	{"GET /\r\n", 400, true, 0},
	{"GET  / HTTP/1.1\r\n", 400, true, 0},
	{"GET\t/ HTTP/1.1\r\n", 400, true, 0},
	{"GET /\x7f HTTP/1.1\r\n", 400, true, 0},
	{" GET / HTTP/1.1\r\n", 400, true, 0},
	{"\x16\x03\x01\x02", 400, true, 0},
	{"GET / HTTP/1.1\r\n" HOST, PENDING, false, 0},
	{"GET / HTTP/1.1\r\n" HOST "\r", PENDING, false, 0},
};

START_TEST(each_request_gets_its_answer_in_pieces_of_any_size)
{
	static const size_t steps[] = {1, 2, 3, 7, 100000};
	const char *text = rows[_i].text;

	for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
		struct http_answer a;
		struct http h;
		bool done;

		http_init(&h);
		feed(&h, text, strlen(text), steps[s], &done);
		ck_assert_msg(done == (rows[_i].status != PENDING),
			      "step %zu: %s", steps[s], text);
		if (!done)
			continue;
		http_answer(&h, BODY, &a);
		ck_assert_msg(a.status == rows[_i].status, "step %zu, %u: %s",
			      steps[s], a.status, text);
		ck_assert_int_eq(a.close, rows[_i].close);
		ck_assert_uint_eq(a.body, rows[_i].body);
	}
}
END_TEST

START_TEST(pipelined_requests_are_taken_one_by_one)
{
	static const char text[] =
		"GET /bytes/1 HTTP/1.1\r\n" HOST "\r\n"
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nGET "
		"GET /bytes/3 HTTP/1.1\r\n" HOST "\r\n";
	static const struct {
		uint16_t status;
		uint64_t body;
	} want[] = {{200, 1}, {405, 0}, {200, 3}};
	size_t at = 0, n = sizeof(text) - 1;

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		struct http_answer a;
		struct http h;
		bool done;

		http_init(&h);
		at += feed(&h, text + at, n - at, SIZE_MAX, &done);
		ck_assert(done);
		http_answer(&h, BODY, &a);
		ck_assert_uint_eq(a.status, want[i].status);
		ck_assert_uint_eq(a.body, want[i].body);
	}
	ck_assert_uint_eq(at, n);
}
END_TEST

static const struct {
	const char *text;
	const char *want;
} answers[] = {
	{"GET / HTTP/1.1\r\n" HOST "\r\n",
	 "HTTP/1.1 200 OK\r\nServer: tterm\r\nContent-Type: text/plain\r\n"
	 "Content-Length: 1024\r\n\r\n"},
	{"HEAD /bytes/0 HTTP/1.1\r\n" HOST "\r\n",
	 "HTTP/1.1 200 OK\r\nServer: tterm\r\nContent-Type: text/plain\r\n"
	 "Content-Length: 0\r\n\r\n"},
	{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	 "HTTP/1.1 200 OK\r\nServer: tterm\r\nContent-Type: text/plain\r\n"
	 "Content-Length: 1024\r\nConnection: keep-alive\r\n\r\n"},
	{"GET / HTTP/1.0\r\n\r\n",
	 "HTTP/1.1 200 OK\r\nServer: tterm\r\nContent-Type: text/plain\r\n"
	 "Content-Length: 1024\r\nConnection: close\r\n\r\n"},
	{"PUT / HTTP/1.1\r\n" HOST "\r\n",
	 "HTTP/1.1 405 Method Not Allowed\r\nServer: tterm\r\n"
	 "Content-Type: text/plain\r\nContent-Length: 31\r\n"
	 "Allow: GET, HEAD\r\n\r\nonly GET and HEAD are answered\n"},
	{"HEAD / HTTP/3.0\r\n",
	 "HTTP/1.1 505 HTTP Version Not Supported\r\nServer: tterm\r\n"
	 "Content-Type: text/plain\r\nContent-Length: 27\r\n"
	 "Connection: close\r\n\r\n"},
};

START_TEST(the_head_of_an_answer_is_written_whole)
{
	const char *text = answers[_i].text;
	char to[HTTP_ANSWER_MAX];
	struct http_answer a;
	struct http h;
	bool done;
	size_t n;

	http_init(&h);
	feed(&h, text, strlen(text), SIZE_MAX, &done);
	ck_assert(done);
	http_answer(&h, BODY, &a);
	n = http_write(&a, to);
	ck_assert_uint_lt(n, sizeof(to));
	to[n] = '\0';
	ck_assert_str_eq(to, answers[_i].want);
}
END_TEST

START_TEST(every_status_fits_the_answer)
{
	static const uint16_t all[] = {200, 400, 405, 413, 414, 431, 501, 505};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct http_answer a = {.status = all[i],
					.close = true,
					.keep = true,
					.body = UINT64_C(1) << 30};
		char to[HTTP_ANSWER_MAX + 64];

		ck_assert_uint_le(http_write(&a, to), HTTP_ANSWER_MAX);
	}
}
END_TEST

/* A request whose head is made long, and what becomes of it. */
struct build {
	char text[3 * HTTP_HEAD_MAX];
	size_t n;
};

static void add(struct build *b, const char *text)
{
	memcpy(b->text + b->n, text, strlen(text));
	b->n += strlen(text);
}

static void fill(struct build *b, char c, size_t n)
{
	memset(b->text + b->n, c, n);
	b->n += n;
}

static uint16_t status_of(const struct build *b)
{
	struct http_answer a;
	struct http h;
	bool done;

	http_init(&h);
	feed(&h, b->text, b->n, 1000, &done);
	if (!done)
		return PENDING;
	http_answer(&h, BODY, &a);
	return a.status;
}

START_TEST(a_head_of_8_kib_is_answered_and_a_byte_more_refused)
{
	struct build b = {.n = 0};

	add(&b, "GET / HTTP/1.1\r\n" HOST "A: ");
	fill(&b, 'x', HTTP_HEAD_MAX + (size_t)_i - b.n - 4);
	add(&b, "\r\n\r\n");
	ck_assert_uint_eq(b.n, HTTP_HEAD_MAX + (size_t)_i);
	ck_assert_uint_eq(status_of(&b), _i == 0 ? 200 : 431);
}
END_TEST

START_TEST(a_target_of_4_kib_is_answered_and_a_byte_more_refused)
{
	struct build b = {.n = 0};

	add(&b, "GET /");
	fill(&b, 'x', HTTP_TARGET_MAX - 1 + (size_t)_i);
	add(&b, " HTTP/1.1\r\n" HOST "\r\n");
	ck_assert_uint_eq(status_of(&b), _i == 0 ? 200 : 414);
}
END_TEST

START_TEST(an_endless_head_of_any_kind_is_refused)
{
	static const struct {
		const char *start;
		char c;
	} endless[] = {
		{"", 'A'},
		{"", '\n'},
		{"GET / HTTP/1.1\r\n", 'A'},
		{"GET / HTTP/1.1\r\nA:", ' '},
		{"GET / HTTP/1.1\r\nContent-Length: ", '1'},
		{"GET / HTTP/1.1\r\nConnection: ", ','},
	};
	struct build b = {.n = 0};

	add(&b, endless[_i].start);
	fill(&b, endless[_i].c, 2 * HTTP_HEAD_MAX);
	ck_assert_uint_eq(status_of(&b), 431);
}
END_TEST

START_TEST(a_nul_is_refused_wherever_it_stands)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\n";

	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		struct build b = {.n = 0};

		add(&b, text);
		b.text[i] = '\0';
		ck_assert_msg(status_of(&b) == 400, "at %zu", i);
	}
}
END_TEST

/* As a hostile client may: bodies in chunks of one byte, for ever. */
START_TEST(chunks_of_one_byte_count_with_their_framing)
{
	static const char head[] =
		"PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n";
	struct http_answer a;
	struct http h;
	size_t total = 0;
	bool done;

	http_init(&h);
	feed(&h, head, sizeof(head) - 1, SIZE_MAX, &done);
	while (!done && total < 2 * HTTP_BODY_MAX)
		total += feed(&h, "1\r\nx\r\n", 6, SIZE_MAX, &done);
	ck_assert(done);
	ck_assert_uint_le(total, HTTP_BODY_MAX + 6);
	http_answer(&h, BODY, &a);
	ck_assert_uint_eq(a.status, 413);
	ck_assert(a.close);
}
END_TEST

START_TEST(a_body_of_1_mib_is_dropped_whole)
{
	static const char head[] =
		"PUT / HTTP/1.1\r\n" HOST "Content-Length: 1048576\r\n\r\n";
	static char zeros[HTTP_BODY_MAX];
	struct http h;
	bool done;

	http_init(&h);
	ck_assert(!http_busy(&h));
	feed(&h, head, sizeof(head) - 1, SIZE_MAX, &done);
	ck_assert(!done && http_busy(&h));
	ck_assert_uint_eq(feed(&h, zeros, sizeof(zeros), 4096, &done),
			  sizeof(zeros));
	ck_assert(done);
}
END_TEST

/* No input makes it read past its bytes or stand still (asan watches). */
START_TEST(random_bytes_end_in_an_answer_or_ask_for_more)
{
	static const char letters[] =
		"GETHADPU/ :\r\n\t,;0123456789.HostChunked"
		"Content-LengthTransfer-Encoding\x80";
	uint32_t seed = (uint32_t)_i + 1;

	for (int round = 0; round < 2000; round++) {
		char text[300];
		struct http h;
		bool done;

		memcpy(text, "GET / HTTP/1.1\r\nHost: a\r\n", 25);
		for (size_t i = 25; i < sizeof(text); i++) {
			seed = seed * 1664525 + 1013904223;
			text[i] = letters[(seed >> 16) % (sizeof(letters) - 1)];
		}
		http_init(&h);
		feed(&h, text, sizeof(text), 1 + (size_t)(round % 17), &done);
		if (done) {
			struct http_answer a;
			char to[HTTP_ANSWER_MAX];

			http_answer(&h, BODY, &a);
			ck_assert_uint_le(http_write(&a, to), sizeof(to));
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("http");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(works,
			    each_request_gets_its_answer_in_pieces_of_any_size,
			    0, (int)ARRAY_LEN(rows));
	tcase_add_test(works, pipelined_requests_are_taken_one_by_one);
	tcase_add_loop_test(works, the_head_of_an_answer_is_written_whole, 0,
			    (int)ARRAY_LEN(answers));
	tcase_add_test(works, a_body_of_1_mib_is_dropped_whole);
	tcase_add_test(limits, every_status_fits_the_answer);
	tcase_add_loop_test(limits,
			    a_head_of_8_kib_is_answered_and_a_byte_more_refused,
			    0, 2);
	tcase_add_loop_test(
		limits, a_target_of_4_kib_is_answered_and_a_byte_more_refused,
		0, 2);
	tcase_add_test(limits, chunks_of_one_byte_count_with_their_framing);
	tcase_add_loop_test(refuses, an_endless_head_of_any_kind_is_refused, 0,
			    6);
	tcase_add_test(refuses, a_nul_is_refused_wherever_it_stands);
	tcase_add_loop_test(
		refuses, random_bytes_end_in_an_answer_or_ask_for_more, 0, 8);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
