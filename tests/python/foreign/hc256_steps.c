/* HC-256 a step at a time: the counter says which of two tables is renewed and which one hides it.
 *
 * eSTREAM, set 1, vector 0: key 8000000000000000000000000000000000000000000000000000000000000000,
 *   iv 0000000000000000000000000000000000000000000000000000000000000000,
 *   out 240146c5ea6c72a8dfc93e54e8811c32a85e0bf7291bddc0dbeae086d051d5b0
 */
#include "ciphermill.h"

struct cm_ctx {
    uint32_t P[1024], Q[1024], counter, key[8];
    CM_UNUSED_KEYSTREAM(64);
};

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t g(const uint32_t *other, uint32_t x, uint32_t y)
{
    return (rotr(x, 10) ^ rotr(y, 23)) + other[(x ^ y) % 1024];
}

static uint32_t h(const uint32_t *other, uint32_t x)
{
    return other[x & 255] + other[256 + (x >> 8 & 255)] + other[512 + (x >> 16 & 255)] + other[768 + (x >> 24)];
}

static uint32_t renew(uint32_t *t, const uint32_t *other, uint32_t j)
{
    t[j] += t[(j - 10) % 1024] + g(other, t[(j - 3) % 1024], t[(j - 1023) % 1024]);
    return h(other, t[(j - 12) % 1024]) ^ t[j];
}

static uint32_t generate_word(struct cm_ctx *c)
{
    uint32_t word, j = c->counter % 1024;

    if (c->counter < 1024)
        word = renew(c->P, c->Q, j);
    else
        word = renew(c->Q, c->P, j);
    c->counter = (c->counter + 1) % 2048;
    return word;
}

static void generate_block(struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    int i;

    for (i = 0; i < 16; i++)
        cm_store32_le(out + 4 * i, cm_load32_le(in + 4 * i) ^ generate_word(c));
}

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < 8; i++)
        c->key[i] = cm_load32_le(key + (4 * i) % bytes);
}

void cm_ivsetup(struct cm_ctx *c, const uint8_t *iv, uint32_t bytes)
{
    uint32_t w[2560], i;

    for (i = 0; i < 8; i++) {
        w[i] = c->key[i];
        w[8 + i] = cm_load32_le(iv + (4 * i) % bytes);
    }
    for (i = 16; i < 2560; i++) {
        uint32_t x = w[i - 2], y = w[i - 15];

        w[i] = (rotr(x, 17) ^ rotr(x, 19) ^ x >> 10) + w[i - 7] + (rotr(y, 7) ^ rotr(y, 18) ^ y >> 3) + w[i - 16] + i;
    }
    for (i = 0; i < 1024; i++) {
        c->P[i] = w[i + 512];
        c->Q[i] = w[i + 1536];
    }
    c->counter = 0;
    for (i = 0; i < 4096; i++)
        generate_word(c);
    c->unused = 0;
}

CM_KEYSTREAM(64, generate_block)
CM_STREAM_CIPHER(64)
