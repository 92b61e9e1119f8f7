/* SPDX-License-Identifier: MIT */
/* tterm: the master's program. */
#include "config/cfg.h"
#include "shm/base.h"
#include "shm/ctr.h"
#include "shm/fmt.h"
#include "shm/log.h"
#include "terminator/can.h"
#include "terminator/mst.h"
#include "terminator/out.h"
#include "terminator/tbl.h"
#include "workers/tls_ctx.h"
#include "workers/wrk.h"

#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETS_MAX 256

enum {
	OPT_CHECK = 256,
	OPT_PRINT,
	OPT_DESCRIBE,
	OPT_SET,
	OPT_ACCEPT,
	OPT_LOG,
	OPT_QUIET
};

struct options {
	const char *scenario;
	const char *sets[SETS_MAX];
	size_t nsets;
	char accept[1024]; /* "accept_doubt=[a,b", a --set once closed */
	bool check, print, quiet;
};

static void help(FILE *to)
{
	fputs("Usage: tterm [OPTION]... SCENARIO.yaml\n"
	      "Measure what TLS handshakes cost each core, by a real "
	      "terminator "
	      "under a real load.\n\n"
	      "  --set PATH=VALUE       override a value of the scenario, "
	      "e.g.\n"
	      "                         --set phases.0.duration=2s "
	      "--set tls.certificate.make=rsa-2048\n"
	      "  --accept-doubt NAME    a doubt of that name does not make the "
	      "exit "
	      "status 3 (again for more)\n"
	      "  --check                check the scenario, its certificate, "
	      "groups and ciphers; run nothing\n"
	      "  --print-config         print the scenario with every default "
	      "filled in\n"
	      "  --describe WHAT        print a reference page: options, "
	      "counters or states\n"
	      "  --log-level LEVEL      error, warn (default), info or debug\n"
	      "  --quiet                no progress line\n"
	      "  -h, --help             this text\n"
	      "  -V, --version          version, commit and libraries\n\n"
	      "SCENARIO - is standard input. Without phases tterm serves until "
	      "it is told to stop.\n"
	      "Signals: SIGINT ends and shows what was measured, SIGTERM "
	      "drains "
	      "first, SIGHUP makes\n"
	      "new ticket keys. Exit status: 0 good, 1 the run failed, 2 usage "
	      "or scenario wrong,\n"
	      "3 finished but not to be trusted.\n"
	      "Watch a run from another terminal with tstat.\n",
	      to);
}

static void version(void)
{
	printf("tterm %s (%s)\n%s (built with %s)\n", TTERM_VERSION,
	       base_commit(), tls_library(), tls_library_built());
}

static int describe(const char *what)
{
	if (strcmp(what, "options") == 0)
		cfg_describe(stdout);
	else if (strcmp(what, "counters") == 0)
		ctr_describe(stdout);
	else if (strcmp(what, "states") == 0)
		wrk_describe_states(stdout);
	else {
		fprintf(stderr,
			"tterm: --describe %s: there is no such page; "
			"there are options, counters and states\n",
			what);
		return EXIT_USAGE;
	}
	return EXIT_GOOD;
}

static int usage_error(void)
{
	fputs("tterm: try tterm --help\n", stderr);
	return EXIT_USAGE;
}

/* -1, or an exit status. */
static int accept_doubt(struct options *o, const char *name)
{
	size_t used = strlen(o->accept), room = sizeof(o->accept) - used;
	int n = snprintf(o->accept + used, room, "%s%s",
			 used == 0 ? "accept_doubt=[" : ",", name);

	if (n < 0 || (size_t)n + 2 > room || o->nsets == SETS_MAX) {
		fprintf(stderr, "tterm: --accept-doubt: too many names\n");
		return EXIT_USAGE;
	}
	return -1;
}

static int take_option(struct options *o, int c)
{
	enum log_level level;

	switch (c) {
	case 'h':
		help(stdout);
		return EXIT_GOOD;
	case 'V':
		version();
		return EXIT_GOOD;
	case OPT_DESCRIBE:
		return describe(optarg);
	case OPT_CHECK:
		o->check = true;
		return -1;
	case OPT_PRINT:
		o->print = true;
		return -1;
	case OPT_QUIET:
		o->quiet = true;
		return -1;
	case OPT_SET:
		if (o->nsets == SETS_MAX) {
			fprintf(stderr, "tterm: more than %d --set\n",
				SETS_MAX);
			return EXIT_USAGE;
		}
		o->sets[o->nsets++] = optarg;
		return -1;
	case OPT_ACCEPT:
		return accept_doubt(o, optarg);
	case OPT_LOG:
		if (log_parse_level(optarg, &level) < 0) {
			fprintf(stderr,
				"tterm: --log-level %s: write error, "
				"warn, info or debug\n",
				optarg);
			return EXIT_USAGE;
		}
		log_init("master", level);
		return -1;
	default:
		return usage_error();
	}
}

/* -1 to go on, or an exit status. */
static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{"check", no_argument, NULL, OPT_CHECK},
		{"print-config", no_argument, NULL, OPT_PRINT},
		{"describe", required_argument, NULL, OPT_DESCRIBE},
		{"set", required_argument, NULL, OPT_SET},
		{"accept-doubt", required_argument, NULL, OPT_ACCEPT},
		{"log-level", required_argument, NULL, OPT_LOG},
		{"quiet", no_argument, NULL, OPT_QUIET},
		{NULL, 0, NULL, 0},
	};
	int c, rc;

	while ((c = getopt_long(argc, argv, "hV", longs, NULL)) != -1) {
		rc = take_option(o, c);
		if (rc >= 0)
			return rc;
	}
	if (argc - optind != 1) {
		fprintf(stderr, argc == optind
					? "tterm: no scenario given\n"
					: "tterm: one scenario at a time\n");
		return usage_error();
	}
	o->scenario = argv[optind];
	if (o->accept[0] != '\0') {
		strcat(o->accept, "]"); /* room was kept */
		o->sets[o->nsets++] = o->accept;
	}
	return -1;
}

/* All that can be wrong with a scenario short of binding its ports. */
static int check(const struct cfg *cfg)
{
	struct tls_tickets *tickets = NULL;
	struct tls_srv *srv = NULL;
	struct plan_cpus cpus;
	struct plan *plan = malloc(sizeof(*plan));
	char err[MST_ERR_MAX] = "out of memory";
	int rc = plan == NULL ? -ENOMEM : can_run(cfg, err, sizeof(err));

	if (rc == 0)
		rc = plan_detect(&cpus, "");

	if (rc == 0)
		rc = plan_make(plan, cfg, &cpus, err, sizeof(err));
	if (rc == 0)
		rc = tls_tickets_create(&tickets, cfg, plan->nworkers, err,
					sizeof(err));
	if (rc == 0)
		rc = tls_srv_create(&srv, cfg, tickets, err, sizeof(err));
	if (rc == 0)
		printf("%s: good: %s, %zu phase%s; %s\n", cfg->path,
		       tls_srv_certificate(srv), cfg->nphases,
		       cfg->nphases == 1 ? "" : "s", plan->why);
	else
		fprintf(stderr, "tterm: %s: %s\n", cfg->path, err);
	tls_srv_close(&srv);
	tls_tickets_close(&tickets);
	free(plan);
	return rc == 0 ? EXIT_GOOD : EXIT_USAGE;
}

static int judge(const struct mst_report *report, bool failed)
{
	int status = failed || (report->nphase == 0 && !report->served)
			     ? EXIT_RUN
			     : EXIT_GOOD;

	for (uint32_t i = 0; i < report->nphase; i++) {
		enum res_level worst = res_worst(&report->phase[i].doubts);

		if (worst == RES_FATAL)
			status = EXIT_RUN;
		else if (worst == RES_DOUBT && status == EXIT_GOOD)
			status = EXIT_DOUBTFUL;
	}
	if (report->interrupted && status == EXIT_GOOD)
		status = EXIT_DOUBTFUL;
	return status;
}

static char *table_text(const struct mst *mst, const struct cfg *cfg,
			const struct mst_report *report, struct tbl_style style)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		return NULL;
	tbl_print(f, mst, cfg, report, style);
	fclose(f);
	return text;
}

static void hint(int status)
{
	printf("next     another certificate: tterm --set "
	       "tls.certificate.make=rsa-2048 SCENARIO\n"
	       "         every option: tterm --describe options; watch a run "
	       "from elsewhere: tstat --once\n");
	if (status == EXIT_DOUBTFUL)
		printf("         exit status 3: finished, but see the doubts "
		       "above\n");
}

static int show(const struct mst *mst, const struct cfg *cfg,
		const struct mst_report *report, struct out *out, bool failed)
{
	bool utf8 = fmt_utf8();
	bool colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
	int status = judge(report, failed);
	char err[MST_ERR_MAX];
	char *text;

	tbl_print(stdout, mst, cfg, report,
		  (struct tbl_style){.utf8 = utf8, .colour = colour});
	if (out == NULL || report->nphase == 0)
		return status;
	text = table_text(mst, cfg, report, (struct tbl_style){.utf8 = true});
	if (text == NULL || out_write(out, mst, cfg, report, status, text, err,
				      sizeof(err)) < 0) {
		fprintf(stderr, "tterm: %s\n",
			text == NULL ? "out of memory" : err);
		status = EXIT_RUN;
	} else {
		printf("result   %s/result.json\n", out_dir(out));
		hint(status);
	}
	free(text);
	return status;
}

static void announce(const struct mst *mst, const struct cfg *cfg)
{
	struct shm_info info;
	uint64_t total = 0;

	shm_seg_info(mst_seg(mst), &info);
	if (cfg->nphases == 0) {
		fprintf(stderr,
			"tterm: serving %s on %s; %s\n"
			"tterm: watch it with tstat --once %s, end it with "
			"Ctrl-C\n",
			cfg->scenario, info.listen, mst_plan(mst)->why,
			cfg_segment_name(cfg));
		return;
	}
	for (size_t i = 0; i < cfg->nphases; i++)
		total += cfg->phases[i].warmup + cfg->phases[i].duration;
	fprintf(stderr, "tterm: %s: %zu phase%s, about %llu s; %s\n",
		cfg->scenario, cfg->nphases, cfg->nphases == 1 ? "" : "s",
		(unsigned long long)(total / NS_PER_S + 1), mst_plan(mst)->why);
}

static int run(const struct cfg *cfg, bool quiet)
{
	bool progress = !quiet && isatty(STDERR_FILENO);
	struct mst_report report = {0};
	struct mst *mst = NULL;
	struct out *out = NULL;
	char err[MST_ERR_MAX];
	int rc = 0, status;

	if (cfg->nphases > 0)
		rc = out_open(&out, cfg, err, sizeof(err));
	if (rc < 0) {
		fprintf(stderr, "tterm: %s\n", err);
		return EXIT_RUN;
	}
	rc = mst_open(&mst, cfg, progress, err);
	if (rc < 0) {
		fprintf(stderr, "tterm: %s: %s\n", cfg->path, err);
		out_close(&out);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_RUN;
	}
	announce(mst, cfg);
	rc = mst_run(mst, &report, err);
	if (rc < 0)
		fprintf(stderr, "tterm: %s\n", err);
	status = show(mst, cfg, &report, out, rc < 0);
	mst_report_fini(&report);
	mst_close(&mst);
	out_close(&out);
	return status;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct cfg *cfg;
	int status;

	setlocale(LC_CTYPE, "");
	log_init("master", LOG_WARN);
	status = parse(&o, argc, argv);
	if (status >= 0)
		return status;
	if (cfg_load(&cfg, o.scenario, o.sets, o.nsets, stderr) < 0)
		return EXIT_USAGE;
	if (o.print)
		status = cfg_print(cfg, stdout) < 0 ? EXIT_RUN : EXIT_GOOD;
	else if (o.check)
		status = check(cfg);
	else
		status = run(cfg, o.quiet);
	cfg_free(&cfg);
	return status;
}
