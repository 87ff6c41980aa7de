/* IDEA: products of half words, and a subtraction of a comparison's result. */
#include "ciphermill.h"

struct cm_ctx { uint16_t key[52]; };

static uint16_t product(uint32_t a, uint32_t b)
{
    uint32_t p, low, high;
    if (a == 0)
        return (uint16_t)(1 - b);
    if (b == 0)
        return (uint16_t)(1 - a);
    p = a * b;
    low = p & 0xffff;
    high = p >> 16;
    return (uint16_t)(low - high + (low < high));
}

/* x^65535 modulo 65537. */
static uint16_t inverse(uint16_t x)
{
    uint16_t result = 1, power = x;
    for (int i = 0; i < 16; i++) {
        result = product(result, power);
        power = product(power, power);
    }
    return result;
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    (void)key_bytes;
    for (int i = 0; i < 8; i++)
        ctx->key[i] = (uint16_t)cm_load16_be(key + 2 * i);
    for (int i = 8; i < 52; i++) {
        const uint16_t *before = ctx->key + (i & ~7) - 8;
        ctx->key[i] = (uint16_t)(before[(i + 1) & 7] << 9 | before[(i + 2) & 7] >> 7);
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    struct cm_ctx forward;
    cm_keysetup(&forward, key, key_bytes);
    for (int i = 0; i <= 8; i++) {
        const uint16_t *from = forward.key + 48 - 6 * i;
        uint16_t *to = ctx->key + 6 * i;
        int outer = i == 0 || i == 8;
        to[0] = inverse(from[0]);
        to[1] = (uint16_t)-from[outer ? 1 : 2];
        to[2] = (uint16_t)-from[outer ? 2 : 1];
        to[3] = inverse(from[3]);
        if (i < 8) {
            to[4] = from[-2];
            to[5] = from[-1];
        }
    }
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint16_t *key = ctx->key;
    uint16_t a = (uint16_t)cm_load16_be(in), b = (uint16_t)cm_load16_be(in + 2);
    uint16_t c = (uint16_t)cm_load16_be(in + 4), d = (uint16_t)cm_load16_be(in + 6);
    for (int i = 0; i < 8; i++, key += 6) {
        uint16_t t, u, v;
        a = product(a, key[0]);
        b += key[1];
        c += key[2];
        d = product(d, key[3]);
        t = product(a ^ c, key[4]);
        u = product((uint16_t)((b ^ d) + t), key[5]);
        t += u;
        a ^= u;
        d ^= t;
        v = b ^ t;
        b = c ^ u;
        c = v;
    }
    cm_store16_be(out, product(a, key[0]));
    cm_store16_be(out + 2, (uint16_t)(c + key[1]));
    cm_store16_be(out + 4, (uint16_t)(b + key[2]));
    cm_store16_be(out + 6, product(d, key[3]));
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    cm_encrypt(ctx, in, out);
}

CM_BLOCK_CIPHER(8)
