/*
 * Speck (Beaulieu, Shors, Smith, Treatman-Clark, Weeks, Wingers, 2013) with blocks of 128 bits
 * (keys of 128, 192 or 256), or with SPECK64 of 64 (keys of 96 or 128). Bytes are ordered as in the
 * designers' implementation guide: little-endian words, the second of the paper's first.
 */
#include "../ciphermill.h"

#ifdef SPECK64
#define BLOCK 8
#define ROUNDS(words) (23 + (words))
typedef uint32_t word;
#define LOAD cm_load32_le
#define STORE cm_store32_le
#define LEFT cm_rotl32
#define RIGHT cm_rotr32
#else
#define BLOCK 16
#define ROUNDS(words) (30 + (words))
typedef uint64_t word;
#define LOAD cm_load64_le
#define STORE cm_store64_le
#define LEFT cm_rotl64
#define RIGHT cm_rotr64
#endif

#define WORD (BLOCK / 2)

struct cm_ctx {
    word key[ROUNDS(4)];
    uint32_t rounds;
};

#define FORWARD(x, y, k)                                                                   \
    x = (RIGHT(x, 8) + (y)) ^ (k);                                                         \
    y = LEFT(y, 3) ^ (x);

/* The key schedule is the round function, with the number of the round for a key. */
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t words = key_bytes / WORD, i;
    word l[3], k = LOAD(key);

    for (i = 1; i < words; i++)
        l[i - 1] = LOAD(key + WORD * i);
    ctx->rounds = ROUNDS(words);
    for (i = 0; i < ctx->rounds; i++) {
        word *x = &l[i % (words - 1)];

        ctx->key[i] = k;
        FORWARD(*x, k, i)
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    word y = LOAD(in), x = LOAD(in + WORD);
    uint32_t i;

    for (i = 0; i < ctx->rounds; i++) {
        FORWARD(x, y, ctx->key[i])
    }
    STORE(out, y);
    STORE(out + WORD, x);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    word y = LOAD(in), x = LOAD(in + WORD);
    uint32_t i;

    for (i = ctx->rounds; i != 0; i--) {
        y = RIGHT(y ^ x, 3);
        x = LEFT((x ^ ctx->key[i - 1]) - y, 8);
    }
    STORE(out, y);
    STORE(out + WORD, x);
}

CM_BLOCK_CIPHER(BLOCK)
