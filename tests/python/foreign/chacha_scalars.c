/* ChaCha20 with a variable for every word and rounds by macros; a nonce of twelve bytes and a counter of one word.
 *
 * RFC 8439, section 2.3.2, from block 1 on: key 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f,
 *   iv 000000090000004a00000000,
 *   out 10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4ed2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e
 */
#include "ciphermill.h"

#define ROTATE(v, c) ((uint32_t)((v) << (c)) | ((v) >> (32 - (c))))
#define QR(a, b, c, d)                      \
    a += b; d ^= a; d = ROTATE(d, 16);      \
    c += d; b ^= c; b = ROTATE(b, 12);      \
    a += b; d ^= a; d = ROTATE(d, 8);       \
    c += d; b ^= c; b = ROTATE(b, 7);
#define OUT(n, x) cm_store32_le(out + 4 * n, cm_load32_le(in + 4 * n) ^ (x))

struct cm_ctx {
    uint32_t key[8], nonce[3], counter;
    CM_UNUSED_KEYSTREAM(64);
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t bytes)
{
    for (uint32_t i = 0; i < 8; i++)
        ctx->key[i] = cm_load32_le(key + 4 * i % bytes);
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t bytes)
{
    for (uint32_t i = 0; i < 3; i++)
        ctx->nonce[i] = 4 * i + 4 <= bytes ? cm_load32_le(iv + 4 * i) : 0;
    ctx->counter = 1;
    ctx->unused = 0;
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->key, *n = ctx->nonce;
    uint32_t x0 = 0x61707865, x1 = 0x3320646e, x2 = 0x79622d32, x3 = 0x6b206574;
    uint32_t x4 = k[0], x5 = k[1], x6 = k[2], x7 = k[3], x8 = k[4], x9 = k[5], x10 = k[6], x11 = k[7];
    uint32_t x12 = ctx->counter, x13 = n[0], x14 = n[1], x15 = n[2];

    for (unsigned i = 0; i < 10; i++) {
        QR(x0, x4, x8, x12) QR(x1, x5, x9, x13) QR(x2, x6, x10, x14) QR(x3, x7, x11, x15)
        QR(x0, x5, x10, x15) QR(x1, x6, x11, x12) QR(x2, x7, x8, x13) QR(x3, x4, x9, x14)
    }
    OUT(0, x0 + 0x61707865); OUT(1, x1 + 0x3320646e); OUT(2, x2 + 0x79622d32); OUT(3, x3 + 0x6b206574);
    OUT(4, x4 + k[0]); OUT(5, x5 + k[1]); OUT(6, x6 + k[2]); OUT(7, x7 + k[3]);
    OUT(8, x8 + k[4]); OUT(9, x9 + k[5]); OUT(10, x10 + k[6]); OUT(11, x11 + k[7]);
    OUT(12, x12 + ctx->counter); OUT(13, x13 + n[0]); OUT(14, x14 + n[1]); OUT(15, x15 + n[2]);
    ctx->counter++;
}

CM_KEYSTREAM(64, xor_block)
CM_STREAM_CIPHER(64)
