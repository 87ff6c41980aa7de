/* Ascon-Hash256 (NIST SP 800-232): blocks of 8 bytes, twelve rounds for each. */
#include "permutation.h"

#define BLOCK 8
#define DIGEST 32
#define ROUNDS 12

struct cm_ctx {
    uint64_t x[5];
};

void cm_init(struct cm_ctx *ctx)
{
    uint32_t i;

    ctx->x[0] = 0x0000080100cc0002; /* names the function: digest, rate, rounds */
    for (i = 1; i < 5; i++)
        ctx->x[i] = 0;
    permute(ctx->x, ROUNDS);
}

void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks)
{
    for (; blocks != 0; blocks--, in += BLOCK) {
        ctx->x[0] ^= cm_load64_le(in);
        permute(ctx->x, ROUNDS);
    }
}

void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
              uint32_t out_bytes)
{
    uint32_t i;

    (void)out_bytes;
    if (bytes == BLOCK) {
        cm_absorb(ctx, in, 1);
        bytes = 0;
    }
    for (i = 0; i < bytes; i++)
        ctx->x[0] ^= (uint64_t)in[i] << (8 * i);
    ctx->x[0] ^= (uint64_t)1 << (8 * bytes);
    for (i = 0; i < DIGEST; i += BLOCK) {
        permute(ctx->x, ROUNDS);
        cm_store64_le(out + i, ctx->x[0]);
    }
}

CM_HASH(BLOCK, DIGEST)
