/*
 * A sponge on Keccak's steps, in loops as a reference implementation has them: 17 lanes
 * come out (clang leaves such a loop by its middle), and amounts of rotation are read from
 * a table.
 */
#include "ciphermill.h"

struct cm_ctx { uint64_t state[25]; uint8_t key[32]; CM_UNUSED_KEYSTREAM(136); };

static const uint8_t ROTATION[24] = { 1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14,
                                      27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44 };
static const uint8_t LANE[24] = { 10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4,
                                  15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1 };

static uint64_t rotated(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void permute(uint64_t *s)
{
    uint64_t constant = 1;
    for (int round = 0; round < 24; round++) {
        uint64_t column[5], t;
        for (int i = 0; i < 5; i++)
            column[i] = s[i] ^ s[i + 5] ^ s[i + 10] ^ s[i + 15] ^ s[i + 20];
        for (int i = 0; i < 5; i++) {
            t = column[(i + 4) % 5] ^ rotated(column[(i + 1) % 5], 1);
            for (int j = 0; j < 25; j += 5)
                s[j + i] ^= t;
        }
        t = s[1];
        for (int i = 0; i < 24; i++) {
            uint64_t u = s[LANE[i]];
            s[LANE[i]] = rotated(t, ROTATION[i]);
            t = u;
        }
        for (int j = 0; j < 25; j += 5) {
            for (int i = 0; i < 5; i++)
                column[i] = s[j + i];
            for (int i = 0; i < 5; i++)
                s[j + i] ^= ~column[(i + 1) % 5] & column[(i + 2) % 5];
        }
        constant = constant << 7 ^ (constant >> 57) * 0x8000000080008081ull;
        s[0] ^= constant;
    }
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    for (uint32_t i = 0; i < 32; i++)
        ctx->key[i] = key[i % key_bytes];
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    for (int i = 0; i < 25; i++)
        ctx->state[i] = i < 4 ? cm_load64_le(ctx->key + 8 * i) : 0;
    for (uint32_t i = 0; i < iv_bytes; i++)
        ctx->state[4] = ctx->state[4] << 8 ^ iv[i];
    ctx->unused = 0;
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    permute(ctx->state);
    for (int i = 0; i < 17; i++)
        cm_store64_le(out + 8 * i, cm_load64_le(in + 8 * i) ^ ctx->state[i]);
}

CM_KEYSTREAM(136, xor_block)
CM_STREAM_CIPHER(136)
