/* SPDX-License-Identifier: MIT */
/* The reader of answers. */
#include "tools/tdrive_http.h"

#include "shm/base.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Feeds `text` in pieces of `piece` bytes until it says something. */
static enum http_result feed(struct http_reader *r, const char *text,
			     size_t piece, size_t *used)
{
	size_t len = strlen(text), n;
	enum http_result result = HTTP_MORE;

	*used = 0;
	http_expect(r);
	while (*used < len && result == HTTP_MORE) {
		/* A copy of just that length, so that a sanitizer sees more. */
		size_t give = base_min(piece, len - *used);
		uint8_t *copy = malloc(give);

		ck_assert_ptr_nonnull(copy);
		memcpy(copy, text + *used, give);
		result = http_read(r, copy, give, &n);
		free(copy);
		ck_assert_uint_le(n, give);
		if (result == HTTP_MORE)
			ck_assert_uint_eq(n, give);
		*used += n;
	}
	return result;
}

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
	const char *text;
	size_t used; /* 0: all */
	unsigned status;
	bool closes;
} good[] = {
	{OK "Content-Length: 0\r\n\r\n", 0, 200, false},
	{OK "Content-Length: 3\r\n\r\nabc", 0, 200, false},
	{OK "content-length:3 \t\r\nServer: x\r\n\r\nabcHTTP/1.1", 53, 200,
	 false},
	{OK "Connection: Close\r\nContent-Length: 1\r\n\r\nx", 0, 200, true},
	{OK "Content-Length: 2\r\nContent-Length: 2\r\n\r\nxy", 0, 200, false},
	{OK "Server:\r\nContent-Length: 1\r\n\r\nx", 0, 200, false},
	{"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 0, 200, true},
	{"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: "
	 "1\r\n\r\n"
	 "x",
	 0, 200, false},
	{"HTTP/1.1 204 No Content\r\n\r\n", 0, 204, false},
	{"HTTP/1.1 304 \r\n\r\n", 0, 304, false},
	{"HTTP/1.1 404\r\nContent-Length: 1\r\n\r\nx", 0, 404, false},
	{"HTTP/1.1 500 a b c\r\nContent-Length: 0\r\n\r\n", 0, 500, false},
};

START_TEST(answers_are_read_in_pieces_of_any_size)
{
	size_t len = strlen(good[_i].text);
	size_t all = good[_i].used > 0 ? good[_i].used : len;

	for (size_t piece = 1; piece <= len; piece++) {
		struct http_reader r;
		size_t used;

		ck_assert_int_eq(feed(&r, good[_i].text, piece, &used),
				 HTTP_DONE);
		ck_assert_uint_eq(used, all);
		ck_assert_uint_eq(r.status, good[_i].status);
		ck_assert_int_eq(http_closes(&r), good[_i].closes);
		ck_assert_int_eq(http_is_good(&r), good[_i].status / 100 == 2);
	}
}
END_TEST

START_TEST(every_beginning_of_an_answer_wants_more)
{
	char text[256];

	for (size_t n = 1; n < strlen(good[_i].text); n++) {
		struct http_reader r;
		size_t used;

		memcpy(text, good[_i].text, n);
		text[n] = '\0';
		if (good[_i].used > 0 && n >= good[_i].used)
			break;
		ck_assert_int_eq(feed(&r, text, n, &used), HTTP_MORE);
		ck_assert(http_begun(&r));
	}
}
END_TEST

static const char *const bad[] = {
	"SSH-2.0-x\r\n",
	"HTTP/2 200\r\n",
	"HTTP/1.2 200 OK\r\n",
	"HTTP/1.1  200 OK\r\n",
	"HTTP/1.1 20 OK\r\n",
	"HTTP/1.1 2000 OK\r\n",
	"HTTP/1.1 100 Continue\r\n\r\n",
	"HTTP/1.1 200 OK\n",
	OK "\r\n",
	OK "Content-Length: \r\n\r\n",
	OK "Content-Length: x\r\n\r\n",
	OK "Content-Length: -1\r\n\r\n",
	OK "Content-Length: 1 2\r\n\r\n",
	OK "Content-Length: 99999999999999999999\r\n\r\n",
	OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
	OK "Content-Length: 1\n\r\n",
	OK "Transfer-Encoding: chunked\r\n\r\n",
	OK "Content-Length : 1\r\n\r\n",
	OK " folded\r\n\r\n",
	OK ": x\r\n\r\n",
	OK "a\x01: x\r\n\r\n",
	OK "a: \x01\r\n\r\n",
	OK "\rx",
};

START_TEST(what_is_no_plain_answer_is_bad)
{
	for (size_t piece = 1; piece <= strlen(bad[_i]); piece++) {
		struct http_reader r;
		size_t used;

		ck_assert_int_eq(feed(&r, bad[_i], piece, &used), HTTP_BAD);
	}
}
END_TEST

START_TEST(a_head_without_end_is_bad)
{
	struct http_reader r;
	uint8_t line[1024];
	size_t used, sum = 0;
	enum http_result result;

	http_expect(&r);
	memset(line, 'a', sizeof(line));
	ck_assert_int_eq(http_read(&r, (const uint8_t *)OK, strlen(OK), &used),
			 HTTP_MORE);
	do {
		result = http_read(&r, line, sizeof(line), &used);
		sum += used;
	} while (result == HTTP_MORE && sum < 2 * HTTP_HEAD_MAX);
	ck_assert_int_eq(result, HTTP_BAD);
	ck_assert_uint_le(sum, HTTP_HEAD_MAX + 1);
}
END_TEST

START_TEST(a_large_body_needs_no_memory)
{
	static uint8_t body[65536];
	static const char head[] =
		OK "Content-Length: 1073741824\r\n\r\n"; /* 1 GiB */
	struct http_reader r;
	size_t used;

	http_expect(&r);
	ck_assert_int_eq(
		http_read(&r, (const uint8_t *)head, strlen(head), &used),
		HTTP_MORE);
	for (int i = 0; i < 16384; i++)
		ck_assert_int_eq(http_read(&r, body, sizeof(body), &used),
				 i < 16383 ? HTTP_MORE : HTTP_DONE);
}
END_TEST

START_TEST(requests_name_path_and_host)
{
	char text[HTTP_TEXT_MAX];

	ck_assert_int_eq(http_request(text, "/a?b", 0, "example.org"), 0);
	ck_assert_str_eq(text,
			 "GET /a?b HTTP/1.1\r\nHost: example.org\r\n\r\n");
	ck_assert_int_eq(http_request(text, "/a", 1024, "::1"), 0);
	ck_assert_str_eq(text,
			 "GET /bytes/1024 HTTP/1.1\r\nHost: [::1]\r\n\r\n");
}
END_TEST

START_TEST(a_path_that_is_too_long_is_refused)
{
	char text[HTTP_TEXT_MAX], path[HTTP_PATH_MAX + 2], host[600];

	memset(path, 'a', sizeof(path));
	memset(host, 'a', sizeof(host));
	host[sizeof(host) - 1] = '\0';
	path[HTTP_PATH_MAX + 1] = '\0';
	ck_assert_int_eq(http_request(text, path, 0, "h"), -E2BIG);
	path[HTTP_PATH_MAX] = '\0';
	ck_assert_int_eq(http_request(text, path, 0, "h"), 0);
	ck_assert_int_eq(http_request(text, path, 0, host), -E2BIG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tdrive_http");
	TCase *works = tcase_create("works");
	TCase *limits = tcase_create("limits");
	TCase *refuses = tcase_create("refuses");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(works, answers_are_read_in_pieces_of_any_size, 0,
			    ARRAY_LEN(good));
	tcase_add_loop_test(works, every_beginning_of_an_answer_wants_more, 0,
			    ARRAY_LEN(good));
	tcase_add_test(works, requests_name_path_and_host);
	tcase_add_test(limits, a_large_body_needs_no_memory);
	tcase_add_test(limits, a_head_without_end_is_bad);
	tcase_add_loop_test(refuses, what_is_no_plain_answer_is_bad, 0,
			    ARRAY_LEN(bad));
	tcase_add_test(refuses, a_path_that_is_too_long_is_refused);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
