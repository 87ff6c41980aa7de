/* XTEA (big-endian) in counter mode: two counters at a time into a buffer, under which a loop over bytes, as many as are left of
 * the message or of the buffer, hides it.
 *
 * The vector of Crypto++ and Bouncy Castle, its block as the first counter: key 000102030405060708090a0b0c0d0e0f,
 *   iv 4142434445464748, out 497df3d072612cb5
 */
#include <string.h>
#include "ciphermill.h"

#define BLOCK 16

struct cm_ctx {
    uint32_t key[4];
    uint32_t counter[2];
    uint8_t pad[BLOCK];
    uint32_t used;
};

static void put(uint8_t *p, uint32_t x)
{
    p[0] = (uint8_t)(x >> 24);
    p[1] = (uint8_t)(x >> 16);
    p[2] = (uint8_t)(x >> 8);
    p[3] = (uint8_t)x;
}

static void refill(struct cm_ctx *ctx)
{
    int i, j;

    for (i = 0; i < BLOCK; i += 8) {
        uint32_t a = ctx->counter[0], b = ctx->counter[1], sum = 0;

        for (j = 0; j < 32; j++) {
            a += ((b << 4 ^ b >> 5) + b) ^ (sum + ctx->key[sum & 3]);
            sum += 0x9e3779b9;
            b += ((a << 4 ^ a >> 5) + a) ^ (sum + ctx->key[sum >> 11 & 3]);
        }
        put(ctx->pad + i, a);
        put(ctx->pad + i + 4, b);
        if (++ctx->counter[1] == 0)
            ctx->counter[0]++;
    }
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t bytes)
{
    int i;

    (void)bytes;
    for (i = 0; i < 4; i++)
        ctx->key[i] = cm_load32_be(key + 4 * i);
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t bytes)
{
    ctx->counter[0] = bytes >= 4 ? cm_load32_be(iv) : 0;
    ctx->counter[1] = bytes >= 8 ? cm_load32_be(iv + 4) : 0;
    ctx->used = BLOCK;
}

static void hide(uint8_t *out, const uint8_t *in, const uint8_t *pad, uint32_t n)
{
    while (n--)
        *out++ = *in++ ^ *pad++;
}

void cm_keystream(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes)
{
    while (bytes > 0) {
        uint32_t n;

        if (ctx->used == BLOCK) {
            refill(ctx);
            ctx->used = 0;
        }
        n = BLOCK - ctx->used;
        if (n > bytes)
            n = bytes;
        hide(out, in, ctx->pad + ctx->used, n);
        ctx->used += n;
        in += n;
        out += n;
        bytes -= n;
    }
}

CM_STREAM_CIPHER(BLOCK)
