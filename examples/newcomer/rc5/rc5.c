/*
 * RC5-32/12/16: words of 32 bits, 12 rounds, keys of 16 bytes. Words stand in memory with their lowest byte first.
 */
#include "ciphermill.h"

#define ROUNDS 12
#define WORDS (2 * (ROUNDS + 1))
#define KEY_WORDS 4
/* Odd numbers next to (e - 2) 2^32 and (the golden ratio - 1) 2^32. */
#define P 0xb7e15163
#define Q 0x9e3779b9

struct cm_ctx {
    uint32_t key[WORDS];
};

static uint32_t left(uint32_t x, uint32_t by) { return x << (by & 31) | x >> (-by & 31); }
static uint32_t right(uint32_t x, uint32_t by) { return x >> (by & 31) | x << (-by & 31); }

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t l[KEY_WORDS], a = 0, b = 0, i = 0, j = 0, n;

    (void)key_bytes;
    for (n = 0; n < KEY_WORDS; n++)
        l[n] = cm_load32_le(key + 4 * n);
    ctx->key[0] = P;
    for (n = 1; n < WORDS; n++)
        ctx->key[n] = ctx->key[n - 1] + Q;
    for (n = 0; n < 3 * WORDS; n++) {
        a = ctx->key[i] = left(ctx->key[i] + a + b, 3);
        b = l[j] = left(l[j] + a + b, a + b);
        i = i + 1 == WORDS ? 0 : i + 1;
        j = (j + 1) % KEY_WORDS;
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t a = cm_load32_le(in) + ctx->key[0], b = cm_load32_le(in + 4) + ctx->key[1];

    for (int i = 1; i <= ROUNDS; i++) {
        a = left(a ^ b, b) + ctx->key[2 * i];
        b = left(b ^ a, a) + ctx->key[2 * i + 1];
    }
    cm_store32_le(out, a);
    cm_store32_le(out + 4, b);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t a = cm_load32_le(in), b = cm_load32_le(in + 4);

    for (int i = ROUNDS; i >= 1; i--) {
        b = right(b - ctx->key[2 * i + 1], a) ^ a;
        a = right(a - ctx->key[2 * i], b) ^ b;
    }
    cm_store32_le(out, a - ctx->key[0]);
    cm_store32_le(out + 4, b - ctx->key[1]);
}

CM_BLOCK_CIPHER(8)
