/*
 * MISTY2 with twelve rounds: MISTY1's functions in the network that MISTY gave its name to.
 *
 * In a round the left half goes through FO and is XORed to the right one, and the halves
 * change places: unlike in a Feistel network, FO must have an inverse for decryption, and
 * two successive FOs can be computed side by side. Layers of FL on both halves stand before
 * every second round and after the last, 14 FLs in all.
 *
 * There are no published test vectors; see README.md for what this file was checked against.
 */
#include "../misty1/misty.h"
#include "inverse_sboxes.h"

#define ROUNDS 12

struct cm_ctx {
    uint16_t fo[ROUNDS * FO_KEYS];
    uint16_t fl[(ROUNDS + 2) * FL_KEYS];
};

CM_INLINE uint32_t inverse_fi(uint32_t x, uint32_t k)
{
    uint32_t seven = x >> 9, nine = x & 0x1ff;

    nine = inverse_s9[nine ^ seven] ^ (k & 0x1ff);
    seven = inverse_s7[seven ^ k >> 9 ^ (nine & 0x7f)];
    nine = inverse_s9[nine ^ seven];
    return nine << 7 | seven;
}

static uint32_t inverse_fo(uint32_t x, const uint16_t *k)
{
    uint32_t a = x & 0xffff, b = x >> 16 ^ k[6];

    a = inverse_fi(a ^ b, k[5]) ^ k[4];
    b = inverse_fi(b ^ a, k[3]) ^ k[2];
    a = inverse_fi(a ^ b, k[1]) ^ k[0];
    return a << 16 | b;
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    (void)key_bytes;
    expand_key(ctx->fo, ctx->fl, key, ROUNDS);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint16_t *o = ctx->fo, *l = ctx->fl;
    uint32_t a = cm_load32_be(in), b = cm_load32_be(in + 4);
    uint32_t i;

    for (i = 0; i < ROUNDS / 2; i++) {
        a = fl(a, l);
        b = fl(b, l + FL_KEYS);
        a = fo(a, o) ^ b;
        b = fo(b, o + FO_KEYS) ^ a;
        l += 2 * FL_KEYS;
        o += 2 * FO_KEYS;
    }
    cm_store32_be(out, fl(a, l));
    cm_store32_be(out + 4, fl(b, l + FL_KEYS));
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint16_t *o = ctx->fo + ROUNDS * FO_KEYS, *l = ctx->fl + ROUNDS * FL_KEYS;
    uint32_t a = inverse_fl(cm_load32_be(in), l);
    uint32_t b = inverse_fl(cm_load32_be(in + 4), l + FL_KEYS);
    uint32_t i;

    for (i = 0; i < ROUNDS / 2; i++) {
        l -= 2 * FL_KEYS;
        o -= 2 * FO_KEYS;
        b = inverse_fo(b ^ a, o + FO_KEYS);
        a = inverse_fo(a ^ b, o);
        a = inverse_fl(a, l);
        b = inverse_fl(b, l + FL_KEYS);
    }
    cm_store32_be(out, a);
    cm_store32_be(out + 4, b);
}

CM_BLOCK_CIPHER(8)
