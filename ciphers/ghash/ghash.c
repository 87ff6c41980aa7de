/*
 * GHASH alone, as a code under the key H. A message that is no whole number of blocks goes on in
 * zeros; its length is not hashed, as it is where GCM uses it.
 */
#include "ghash.h"

struct cm_ctx {
    struct ghash g;
    uint8_t last[GHASH_BLOCK];
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    (void)key_bytes;
    ghash_key(&ctx->g, key);
}

void cm_init(struct cm_ctx *ctx) { ghash_init(&ctx->g); }

void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks)
{
    ghash_blocks(&ctx->g, in, blocks);
}

void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
              uint32_t out_bytes)
{
    uint32_t i;

    (void)out_bytes;
    if (bytes != 0) {
        for (i = 0; i < bytes; i++)
            ctx->last[i] = in[i];
        for (; i < GHASH_BLOCK; i++)
            ctx->last[i] = 0;
        ghash_blocks(&ctx->g, ctx->last, 1);
    }
    ghash_sum(&ctx->g, out);
}

CM_MAC(GHASH_BLOCK, 16)
