/* SPDX-License-Identifier: MIT */
#include "terminator/can.h"

#include "shm/base.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

static int refuse(char *err, size_t len, const char *where, const char *key)
{
	snprintf(err, len, "%s%s: this version of tterm cannot do that yet",
		 where, key);
	return -EINVAL;
}

static const char *unable_phase(const struct cfg_phase *p)
{
	const struct {
		bool asked;
		const char *key;
	} row[] = {
		{p->kind != CFG_KIND_HANDSHAKES, "kind"},
		{p->records, "records"},
	};

	for (size_t i = 0; i < ARRAY_LEN(row); i++)
		if (row[i].asked)
			return row[i].key;
	return NULL;
}

int can_run(const struct cfg *cfg, char *err, size_t len)
{
	const char *key;
	char where[32];

	if (cfg->has_target)
		return refuse(err, len, "", "target");
	if (cfg->load.providers.n > 0)
		return refuse(err, len, "load.", "providers");
	for (size_t i = 0; i < cfg->nphases; i++) {
		key = unable_phase(&cfg->phases[i]);
		snprintf(where, sizeof(where), "phases.%zu.", i);
		if (key != NULL)
			return refuse(err, len, where, key);
	}
	return 0;
}
