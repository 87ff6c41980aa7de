/* GIFT-64 as a reference has it: nibbles in an array, the permutation of bits by a loop over a table.
 *
 * Banik and others 2017, appendix: key 00000000000000000000000000000000, in 0000000000000000, out f62bc3ef34f775ac
 * the same: key fedcba9876543210fedcba9876543210, in fedcba9876543210, out c1b71f66160ff587
 */
#include "ciphermill.h"

#define ROUNDS 28

struct cm_ctx {
    uint16_t u[ROUNDS], v[ROUNDS];
};

static const uint8_t sbox[16] = { 1, 10, 4, 12, 6, 15, 3, 9, 2, 13, 11, 7, 5, 0, 8, 14 };
static const uint8_t inverse[16] = { 13, 0, 8, 6, 2, 12, 4, 11, 14, 7, 1, 10, 3, 9, 15, 5 };
static const uint8_t place[64] = {
    0, 17, 34, 51, 48, 1, 18, 35, 32, 49, 2, 19, 16, 33, 50, 3,
    4, 21, 38, 55, 52, 5, 22, 39, 36, 53, 6, 23, 20, 37, 54, 7,
    8, 25, 42, 59, 56, 9, 26, 43, 40, 57, 10, 27, 24, 41, 58, 11,
    12, 29, 46, 63, 60, 13, 30, 47, 44, 61, 14, 31, 28, 45, 62, 15,
};
static const uint8_t constant[ROUNDS] = {
    0x01, 0x03, 0x07, 0x0f, 0x1f, 0x3e, 0x3d, 0x3b, 0x37, 0x2f, 0x1e, 0x3c, 0x39, 0x33,
    0x27, 0x0e, 0x1d, 0x3a, 0x35, 0x2b, 0x16, 0x2c, 0x18, 0x30, 0x21, 0x02, 0x05, 0x0b,
};

static void add_key(uint8_t s[16], uint16_t u, uint16_t v, uint8_t c)
{
    for (int i = 0; i < 16; i++)
        s[i] ^= (u >> i & 1) << 1 | (v >> i & 1);
    for (int i = 0; i < 6; i++)
        s[i] ^= (c >> i & 1) << 3;
    s[15] ^= 8;
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t n)
{
    uint16_t k[8];
    for (int i = 0; i < 8; i++)
        k[7 - i] = (uint16_t)cm_load16_be(key + 2 * i % n);
    for (int r = 0; r < ROUNDS; r++) {
        uint16_t k0 = k[0], k1 = k[1];
        ctx->u[r] = k1, ctx->v[r] = k0;
        for (int i = 0; i < 6; i++) k[i] = k[i + 2];
        k[6] = (uint16_t)(k0 >> 12 | k0 << 4);
        k[7] = (uint16_t)(k1 >> 2 | k1 << 14);
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t n) { cm_keysetup(ctx, key, n); }

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint8_t s[16], t[16];
    for (int i = 0; i < 8; i++)
        s[15 - 2 * i] = in[i] >> 4, s[14 - 2 * i] = in[i] & 15;
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < 16; i++) {
            s[i] = sbox[s[i]];
            t[i] = 0;
        }
        for (int i = 0; i < 64; i++)
            t[place[i] / 4] |= (s[i / 4] >> i % 4 & 1) << place[i] % 4;
        for (int i = 0; i < 16; i++) s[i] = t[i];
        add_key(s, ctx->u[r], ctx->v[r], constant[r]);
    }
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(s[15 - 2 * i] << 4 | s[14 - 2 * i]);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint8_t s[16], t[16];
    for (int i = 0; i < 8; i++)
        s[15 - 2 * i] = in[i] >> 4, s[14 - 2 * i] = in[i] & 15;
    for (int r = ROUNDS - 1; r >= 0; r--) {
        add_key(s, ctx->u[r], ctx->v[r], constant[r]);
        for (int i = 0; i < 16; i++) t[i] = 0;
        for (int i = 0; i < 64; i++)
            t[i / 4] |= (s[place[i] / 4] >> place[i] % 4 & 1) << i % 4;
        for (int i = 0; i < 16; i++) s[i] = inverse[t[i]];
    }
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(s[15 - 2 * i] << 4 | s[14 - 2 * i]);
}

CM_BLOCK_CIPHER(8)
