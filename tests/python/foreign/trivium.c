/* Trivium, 32 steps at a time: three shift registers of words, and taps cut out of two words each.
 *
 * eSTREAM, set 1, vector 0: key 80000000000000000000, iv 00000000000000000000,
 *   out 38eb86ff730d7a9caf8df13a4420540dbb7b651464c87501552041c249f29a64
 */
#include "ciphermill.h"

/* Position i of a register, 1 the newest, is bit 32 - i of its words one after another. */
typedef struct {
    uint32_t a[3], b[3], c[4];
} trivium_state;

struct cm_ctx {
    uint8_t key[10];
    trivium_state s;
    CM_UNUSED_KEYSTREAM(64);
};

/* What passes position n in the next 32 steps, the first lowest. */
#define TAP(w, n) ((w)[((n) - 1) / 32] >> ((32 - (n) % 32) & 31) | (w)[((n) - 1) / 32 - 1] << ((n) % 32))

static uint32_t step32(trivium_state *s)
{
    uint32_t t1 = TAP(s->a, 66) ^ TAP(s->a, 93);
    uint32_t t2 = TAP(s->b, 69) ^ TAP(s->b, 84);
    uint32_t t3 = TAP(s->c, 66) ^ TAP(s->c, 111);
    uint32_t z = t1 ^ t2 ^ t3;

    t1 ^= (TAP(s->a, 91) & TAP(s->a, 92)) ^ TAP(s->b, 78);
    t2 ^= (TAP(s->b, 82) & TAP(s->b, 83)) ^ TAP(s->c, 87);
    t3 ^= (TAP(s->c, 109) & TAP(s->c, 110)) ^ TAP(s->a, 69);
    s->a[2] = s->a[1], s->a[1] = s->a[0], s->a[0] = t3;
    s->b[2] = s->b[1], s->b[1] = s->b[0], s->b[0] = t1;
    s->c[3] = s->c[2], s->c[2] = s->c[1], s->c[1] = s->c[0], s->c[0] = t2;
    return z;
}

static void load(uint32_t *w, const uint8_t *bytes)
{
    w[0] = cm_load32_le(bytes + 6);
    w[1] = cm_load32_le(bytes + 2);
    w[2] = (uint32_t)bytes[1] << 24 | (uint32_t)bytes[0] << 16;
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    for (uint32_t i = 0; i < 10; i++)
        ctx->key[i] = key[i % key_bytes];
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    uint8_t padded[10] = { 0 };
    for (uint32_t i = 0; i < 10 && i < iv_bytes; i++)
        padded[i] = iv[i];
    load(ctx->s.a, ctx->key);
    load(ctx->s.b, padded);
    ctx->s.c[0] = ctx->s.c[1] = ctx->s.c[2] = 0;
    ctx->s.c[3] = 0xe0000;
    for (int i = 0; i < 4 * 288 / 32; i++)
        step32(&ctx->s);
    ctx->unused = 0;
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    for (int i = 0; i < 16; i++)
        cm_store32_le(out + 4 * i, cm_load32_le(in + 4 * i) ^ step32(&ctx->s));
}

CM_KEYSTREAM(64, xor_block)
CM_STREAM_CIPHER(64)
