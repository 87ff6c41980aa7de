/* ChaCha20 on arrays, as first published: sixteen words, a table of who meets whom, and a counter of two words.
 *
 * RFC 8439, appendix A.1, vector 1: key 0000000000000000000000000000000000000000000000000000000000000000,
 *   iv 0000000000000000,
 *   out 76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586
 */
#include "ciphermill.h"

typedef struct cm_ctx {
    uint32_t input[16];
    CM_UNUSED_KEYSTREAM(64);
} ECRYPT_ctx;

static const uint8_t meets[8][4] = {
    { 0, 4, 8, 12 }, { 1, 5, 9, 13 }, { 2, 6, 10, 14 }, { 3, 7, 11, 15 },
    { 0, 5, 10, 15 }, { 1, 6, 11, 12 }, { 2, 7, 8, 13 }, { 3, 4, 9, 14 },
};

static void quarterround(uint32_t *x, unsigned a, unsigned b, unsigned c, unsigned d)
{
    x[a] += x[b]; x[d] = cm_rotl32(x[d] ^ x[a], 16);
    x[c] += x[d]; x[b] = cm_rotl32(x[b] ^ x[c], 12);
    x[a] += x[b]; x[d] = cm_rotl32(x[d] ^ x[a], 8);
    x[c] += x[d]; x[b] = cm_rotl32(x[b] ^ x[c], 7);
}

void cm_keysetup(ECRYPT_ctx *x, const uint8_t *k, uint32_t bytes)
{
    const char *constants = bytes == 32 ? "expand 32-byte k" : "expand 16-byte k";
    int i;
    for (i = 0; i < 4; i++)
        x->input[i] = cm_load32_le((const uint8_t *)constants + 4 * i);
    for (i = 0; i < 8; i++)
        x->input[4 + i] = cm_load32_le(k + 4 * i % bytes);
}

void cm_ivsetup(ECRYPT_ctx *x, const uint8_t *iv, uint32_t bytes)
{
    x->input[12] = 0;
    x->input[13] = 0;
    x->input[14] = bytes >= 8 ? cm_load32_le(iv) : 0;
    x->input[15] = bytes >= 8 ? cm_load32_le(iv + 4) : 0;
    x->unused = 0;
}

static void xor_block(ECRYPT_ctx *ctx, const uint8_t *m, uint8_t *c)
{
    uint32_t x[16];
    int i, j;

    for (i = 0; i < 16; ++i) x[i] = ctx->input[i];
    for (i = 20; i > 0; i -= 2)
        for (j = 0; j < 8; ++j)
            quarterround(x, meets[j][0], meets[j][1], meets[j][2], meets[j][3]);
    for (i = 0; i < 16; ++i) x[i] += ctx->input[i];
    for (i = 0; i < 16; ++i) cm_store32_le(c + 4 * i, cm_load32_le(m + 4 * i) ^ x[i]);
    if (!++ctx->input[12])
        ++ctx->input[13];
}

CM_KEYSTREAM(64, xor_block)
CM_STREAM_CIPHER(64)
