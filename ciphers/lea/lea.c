/*
 * LEA (Hong et al., 2013; ISO/IEC 29192-2): blocks of 16 bytes, keys of 16, 24 or 32.
 *
 * Four words of 32 bits; additions, rotations and XORs only. 24, 28 or 32 rounds with six words
 * of key each.
 */
#include "../ciphermill.h"

#define BLOCK 16

struct cm_ctx {
    uint32_t key[32][6];
    uint32_t rounds;
};

static const uint32_t delta[8] = {0xc3efe9db, 0x44626b02, 0x79e27c8a, 0x78df30ec,
                                  0x715ea49e, 0xc785da0a, 0xe04ef22a, 0xe5c40957};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    static const uint8_t by[6] = {1, 3, 6, 11, 13, 17};
    /* Which of the four words of a short key a round's six are. */
    static const uint8_t of_four[6] = {0, 1, 2, 1, 3, 1};
    uint32_t t[8], words = key_bytes / 4, changed = words == 4 ? 4 : 6, i, j;

    for (i = 0; i < words; i++)
        t[i] = cm_load32_le(key + 4 * i);
    ctx->rounds = 16 + key_bytes / 2;
    for (i = 0; i < ctx->rounds; i++) {
        uint32_t d = delta[i % words];

        for (j = 0; j < changed; j++) {
            uint32_t *x = &t[words == 8 ? (6 * i + j) % 8 : j];

            *x = cm_rotl32(*x + cm_rotl32(d, i + j), by[j]);
            ctx->key[i][j] = *x;
        }
        if (words == 4)
            for (j = 0; j < 6; j++)
                ctx->key[i][j] = t[of_four[j]];
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t a = cm_load32_le(in), b = cm_load32_le(in + 4);
    uint32_t c = cm_load32_le(in + 8), d = cm_load32_le(in + 12), i;

/* The first word comes last; the others change where they are. */
#define ROUND(a, b, c, d, k)                                                               \
    d = cm_rotr32((c ^ (k)[4]) + (d ^ (k)[5]), 3);                                         \
    c = cm_rotr32((b ^ (k)[2]) + (c ^ (k)[3]), 5);                                         \
    b = cm_rotl32((a ^ (k)[0]) + (b ^ (k)[1]), 9);
    for (i = 0; i < ctx->rounds; i += 4) {
        ROUND(a, b, c, d, ctx->key[i])
        ROUND(b, c, d, a, ctx->key[i + 1])
        ROUND(c, d, a, b, ctx->key[i + 2])
        ROUND(d, a, b, c, ctx->key[i + 3])
    }
    cm_store32_le(out, a);
    cm_store32_le(out + 4, b);
    cm_store32_le(out + 8, c);
    cm_store32_le(out + 12, d);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t a = cm_load32_le(in), b = cm_load32_le(in + 4);
    uint32_t c = cm_load32_le(in + 8), d = cm_load32_le(in + 12), i;

#define BACK(a, b, c, d, k)                                                                \
    b = (cm_rotr32(b, 9) - (a ^ (k)[0])) ^ (k)[1];                                         \
    c = (cm_rotl32(c, 5) - (b ^ (k)[2])) ^ (k)[3];                                         \
    d = (cm_rotl32(d, 3) - (c ^ (k)[4])) ^ (k)[5];
    for (i = ctx->rounds; i != 0; i -= 4) {
        BACK(d, a, b, c, ctx->key[i - 1])
        BACK(c, d, a, b, ctx->key[i - 2])
        BACK(b, c, d, a, ctx->key[i - 3])
        BACK(a, b, c, d, ctx->key[i - 4])
    }
    cm_store32_le(out, a);
    cm_store32_le(out + 4, b);
    cm_store32_le(out + 8, c);
    cm_store32_le(out + 12, d);
}

CM_BLOCK_CIPHER(BLOCK)
