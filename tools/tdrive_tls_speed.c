/* SPDX-License-Identifier: MIT */
#include "tools/tdrive_tls_speed.h"

#include "shm/clk.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <errno.h>
#include <stdlib.h>

#define TIMES	2
#define KEY_LEN 32

struct ctls_speed {
	EVP_PKEY_CTX *derive; /* owns; holds both keys */
};

/* Bytes that count up from `first`: no secret, and always the same work. */
static EVP_PKEY *fixed_key(uint8_t first)
{
	uint8_t raw[KEY_LEN];

	for (size_t i = 0; i < sizeof(raw); i++)
		raw[i] = (uint8_t)(first + i);
	return EVP_PKEY_new_raw_private_key_ex(NULL, "X25519", NULL, raw,
					       sizeof(raw));
}

static EVP_PKEY_CTX *prepared(EVP_PKEY *ours, EVP_PKEY *theirs)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, ours, NULL);

	if (ctx != NULL && EVP_PKEY_derive_init(ctx) == 1 &&
	    EVP_PKEY_derive_set_peer(ctx, theirs) == 1)
		return ctx;
	EVP_PKEY_CTX_free(ctx);
	return NULL;
}

int ctls_speed_open(struct ctls_speed **out)
{
	struct ctls_speed *speed = calloc(1, sizeof(*speed));
	EVP_PKEY *ours, *theirs;

	if (speed == NULL)
		return -ENOMEM;
	ours = fixed_key(1);
	theirs = fixed_key(101);
	if (ours != NULL && theirs != NULL)
		speed->derive = prepared(ours, theirs);
	EVP_PKEY_free(ours);
	EVP_PKEY_free(theirs);
	if (speed->derive == NULL) {
		ERR_clear_error();
		free(speed);
		return -EIO;
	}
	*out = speed;
	return 0;
}

void ctls_speed_close(struct ctls_speed **speed)
{
	if (*speed == NULL)
		return;
	EVP_PKEY_CTX_free((*speed)->derive);
	free(*speed);
	*speed = NULL;
}

uint64_t ctls_speed_sample(struct ctls_speed *speed)
{
	uint64_t before = clk_thread_cpu();
	uint8_t shared[KEY_LEN];
	size_t len;

	for (int i = 0; i < TIMES; i++) {
		len = sizeof(shared);
		if (EVP_PKEY_derive(speed->derive, shared, &len) != 1) {
			ERR_clear_error();
			return 0;
		}
	}
	return clk_thread_cpu() - before;
}
