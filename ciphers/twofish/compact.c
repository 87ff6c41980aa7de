/*
 * Twofish with nothing precomputed but the subkeys: g goes through the permutations q0 and
 * q1 (512 bytes, the only tables) and multiplies by the MDS matrix each time. Fast key
 * set-up and a small context, many more operations a block, and more for longer keys.
 */
#include "twofish.h"

struct cm_ctx {
    uint32_t subkey[40]; /* four to whiten the input, four the output, two a round */
    uint32_t l[4];       /* what keys g */
    uint32_t words;      /* how many of them: 2, 3 or 4 */
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    ctx->words = expand_key(ctx->subkey, ctx->l, key, key_bytes);
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

static uint32_t g(const struct cm_ctx *ctx, uint32_t x)
{
    return mds(chains(x, ctx->l, 1, ctx->words));
}

CM_INLINE uint32_t g_rotated(const struct cm_ctx *ctx, uint32_t x)
{
    return g(ctx, cm_rotl32(x, 8));
}

TWOFISH_ROUNDS
CM_BLOCK_CIPHER(16)
