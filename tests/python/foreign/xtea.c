/*
 * XTEA (Needham and Wheeler 1997) as a library has it: pointers are asked for, the number of
 * rounds is told by a switch, four words of key are read in all rounds, and once the rounds are
 * unrolled their sums are 32 constants, which no machine here has registers for.
 */
#include "ciphermill.h"

#define DELTA 0x9e3779b9u

struct cm_ctx {
    uint32_t key[4];
    int rounds;
};

static void rounds_of(const uint32_t *key, uint32_t *a, uint32_t *b, int n)
{
    uint32_t x = *a, y = *b, sum = 0;
    int i;

    for (i = 0; i < n; i++) {
        x += ((y << 4 ^ y >> 5) + y) ^ (sum + key[sum & 3]);
        sum += DELTA;
        y += ((x << 4 ^ x >> 5) + x) ^ (sum + key[sum >> 11 & 3]);
    }
    *a = x;
    *b = y;
}

static void rounds_back(const uint32_t *key, uint32_t *a, uint32_t *b, int n)
{
    uint32_t x = *a, y = *b, sum = DELTA * (uint32_t)n;
    int i;

    for (i = 0; i < n; i++) {
        y -= ((x << 4 ^ x >> 5) + x) ^ (sum + key[sum >> 11 & 3]);
        sum -= DELTA;
        x -= ((y << 4 ^ y >> 5) + y) ^ (sum + key[sum & 3]);
    }
    *a = x;
    *b = y;
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    int i;

    (void)key_bytes;
    for (i = 0; i < 4; i++)
        ctx->key[i] = cm_load32_be(key + 4 * i);
    ctx->rounds = 32;
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t a, b;

    if (ctx == 0 || in == 0 || out == 0)
        return;
    a = cm_load32_be(in);
    b = cm_load32_be(in + 4);
    switch (ctx->rounds) {
    case 16: rounds_of(ctx->key, &a, &b, 16); break;
    case 32: rounds_of(ctx->key, &a, &b, 32); break;
    case 48: rounds_of(ctx->key, &a, &b, 48); break;
    case 64: rounds_of(ctx->key, &a, &b, 64); break;
    }
    cm_store32_be(out, a);
    cm_store32_be(out + 4, b);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t a, b;

    if (ctx == 0 || in == 0 || out == 0)
        return;
    a = cm_load32_be(in);
    b = cm_load32_be(in + 4);
    switch (ctx->rounds) {
    case 16: rounds_back(ctx->key, &a, &b, 16); break;
    case 32: rounds_back(ctx->key, &a, &b, 32); break;
    case 48: rounds_back(ctx->key, &a, &b, 48); break;
    case 64: rounds_back(ctx->key, &a, &b, 64); break;
    }
    cm_store32_be(out, a);
    cm_store32_be(out + 4, b);
}

CM_BLOCK_CIPHER(8)
