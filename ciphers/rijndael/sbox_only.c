/*
 * Rijndael (AES) as 8-bit code has it: the state is sixteen bytes, the S-boxes are the only
 * tables, and every byte is substituted, doubled and XORed by itself.
 */
#include "../ciphermill.h"
#include "sbox.h"

struct cm_ctx {
    uint8_t round_key[240];
    uint32_t rounds; /* 10, 12 or 14 */
};

/* 2 x in GF(2^8), without a branch. */
CM_INLINE uint8_t times_2(uint8_t x)
{
    return (uint8_t)(x << 1 ^ (-(x >> 7) & 0x1b));
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint8_t *w = ctx->round_key;
    uint8_t a, b, c, d, t;
    uint8_t constant = 1;
    uint32_t i, in_turn = 0;

    ctx->rounds = key_bytes / 4 + 6;
    for (i = 0; i < key_bytes; i++)
        w[i] = key[i];
    for (; i < 16 * (ctx->rounds + 1); i += 4) {
        a = w[i - 4];
        b = w[i - 3];
        c = w[i - 2];
        d = w[i - 1];
        if (in_turn == 0) {
            t = a;
            a = sbox[b] ^ constant;
            b = sbox[c];
            c = sbox[d];
            d = sbox[t];
            constant = times_2(constant);
        } else if (in_turn == 16 && key_bytes == 32) {
            a = sbox[a];
            b = sbox[b];
            c = sbox[c];
            d = sbox[d];
        }
        w[i] = w[i - key_bytes] ^ a;
        w[i + 1] = w[i + 1 - key_bytes] ^ b;
        w[i + 2] = w[i + 2 - key_bytes] ^ c;
        w[i + 3] = w[i + 3 - key_bytes] ^ d;
        in_turn += 4;
        if (in_turn == key_bytes)
            in_turn = 0;
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

CM_INLINE void mix_column(uint8_t *x)
{
    uint8_t first = x[0];
    uint8_t all = x[0] ^ x[1] ^ x[2] ^ x[3];

    x[0] ^= all ^ times_2(x[0] ^ x[1]);
    x[1] ^= all ^ times_2(x[1] ^ x[2]);
    x[2] ^= all ^ times_2(x[2] ^ x[3]);
    x[3] ^= all ^ times_2(x[3] ^ first);
}

/* (0e 0b 0d 09) = (02 03 01 01) x (05 00 04 00) */
CM_INLINE void inverse_mix_column(uint8_t *x)
{
    uint8_t even = times_2(times_2(x[0] ^ x[2]));
    uint8_t odd = times_2(times_2(x[1] ^ x[3]));

    x[0] ^= even;
    x[1] ^= odd;
    x[2] ^= even;
    x[3] ^= odd;
    mix_column(x);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint8_t *k = ctx->round_key;
    uint8_t x[16], y[16];
    uint32_t round, i;

    for (i = 0; i < 16; i++)
        x[i] = in[i] ^ k[i];
    for (round = 1;; round++) {
        k += 16;
        /* SubBytes and ShiftRows: row i % 4 moves left by as many columns. */
        for (i = 0; i < 16; i++)
            y[i] = sbox[x[(5 * i) & 15]];
        if (round == ctx->rounds)
            break;
        for (i = 0; i < 16; i += 4)
            mix_column(y + i);
        for (i = 0; i < 16; i++)
            x[i] = y[i] ^ k[i];
    }
    for (i = 0; i < 16; i++)
        out[i] = y[i] ^ k[i];
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint8_t *k = ctx->round_key + 16 * ctx->rounds;
    uint8_t x[16], y[16];
    uint32_t round, i;

    for (i = 0; i < 16; i++)
        x[i] = in[i] ^ k[i];
    for (round = 1;; round++) {
        k -= 16;
        for (i = 0; i < 16; i++)
            y[(5 * i) & 15] = inverse_sbox[x[i]] ^ k[(5 * i) & 15];
        if (round == ctx->rounds)
            break;
        for (i = 0; i < 16; i += 4)
            inverse_mix_column(y + i);
        for (i = 0; i < 16; i++)
            x[i] = y[i];
    }
    for (i = 0; i < 16; i++)
        out[i] = y[i];
}

CM_BLOCK_CIPHER(16)
