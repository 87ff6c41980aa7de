/*
 * SM3 (GB/T 32905-2016, GM/T 0004-2012), as its specification writes it.
 */
#include "ciphermill.h"

#define BLOCK 64

struct cm_ctx {
    uint32_t v[8];
    uint64_t bytes;
    uint8_t last[2 * BLOCK];
};

static const uint32_t start[8] = {
    0x7380166f, 0x4914b2b9, 0x172442d7, 0xda8a0600, 0xa96f30bc, 0x163138aa, 0xe38dee4d, 0xb0fb0e4e,
};

static inline uint32_t p0(uint32_t x) { return x ^ cm_rotl32(x, 9) ^ cm_rotl32(x, 17); }

static inline uint32_t p1(uint32_t x) { return x ^ cm_rotl32(x, 15) ^ cm_rotl32(x, 23); }

static void compress(uint32_t *v, const uint8_t *in)
{
    uint32_t w[68];
    uint32_t a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
    uint32_t j, t = 0x79cc4519;

    for (j = 0; j < 16; j++)
        w[j] = cm_load32_be(in + 4 * j);
    for (; j < 68; j++)
        w[j] = p1(w[j - 16] ^ w[j - 9] ^ cm_rotl32(w[j - 3], 15)) ^ cm_rotl32(w[j - 13], 7) ^ w[j - 6];
    for (j = 0; j < 64; j++) {
        uint32_t turned = cm_rotl32(a, 12), ss1, ff, gg;

        if (j == 16)
            t = 0x9d8a7a87; /* 0x7a879d8a, rotated by 16 places */
        ss1 = cm_rotl32(turned + e + t, 7);
        t = cm_rotl32(t, 1);
        ff = j < 16 ? a ^ b ^ c : (a & b) | (a & c) | (b & c);
        gg = j < 16 ? e ^ f ^ g : (e & f) | (~e & g);
        ff += d + (ss1 ^ turned) + (w[j] ^ w[j + 4]);
        gg += h + ss1 + w[j];
        d = c;
        c = cm_rotl32(b, 9);
        b = a;
        a = ff;
        h = g;
        g = cm_rotl32(f, 19);
        f = e;
        e = p0(gg);
    }
    v[0] ^= a;
    v[1] ^= b;
    v[2] ^= c;
    v[3] ^= d;
    v[4] ^= e;
    v[5] ^= f;
    v[6] ^= g;
    v[7] ^= h;
}

void cm_init(struct cm_ctx *ctx)
{
    for (int i = 0; i < 8; i++)
        ctx->v[i] = start[i];
    ctx->bytes = 0;
}

void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks)
{
    ctx->bytes += (uint64_t)blocks * BLOCK;
    for (; blocks != 0; blocks--, in += BLOCK)
        compress(ctx->v, in);
}

/* The last 1 to 64 bytes, or none of an empty message. */
void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes, uint32_t out_bytes)
{
    uint32_t i, whole = bytes < BLOCK - 8 ? BLOCK : 2 * BLOCK;

    (void)out_bytes;
    for (i = 0; i < bytes; i++)
        ctx->last[i] = in[i];
    ctx->last[i++] = 0x80;
    for (; i < whole; i++)
        ctx->last[i] = 0;
    cm_store64_be(ctx->last + whole - 8, (ctx->bytes + bytes) * 8);
    for (i = 0; i < whole; i += BLOCK)
        compress(ctx->v, ctx->last + i);
    for (i = 0; i < 8; i++)
        cm_store32_be(out + 4 * i, ctx->v[i]);
}

CM_HASH(BLOCK, 32)
