/* SPDX-License-Identifier: MIT */
/* records: one full and one resumed handshake of a phase, record by record. */
#include "tools/tdrive_load_int.h"

#include "tools/tdrive_tls_rec.h"

int record_start(struct load *load, const struct load_phase *phase)
{
	load->followed = NULL;
	load->recorded = false;
	load->told[false] = false;
	load->told[true] = false;
	ctls_rec_free(&load->rec);
	return phase->records && phase->transport == CFG_TRANSPORT_TLS
		       ? ctls_rec_new(&load->rec)
		       : 0;
}

/* Whether it resumes shows when it is over: one of a kind that was shown
 * already is followed in vain. */
void record_begin(struct load *load, struct seat *seat)
{
	if (load->rec == NULL || load->recorded || load->followed != NULL)
		return;
	load->followed = seat;
	ctls_rec_follow(load->rec, seat->tls);
}

static void tell(struct load *load, const char *kind)
{
	char text[CTLS_REC_TEXT];

	for (uint32_t i = 0; i < ctls_rec_lines(load->rec); i++) {
		ctls_rec_line(load->rec, i, text);
		load_tell(load, "record %s %s", kind, text);
	}
}

static bool has_all(const struct load *load)
{
	return load->told[false] &&
	       (load->told[true] ||
		load->phase.handshake == CFG_HANDSHAKE_FULL ||
		load->phase.handshake == CFG_HANDSHAKE_REFUSED);
}

void record_end(struct load *load, struct seat *seat, bool good)
{
	if (load->followed != seat)
		return;
	load->followed = NULL;
	if (!good || load->told[seat->resumed])
		return;
	load->told[seat->resumed] = true;
	tell(load, seat->resumed ? "resumed" : "full");
	load->recorded = has_all(load);
}
