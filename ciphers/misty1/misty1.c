/* MISTY1 with eight rounds (RFC 2994): a Feistel network of FO with layers of FL between. */
#include "misty.h"

#define ROUNDS 8

struct cm_ctx {
    uint16_t fo[ROUNDS * FO_KEYS];
    uint16_t fl[(ROUNDS + 2) * FL_KEYS];
};

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
        b ^= fo(a, o);
        a ^= fo(b, o + FO_KEYS);
        l += 2 * FL_KEYS;
        o += 2 * FO_KEYS;
    }
    cm_store32_be(out, fl(b, l + FL_KEYS));
    cm_store32_be(out + 4, fl(a, l));
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint16_t *o = ctx->fo + ROUNDS * FO_KEYS, *l = ctx->fl + ROUNDS * FL_KEYS;
    uint32_t b = inverse_fl(cm_load32_be(in), l + FL_KEYS);
    uint32_t a = inverse_fl(cm_load32_be(in + 4), l);
    uint32_t i;

    for (i = 0; i < ROUNDS / 2; i++) {
        l -= 2 * FL_KEYS;
        o -= 2 * FO_KEYS;
        a ^= fo(b, o + FO_KEYS);
        b ^= fo(a, o);
        b = inverse_fl(b, l + FL_KEYS);
        a = inverse_fl(a, l);
    }
    cm_store32_be(out, a);
    cm_store32_be(out + 4, b);
}

CM_BLOCK_CIPHER(8)
