/*
 * MAGENTA: a Feistel network of 6 rounds (8 for a 32-byte key) on 16-byte blocks.
 *
 * Its one nonlinear function is f, the powers of a in GF(2^8); sixteen bytes are shuffled
 * and combined in pairs through it as the butterflies of a fast Hadamard transform would
 * be. A round takes 12 such layers of 32 lookups, each waiting for the one before, and
 * nothing is reused: some 2300 lookups a block.
 */
#include "../ciphermill.h"
#include "sbox.h"

struct cm_ctx {
    uint8_t round_key[8][8];
    uint32_t rounds;
};

/* One layer: bytes i and i + 8 of x become bytes 2 i and 2 i + 1 of y. */
CM_INLINE void layer(uint8_t *y, const uint8_t *x)
{
    uint32_t i;

    for (i = 0; i < 8; i++) {
        y[2 * i] = f[x[i] ^ f[x[i + 8]]];
        y[2 * i + 1] = f[x[i + 8] ^ f[x[i]]];
    }
}

/*
 * left ^= E(right, key): three times four layers; in between, the result, its even bytes
 * first and then its odd ones, is XORed to the input.
 */
static void round_function(uint8_t *left, const uint8_t *right, const uint8_t *key)
{
    uint8_t x[16], y[16];
    uint32_t i, pass;

    for (i = 0; i < 8; i++) {
        x[i] = right[i];
        x[i + 8] = key[i];
    }
    for (pass = 0;; pass++) {
        layer(y, x);
        layer(x, y);
        layer(y, x);
        layer(x, y);
        if (pass == 2)
            break;
        for (i = 0; i < 8; i++) {
            y[i] = x[2 * i] ^ right[i];
            y[i + 8] = x[2 * i + 1] ^ key[i];
        }
        for (i = 0; i < 16; i++)
            x[i] = y[i];
    }
    for (i = 0; i < 8; i++)
        left[i] ^= x[2 * i];
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    /* Which eighth of the key each round takes; the order reads the same backwards. */
    static const uint8_t order[3][8] = {
        {0, 0, 1, 1, 0, 0, 0, 0},
        {0, 1, 2, 2, 1, 0, 0, 0},
        {0, 1, 2, 3, 3, 2, 1, 0},
    };
    const uint8_t *part = order[key_bytes / 8 - 2];
    uint32_t i, j;

    ctx->rounds = key_bytes == 32 ? 8 : 6;
    for (i = 0; i < ctx->rounds; i++) {
        for (j = 0; j < 8; j++)
            ctx->round_key[i][j] = key[8 * part[i] + j];
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

/* `first` is the half that changes first: 0 to encrypt, 1 to decrypt. */
CM_INLINE void rounds(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t first)
{
    uint8_t half[2][8];
    uint32_t i;

    for (i = 0; i < 8; i++) {
        half[0][i] = in[i];
        half[1][i] = in[8 + i];
    }
    for (i = 0; i < ctx->rounds; i += 2) {
        round_function(half[first], half[1 - first], ctx->round_key[i]);
        round_function(half[1 - first], half[first], ctx->round_key[i + 1]);
    }
    for (i = 0; i < 8; i++) {
        out[i] = half[0][i];
        out[8 + i] = half[1][i];
    }
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    rounds(ctx, in, out, 0);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    rounds(ctx, in, out, 1);
}

CM_BLOCK_CIPHER(16)
