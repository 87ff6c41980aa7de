/*
 * Twofish with all of g in four 1 KB tables that the key set-up makes: a round is eight
 * lookups. Key set-up costs as much as several hundred blocks.
 */
#include "twofish.h"

struct cm_ctx {
    uint32_t subkey[40]; /* four to whiten the input, four the output, two a round */
    uint32_t s[4][256];  /* g of byte 0, 1, 2, 3 */
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t l[4];
    uint32_t words = expand_key(ctx->subkey, l, key, key_bytes);
    uint32_t i, y;

    for (i = 0; i < 256; i++) {
        y = chains(i * 0x01010101, l, 1, words);
        ctx->s[0][i] = mds(y & 0x000000ff);
        ctx->s[1][i] = mds(y & 0x0000ff00);
        ctx->s[2][i] = mds(y & 0x00ff0000);
        ctx->s[3][i] = mds(y & 0xff000000);
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

CM_INLINE uint32_t g(const struct cm_ctx *ctx, uint32_t x)
{
    return ctx->s[0][cm_byte(x, 0)] ^ ctx->s[1][cm_byte(x, 1)] ^ ctx->s[2][cm_byte(x, 2)]
        ^ ctx->s[3][cm_byte(x, 3)];
}

CM_INLINE uint32_t g_rotated(const struct cm_ctx *ctx, uint32_t x)
{
    return ctx->s[0][cm_byte(x, 3)] ^ ctx->s[1][cm_byte(x, 0)] ^ ctx->s[2][cm_byte(x, 1)]
        ^ ctx->s[3][cm_byte(x, 2)];
}

TWOFISH_ROUNDS
CM_BLOCK_CIPHER(16)
