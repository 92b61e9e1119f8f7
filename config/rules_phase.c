/* SPDX-License-Identifier: MIT */
#include "config/rules_int.h"

#include "config/unit.h"
#include "shm/base.h"

#include <stdio.h>
#include <string.h>

/* One phase being checked. */
struct job {
	const struct conv *c;
	const struct cfg *cfg;
	const struct cfg_phase *p;
	size_t index;
	char path[OPT_PATH_LEN]; /* written by at() */
};

/* The path of an option of the phase. */
static const char *at(struct job *j, const char *key)
{
	snprintf(j->path, sizeof(j->path), "phases.%zu.%s", j->index, key);
	return j->path;
}

#define FAULT(j, key, ...) conv_fault((j)->c, at(j, key), __VA_ARGS__)

/* ---- options that only some phases have ---- */

static bool asks(const struct cfg_phase *p)
{
	return p->requests > 0 || p->kind == CFG_KIND_BULK;
}

static bool asks_for_path(const struct cfg_phase *p)
{
	return p->body == 0;
}

static bool mixes(const struct cfg_phase *p)
{
	return p->handshake == CFG_HANDSHAKE_MIX;
}

static bool offers_tickets(const struct cfg_phase *p)
{
	return p->handshake != CFG_HANDSHAKE_FULL;
}

static bool has_rate(const struct cfg_phase *p)
{
	return p->kind == CFG_KIND_HANDSHAKES;
}

static bool ramps(const struct cfg_phase *p)
{
	return p->kind == CFG_KIND_RAMP;
}

static bool is_open(const struct cfg_phase *p)
{
	return p->rate > 0 || ramps(p);
}

static bool bursts(const struct cfg_phase *p)
{
	return p->kind == CFG_KIND_BURST;
}

#define NOTHING_ASKED(key)                                                 \
	"nothing is requested; write requests: 1 or more, or kind: bulk, " \
	"or take " key " out"
#define NO_RAMP(key) "belongs to a ramp; write kind: ramp, or take " key " out"

static const struct place {
	const char *key;
	bool (*has)(const struct cfg_phase *p);
	const char *otherwise;
} places[] = {
	{"resume", mixes,
	 "is the share of a mix; write handshake: mix, or take resume out"},
	{"ticket_use", offers_tickets,
	 "full handshakes offer no ticket; write another handshake, or take "
	 "ticket_use out"},
	{"path", asks, NOTHING_ASKED("path")},
	{"path", asks_for_path,
	 "body asks for /bytes/N instead; take path out, or body"},
	{"body", asks, NOTHING_ASKED("body")},
	{"think", asks, NOTHING_ASKED("think")},
	{"rate", has_rate,
	 "only kind: handshakes has a rate; take rate out, or kind"},
	{"arrivals", is_open,
	 "arrivals are those of an open loop; add a rate such as 500/s, or "
	 "take arrivals out"},
	{"every", bursts,
	 "belongs to bursts; write kind: burst, or take every out"},
	{"from", ramps, NO_RAMP("from")},
	{"to", ramps, NO_RAMP("to")},
	{"step", ramps, NO_RAMP("step")},
	{"step_time", ramps, NO_RAMP("step_time")},
	{"p99", ramps, NO_RAMP("p99")},
};

const char *rules_misplaced(const struct cfg_phase *p, const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (strcmp(places[i].key, key) == 0 && !places[i].has(p))
			return places[i].otherwise;
	return NULL;
}

static void check_places(struct job *j)
{
	for (size_t i = 0; i < opt_nrows; i++) {
		const char *key = opt_rows[i].key, *why;

		if (opt_rows[i].section != OPT_IN_PHASE)
			continue;
		why = rules_misplaced(j->p, key);
		if (why != NULL && rules_said(j->c, at(j, key)))
			FAULT(j, key, "%s", why);
	}
}

/* ---- ramp ---- */

uint64_t rules_ramp_length(const struct cfg_phase *p)
{
	unsigned __int128 steps = (p->to - p->from) / p->step + 1;
	unsigned __int128 length = steps * p->step_time;

	return length < UINT64_MAX ? (uint64_t)length : UINT64_MAX;
}

/* "from, step and p99": those that are missing. False if none is. */
static bool list_missing(const struct cfg_phase *p, char *buf, size_t len)
{
	const struct {
		const char *key;
		uint64_t value;
	} needed[] = {{"from", p->from},
		      {"to", p->to},
		      {"step", p->step},
		      {"p99", p->p99}};
	size_t left = 0, used = 0;

	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		left += needed[i].value == 0;
	if (left == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		if (needed[i].value != 0)
			continue;
		left--;
		used += (size_t)snprintf(buf + used, len - used, "%s%s",
					 needed[i].key,
					 left == 0   ? ""
					 : left == 1 ? " and "
						     : ", ");
	}
	return true;
}

static void check_ramp_time(struct job *j)
{
	const struct opt_row *row = opt_row(OPT_IN_PHASE, "duration");
	uint64_t length = rules_ramp_length(j->p);
	char text[40], max[40];

	unit_print_duration(length, text, sizeof(text));
	unit_print_duration(row->max, max, sizeof(max));
	if (length > row->max)
		FAULT(j, "step",
		      "the ramp takes more than %s; write a larger step, or a "
		      "shorter step_time",
		      max);
	else if (j->p->duration < length)
		FAULT(j, "duration",
		      "the ramp takes %s; write that, or take duration out",
		      text);
}

static void check_ramp(struct job *j)
{
	const struct cfg_phase *p = j->p;
	char text[64];

	if (!ramps(p))
		return;
	if (list_missing(p, text, sizeof(text))) {
		FAULT(j, "kind", "a ramp needs from, to, step and p99; add %s",
		      text);
		return;
	}
	unit_print_rate(p->from, text, sizeof(text));
	if (p->to <= p->from)
		FAULT(j, "to",
		      "a ramp rises, and this one begins at %s; write more",
		      text);
	else if (p->step > p->to - p->from)
		FAULT(j, "step",
		      "a ramp has two steps at least; write no more than from "
		      "`from` to `to`");
	else
		check_ramp_time(j);
}

/* ---- what goes together ---- */

static void check_tcp(struct job *j)
{
	const struct cfg_phase *p = j->p;

	if (p->transport != CFG_TRANSPORT_TCP)
		return;
	if (p->handshake != CFG_HANDSHAKE_FULL)
		FAULT(j, "handshake",
		      "transport: tcp has no handshakes; take handshake out, "
		      "or transport");
	if (p->records)
		FAULT(j, "records",
		      "transport: tcp has no records; take records out, or "
		      "transport");
	if (p->close == CFG_CLOSE_NOTIFY)
		FAULT(j, "close",
		      "transport: tcp has no close_notify; write fin or rst");
}

/* What has connections that must end, or fall silent; or NULL. */
static const char *what_ends(const struct cfg_phase *p)
{
	if (p->rate > 0)
		return "an open loop have to end";
	switch (p->kind) {
	case CFG_KIND_RAMP:
		return "a ramp have to end";
	case CFG_KIND_BURST:
		return "a burst have to end";
	case CFG_KIND_IDLE:
		return "kind: idle have to fall silent";
	default:
		return NULL;
	}
}

static void check_kept(struct job *j)
{
	const char *what = what_ends(j->p);

	if (j->p->requests == CFG_UNLIMITED && what != NULL)
		FAULT(j, "requests",
		      "\"unlimited\" keeps connections busy, and those of %s; "
		      "write a number",
		      what);
}

/* Who speaks first, and what our own server makes of it. */
static void check_talk(struct job *j)
{
	const struct cfg_phase *p = j->p;
	enum cfg_respond_mode mode = j->cfg->terminator.respond.mode;
	const char *word = cfg_word("RESPOND", (int)mode);
	bool listens = p->speaks_first == CFG_SPEAKS_SERVER;

	if (j->cfg->has_target || !rules_clean(j->c, "terminator.respond"))
		return;
	if (listens && asks(p))
		FAULT(j, "speaks_first",
		      "a client that waits for the server asks for nothing; "
		      "take speaks_first out, or %s",
		      p->requests > 0 ? "requests" : "kind: bulk");
	else if (listens && mode != CFG_RESPOND_SPEAK_FIRST)
		FAULT(j, "speaks_first",
		      "terminator.respond.mode is %s; write speak-first there, "
		      "or take speaks_first out",
		      word);
	else if (asks(p) && mode != CFG_RESPOND_HTTP)
		FAULT(j, p->requests > 0 ? "requests" : "kind",
		      "terminator.respond.mode is %s, which answers no "
		      "requests; write http there, or take %s out",
		      word, p->requests > 0 ? "requests" : "kind");
}

static void check_burst(struct job *j)
{
	if (bursts(j->p) && j->p->connections == CFG_AUTO)
		FAULT(j, "kind",
		      "a burst needs connections; add how many, such as "
		      "connections: 500");
}

static bool offers(const struct cfg *cfg, const char *version)
{
	for (size_t i = 0; i < cfg->tls.versions.n; i++)
		if (strcmp(cfg->tls.versions.item[i], version) == 0)
			return true;
	return false;
}

/* Why no handshake could resume, or NULL. */
static const char *no_resuming(const struct conv *c, const struct cfg *cfg)
{
	if (cfg->has_target)
		return NULL;
	if (!rules_clean(c, "tls.tickets") || !rules_clean(c, "tls.versions"))
		return NULL;
	if (!cfg->tls.tickets.enabled)
		return "tls.tickets.enabled is false";
	if (cfg->tls.tickets.per_handshake == 0 && offers(cfg, "TLSv1.3"))
		return "tls.tickets.per_handshake is 0, so TLS 1.3 gives no "
		       "ticket";
	return NULL;
}

static void check_tickets(struct job *j)
{
	const char *why = no_resuming(j->c, j->cfg);

	if (why != NULL && offers_tickets(j->p))
		FAULT(j, "handshake",
		      "nothing can resume: %s; change that, or write "
		      "handshake: full",
		      why);
}

static void check_path(struct job *j)
{
	const char *path = j->p->path;
	char quoted[UNIT_QUOTE_LEN];
	size_t n = 0;

	if (path == NULL)
		return;
	while (path[n] > ' ' && path[n] < 0x7f && path[n] != '#')
		n++;
	if (path[0] != '/' || path[n] != '\0')
		FAULT(j, "path",
		      "%s is no path; write one that begins with a slash, with "
		      "%%20 and the like for other characters",
		      unit_quote(quoted, path));
}

/* ---- names ---- */

static void check_name(struct job *j)
{
	const char *name = j->p->name;
	char quoted[UNIT_QUOTE_LEN];

	if (name == NULL || !rules_clean(j->c, at(j, "name")))
		return;
	rules_name(j->c, at(j, "name"), name);
	for (size_t k = 0; k < j->index; k++) {
		const char *other = j->cfg->phases[k].name;

		if (other == NULL || strcmp(other, name) != 0)
			continue;
		FAULT(j, "name",
		      "%s is the name of phases.%zu as well; give each a name "
		      "of its own, such as name: %.40s-%zu",
		      unit_quote(quoted, name), k, name, j->index + 1);
		return;
	}
}

void rules_check_phases(const struct conv *c, const struct cfg *cfg)
{
	char path[40];

	for (size_t i = 0; i < cfg->nphases; i++) {
		struct job j = {c, cfg, &cfg->phases[i], i, ""};
		bool good;

		snprintf(path, sizeof(path), "phases.%zu", i);
		good = rules_clean(c, path);
		check_path(&j);
		check_name(&j);
		if (!good)
			continue;
		check_places(&j);
		check_ramp(&j);
		check_burst(&j);
		check_tcp(&j);
		check_kept(&j);
		check_talk(&j);
		check_tickets(&j);
	}
}
