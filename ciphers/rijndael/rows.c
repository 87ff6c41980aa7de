/*
 * Rijndael (AES) with the two S-boxes as its only tables and the state by rows (rows.h).
 * Round keys are expanded beforehand and kept by rows too.
 */
#include "rows.h"

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    expand_key(ctx, key, key_bytes);
    for (i = 0; i <= ctx->rounds; i++)
        transpose(ctx->round_key + 4 * i);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    cm_keysetup(ctx, key, key_bytes);
    reverse_keys(ctx);
    for (i = 1; i < ctx->rounds; i++)
        inverse_mix(ctx->round_key + 4 * i);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    const uint32_t *last = k + 4 * ctx->rounds;
    uint32_t x[4];

    load_rows(x, in);
    add_key(x, k);
    k += 4;
    do {
        sub(x);
        mix(x);
        add_key(x, k);
        k += 4;
    } while (k != last);
    sub(x);
    add_key(x, last);
    store_rows(out, x);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    const uint32_t *last = k + 4 * ctx->rounds;
    uint32_t x[4];

    load_rows(x, in);
    add_key(x, k);
    k += 4;
    do {
        inverse_sub(x);
        inverse_mix(x);
        add_key(x, k);
        k += 4;
    } while (k != last);
    inverse_sub(x);
    add_key(x, last);
    store_rows(out, x);
}

CM_BLOCK_CIPHER(16)
