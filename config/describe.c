/* SPDX-License-Identifier: MIT */
#include "config/cfg.h"
#include "config/opt.h"

#include <stdio.h>

static const char intro[] =
	"<!-- SPDX-License-Identifier: MIT -->\n"
	"# The scenario file\n"
	"\n"
	"Made from `config/options.def` by `tterm --describe options`; change "
	"the table, not this page.\n"
	"\n"
	"A scenario is one YAML mapping. Only `scenario` must be there; every "
	"other key has a default or may be absent. A key without a value, or "
	"`null`, is as if absent; an empty mapping `{}` means all defaults. An "
	"unknown or doubled key is refused.\n"
	"\n"
	"| kind of value | is written |\n"
	"|---|---|\n"
	"| duration | number and unit: `5s`, `1.5s`, `400ms`, `250us`, `2m`, "
	"`2h`, `7d`; a bare number is refused, `0s` is zero |\n"
	"| size | number and unit: `512B`, `1KiB`, `64MiB`, `1GiB`, or `kB`, "
	"`MB`, `GB` in powers of ten |\n"
	"| rate | per second or minute: `2000/s`, `0.5/s`, `120/min` |\n"
	"| percentage | whole percents: `50%` |\n"
	"| whole number | decimal digits alone: `4096` |\n"
	"| true or false | `true` or `false`, no other word |\n"
	"| list | `[one, another]`, or one text with commas: `one, another`; "
	"an "
	"entry must not be there twice |\n"
	"| word | one of those listed |\n"
	"\n"
	"`--set PATH=VALUE` gives one value in place of the file's, as in "
	"`--set tls.groups=[P-256]` or `--set phases.0.duration=300ms` "
	"(entries "
	"count from 0). `--print-config` shows what a scenario comes to.\n";

/* A bar would end the table's cell. */
static void cell(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '|')
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void row_out(FILE *out, const struct opt_row *row)
{
	char allowed[OPT_ALLOWED_LEN];

	fprintf(out, "| `%s` | %s | ", row->key, opt_type_word(row->type));
	if (row->deflt != NULL)
		fprintf(out, "`%s`", row->deflt);
	fprintf(out, " | %s | ", opt_allowed(allowed, row));
	cell(out, row->help);
	fputs(" |\n", out);
}

static void section_out(FILE *out, const struct opt_section *s)
{
	fprintf(out, "\n## %s%s\n\n%s\n\n",
		s->path[0] != '\0' ? s->path : "top", s->list ? "[]" : "",
		s->help);
	fputs("| key | type | default | allowed | what it is "
	      "|\n|---|---|---|---|---|\n",
	      out);
	for (size_t i = 0; i < opt_nrows; i++)
		if (opt_rows[i].section == opt_id(s))
			row_out(out, &opt_rows[i]);
}

void cfg_describe(FILE *out)
{
	fputs(intro, out);
	for (size_t i = 0; i < OPT_SECTIONS; i++)
		section_out(out, &opt_sections[i]);
}
