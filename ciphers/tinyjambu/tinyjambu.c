/*
 * TinyJAMBU-128, version 2 (Wu, Huang, 2021; finalist of NIST's lightweight competition): a keyed
 * permutation of 128 bits, a nonlinear shift register, that takes and gives 32 bits at a time.
 *
 * 32 of its steps are done at once, since no tap is nearer than that to the end.
 */
#include "../ciphermill.h"

#define BLOCK 4
#define TAG 8
/* Steps, in units of 128: for nonces, associated data and half the tag; for the rest. */
#define SHORT 5
#define LONG 8

enum { NONCE = 0x10, ASSOCIATED = 0x30, MESSAGE = 0x50, FINAL = 0x70 };

struct cm_ctx {
    uint32_t key[4];
    uint32_t s[4];
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    (void)key_bytes;
    for (i = 0; i < 4; i++)
        ctx->key[i] = cm_load32_le(key + 4 * i);
}

/* 32 steps: bits 47, 70, 85 and 91 of the state go into bit 128. */
#define STEPS(a, b, c, d, k)                                                               \
    a ^= (b >> 15 | c << 17) ^ ~((c >> 6 | d << 26) & (c >> 21 | d << 11)) ^               \
         (c >> 27 | d << 5) ^ (k);

/* What comes next is of this sort; then the permutation. */
static void permute(struct cm_ctx *ctx, uint32_t sort, uint32_t rounds)
{
    uint32_t a = ctx->s[0], b = ctx->s[1] ^ sort, c = ctx->s[2], d = ctx->s[3];

    for (; rounds != 0; rounds--) {
        STEPS(a, b, c, d, ctx->key[0])
        STEPS(b, c, d, a, ctx->key[1])
        STEPS(c, d, a, b, ctx->key[2])
        STEPS(d, a, b, c, ctx->key[3])
    }
    ctx->s[0] = a;
    ctx->s[1] = b;
    ctx->s[2] = c;
    ctx->s[3] = d;
}

/* Up to four bytes as a word. */
static uint32_t load(const uint8_t *in, uint32_t bytes)
{
    uint32_t x = 0, i;

    for (i = 0; i < bytes; i++)
        x |= (uint32_t)in[i] << (8 * i);
    return x;
}

static void store(uint8_t *out, uint32_t x, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < bytes; i++)
        out[i] = (uint8_t)(x >> (8 * i));
}

static void start(struct cm_ctx *ctx, const uint8_t *nonce, const uint8_t *ad,
                  uint32_t ad_bytes)
{
    uint32_t i;

    for (i = 0; i < 4; i++)
        ctx->s[i] = 0;
    permute(ctx, 0, LONG);
    for (i = 0; i < 3; i++) {
        permute(ctx, NONCE, SHORT);
        ctx->s[3] ^= cm_load32_le(nonce + 4 * i);
    }
    for (; ad_bytes >= BLOCK; ad_bytes -= BLOCK, ad += BLOCK) {
        permute(ctx, ASSOCIATED, SHORT);
        ctx->s[3] ^= cm_load32_le(ad);
    }
    if (ad_bytes != 0) {
        permute(ctx, ASSOCIATED, SHORT);
        ctx->s[3] ^= load(ad, ad_bytes);
        ctx->s[1] ^= ad_bytes;
    }
}

static void finish(struct cm_ctx *ctx, uint8_t *tag)
{
    permute(ctx, FINAL, LONG);
    cm_store32_le(tag, ctx->s[2]);
    permute(ctx, FINAL, SHORT);
    cm_store32_le(tag + 4, ctx->s[2]);
}

void cm_aead_encrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, const uint8_t *nonce,
                     const uint8_t *ad, uint32_t bytes, uint32_t ad_bytes)
{
    uint32_t x;

    start(ctx, nonce, ad, ad_bytes);
    for (; bytes >= BLOCK; bytes -= BLOCK, in += BLOCK, out += BLOCK) {
        permute(ctx, MESSAGE, LONG);
        x = cm_load32_le(in);
        ctx->s[3] ^= x;
        cm_store32_le(out, x ^ ctx->s[2]);
    }
    if (bytes != 0) {
        permute(ctx, MESSAGE, LONG);
        x = load(in, bytes);
        ctx->s[3] ^= x;
        ctx->s[1] ^= bytes;
        store(out, x ^ ctx->s[2], bytes);
    }
    finish(ctx, out + bytes);
}

uint32_t cm_aead_decrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                         const uint8_t *nonce, const uint8_t *ad, uint32_t bytes,
                         uint32_t ad_bytes)
{
    uint8_t tag[TAG];
    uint32_t x;

    start(ctx, nonce, ad, ad_bytes);
    for (; bytes >= BLOCK; bytes -= BLOCK, in += BLOCK, out += BLOCK) {
        permute(ctx, MESSAGE, LONG);
        x = cm_load32_le(in) ^ ctx->s[2];
        ctx->s[3] ^= x;
        cm_store32_le(out, x);
    }
    if (bytes != 0) {
        permute(ctx, MESSAGE, LONG);
        x = (load(in, bytes) ^ ctx->s[2]) & ((1u << (8 * bytes)) - 1);
        ctx->s[3] ^= x;
        ctx->s[1] ^= bytes;
        store(out, x, bytes);
    }
    finish(ctx, tag);
    return cm_differ(tag, in + bytes, TAG);
}

CM_AEAD(BLOCK, 12, TAG)
