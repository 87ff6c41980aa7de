/*
 * SHA-256 (FIPS 180-4).
 *
 * Eight words of state, sixteen of message. The message is expanded in place, sixteen words a
 * turn of the loop: round i needs no word older than i - 16.
 */
#include "../ciphermill.h"

#define BLOCK 64
#define DIGEST 32

struct cm_ctx {
    uint32_t h[8];
    uint64_t absorbed; /* bytes */
    uint8_t last[2 * BLOCK];
};

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

#define S0(x) (cm_rotr32(x, 2) ^ cm_rotr32(x, 13) ^ cm_rotr32(x, 22))
#define S1(x) (cm_rotr32(x, 6) ^ cm_rotr32(x, 11) ^ cm_rotr32(x, 25))
#define s0(x) (cm_rotr32(x, 7) ^ cm_rotr32(x, 18) ^ (x) >> 3)
#define s1(x) (cm_rotr32(x, 17) ^ cm_rotr32(x, 19) ^ (x) >> 10)

/* The working variables stay where they are; their names move on by one each round. */
#define V(n, i) v[((n) - (i)) & 7]
#define ROUND(i)                                                                           \
    t = V(7, i) + S1(V(4, i)) + (V(6, i) ^ (V(4, i) & (V(5, i) ^ V(6, i)))) + k[n + (i)] +  \
        w[i];                                                                              \
    V(3, i) += t;                                                                          \
    V(7, i) = t + S0(V(0, i)) +                                                            \
              ((V(0, i) & V(1, i)) | (V(2, i) & (V(0, i) | V(1, i))));
#define EXPAND(i) w[i] += s0(w[((i) + 1) & 15]) + w[((i) + 9) & 15] + s1(w[((i) + 14) & 15]);
#define LOAD(i) w[i] = cm_load32_be(in + 4 * (i));
#define NEXT(i) EXPAND(i) ROUND(i)

void cm_init(struct cm_ctx *ctx)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint32_t i;

    for (i = 0; i < 8; i++)
        ctx->h[i] = start[i];
    ctx->absorbed = 0;
}

void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks)
{
    uint32_t v[8], w[16], t, n;

    ctx->absorbed += (uint64_t)blocks * BLOCK;
    for (; blocks != 0; blocks--, in += BLOCK) {
        CM_SIXTEEN(LOAD)
#define TAKE(i) v[i] = ctx->h[i];
        CM_EIGHT(TAKE)
        n = 0;
        CM_SIXTEEN(ROUND)
        for (n = 16; n < 64; n += 16) {
            CM_SIXTEEN(NEXT)
        }
#define GIVE(i) ctx->h[i] += v[i];
        CM_EIGHT(GIVE)
    }
}

void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
              uint32_t out_bytes)
{
    uint64_t bits = 8 * (ctx->absorbed + bytes);
    uint32_t blocks = bytes < BLOCK - 8 ? 1 : 2, end = blocks * BLOCK - 8, i;

    (void)out_bytes;
    for (i = 0; i < bytes; i++)
        ctx->last[i] = in[i];
    ctx->last[i++] = 0x80;
    for (; i < end; i++)
        ctx->last[i] = 0;
    cm_store64_be(ctx->last + end, bits);
    cm_absorb(ctx, ctx->last, blocks);
    for (i = 0; i < DIGEST / 4; i++)
        cm_store32_be(out + 4 * i, ctx->h[i]);
}

CM_HASH(BLOCK, DIGEST)
