/*
 * Rijndael (AES) with the two S-boxes as its only tables and the state by rows (rows.h).
 * Round keys are expanded beforehand and kept by rows too.
 */
#include "rows.h"

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_rows(ctx, key, key_bytes);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_rows_decrypt(ctx, key, key_bytes);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    encrypt_rows(ctx, in, out);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    decrypt_rows(ctx, in, out);
}

CM_BLOCK_CIPHER(16)
