/* Recursion, a table of functions, a switch, division by variables and by constants. */
#include "ciphermill.h"

struct cm_ctx { uint8_t key[32]; };

typedef uint32_t operation(uint32_t a, uint32_t b);

static uint32_t sum(uint32_t a, uint32_t b) { return a + b; }
static uint32_t difference(uint32_t a, uint32_t b) { return a ^ b; }
static uint32_t product(uint32_t a, uint32_t b) { return a * (b | 1); }
static uint32_t rest(uint32_t a, uint32_t b) { return b % (a | 1); }

static operation *const OPERATIONS[4] = { sum, difference, product, rest };

static __attribute__((noinline)) uint32_t deep(const struct cm_ctx *ctx, uint32_t x, int depth)
{
    uint32_t v;
    if (depth == 0)
        return x;
    v = deep(ctx, OPERATIONS[x & 3](x, ctx->key[depth & 31]), depth - 1);
    switch (v & 7) {
    case 0: return v + 1;
    case 1: return v * 3;
    case 2: return v / 3;
    case 3: return (uint32_t)((int32_t)v / 7);
    case 4: return ~v;
    case 5: return v << 3 | v >> 29;
    default: return v ^ (uint32_t)((int32_t)v >> 5);
    }
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    for (uint32_t i = 0; i < 32; i++)
        ctx->key[i] = key[i % key_bytes];
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

static void rounds(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, int from, int step)
{
    uint32_t left = cm_load32_be(in), right = cm_load32_be(in + 4);
    for (int i = 0; i < 8; i++) {
        uint32_t t = left ^ deep(ctx, right, from + step * i);
        left = right;
        right = t;
    }
    cm_store32_be(out, right);
    cm_store32_be(out + 4, left);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    rounds(ctx, in, out, 3, 1);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    rounds(ctx, in, out, 10, -1);
}

CM_BLOCK_CIPHER(8)
