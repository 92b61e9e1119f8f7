/* SPDX-License-Identifier: MIT */
#include "workers/tls_speed.h"

#include "shm/clk.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdlib.h>

#define AGREEMENTS 2
#define KEY_BYTES  32

struct tls_speed {
	EVP_PKEY_CTX *ctx; /* owns */
};

/* Keys are fixed: the work is the same in every sample, process and run. */
static EVP_PKEY *key_of(unsigned char first)
{
	unsigned char raw[KEY_BYTES];

	for (unsigned i = 0; i < KEY_BYTES; i++)
		raw[i] = (unsigned char)(first + i);
	return EVP_PKEY_new_raw_private_key_ex(NULL, "X25519", NULL, raw,
					       sizeof(raw));
}

int tls_speed_open(struct tls_speed **out)
{
	struct tls_speed *s = calloc(1, sizeof(*s));
	EVP_PKEY *own = key_of(1), *peer = key_of(101);
	int rc = s == NULL ? -ENOMEM : -EIO;

	if (s != NULL && own != NULL && peer != NULL) {
		s->ctx = EVP_PKEY_CTX_new_from_pkey(NULL, own, NULL);
		if (s->ctx != NULL && EVP_PKEY_derive_init(s->ctx) == 1 &&
		    EVP_PKEY_derive_set_peer(s->ctx, peer) == 1)
			rc = 0;
	}
	EVP_PKEY_free(own);
	EVP_PKEY_free(peer);
	ERR_clear_error();
	if (rc < 0) {
		tls_speed_close(&s);
		return rc;
	}
	*out = s;
	return 0;
}

void tls_speed_close(struct tls_speed **speed)
{
	struct tls_speed *s = *speed;

	if (s == NULL)
		return;
	EVP_PKEY_CTX_free(s->ctx);
	free(s);
	*speed = NULL;
}

uint64_t tls_speed_sample(struct tls_speed *s)
{
	unsigned char secret[KEY_BYTES];
	uint64_t before = clk_thread_cpu();

	for (int i = 0; i < AGREEMENTS; i++) {
		size_t len = sizeof(secret);

		if (EVP_PKEY_derive(s->ctx, secret, &len) != 1) {
			ERR_clear_error();
			return 0;
		}
	}
	return clk_thread_cpu() - before;
}
