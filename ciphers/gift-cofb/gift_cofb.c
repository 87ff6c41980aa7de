/*
 * GIFT-COFB (Banik et al., 2019; finalist of NIST's lightweight competition): the block cipher
 * GIFT-128 in a mode that feeds each block of plaintext and half of each output back.
 *
 * GIFT-128 is bit-sliced: four words hold bit 0, 1, 2 and 3 of 32 S-boxes. The permutation of bits
 * stays within each word: bits whose number is the same modulo four come together in a byte, and
 * the bytes are rotated.
 */
#include "../ciphermill.h"

#define BLOCK 16
#define ROUNDS 40

struct cm_ctx {
    uint32_t key[ROUNDS][2];
    uint8_t y[BLOCK];     /* the last output of the block cipher */
    uint8_t x[BLOCK];     /* its next input */
    uint64_t offset;
};

#define EXCHANGE(x, n, mask)                                                               \
    t = ((x) >> (n) ^ (x)) & (mask);                                                       \
    (x) ^= t ^ t << (n);

/* Bit 4 b + i goes to bit b of byte 3 - i. */
CM_INLINE uint32_t gather(uint32_t x)
{
    uint32_t t;

    EXCHANGE(x, 14, 0x0000cccc)
    EXCHANGE(x, 7, 0x00aa00aa)
    EXCHANGE(x, 2, 0x0c0c0c0c)
    EXCHANGE(x, 1, 0x22222222)
    return x >> 24 | (x >> 8 & 0xff00) | (x << 8 & 0xff0000) | x << 24;
}

/* Words of key that the rounds use: the key's eight halves, rotated. */
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t w[4], i, last;

    (void)key_bytes;
    for (i = 0; i < 4; i++)
        w[i] = cm_load32_be(key + 4 * i);
    for (i = 0; i < ROUNDS; i++) {
        ctx->key[i][0] = w[1];
        ctx->key[i][1] = w[3];
        last = w[3];
        w[3] = w[2];
        w[2] = w[1];
        w[1] = w[0];
        /* The upper half rotated right by two, the lower by twelve. */
        w[0] = (last >> 2 & 0x3fff0000) | (last & 0x30000) << 14 | (last & 0xffff) >> 12 |
               (last & 0xfff) << 4;
    }
}

static void gift(struct cm_ctx *ctx)
{
    static const uint8_t constants[ROUNDS] = {
        0x01, 0x03, 0x07, 0x0f, 0x1f, 0x3e, 0x3d, 0x3b, 0x37, 0x2f, 0x1e, 0x3c, 0x39, 0x33,
        0x27, 0x0e, 0x1d, 0x3a, 0x35, 0x2b, 0x16, 0x2c, 0x18, 0x30, 0x21, 0x02, 0x05, 0x0b,
        0x17, 0x2e, 0x1c, 0x38, 0x31, 0x23, 0x06, 0x0d, 0x1b, 0x36, 0x2d, 0x1a,
    };
    uint32_t a = cm_load32_be(ctx->x), b = cm_load32_be(ctx->x + 4);
    uint32_t c = cm_load32_be(ctx->x + 8), d = cm_load32_be(ctx->x + 12), i, t;

    for (i = 0; i < ROUNDS; i++) {
        b ^= a & c;
        a ^= b & d;
        c ^= a | b;
        d ^= c;
        b ^= d;
        d = ~d;
        c ^= a & b;
        t = a;
        a = cm_rotl32(gather(d), 8);
        b = cm_rotl32(gather(b), 16) ^ ctx->key[i][1];
        c = cm_rotl32(gather(c), 24) ^ ctx->key[i][0];
        d = gather(t) ^ 0x80000000 ^ constants[i];
    }
    cm_store32_be(ctx->y, a);
    cm_store32_be(ctx->y + 4, b);
    cm_store32_be(ctx->y + 8, c);
    cm_store32_be(ctx->y + 12, d);
}

/* The offset times x in GF(2^64), by masks; times x + 1. */
static void twice(struct cm_ctx *ctx)
{
    ctx->offset = ctx->offset << 1 ^ ((0 - (ctx->offset >> 63)) & 0x1b);
}

static void thrice(struct cm_ctx *ctx)
{
    uint64_t once = ctx->offset;

    twice(ctx);
    ctx->offset ^= once;
}

/* The next input: the block, filled up, and the last output with its halves changed. */
static void feed(struct cm_ctx *ctx, const uint8_t *block, uint32_t bytes)
{
    uint64_t left = cm_load64_be(ctx->y), right = cm_load64_be(ctx->y + 8);
    uint32_t i;

    cm_store64_be(ctx->x, right);
    cm_store64_be(ctx->x + 8, cm_rotl64(left, 1));
    for (i = 0; i < bytes; i++)
        ctx->x[i] ^= block[i];
    if (bytes < BLOCK)
        ctx->x[bytes] ^= 0x80;
    cm_store64_be(ctx->x, cm_load64_be(ctx->x) ^ ctx->offset);
    gift(ctx);
}

static void start(struct cm_ctx *ctx, const uint8_t *nonce, const uint8_t *ad, uint32_t bytes,
                  uint32_t ad_bytes)
{
    uint32_t i;

    for (i = 0; i < BLOCK; i++)
        ctx->x[i] = nonce[i];
    gift(ctx);
    ctx->offset = cm_load64_be(ctx->y);
    for (; ad_bytes > BLOCK; ad_bytes -= BLOCK, ad += BLOCK) {
        twice(ctx);
        feed(ctx, ad, BLOCK);
    }
    thrice(ctx);
    if (ad_bytes != BLOCK)
        thrice(ctx);
    if (bytes == 0) {
        thrice(ctx);
        thrice(ctx);
    }
    feed(ctx, ad, ad_bytes);
}

/* What a block of the message does to the offset. */
static void step(struct cm_ctx *ctx, uint32_t left)
{
    if (left > BLOCK) {
        twice(ctx);
        return;
    }
    thrice(ctx);
    if (left != BLOCK)
        thrice(ctx);
}

void cm_aead_encrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, const uint8_t *nonce,
                     const uint8_t *ad, uint32_t bytes, uint32_t ad_bytes)
{
    uint8_t plain[BLOCK];
    uint32_t left, now, i;

    start(ctx, nonce, ad, bytes, ad_bytes);
    for (left = bytes; left != 0; left -= now, in += now, out += now) {
        now = left < BLOCK ? left : BLOCK;
        step(ctx, left);
        for (i = 0; i < now; i++) {
            plain[i] = in[i];
            out[i] = plain[i] ^ ctx->y[i];
        }
        feed(ctx, plain, now);
    }
    for (i = 0; i < BLOCK; i++)
        out[i] = ctx->y[i];
}

uint32_t cm_aead_decrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                         const uint8_t *nonce, const uint8_t *ad, uint32_t bytes,
                         uint32_t ad_bytes)
{
    uint32_t left, now, i;

    start(ctx, nonce, ad, bytes, ad_bytes);
    for (left = bytes; left != 0; left -= now, in += now, out += now) {
        now = left < BLOCK ? left : BLOCK;
        step(ctx, left);
        for (i = 0; i < now; i++)
            out[i] = in[i] ^ ctx->y[i];
        feed(ctx, out, now);
    }
    return cm_differ(ctx->y, in, BLOCK);
}

CM_AEAD(BLOCK, 16, 16)
