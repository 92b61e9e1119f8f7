/* SPDX-License-Identifier: MIT */
#include "tools/tstat.h"

#include "shm/fmt.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH	   100 /* unless the terminal or COLUMNS says otherwise */
#define WAIT_MAX_S 86400

enum mode {
	MODE_TABLE,
	MODE_JSON,
	MODE_LIST
};

struct args {
	enum mode mode;
	const char *name; /* borrowed from argv; NULL: the only one */
	uint64_t wait_ns;
};

static const char help[] =
	"Usage: tstat [OPTION]... [NAME]\n"
	"\n"
	"Prints what the workers and drivers of a running tterm have counted.\n"
	"NAME is its scenario's or segment's name, or the file of a segment; "
	"it "
	"may be\n"
	"left out while only one tterm runs.\n"
	"\n"
	"      --once          print one table (the default)\n"
	"      --json          print one JSON object with every counter and "
	"histogram\n"
	"      --list          list the segments on this machine\n"
	"      --wait SECONDS  wait so long for a tterm to run\n"
	"      --help          print this\n"
	"      --version       print the version\n"
	"\n"
	"Exit status: 0; 1 if the output could not be written; 2 if the "
	"arguments are\n"
	"wrong or there is no such segment, or none that can be read.\n"
	"COLUMNS sets the table's width, NO_COLOR takes the colour out of "
	"it.\n";

static int usage(const char *what, const char *value)
{
	fprintf(stderr, "tstat: %s%s%s: tstat --help shows what there is\n",
		what, value != NULL ? " " : "", value != NULL ? value : "");
	return EXIT_USAGE;
}

/* Digits, and a point with digits if need be, whatever the locale. */
static int parse_seconds(const char *text, uint64_t *out_ns)
{
	uint64_t ns = 0, unit = NS_PER_S;
	bool fraction = false;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	for (; *text != '\0'; text++) {
		if (*text == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		unit = fraction ? unit / 10 : unit;
		ns = fraction ? ns : ns * 10;
		ns += (uint64_t)(*text - '0') * unit;
		if (ns > WAIT_MAX_S * NS_PER_S)
			return -ERANGE;
	}
	*out_ns = ns;
	return 0;
}

/* -1 to go on, or an exit status. */
static int parse(struct args *a, int argc, char **argv)
{
	static const struct option options[] = {
		{"once", no_argument, NULL, 'o'},
		{"json", no_argument, NULL, 'j'},
		{"list", no_argument, NULL, 'l'},
		{"wait", required_argument, NULL, 'w'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	int c, modes = 0;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		switch (c) {
		case 'o':
		case 'j':
		case 'l':
			a->mode = c == 'o'   ? MODE_TABLE
				  : c == 'j' ? MODE_JSON
					     : MODE_LIST;
			modes++;
			break;
		case 'w':
			if (parse_seconds(optarg, &a->wait_ns) < 0)
				return usage("--wait needs seconds, 0 to "
					     "86400, not",
					     optarg);
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_GOOD;
		case 'v':
			printf("tstat %s (%s)\n", TTERM_VERSION, base_commit());
			return EXIT_GOOD;
		case ':':
			return usage("no value for", argv[optind - 1]);
		default:
			return usage("unknown option", argv[optind - 1]);
		}
	}
	a->name = argv[optind];
	if (modes > 1)
		return usage("only one of --once, --json and --list", NULL);
	if (argc - optind > 1)
		return usage("one NAME at a time, not also", argv[optind + 1]);
	if (a->mode == MODE_LIST && a->name != NULL)
		return usage("--list takes no NAME:", a->name);
	return -1;
}

static int terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	int n = columns != NULL ? atoi(columns) : 0;

	if (n > 0)
		return n;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return WIDTH;
}

static int print(const struct args *a, const struct shm_seg *seg)
{
	const char *no_colour = getenv("NO_COLOR");
	struct style style = {
		.colour = isatty(STDOUT_FILENO) &&
			  (no_colour == NULL || no_colour[0] == '\0'),
		.utf8 = fmt_utf8(),
		.width = terminal_width(),
	};
	struct view v;
	int rc = view_take(&v, seg);

	if (rc < 0)
		return rc;
	if (a->mode == MODE_JSON)
		rc = json_print(stdout, &v);
	else
		table_print(stdout, &v, &style);
	view_fini(&v);
	return rc;
}

/* What was printed must have arrived: a full disk is no success. */
static int finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "tstat: cannot write the output: %s\n",
		strerror(errno));
	return EXIT_RUN;
}

static int list(void)
{
	int rc = find_list(stdout);

	if (rc == 0)
		return finish(EXIT_GOOD);
	fprintf(stderr, "tstat: /dev/shm: %s\n", strerror(-rc));
	return EXIT_USAGE;
}

int tstat_run(int argc, char **argv)
{
	struct args a = {0};
	struct shm_seg *seg;
	char err[FIND_ERR_MAX];
	int rc = parse(&a, argc, argv);

	if (rc >= 0)
		return finish(rc);
	if (a.mode == MODE_LIST)
		return list();
	rc = find_segment(&seg, a.name, a.wait_ns, err);
	if (rc < 0) {
		fprintf(stderr, "tstat: %s\n", err);
		return EXIT_USAGE;
	}
	rc = print(&a, seg);
	shm_seg_close(&seg);
	if (rc < 0 && !ferror(stdout)) {
		fprintf(stderr, "tstat: %s\n", strerror(-rc));
		return EXIT_RUN;
	}
	return finish(EXIT_GOOD);
}
