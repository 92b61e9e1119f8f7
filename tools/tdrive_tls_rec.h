/* SPDX-License-Identifier: MIT */
/*
 * One connection record by record, by the library's message callback: what
 * goes which way, in which kind of record, and how long that is. Lengths are of
 * record bodies, as they stand in the record's header: with the inner type and
 * the tag where a record is encrypted.
 *
 * A message takes all of its records' length; the second message in one record
 * has its own length alone.
 */
#ifndef TOOLS_TDRIVE_TLS_REC_H
#define TOOLS_TDRIVE_TLS_REC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines kept of one connection; what comes after that is left out. A full
 * handshake with client certificates has 17. */
#define CTLS_REC_LINES 24u
#define CTLS_REC_TEXT  80

struct ctls_conn;
struct ctls_rec;

/* 0, and the caller owns *out; or -ENOMEM. */
int ctls_rec_new(struct ctls_rec **out);
void ctls_rec_free(struct ctls_rec **rec);

/* From now on `rec` follows this connection alone, from its first line, until
 * ctls_end(). Between ctls_begin() and the first ctls_handshake(). */
void ctls_rec_follow(struct ctls_rec *rec, struct ctls_conn *conn);

uint32_t ctls_rec_lines(const struct ctls_rec *rec);

/* "out handshake ClientHello 314". `index` is below ctls_rec_lines(). */
void ctls_rec_line(const struct ctls_rec *rec, uint32_t index,
		   char to[static CTLS_REC_TEXT]);

#endif
