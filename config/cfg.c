/* SPDX-License-Identifier: MIT */
#include "config/cfg.h"

#include "config/conv.h"
#include "config/opt.h"
#include "config/raw.h"
#include "config/rules.h"
#include "config/shape.h"
#include "config/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The section's struct in cfg or raw; `phase` counts in phases. */
static void *cfg_base(struct cfg *cfg, const struct opt_section *s,
		      size_t phase)
{
	return s->list ? (void *)&cfg->phases[phase]
		       : (char *)cfg + s->cfg_offset;
}

/* As cfg_base(); NULL where the file says nothing of the section. */
static void *raw_base(struct raw *raw, const struct opt_section *s,
		      size_t phase)
{
	char *in;

	if (s->list)
		return &raw->phases[phase];
	if (opt_id(s) == OPT_IN_ROOT)
		return raw;
	in = raw_base(raw, &opt_sections[s->parent], 0);
	if (in != NULL)
		memcpy(&in, in + s->raw_offset, sizeof(in));
	return in;
}

/* Makes the section, and those above it. 0 or -ENOMEM. */
static int raw_make(struct raw *raw, const struct opt_section *s)
{
	void *made;
	char *in;
	int rc;

	if (s->list || raw_base(raw, s, 0) != NULL)
		return 0;
	rc = raw_make(raw, &opt_sections[s->parent]);
	if (rc < 0)
		return rc;
	made = calloc(1, s->raw_size);
	if (made == NULL)
		return -ENOMEM;
	in = raw_base(raw, &opt_sections[s->parent], 0);
	memcpy(in + s->raw_offset, &made, sizeof(made));
	return 0;
}

/* Calls fn for every option, those of phases once for each phase. */
typedef int each_fn(const struct opt_row *row, size_t phase, void *arg);

static int each_option(size_t nphases, each_fn *fn, void *arg)
{
	for (size_t i = 0; i < opt_nrows; i++) {
		bool list = opt_sections[opt_rows[i].section].list;
		size_t n = list ? nphases : 1;

		for (size_t phase = 0; phase < n; phase++) {
			int rc = fn(&opt_rows[i], phase, arg);

			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* ---- load ---- */

struct load {
	struct conv conv;
	struct raw *raw;
	struct cfg *cfg;
};

static int take_option(const struct opt_row *row, size_t phase, void *arg)
{
	struct load *l = arg;
	const struct opt_section *s = &opt_sections[row->section];
	char path[OPT_PATH_LEN];

	if (s->list)
		snprintf(path, sizeof(path), "%s.%zu.%s", s->path, phase,
			 row->key);
	else
		opt_path(path, row);
	return conv_take(&l->conv, row, path, raw_base(l->raw, s, phase),
			 cfg_base(l->cfg, s, phase));
}

/* What a phase without a name is called. */
static const char *default_name(const struct cfg_phase *p)
{
	if (p->kind != CFG_KIND_HANDSHAKES)
		return cfg_word("KIND", (int)p->kind);
	if (p->transport == CFG_TRANSPORT_TCP)
		return cfg_word("TRANSPORT", (int)p->transport);
	return cfg_word("HANDSHAKE", (int)p->handshake);
}

/* Large enough that a bulk phase spends no time on requests. */
#define BULK_BODY (UINT64_C(64) << 20)

/* Defaults that follow from the phase's other options, which are good. */
static int fill_phase(const struct conv *c, struct cfg_phase *p, size_t i)
{
	char path[OPT_PATH_LEN], duration[OPT_PATH_LEN];

	snprintf(path, sizeof(path), "phases.%zu.path", i);
	snprintf(duration, sizeof(duration), "phases.%zu.duration", i);
	if (p->kind == CFG_KIND_BULK && p->body == 0 &&
	    node_find(c->root, path) == NULL)
		p->body = BULK_BODY;
	if (p->kind == CFG_KIND_RAMP && p->step > 0 && p->to > p->from &&
	    node_find(c->root, duration) == NULL)
		p->duration = rules_ramp_length(p);
	if (p->name == NULL)
		p->name = strdup(default_name(p));
	return p->name == NULL ? -ENOMEM : 0;
}

static int fill_phases(const struct conv *c, struct cfg *cfg)
{
	char path[OPT_PATH_LEN];

	for (size_t i = 0; i < cfg->nphases; i++) {
		snprintf(path, sizeof(path), "phases.%zu", i);
		if (!fault_under(c->f, path) &&
		    fill_phase(c, &cfg->phases[i], i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool some_tcp(const struct cfg *cfg)
{
	for (size_t i = 0; i < cfg->nphases; i++)
		if (cfg->phases[i].transport == CFG_TRANSPORT_TCP)
			return true;
	return false;
}

/* A plain listener where the first one with TLS is, for phases without TLS. */
static int fill_plain(const struct conv *c, struct cfg *cfg)
{
	struct cfg_list *list = &cfg->terminator.listen_plain;
	const char *tls, *colon;

	if (cfg->has_target || !some_tcp(cfg) || list->n > 0 ||
	    fault_under(c->f, "terminator"))
		return 0;
	tls = cfg->terminator.listen.item[0];
	colon = strrchr(tls, ':');
	if (colon == NULL)
		return 0; /* which will be told */
	list->item = calloc(1, sizeof(*list->item));
	if (list->item == NULL)
		return -ENOMEM;
	if (asprintf(&list->item[0], "%.*s:0", (int)(colon - tls), tls) < 0) {
		list->item[0] = NULL;
		return -ENOMEM;
	}
	list->n = 1;
	return 0;
}

static int fill(struct load *l, const char *path)
{
	struct cfg *cfg = l->cfg;
	int rc;

	cfg->path = strdup(path);
	if (cfg->path == NULL)
		return -ENOMEM;
	if (l->raw->nphases > 0) {
		cfg->phases = calloc(l->raw->nphases, sizeof(*cfg->phases));
		if (cfg->phases == NULL)
			return -ENOMEM;
		cfg->nphases = l->raw->nphases;
	}
	cfg->has_target = node_find(l->conv.root, "target") != NULL;
	rc = each_option(cfg->nphases, take_option, l);
	if (rc == 0)
		rc = fill_phases(&l->conv, cfg);
	if (rc == 0)
		rc = fill_plain(&l->conv, cfg);
	if (rc == 0)
		rules_check(&l->conv, cfg);
	return rc;
}

static int to_raw(struct raw **out, const struct node *root, struct faults *f)
{
	char *text, err[160];
	size_t len;
	int rc = yaml_emit(&text, &len, root);

	if (rc < 0)
		return rc;
	rc = raw_load(out, text, len, err, sizeof(err));
	if (rc == -EINVAL)
		fault_add(f, root->file, root->line, "", "%s", err);
	free(text);
	return rc;
}

static int from_tree(struct cfg **out, const struct node *root,
		     const char *path, struct faults *f)
{
	struct load l = {.conv = {root, f}};
	int rc = to_raw(&l.raw, root, f);

	if (rc < 0)
		return rc;
	l.cfg = calloc(1, sizeof(*l.cfg));
	rc = l.cfg == NULL ? -ENOMEM : fill(&l, path);
	raw_free(&l.raw);
	if (rc == 0 && f->no_memory)
		rc = -ENOMEM;
	if (rc == 0 && f->n > 0)
		rc = -EINVAL;
	if (rc == 0)
		*out = l.cfg;
	else
		cfg_free(&l.cfg);
	return rc;
}

/* The file with its overrides, in long form. */
static int read_tree(struct node **root, const char *path,
		     const char *const *sets, size_t nsets, struct faults *f)
{
	int rc = yaml_read(root, path, f);

	if (rc == 0)
		rc = shape_unfold(*root);
	for (size_t i = 0; rc == 0 && i < nsets; i++) {
		rc = shape_set(*root, sets[i], (unsigned)i + 1, f);
		/* Go on: what is wrong with the others is to be told too. */
		if (rc == -EINVAL)
			rc = 0;
	}
	if (rc == 0)
		rc = shape_unfold(*root);
	return rc;
}

int cfg_load(struct cfg **out, const char *path, const char *const *sets,
	     size_t nsets, FILE *errs)
{
	struct faults f = {0};
	struct node *root = NULL;
	int rc = read_tree(&root, path, sets, nsets, &f);

	if (rc == 0)
		rc = shape_check(root, &f) ? from_tree(out, root, path, &f)
					   : -EINVAL;
	if (rc == -ENOMEM)
		f.no_memory = true;
	fault_print(&f, errs);
	fault_fini(&f);
	node_free(&root);
	return rc;
}

static int free_option(const struct opt_row *row, size_t phase, void *arg)
{
	conv_free(row, cfg_base(arg, &opt_sections[row->section], phase));
	return 0;
}

void cfg_free(struct cfg **cfg)
{
	if (cfg == NULL || *cfg == NULL)
		return;
	each_option((*cfg)->nphases, free_option, *cfg);
	free((*cfg)->phases);
	free((*cfg)->path);
	free(*cfg);
	*cfg = NULL;
}

/* ---- print ---- */

struct print {
	struct raw *raw;
	struct cfg *cfg;
};

static int give_option(const struct opt_row *row, size_t phase, void *arg)
{
	const struct print *p = arg;
	const struct opt_section *s = &opt_sections[row->section];
	int rc;

	if (rules_moot(p->cfg, row, phase))
		return 0;
	rc = raw_make(p->raw, s);
	if (rc < 0)
		return rc;
	return conv_give(row, cfg_base(p->cfg, s, phase),
			 raw_base(p->raw, s, phase));
}

int cfg_print(const struct cfg *cfg, FILE *out)
{
	/* Only read: the walk is shared with those who write. */
	struct print p = {calloc(1, sizeof(struct raw)), (struct cfg *)cfg};
	int rc = p.raw == NULL ? -ENOMEM : 0;

	if (rc == 0 && cfg->nphases > 0) {
		p.raw->phases = calloc(cfg->nphases, sizeof(*p.raw->phases));
		if (p.raw->phases == NULL)
			rc = -ENOMEM;
		else
			p.raw->nphases = (uint32_t)cfg->nphases;
	}
	if (rc == 0)
		rc = each_option(cfg->nphases, give_option, &p);
	if (rc == 0)
		rc = raw_save(p.raw, out);
	raw_free(&p.raw);
	return rc;
}

/* ---- small questions ---- */

const char *cfg_word(const char *type, int value)
{
	for (size_t i = 0; i < opt_nwords; i++)
		if (opt_words[i].value == value &&
		    strcmp(opt_type_name(opt_words[i].type), type) == 0)
			return opt_words[i].word;
	return "?";
}

const char *cfg_segment_name(const struct cfg *cfg)
{
	return cfg->segment.name != NULL ? cfg->segment.name : cfg->scenario;
}
