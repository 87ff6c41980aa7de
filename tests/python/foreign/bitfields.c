/* Bit-fields of odd widths in a packed structure, rounds by a switch, quotients and remainders with signs. */
#include "ciphermill.h"
#include <string.h>

struct __attribute__((packed)) odd {
    unsigned a : 7;
    signed b : 9;
    unsigned c : 13;
    unsigned d : 3;
    uint64_t e : 37;
    uint64_t f : 27;
    int16_t g;
    uint16_t h;
    uint32_t i;
};

struct cm_ctx {
    struct odd k;
    int64_t s[5];
};

_Static_assert(sizeof(struct odd) == 20, "packed");
void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    memset(c, 0, sizeof *c);
    memcpy(&c->k, key, n > 20 ? 20 : n);
    for (int i = 0; i < 5; i++)
        c->s[i] =
            (int64_t)((uint64_t)(int8_t)key[3 * i] << (7 * i + 20)) - (int32_t)cm_load32_le(key + i) * 3LL;
}

void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *k, uint32_t n)
{
    cm_keysetup(c, k, n);
}

static int64_t F(const struct cm_ctx *c, int64_t x, int r)
{
    struct odd o = c->k;
    int64_t y = c->s[r % 5];
    switch (r % 7) {
    case 0:
        o.b += (int)x;
        y += o.b * (int64_t)o.g;
        break;
    case 1:
        o.e += (uint64_t)x;
        y ^= (int64_t)o.e >> 3;
        break;
    case 2:
        y += (x / (int)(o.c | 1)) + x % (int)(o.h | 3);
        break;
    case 3:
        y += (int64_t)(((unsigned __int128)(uint64_t)x * (uint64_t)y) >> 41);
        break;
    case 4:
        o.g -= (int16_t)x;
        o.i ^= (uint32_t)(x >> 17);
        y += ((int64_t)o.g << 5) + o.i;
        break;
    case 5:
        y -= (int64_t)((uint64_t)x >> (o.d + (x & 31)));
        y += x >> (o.a & 63);
        break;
    default:
        o.f -= x;
        y ^= o.f;
        y *= (o.b ? o.b : 77);
        if (x < y)
            y = -y;
        break;
    }
    return y;
}

void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    int64_t l, r;
    memcpy(&l, in, 8);
    memcpy(&r, in + 8, 8);
    for (int i = 0; i < 14; i++) {
        int64_t t = l ^ F(c, r, i);
        l = r;
        r = t;
    }
    memcpy(out, &l, 8);
    memcpy(out + 8, &r, 8);
}

void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    int64_t l, r;
    memcpy(&l, in, 8);
    memcpy(&r, in + 8, 8);
    for (int i = 13; i >= 0; i--) {
        int64_t t = r ^ F(c, l, i);
        r = l;
        l = t;
    }
    memcpy(out, &l, 8);
    memcpy(out + 8, &r, 8);
}

CM_BLOCK_CIPHER(16)
