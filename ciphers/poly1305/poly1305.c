/* Poly1305 as a message authentication code. A key is for one message alone. */
#include "poly1305.h"

struct cm_ctx {
    struct poly1305 p;
    uint8_t last[POLY1305_BLOCK];
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    (void)key_bytes;
    poly1305_key(&ctx->p, key);
}

void cm_init(struct cm_ctx *ctx) { poly1305_init(&ctx->p); }

void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks)
{
    poly1305_blocks(&ctx->p, in, blocks, POLY1305_HIGH);
}

void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
              uint32_t out_bytes)
{
    uint32_t i;

    (void)out_bytes;
    if (bytes != 0) {
        for (i = 0; i < bytes; i++)
            ctx->last[i] = in[i];
        for (; i < POLY1305_BLOCK; i++)
            ctx->last[i] = i == bytes;
        poly1305_blocks(&ctx->p, ctx->last, 1, bytes == POLY1305_BLOCK ? POLY1305_HIGH : 0);
    }
    poly1305_tag(&ctx->p, out);
}

CM_MAC(POLY1305_BLOCK, 16)
