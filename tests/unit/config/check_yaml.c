/* SPDX-License-Identifier: MIT */
#include "config/yaml.h"

#include "config/shape.h"
#include "shm/base.h"
#include "tests/unit/config/scenario.h"

#include <errno.h>

/* ---- the tree ---- */

/* Parses; the caller ends the tree and the faults. */
static int parse(struct node **out, const char *text, struct faults *f)
{
	return yaml_parse(out, text, strlen(text), "s.yaml", 0, NULL, f);
}

static struct node *good(const char *text)
{
	struct faults f = {0};
	struct node *root = NULL;

	ck_assert_int_eq(parse(&root, text, &f), 0);
	ck_assert_uint_eq(f.n, 0);
	fault_fini(&f);
	return root;
}

START_TEST(nodes_know_their_lines)
{
	struct node *root = good("a: 1\n\nb:\n  - x\n  - {c: y,\n     d: z}\n");

	ck_assert_uint_eq(node_find(root, "a")->line, 1);
	ck_assert_uint_eq(node_find(root, "b.0")->line, 4);
	ck_assert_uint_eq(node_find(root, "b.1.c")->line, 5);
	ck_assert_uint_eq(node_find(root, "b.1.d")->line, 6);
	ck_assert_str_eq(node_find(root, "b.1.d")->text, "z");
	ck_assert_ptr_null(node_find(root, "b.2"));
	ck_assert_ptr_null(node_find(root, "b.x"));
	ck_assert_uint_eq(node_nearest(root, "b.1.e.f")->line, 5);
	ck_assert_uint_eq(node_nearest(root, "q")->line, 1);
	node_free(&root);
	ck_assert_ptr_null(root);
}
END_TEST

START_TEST(only_a_bare_null_is_nothing)
{
	struct node *root =
		good("a: null\nb: ~\nc:\nd: 'null'\ne: \"\"\nf: nul\n");

	ck_assert_int_eq(node_find(root, "a")->kind, NODE_NULL);
	ck_assert_int_eq(node_find(root, "b")->kind, NODE_NULL);
	ck_assert_int_eq(node_find(root, "c")->kind, NODE_NULL);
	ck_assert_int_eq(node_find(root, "d")->kind, NODE_TEXT);
	ck_assert_int_eq(node_find(root, "e")->kind, NODE_TEXT);
	ck_assert_int_eq(node_find(root, "f")->kind, NODE_TEXT);
	node_free(&root);
}
END_TEST

START_TEST(aliases_are_copies)
{
	struct node *root = good("a: &x {b: [1, 2]}\nc: *x\nd: *x\n");

	ck_assert_str_eq(node_find(root, "d.b.1")->text, "2");
	ck_assert_ptr_ne(node_find(root, "c.b"), node_find(root, "d.b"));
	node_free(&root);
}
END_TEST

START_TEST(what_is_emitted_parses_to_the_same)
{
	struct node *root = good(
		"a: 'it''s \"x\" \\ # no comment: {'\nb: [1, \xc3\xa4, '']\n"
		"c: {d: {}, e: []}\nf: ' \xe2\x80\xa8 '\n");
	struct node *again;
	char *text;
	size_t len;

	ck_assert_int_eq(yaml_emit(&text, &len, root), 0);
	again = good(text);
	ck_assert_str_eq(node_find(again, "a")->text,
			 node_find(root, "a")->text);
	ck_assert_str_eq(node_find(again, "b.1")->text, "\xc3\xa4");
	ck_assert_str_eq(node_find(again, "b.2")->text, "");
	ck_assert_str_eq(node_find(again, "f")->text,
			 node_find(root, "f")->text);
	ck_assert_int_eq(node_find(again, "c.d")->kind, NODE_MAP);
	ck_assert_int_eq(node_find(again, "c.e")->kind, NODE_LIST);
	free(text);
	node_free(&root);
	node_free(&again);
}
END_TEST

static void same_as_plain(const char *yaml, size_t len)
{
	struct cfg *cfg;
	char *errs;

	scenario_write(yaml, len);
	ck_assert_int_eq(scenario_reload(&cfg, NULL, 0, &errs), 0);
	ck_assert_str_eq(errs, "");
	ck_assert_str_eq(cfg->scenario, "x");
	ck_assert_uint_eq(cfg->load.connections, 7);
	ck_assert_uint_eq(cfg->tls.groups.n, 2);
	free(errs);
	cfg_free(&cfg);
}

START_TEST(marks_line_ends_and_document_signs_do_not_matter)
{
	static const char *const forms[] = {
		"\xef\xbb\xbfscenario: x\nload: {connections: 7}\n"
		"tls: {groups: [A, B]}\n",
		"scenario: x\r\nload:\r\n  connections: 7\r\ntls:\r\n"
		"  groups: A, B\r\n",
		"# first\n---\nscenario: x\nload: {connections: 7}\n"
		"tls: {groups: [A, B]}\n...\n",
		"{scenario: x, load: {connections: 7}, tls: {groups: 'A,B'}}",
		"scenario: x\nload:\n  connections:\t7\ntls: {groups: [\tA, "
		"B]}",
		"'scenario': \"x\"\nload: {\"connections\": '7'}\n"
		"tls:\n  groups:\n  - A\n  - B",
		"%YAML 1.1\n---\nscenario: x\nload: {connections: 7}\n"
		"tls: {groups: [A, B]}\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		same_as_plain(forms[i], strlen(forms[i]));
}
END_TEST

/* ---- --set ---- */

static const char two_phases[] =
	"scenario: x\nphases:\n- {name: a}\n- {name: b}\n";

START_TEST(overrides_go_where_the_file_has_or_lacks_a_value)
{
	static const char *const sets[] = {
		"phases.1.duration=300ms",
		"tls.groups=[P-256, P-384]",
		"tls.groups.2=X25519",
		"load.connections=5",
		"tls.ciphers=A,B",
		"phases.2={name: c}",
		"scenario=y",
		"result.dir=../a=b..c",
		"workers={count: 3}",
		"workers.pin=none",
	};
	struct cfg *cfg = scenario_good(two_phases, sets, ARRAY_LEN(sets));

	ck_assert_str_eq(cfg->scenario, "y");
	ck_assert_uint_eq(cfg->nphases, 3);
	ck_assert_uint_eq(cfg->phases[1].duration, 300000000);
	ck_assert_str_eq(cfg->phases[1].name, "b");
	ck_assert_str_eq(cfg->phases[2].name, "c");
	ck_assert_uint_eq(cfg->tls.groups.n, 3);
	ck_assert_str_eq(cfg->tls.groups.item[2], "X25519");
	ck_assert_uint_eq(cfg->tls.ciphers.n, 2);
	ck_assert_str_eq(cfg->result.dir, "../a=b..c");
	ck_assert_uint_eq(cfg->workers.count, 3);
	ck_assert_str_eq(cfg->workers.pin, "none");
	cfg_free(&cfg);
}
END_TEST

START_TEST(overrides_can_take_a_value_away)
{
	static const char *const sets[] = {"phases=[]",
					   "load.connections=", "load=none",
					   "terminator=null"};
	struct cfg *cfg = scenario_good(two_phases, sets, ARRAY_LEN(sets));

	ck_assert_uint_eq(cfg->nphases, 0);
	ck_assert_ptr_null(cfg->phases);
	ck_assert_uint_eq(cfg->load.drivers, CFG_NO_DRIVERS);
	cfg_free(&cfg);
}
END_TEST

START_TEST(overrides_go_below_what_was_short)
{
	static const char *const sets[] = {"load.connections=9",
					   "tls.groups.1=P-256"};
	struct cfg *cfg = scenario_good(
		"scenario: x\nload: none\ntls: {groups: X25519}\n", sets, 2);

	ck_assert_uint_eq(cfg->load.connections, 9);
	ck_assert_uint_eq(cfg->load.drivers, CFG_NO_DRIVERS);
	ck_assert_uint_eq(cfg->tls.groups.n, 2);
	cfg_free(&cfg);
}
END_TEST

/* ---- golden messages ---- */

struct golden {
	const char *yaml, *errs;
};

static void all_refused(const struct golden *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		scenario_refused(row[i].yaml, NULL, 0, row[i].errs);
}

START_TEST(keys_that_are_not_known_get_a_proposal)
{
	static const struct golden row[] = {
		{"scenario: x\nphases:\n  - {duraton: 5s}\n",
		 "s.yaml:3: phases.0.duraton: unknown key; did you mean "
		 "`duration`?\n"},
		{"scenario: x\ntls:\n  Tickets: {enabled: true}\n",
		 "s.yaml:3: tls.Tickets: unknown key; did you mean "
		 "`tickets`?\n"},
		{"scenario: x\nterminator: {handshake-timeout: 5s}\n",
		 "s.yaml:2: terminator.handshake-timeout: unknown key; did you "
		 "mean `handshake_timeout`?\n"},
		{"scenario: x\nworkers:\n  threads: 3\n",
		 "s.yaml:3: workers.threads: unknown key; known are count, "
		 "pin\n"},
		{"scenario: x\nciphers: [A]\n",
		 "s.yaml:2: ciphers: unknown key here; it belongs under "
		 "`tls`\n"},
		{"scenario: x\ntls:\n  phases: []\n",
		 "s.yaml:3: tls.phases: unknown key here; it belongs at the "
		 "left "
		 "margin\n"},
		{"scenario: x\n\"a\\tb\": 1\n",
		 "s.yaml:2: a control character in the text; leave it out\n"},
		{"scenario: x\na b: 1\n",
		 "s.yaml:2: \"a b\": unknown key; known are scenario, "
		 "accept_doubt, terminator, target, workers, tls, load, "
		 "phases, segment, result\n"},
		{"scenario: x\n<<: {a: b}\n",
		 "s.yaml:2: <<: unknown key; known are scenario, "
		 "accept_doubt, terminator, target, workers, tls, load, "
		 "phases, segment, result\n"},
	};

	all_refused(row, ARRAY_LEN(row));
}
END_TEST

START_TEST(keys_given_twice_are_named_with_both_lines)
{
	static const struct golden row[] = {
		{"scenario: x\nload: {connections: 1}\nscenario: y\nload: "
		 "none\n",
		 "s.yaml:3: scenario: given twice, first in line 1; take one "
		 "of "
		 "them out\n"
		 "s.yaml:4: load: given twice, first in line 2; take one of "
		 "them out\n"},
	};

	all_refused(row, ARRAY_LEN(row));
}
END_TEST

#define PHASE_KEYS                                                             \
	"name, kind, handshake, resume, ticket_use, requests, path, body, "    \
	"think, close, transport, speaks_first, connections, rate, arrivals, " \
	"every, from, to, step, step_time, p99, records, warmup, duration"

START_TEST(another_shape_than_is_due_is_told)
{
	static const struct golden row[] = {
		{"scenario: x\nterminator:\n  backlog: {a: 1}\n",
		 "s.yaml:3: terminator.backlog: a mapping where one value is "
		 "due; write 1 to 65535\n"},
		{"scenario: x\nterminator:\n  backlog: [1]\n",
		 "s.yaml:3: terminator.backlog: a list where one value is due; "
		 "write 1 to 65535\n"},
		{"scenario: x\ntls: {groups: {a: 1}}\n",
		 "s.yaml:2: tls.groups: a mapping where a list is due; write "
		 "[one, another]\n"},
		{"scenario: x\ntls: {groups: [A, [B], ~, {c: d}]}\n",
		 "s.yaml:2: tls.groups.1: a list where a text is due\n"
		 "s.yaml:2: tls.groups.2: an empty entry; take it out\n"
		 "s.yaml:2: tls.groups.3: a mapping where a text is due\n"},
		{"scenario: x\nworkers: 3\n",
		 "s.yaml:2: workers: a text where a mapping is due; its keys "
		 "are count, pin\n"},
		{"scenario: x\nload: nothing\n",
		 "s.yaml:2: load: a text where a mapping is due; its keys are "
		 "drivers, connections, pin, server_name, ca, timeout, "
		 "ticket_wait, versions, groups, ciphers, sigalgs, alpn, "
		 "certificate, key, providers, source\n"},
		{"scenario: x\nphases: {duration: 5s}\n",
		 "s.yaml:2: phases: a mapping where a list is due; begin each "
		 "entry with a dash: - {name: one}\n"},
		{"scenario: x\nphases:\n- full\n-\n",
		 "s.yaml:3: phases.0: a text where a mapping is due; its keys "
		 "are " PHASE_KEYS "\n"
		 "s.yaml:4: phases.1: nothing where a mapping is due; its keys "
		 "are " PHASE_KEYS "\n"},
		{"just a text\n",
		 "s.yaml:1: a text where a mapping is due; its keys are "
		 "scenario, accept_doubt, terminator, target, workers, tls, "
		 "load, phases, segment, "
		 "result\n"},
		{"- scenario: x\n",
		 "s.yaml:1: a list where a mapping is due; its keys are "
		 "scenario, accept_doubt, terminator, target, workers, tls, "
		 "load, phases, segment, "
		 "result\n"},
		{"", "s.yaml:1: scenario: missing; a scenario needs `scenario: "
		     "NAME`\n"},
		{"# nothing\n\n---\n",
		 "s.yaml:4: scenario: missing; a scenario needs `scenario: "
		 "NAME`\n"},
		{"scenario:\n",
		 "s.yaml:1: scenario: missing; a scenario needs `scenario: "
		 "NAME`\n"},
	};

	all_refused(row, ARRAY_LEN(row));
}
END_TEST

START_TEST(what_is_no_yaml_is_told_with_its_line)
{
	static const struct golden row[] = {
		{"scenario: x\nload:\n\tconnections: 5\n",
		 "s.yaml:3: indented with a tab; YAML indents with spaces\n"},
		{"scenario: x\nload:\n  pin: none\n\tconnections: 5\n",
		 "s.yaml:4: indented with a tab; YAML indents with spaces\n"},
		{"scenario: x\nterminator:\n  listen: [::1]:8443\n",
		 "s.yaml:3: not YAML; write an IPv6 address in quotes, such as "
		 "\"[::1]:8443\"\n"},
		{"scenario: x\nload: {connections: 5\n",
		 "s.yaml:3: not YAML: did not find expected ',' or '}' while "
		 "parsing a flow mapping that begins in line 2\n"},
		{"scenario: x\n  load: 5\n",
		 "s.yaml:2: not YAML: mapping values are not allowed in this "
		 "context\n"},
		{"scenario: *who\n",
		 "s.yaml:1: not YAML: found undefined alias\n"},
		{"scenario: x\n---\nscenario: y\n",
		 "s.yaml:3: a second document; a scenario is one, so put it in "
		 "a file of its own\n"},
		{"scenario: x\n---\n\tscenario: y\n",
		 "s.yaml:3: indented with a tab; YAML indents with spaces\n"},
		{"scenario: x\n? [a]\n: b\n",
		 "s.yaml:2: a key must be a word\n"},
		{"scenario: !!binary x\n", "s.yaml:1: scenario: a tag has no "
					   "meaning here; leave it out\n"},
		{"scenario: x\nload: !mine {connections: 1}\n",
		 "s.yaml:2: load: a tag has no meaning here; leave it out\n"},
		{"scenario: x\nresult:\n  dir: |\n    one\n    two\n",
		 "s.yaml:3: result.dir: more than one line; write it in one\n"},
		{"scenario: \"a\\0b\"\n", "s.yaml:1: scenario: a control "
					  "character in the text; leave it "
					  "out\n"},
		{"scenario: x\nresult: {dir: \"\\x9b\"}\n",
		 "s.yaml:2: result.dir: a control character in the text; leave "
		 "it out\n"},
		{"scenario: x\nresult: {dir: \xff\xfe}\n",
		 "s.yaml:2: not text in UTF-8: invalid leading UTF-8 octet\n"},
		{"scenario: x\nresult: {dir: \x01}\n",
		 "s.yaml:2: not text in UTF-8: control characters are not "
		 "allowed\n"},
	};

	all_refused(row, ARRAY_LEN(row));
}
END_TEST

START_TEST(overrides_are_told_by_their_number)
{
	static const char *const sets[] = {
		"load.conections=5",	"nothing",	 "=5",
		"tls..groups=A",	"tls.groups=[A", "phases.5.name=x",
		"phases.one=x",		"scenario.x=1",	 "tls.groups=\t- A\n",
		"tls.groups=A\n---\nB",
	};

	scenario_refused(
		two_phases, sets, ARRAY_LEN(sets),
		"--set:1: load.conections: unknown key; did you mean "
		"`connections`?\n"
		"--set:2: \"nothing\" is not PATH=VALUE; write it as in "
		"tls.tickets.rotate=10m\n"
		"--set:3: \"=5\" is not PATH=VALUE; write it as in "
		"tls.tickets.rotate=10m\n"
		"--set:4: \"tls..groups=A\" is not PATH=VALUE; write it as in "
		"tls.tickets.rotate=10m\n"
		"--set:5: tls.groups: not YAML: did not find expected ',' or "
		"']' while parsing a flow sequence\n"
		"--set:6: phases: has 2 entries, numbered from 0; the next one "
		"is phases.2\n"
		"--set:7: phases: is a list; write the number of the entry, "
		"from 0: phases.0\n"
		"--set:8: scenario: is one value; nothing is below it\n"
		"--set:9: tls.groups: indented with a tab; YAML indents with "
		"spaces\n"
		"--set:10: tls.groups: a second document; a scenario is one, "
		"so "
		"put it in a file of its own\n");
}
END_TEST

START_TEST(a_file_that_cannot_be_read_says_why)
{
	struct cfg *cfg = NULL;
	char *errs;
	size_t len;
	FILE *f = open_memstream(&errs, &len);

	ck_assert_int_eq(cfg_load(&cfg, "none.yaml", NULL, 0, f), -ENOENT);
	ck_assert_int_eq(cfg_load(&cfg, "/", NULL, 0, f), -EISDIR);
	fclose(f);
	ck_assert_str_eq(errs, "none.yaml: cannot be read: No such file or "
			       "directory\n"
			       "/: cannot be read: Is a directory\n");
	ck_assert_ptr_null(cfg);
	free(errs);
}
END_TEST

/* ---- limits ---- */

/* Refused with a message that begins so. */
static void refused_with(const char *bytes, size_t len, const char *begin)
{
	struct cfg *cfg = NULL;
	char *errs;

	scenario_write(bytes, len);
	ck_assert_int_eq(scenario_reload(&cfg, NULL, 0, &errs), -EINVAL);
	ck_assert_msg(strncmp(errs, begin, strlen(begin)) == 0, "%.400s", errs);
	free(errs);
}

/* `n` times `text`, behind "scenario: x\na: ". */
static void repeated(const char *text, size_t n, const char *begin)
{
	static const char head[] = "scenario: x\na: ";
	size_t each = strlen(text), len = strlen(head) + n * each;
	char *all = malloc(len + 1);

	ck_assert_ptr_nonnull(all);
	strcpy(all, head);
	for (size_t i = 0; i < n; i++)
		memcpy(all + strlen(head) + i * each, text, each);
	refused_with(all, len, begin);
	free(all);
}

/* `n` lines, each with its number between two texts. */
static void numbered(const char *before, const char *after, size_t n,
		     const char *begin)
{
	char *all;
	size_t len;
	FILE *f = open_memstream(&all, &len);

	ck_assert_ptr_nonnull(f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%zu%s\n", before, i, after);
	fclose(f);
	refused_with(all, len, begin);
	free(all);
}

START_TEST(a_file_of_a_mebibyte_is_read_and_no_larger_one)
{
	char *all = malloc(YAML_BYTES_MAX + 1);

	ck_assert_ptr_nonnull(all);
	memset(all, ' ', YAML_BYTES_MAX + 1);
	for (size_t i = 80; i < YAML_BYTES_MAX; i += 80)
		memcpy(all + i, "\n#", 2);
	memcpy(all,
	       "{scenario: x, load: {connections: 7}, "
	       "tls: {groups: [A, B]}}",
	       60);
	same_as_plain(all, YAML_BYTES_MAX);
	refused_with(all, YAML_BYTES_MAX + 1,
		     "s.yaml: larger than 1048576 bytes; no scenario is\n");
	free(all);
}
END_TEST

START_TEST(depth_is_bounded)
{
	repeated("[", 11, "s.yaml:3: not YAML");
	repeated("[", 12, "s.yaml:2: more than 12 levels deep");
	refused_with("a: [[[[[[[[[[[[[x]]]]]]]]]]]]]", 30,
		     "s.yaml:1: more than 12 levels deep; no scenario is\n");
	refused_with("&a {a: *a}", 10,
		     "s.yaml:1: a.a.a.a.a.a.a.a.a.a.a.a.a: more than 12 levels "
		     "deep; no scenario is\n");
}
END_TEST

START_TEST(what_aliases_grow_to_is_bounded)
{
	refused_with("a: &a [x,x,x,x,x,x,x,x,x,x]\n"
		     "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
		     "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
		     "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
		     "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
		     28 + 4 * 38, "s.yaml:1: ");
	repeated("- x\n  ", 1, "s.yaml:2: not YAML");
}
END_TEST

START_TEST(texts_and_keys_are_bounded)
{
	repeated("y", YAML_TEXT_MAX + 1,
		 "s.yaml:2: a: a text of 8193 bytes; at most 8192 are read\n");
	repeated("y", YAML_TEXT_MAX, "s.yaml:2: a: unknown key");
	repeated("y", 20000, "s.yaml:2: a: a text of 20000 bytes");
}
END_TEST

/* Each of these once took a YAML reader a time that grew with the square. */
START_TEST(hostile_files_take_no_time)
{
	static const char *const pieces[] = {
		"[",	"{",	    "- ",    "? ",	"{a: ",
		"[{",	"\"",	    "'",     "&a ",	"!a ",
		"*a, ", "a,",	    "- - ",  "x: ",	"#",
		"|",	">\n",	    "\n - ", "%",	"---\n",
		"\t",	"\xc3\xa4", "[]",    "{a: b},", "\n? a\n: b",
	};

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		repeated(pieces[i], 1000000 / strlen(pieces[i]), "s.yaml:");
	numbered("- &anchor", " x", 50000, "s.yaml:");
	numbered("key", ": x", 80000, "s.yaml:");
	numbered("key", ": x", YAML_NODES_MAX - 1, "s.yaml:1: key0: unknown");
}
END_TEST

START_TEST(no_more_faults_than_anyone_reads_are_shown)
{
	char yaml[4000] = "scenario: x\nload: {", *errs;
	struct cfg *cfg = NULL;
	size_t lines = 0;

	for (int i = 0; i < 60; i++)
		sprintf(yaml + strlen(yaml), "%skey%d: 1", i ? ", " : "", i);
	strcat(yaml, "}\n");
	ck_assert_int_eq(scenario_load(&cfg, yaml, NULL, 0, &errs), -EINVAL);
	for (const char *p = errs; (p = strchr(p, '\n')) != NULL; p++)
		lines++;
	ck_assert_uint_eq(lines, 51);
	ck_assert_ptr_nonnull(strstr(errs, "s.yaml: and 10 more faults\n"));
	free(errs);
}
END_TEST

static TCase *with_file(const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, scenario_setup, scenario_teardown);
	return t;
}

int main(void)
{
	Suite *s = suite_create("yaml");
	TCase *works = with_file("works"), *limits = with_file("limits");
	TCase *refuses = with_file("refuses");
	SRunner *r;
	int failed;

	tcase_add_test(works, nodes_know_their_lines);
	tcase_add_test(works, only_a_bare_null_is_nothing);
	tcase_add_test(works, aliases_are_copies);
	tcase_add_test(works, what_is_emitted_parses_to_the_same);
	tcase_add_test(works, marks_line_ends_and_document_signs_do_not_matter);
	tcase_add_test(works, overrides_go_where_the_file_has_or_lacks_a_value);
	tcase_add_test(works, overrides_can_take_a_value_away);
	tcase_add_test(works, overrides_go_below_what_was_short);
	tcase_add_test(limits, a_file_of_a_mebibyte_is_read_and_no_larger_one);
	tcase_add_test(limits, depth_is_bounded);
	tcase_add_test(limits, what_aliases_grow_to_is_bounded);
	tcase_add_test(limits, texts_and_keys_are_bounded);
	tcase_add_test(limits, hostile_files_take_no_time);
	tcase_add_test(limits, no_more_faults_than_anyone_reads_are_shown);
	tcase_add_test(refuses, keys_that_are_not_known_get_a_proposal);
	tcase_add_test(refuses, keys_given_twice_are_named_with_both_lines);
	tcase_add_test(refuses, another_shape_than_is_due_is_told);
	tcase_add_test(refuses, what_is_no_yaml_is_told_with_its_line);
	tcase_add_test(refuses, overrides_are_told_by_their_number);
	tcase_add_test(refuses, a_file_that_cannot_be_read_says_why);
	tcase_set_timeout(limits, 60);
	suite_add_tcase(s, works);
	suite_add_tcase(s, limits);
	suite_add_tcase(s, refuses);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
