/* SPDX-License-Identifier: MIT */
/* tdrive: the load driver, TLS clients on io_uring. */
#include "shm/base.h"
#include "shm/log.h"
#include "tools/tdrive_args.h"
#include "tools/tdrive_hand.h"
#include "tools/tdrive_managed.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	struct args args;
	char err[512];

	log_init("driver", LOG_INFO);
	if (args_parse(&args, argc, argv, err, sizeof(err)) != 0) {
		fprintf(stderr, "tdrive: %s\n", err);
		return EXIT_USAGE;
	}
	if (args.help) {
		args_help(stdout);
		return EXIT_GOOD;
	}
	if (args.version) {
		printf("tdrive " TTERM_VERSION " (%s)\n", base_commit());
		return EXIT_GOOD;
	}
	return args.managed ? managed_run(&args) : hand_run(&args);
}
