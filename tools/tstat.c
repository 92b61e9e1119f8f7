/* SPDX-License-Identifier: MIT */
#include "tools/tstat.h"

#include <locale.h>

int main(int argc, char **argv)
{
	/* The letters are the terminal's; numbers are the same everywhere. */
	setlocale(LC_CTYPE, "");
	return tstat_run(argc, argv);
}
