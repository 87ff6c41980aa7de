/*
 * The sponge functions of FIPS 202 on Keccak-f[1600]: SHA-3 and SHAKE, by rate, domain suffix
 * and length of the digest.
 */
#include "keccak.h"

#if RATE % 8 || RATE > 200
#error "RATE is a number of bytes, whole words of the state"
#endif

struct cm_ctx {
    uint64_t a[LANES];
    uint8_t last[RATE];
};

void cm_init(struct cm_ctx *ctx)
{
    uint32_t i;

    for (i = 0; i < LANES; i++)
        ctx->a[i] = 0;
}

void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks)
{
    uint64_t a[LANES];
    uint32_t i;

#define TAKE(i) a[i] = ctx->a[i];
#define ADD(i)                                                                             \
    if (8 * (i) < RATE)                                                                    \
        a[i] ^= cm_load64_le(in + 8 * (i));
#define GIVE(i) ctx->a[i] = a[i];
    CM_LANES(TAKE)
    for (i = 0; i < blocks; i++, in += RATE) {
        CM_LANES(ADD)
        keccak_f(a);
    }
    CM_LANES(GIVE)
}

void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
              uint32_t out_bytes)
{
    uint32_t i;

    if (bytes == RATE) {
        cm_absorb(ctx, in, 1);
        bytes = 0;
    }
    for (i = 0; i < bytes; i++)
        ctx->last[i] = in[i];
    ctx->last[i++] = SUFFIX;
    for (; i < RATE; i++)
        ctx->last[i] = 0;
    ctx->last[RATE - 1] |= 0x80;
    for (;;) {
        cm_absorb(ctx, ctx->last, 1);
        for (i = 0; i < RATE; i++)
            ctx->last[i] = (uint8_t)(ctx->a[i / 8] >> (8 * (i % 8)));
        for (i = 0; i < RATE && out_bytes != 0; i++, out_bytes--)
            *out++ = ctx->last[i];
        if (out_bytes == 0)
            return;
        /* What is squeezed after the first block is permuted without anything absorbed. */
        for (i = 0; i < RATE; i++)
            ctx->last[i] = 0;
    }
}

CM_HASH(RATE, DIGEST)
