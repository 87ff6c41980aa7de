/*
 * Rijndael (AES) as rows.c has it, but with a key of 128 bits every round key is computed
 * when it is needed, by rows as well, from the one before. The context then holds one round
 * key: the first that is used, which for decryption is the last of encryption. Longer keys
 * are expanded beforehand.
 *
 * By rows the words of a key are bytes of one word, so that their sums cost shifts which
 * columns do not need; backwards (rows.h, previous_key) it is one shift a row, not two.
 */
#include "rows.h"

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    if (key_bytes != 16) {
        expand_rows(ctx, key, key_bytes);
        return;
    }
    ctx->rounds = 10;
    load_rows(ctx->round_key, key);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_rows_decrypt(ctx, key, key_bytes);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *constant = round_constants;
    uint32_t x[4], k[4];

    if (ctx->rounds != 10) {
        encrypt_rows(ctx, in, out);
        return;
    }
    k[0] = ctx->round_key[0];
    k[1] = ctx->round_key[1];
    k[2] = ctx->round_key[2];
    k[3] = ctx->round_key[3];
    load_rows(x, in);
    add_key(x, k);
    next_key(k, *constant);
    do {
        sub(x);
        mix(x);
        add_key(x, k);
        constant++;
        next_key(k, *constant);
    } while (constant != round_constants + 9);
    sub(x);
    add_key(x, k);
    store_rows(out, x);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *constant = round_constants + 9;
    uint32_t x[4], k[4];

    if (ctx->rounds != 10) {
        decrypt_rows(ctx, in, out);
        return;
    }
    k[0] = ctx->round_key[0];
    k[1] = ctx->round_key[1];
    k[2] = ctx->round_key[2];
    k[3] = ctx->round_key[3];
    load_rows(x, in);
    add_key(x, k);
    previous_key(k, *constant);
    do {
        inverse_sub(x);
        add_key(x, k);
        inverse_mix(x);
        constant--;
        previous_key(k, *constant);
    } while (constant != round_constants);
    inverse_sub(x);
    add_key(x, k);
    store_rows(out, x);
}

CM_BLOCK_CIPHER(16)
