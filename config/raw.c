/* SPDX-License-Identifier: MIT */
#include "config/raw.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdlib.h>

/* One field per row: a text, or a list of texts in flow style. */
static const cyaml_schema_value_t text_schema = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED),
};

#define TEXT(structure, key)                                                   \
	CYAML_FIELD_STRING_PTR(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, \
			       structure, key, 0, CYAML_UNLIMITED),
#define LIST(structure, key)                                                \
	CYAML_FIELD_SEQUENCE_COUNT(                                         \
		#key,                                                       \
		CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL | CYAML_FLAG_FLOW, \
		structure, key.item, key.n, &text_schema, 0, CYAML_UNLIMITED),
#define SECTION(structure, key, fields)                                   \
	CYAML_FIELD_MAPPING_PTR(#key,                                     \
				CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, \
				structure, key, fields)

#define FIELD_STR	  TEXT
#define FIELD_LIST	  LIST
#define FIELD_UINT	  TEXT
#define FIELD_COUNT	  TEXT
#define FIELD_DRIVERS	  TEXT
#define FIELD_BOOL	  TEXT
#define FIELD_DURATION	  TEXT
#define FIELD_SIZE	  TEXT
#define FIELD_REQUESTS	  TEXT
#define FIELD_PERCENT	  TEXT
#define FIELD_RATE	  TEXT
#define FIELD_ACCEPT	  TEXT
#define FIELD_RESPOND	  TEXT
#define FIELD_CLIENT_AUTH TEXT
#define FIELD_CERT	  TEXT
#define FIELD_HANDSHAKE	  TEXT
#define FIELD_KIND	  TEXT
#define FIELD_CLOSE	  TEXT
#define FIELD_TRANSPORT	  TEXT
#define FIELD_SPEAKS	  TEXT
#define FIELD_ARRIVALS	  TEXT
#define FIELD_TICKET_USE  TEXT
#define FIELD_MODE	  TEXT

static const cyaml_schema_field_t respond_fields[] = {
#define OPT_RESPOND(key, type, ...) FIELD_##type(struct raw_respond, key)
#include "config/options.def"
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t terminator_fields[] = {
#define OPT_TERMINATOR(key, type, ...) FIELD_##type(struct raw_terminator, key)
#include "config/options.def"
	SECTION(struct raw_terminator, respond, respond_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t target_fields[] = {
#define OPT_TARGET(key, type, ...) FIELD_##type(struct raw_target, key)
#include "config/options.def"
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t workers_fields[] = {
#define OPT_WORKERS(key, type, ...) FIELD_##type(struct raw_workers, key)
#include "config/options.def"
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t certificate_fields[] = {
#define OPT_CERTIFICATE(key, type, ...) \
	FIELD_##type(struct raw_certificate, key)
#include "config/options.def"
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t tickets_fields[] = {
#define OPT_TICKETS(key, type, ...) FIELD_##type(struct raw_tickets, key)
#include "config/options.def"
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t tls_fields[] = {
#define OPT_TLS(key, type, ...) FIELD_##type(struct raw_tls, key)
#include "config/options.def"
	SECTION(struct raw_tls, certificate, certificate_fields),
	SECTION(struct raw_tls, tickets, tickets_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t load_fields[] = {
#define OPT_LOAD(key, type, ...) FIELD_##type(struct raw_load, key)
#include "config/options.def"
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t phase_fields[] = {
#define OPT_PHASE(key, type, ...) FIELD_##type(struct raw_phase, key)
#include "config/options.def"
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t phase_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_phase, phase_fields),
};

static const cyaml_schema_field_t segment_fields[] = {
#define OPT_SEGMENT(key, type, ...) FIELD_##type(struct raw_segment, key)
#include "config/options.def"
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t result_fields[] = {
#define OPT_RESULT(key, type, ...) FIELD_##type(struct raw_result, key)
#include "config/options.def"
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t root_fields[] = {
#define OPT_ROOT(key, type, ...) FIELD_##type(struct raw, key)
#include "config/options.def"
	SECTION(struct raw, terminator, terminator_fields),
	SECTION(struct raw, target, target_fields),
	SECTION(struct raw, workers, workers_fields),
	SECTION(struct raw, tls, tls_fields),
	SECTION(struct raw, load, load_fields),
	CYAML_FIELD_SEQUENCE_COUNT(
		"phases", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw,
		phases, nphases, &phase_schema, 0, CYAML_UNLIMITED),
	SECTION(struct raw, segment, segment_fields),
	SECTION(struct raw, result, result_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t root_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw, root_fields),
};

static const cyaml_config_t config = {
	.mem_fn = cyaml_mem,
	.log_level = CYAML_LOG_ERROR,
	.flags = CYAML_CFG_STYLE_BLOCK,
};

int raw_load(struct raw **out, const char *yaml, size_t yaml_len, char *err,
	     size_t len)
{
	cyaml_data_t *data = NULL;
	cyaml_err_t rc = cyaml_load_data((const uint8_t *)yaml, yaml_len,
					 &config, &root_schema, &data, NULL);

	if (rc == CYAML_ERR_OOM)
		return -ENOMEM;
	if (rc != CYAML_OK) {
		snprintf(err, len, "libcyaml: %s", cyaml_strerror(rc));
		return -EINVAL;
	}
	/* libcyaml gives NULL where no key of the root was there. */
	if (data == NULL)
		data = calloc(1, sizeof(struct raw));
	if (data == NULL)
		return -ENOMEM;
	*out = data;
	return 0;
}

int raw_save(const struct raw *raw, FILE *out)
{
	char *text;
	size_t len;
	cyaml_err_t rc =
		cyaml_save_data(&text, &len, &config, &root_schema, raw, 0);
	int written;

	if (rc != CYAML_OK)
		return rc == CYAML_ERR_OOM ? -ENOMEM : -EINVAL;
	errno = 0;
	written = fwrite(text, 1, len, out) == len && fflush(out) == 0;
	free(text);
	if (!written)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

void raw_free(struct raw **raw)
{
	if (raw == NULL || *raw == NULL)
		return;
	cyaml_free(&config, &root_schema, *raw, 0);
	*raw = NULL;
}
