#include "ciphermill.h"

/* XTEA: blocks of 64 bits, keys of 128 bits, 32 rounds. */
struct cm_ctx { uint32_t key[4]; };

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    for (uint32_t i = 0; i < key_bytes / 4; i++)
        ctx->key[i] = cm_load32_be(key + 4 * i);
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t a = cm_load32_be(in), b = cm_load32_be(in + 4), sum = 0;

    for (int i = 0; i < 32; i++) {
        a += ((b << 4 ^ b >> 5) + b) ^ (sum + ctx->key[sum & 3]);
        sum += 0x9e3779b9;
        b += ((a << 4 ^ a >> 5) + a) ^ (sum + ctx->key[sum >> 11 & 3]);
    }
    cm_store32_be(out, a);
    cm_store32_be(out + 4, b);
}

CM_BLOCK_CIPHER(8)
