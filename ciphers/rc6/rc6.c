/*
 * RC6-32/20: 32-bit words, 20 rounds, keys of 16, 24 or 32 bytes.
 *
 * All of its strength comes from rotations by amounts that depend on the data, and the
 * amounts come from the quadratic x(2x + 1) mod 2^32, so a round is two multiplications,
 * two rotations by a constant and two by a variable. There are no tables.
 */
#include "../ciphermill.h"

#define ROUNDS 20
#define KEY_WORDS (2 * ROUNDS + 4)

struct cm_ctx {
    uint32_t s[KEY_WORDS];
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t l[8] = {0};
    uint32_t words = key_bytes / 4;
    uint32_t i, j, n, a = 0, b = 0;

    for (i = 0; i < words; i++)
        l[i] = cm_load32_le(key + 4 * i);
    ctx->s[0] = 0xb7e15163; /* e - 2, then in steps of the golden ratio - 1 */
    for (i = 1; i < KEY_WORDS; i++)
        ctx->s[i] = ctx->s[i - 1] + 0x9e3779b9;
    for (n = 0, i = 0, j = 0; n < 3 * KEY_WORDS; n++) {
        a = ctx->s[i] = cm_rotl32(ctx->s[i] + a + b, 3);
        b = l[j] = cm_rotl32(l[j] + a + b, a + b);
        if (++i == KEY_WORDS)
            i = 0;
        if (++j == words)
            j = 0;
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

CM_INLINE uint32_t quadratic(uint32_t x)
{
    return cm_rotl32(x * (2 * x + 1), 5);
}

CM_INLINE void forward(uint32_t *a, uint32_t b, uint32_t *c, uint32_t d, const uint32_t *s)
{
    uint32_t t = quadratic(b), u = quadratic(d);

    *a = cm_rotl32(*a ^ t, u) + s[0];
    *c = cm_rotl32(*c ^ u, t) + s[1];
}

CM_INLINE void backward(uint32_t *a, uint32_t b, uint32_t *c, uint32_t d, const uint32_t *s)
{
    uint32_t t = quadratic(b), u = quadratic(d);

    *c = cm_rotr32(*c - s[1], t) ^ u;
    *a = cm_rotr32(*a - s[0], u) ^ t;
}

/* After a round the four words change places in a ring; four rounds bring them back. */

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *s = ctx->s;
    uint32_t a = cm_load32_le(in);
    uint32_t b = cm_load32_le(in + 4) + s[0];
    uint32_t c = cm_load32_le(in + 8);
    uint32_t d = cm_load32_le(in + 12) + s[1];
    uint32_t i;

    for (i = 0; i < ROUNDS / 4; i++) {
        forward(&a, b, &c, d, s + 2);
        forward(&b, c, &d, a, s + 4);
        forward(&c, d, &a, b, s + 6);
        forward(&d, a, &b, c, s + 8);
        s += 8;
    }
    cm_store32_le(out, a + s[2]);
    cm_store32_le(out + 4, b);
    cm_store32_le(out + 8, c + s[3]);
    cm_store32_le(out + 12, d);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *s = ctx->s + 2 * ROUNDS;
    uint32_t a = cm_load32_le(in) - s[2];
    uint32_t b = cm_load32_le(in + 4);
    uint32_t c = cm_load32_le(in + 8) - s[3];
    uint32_t d = cm_load32_le(in + 12);
    uint32_t i;

    for (i = 0; i < ROUNDS / 4; i++) {
        backward(&d, a, &b, c, s);
        backward(&c, d, &a, b, s - 2);
        backward(&b, c, &d, a, s - 4);
        backward(&a, b, &c, d, s - 6);
        s -= 8;
    }
    cm_store32_le(out, a);
    cm_store32_le(out + 4, b - s[0]);
    cm_store32_le(out + 8, c);
    cm_store32_le(out + 12, d - s[1]);
}

CM_BLOCK_CIPHER(16)
