/*
 * Rijndael (AES) as compact.c has it, but with a key of 128 bits every round key is computed
 * when it is needed, from the one before. The context then holds one round key: the first
 * that is used, which for decryption is the last of encryption. Longer keys, whose schedule
 * does not go by rounds, are expanded beforehand.
 *
 * Decryption goes through the key schedule backwards (FIPS-197, section 5.2, solved for the
 * earlier words) and adds a round key before the inverse of MixColumns (section 5.3), so
 * that round keys are used as they are.
 *
 * With FROM_KEY the context holds the key itself in both directions: decryption goes through
 * the schedule once for each block, to the last round key, before it goes back.
 */
#include "columns.h"

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    ctx->rounds = 10;
    for (i = 0; i < 4; i++)
        ctx->round_key[i] = cm_load32_le(key + 4 * i);
    if (key_bytes != 16)
        expand_key(ctx, key, key_bytes);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
#ifndef FROM_KEY
    uint32_t i;
#endif

    expand_key(ctx, key, key_bytes);
    if (key_bytes != 16) {
        invert_key(ctx, inverse_mix_column);
        return;
    }
#ifndef FROM_KEY
    for (i = 0; i < 4; i++)
        ctx->round_key[i] = ctx->round_key[40 + i];
#endif
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t k0, k1, k2, k3, a, b, c, d, e, f, g;
    const uint32_t *constant = round_constants;

    if (ctx->rounds != 10) {
        encrypt_expanded(ctx, in, out);
        return;
    }
    k0 = ctx->round_key[0];
    k1 = ctx->round_key[1];
    k2 = ctx->round_key[2];
    k3 = ctx->round_key[3];
    a = cm_load32_le(in) ^ k0;
    b = cm_load32_le(in + 4) ^ k1;
    c = cm_load32_le(in + 8) ^ k2;
    d = cm_load32_le(in + 12) ^ k3;
    k0 ^= schedule_core(k3, *constant);
    k1 ^= k0;
    k2 ^= k1;
    k3 ^= k2;
    do {
        e = mix_column(sub_column(sbox, a, b, c, d)) ^ k0;
        f = mix_column(sub_column(sbox, b, c, d, a)) ^ k1;
        g = mix_column(sub_column(sbox, c, d, a, b)) ^ k2;
        d = mix_column(sub_column(sbox, d, a, b, c)) ^ k3;
        a = e;
        b = f;
        c = g;
        constant++;
        k0 ^= schedule_core(k3, *constant);
        k1 ^= k0;
        k2 ^= k1;
        k3 ^= k2;
    } while (constant != round_constants + 9);
    cm_store32_le(out, sub_column(sbox, a, b, c, d) ^ k0);
    cm_store32_le(out + 4, sub_column(sbox, b, c, d, a) ^ k1);
    cm_store32_le(out + 8, sub_column(sbox, c, d, a, b) ^ k2);
    cm_store32_le(out + 12, sub_column(sbox, d, a, b, c) ^ k3);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t k0, k1, k2, k3, a, b, c, d, e, f, g;
#ifdef FROM_KEY
    const uint32_t *constant = round_constants;
#else
    const uint32_t *constant = round_constants + 9;
#endif

    if (ctx->rounds != 10) {
        decrypt_expanded(ctx, in, out);
        return;
    }
    k0 = ctx->round_key[0];
    k1 = ctx->round_key[1];
    k2 = ctx->round_key[2];
    k3 = ctx->round_key[3];
#ifdef FROM_KEY
    do {
        k0 ^= schedule_core(k3, *constant++);
        k1 ^= k0;
        k2 ^= k1;
        k3 ^= k2;
    } while (constant != round_constants + 10);
    constant--;
#endif
    a = cm_load32_le(in) ^ k0;
    b = cm_load32_le(in + 4) ^ k1;
    c = cm_load32_le(in + 8) ^ k2;
    d = cm_load32_le(in + 12) ^ k3;
    k3 ^= k2;
    k2 ^= k1;
    k1 ^= k0;
    k0 ^= schedule_core(k3, *constant);
    do {
        e = inverse_mix_column(sub_column(inverse_sbox, a, d, c, b) ^ k0);
        f = inverse_mix_column(sub_column(inverse_sbox, b, a, d, c) ^ k1);
        g = inverse_mix_column(sub_column(inverse_sbox, c, b, a, d) ^ k2);
        d = inverse_mix_column(sub_column(inverse_sbox, d, c, b, a) ^ k3);
        a = e;
        b = f;
        c = g;
        constant--;
        k3 ^= k2;
        k2 ^= k1;
        k1 ^= k0;
        k0 ^= schedule_core(k3, *constant);
    } while (constant != round_constants);
    cm_store32_le(out, sub_column(inverse_sbox, a, d, c, b) ^ k0);
    cm_store32_le(out + 4, sub_column(inverse_sbox, b, a, d, c) ^ k1);
    cm_store32_le(out + 8, sub_column(inverse_sbox, c, b, a, d) ^ k2);
    cm_store32_le(out + 12, sub_column(inverse_sbox, d, c, b, a) ^ k3);
}

CM_BLOCK_CIPHER(16)
