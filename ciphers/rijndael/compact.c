/*
 * Rijndael (AES) with the two S-boxes as its only tables, 256 bytes each, and MixColumns in
 * packed arithmetic (columns.h). Round keys are expanded beforehand.
 */
#include "columns.h"

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_key(ctx, key, key_bytes);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_key(ctx, key, key_bytes);
    invert_key(ctx, inverse_mix_column);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    encrypt_expanded(ctx, in, out);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    decrypt_expanded(ctx, in, out);
}

CM_BLOCK_CIPHER(16)
