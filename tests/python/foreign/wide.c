/* Arithmetic of 64 and 128 bits: products, quotients and shifts that need a library. */
#include "ciphermill.h"

typedef unsigned __int128 u128;

struct cm_ctx { uint64_t key[4]; };

static uint64_t mixed(uint64_t x, uint64_t k)
{
    u128 p = (u128)x * k, q = p << (k & 127) | p >> (x & 127);
    uint64_t y = (uint64_t)(p >> 64) ^ (uint64_t)p ^ (uint64_t)(q % ((u128)k << 5 | 1));
    y += (uint64_t)((int64_t)x >> (k & 63)) + (uint64_t)((__int128)q / ((__int128)(int64_t)k | 1));
    y ^= x / k + k % (x | 1) + (uint64_t)((int64_t)x / ((int64_t)k | 1));
    return y + (uint64_t)__builtin_clzll(x | 1) + (uint64_t)__builtin_popcountll(y);
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    for (uint32_t i = 0; i < 4; i++)
        ctx->key[i] = cm_load64_le(key + 8 * i % key_bytes) | 1;
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint64_t left = cm_load64_le(in), right = cm_load64_le(in + 8);
    for (int i = 0; i < 2; i++) {
        uint64_t t = left ^ mixed(right, ctx->key[i]);
        left = right;
        right = t;
    }
    cm_store64_le(out, right);
    cm_store64_le(out + 8, left);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint64_t left = cm_load64_le(in), right = cm_load64_le(in + 8);
    for (int i = 1; i >= 0; i--) {
        uint64_t t = left ^ mixed(right, ctx->key[i]);
        left = right;
        right = t;
    }
    cm_store64_le(out, right);
    cm_store64_le(out + 8, left);
}

CM_BLOCK_CIPHER(16)
