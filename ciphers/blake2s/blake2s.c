/*
 * BLAKE2s (RFC 7693), without a key, with digests of 32 bytes.
 *
 * Ten rounds of eight quarter rounds on sixteen words: columns, then diagonals. Which words of
 * the message go in is a constant of each round, so every round is written out.
 */
#include "../ciphermill.h"

#define BLOCK 64
#define DIGEST 32

struct cm_ctx {
    uint32_t h[8];
    uint64_t absorbed; /* bytes */
    uint8_t last[BLOCK];
};

static const uint32_t iv[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

#define G(a, b, c, d, x, y)                                                                \
    v[a] += v[b] + m[x];                                                                   \
    v[d] = cm_rotr32(v[d] ^ v[a], 16);                                                     \
    v[c] += v[d];                                                                          \
    v[b] = cm_rotr32(v[b] ^ v[c], 12);                                                     \
    v[a] += v[b] + m[y];                                                                   \
    v[d] = cm_rotr32(v[d] ^ v[a], 8);                                                      \
    v[c] += v[d];                                                                          \
    v[b] = cm_rotr32(v[b] ^ v[c], 7);

#define ROUND(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q)                              \
    G(0, 4, 8, 12, a, b)                                                                   \
    G(1, 5, 9, 13, c, d)                                                                   \
    G(2, 6, 10, 14, e, f)                                                                  \
    G(3, 7, 11, 15, g, h)                                                                  \
    G(0, 5, 10, 15, i, j)                                                                  \
    G(1, 6, 11, 12, k, l)                                                                  \
    G(2, 7, 8, 13, n, o)                                                                   \
    G(3, 4, 9, 14, p, q)

/* One block; `bytes` of the message end with it, and `last` is all ones in the last one. */
static void compress(uint32_t *h, const uint8_t *in, uint64_t bytes, uint32_t last)
{
    uint32_t v[16], m[16];

#define LOAD(i) m[i] = cm_load32_le(in + 4 * (i));
    CM_SIXTEEN(LOAD)
#define TAKE(i) v[i] = h[i]; v[8 + (i)] = iv[i];
    CM_EIGHT(TAKE)
    v[12] ^= (uint32_t)bytes;
    v[13] ^= (uint32_t)(bytes >> 32);
    v[14] ^= last;
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)
#define GIVE(i) h[i] ^= v[i] ^ v[8 + (i)];
    CM_EIGHT(GIVE)
}

void cm_init(struct cm_ctx *ctx)
{
    uint32_t i;

    for (i = 0; i < 8; i++)
        ctx->h[i] = iv[i];
    ctx->h[0] ^= 0x01010000 | DIGEST; /* no tree, no key */
    ctx->absorbed = 0;
}

void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks)
{
    for (; blocks != 0; blocks--, in += BLOCK) {
        ctx->absorbed += BLOCK;
        compress(ctx->h, in, ctx->absorbed, 0);
    }
}

void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
              uint32_t out_bytes)
{
    uint32_t i;

    (void)out_bytes;
    for (i = 0; i < bytes; i++)
        ctx->last[i] = in[i];
    for (; i < BLOCK; i++)
        ctx->last[i] = 0;
    compress(ctx->h, ctx->last, ctx->absorbed + bytes, 0xffffffff);
    for (i = 0; i < DIGEST / 4; i++)
        cm_store32_le(out + 4 * i, ctx->h[i]);
}

CM_HASH(BLOCK, DIGEST)
