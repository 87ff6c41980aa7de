/* DES without secret addresses: each S-box is a tree of 63 choices over its table, and all eight
   are looked up together, in a nibble of a word each. The tables are FIPS 46-3's. */
#include "ciphermill.h"

struct cm_ctx {
    uint32_t key[16][6]; /* bit k of the key for each S-box, filling its nibble */
};

/* Nibble s, from the top, of word i is what S-box s makes of i. */
static const uint32_t table[64] = {
    0xEFA72C4D, 0x03DDEAD1, 0x410DC1B2, 0xFD78BF0F, 0xD89E4A28, 0x740B24BD, 0x1EE31FE4, 0x4795C278,
    0x266079F6, 0xEF36474A, 0xFB36A20F, 0x224F7C93, 0xB3F9B68B, 0xD860D917, 0x845A68D1, 0x1EA315A4,
    0x3911803A, 0xAC2456EC, 0xA7D25DC9, 0x60870135, 0x62C83393, 0xC152FD56, 0xCD75F47E, 0xBAECAECB,
    0x5CBBDE55, 0x96C13020, 0x904C07A0, 0x59BA9BFE, 0x0524E56C, 0x3BFE8389, 0x7A8F9B17, 0x85196862,
    0x40DA4917, 0xFD13B462, 0x1E662E4B, 0xC8AF83B1, 0xE7491FB4, 0x8AD0C2DE, 0x8B90B5D1, 0x21067C87,
    0xDA8CA2C9, 0x436A1914, 0x64FBD83C, 0x9F91E54A, 0x2D377C7E, 0x148D2FA8, 0xB10D83E2, 0x7278DA7D,
    0xF5BFF7A0, 0x5B496B9F, 0xC81190F6, 0xB6F4FE5C, 0x9C23C46A, 0x37E50109, 0x76CE5A8D, 0xEC3B97F0,
    0x3955610F, 0xA0BCA6E3, 0xA3A23D53, 0x05574025, 0x52E80B95, 0x6E225836, 0x0F74E628, 0xD9CE3DCB,
};

static const uint8_t pc1[56] = {
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
    63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
};

static const uint8_t pc2[48] = {
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41, 52, 31, 37,
    47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
};

static uint32_t rotl(uint32_t x, unsigned n) { return x << n | x >> ((32 - n) & 31); }

/* Bit k of each nibble, counted from the top, filling the nibble. */
static uint32_t spread(uint32_t x, unsigned k) { return (x >> (3 - k) & 0x11111111) * 15; }

static uint32_t permuted(uint32_t x) {
    return rotl(x & 0x00000004u, 3) |
           rotl(x & 0x00004000u, 4) |
           rotl(x & 0x12020120u, 5) |
           rotl(x & 0x00100000u, 6) |
           rotl(x & 0x00008000u, 9) |
           rotl(x & 0x04000000u, 10) |
           rotl(x & 0x00000001u, 11) |
           rotl(x & 0x20000200u, 12) |
           rotl(x & 0x00200000u, 13) |
           rotl(x & 0x00000040u, 14) |
           rotl(x & 0x00010000u, 15) |
           rotl(x & 0x00000002u, 16) |
           rotl(x & 0x40801800u, 17) |
           rotl(x & 0x00080000u, 19) |
           rotl(x & 0x00000010u, 21) |
           rotl(x & 0x01000000u, 22) |
           rotl(x & 0x88000008u, 24) |
           rotl(x & 0x00000480u, 25) |
           rotl(x & 0x00442000u, 26);
}

static uint32_t f(uint32_t r, const uint32_t key[6]) {
    uint32_t bit[6], t[32];
    bit[0] = spread(rotl(r, 28), 3) ^ key[0];
    for (unsigned k = 0; k < 4; k++) bit[k + 1] = spread(r, k) ^ key[k + 1];
    bit[5] = spread(rotl(r, 4), 0) ^ key[5];
    for (unsigned i = 0; i < 32; i++) t[i] = table[2 * i] ^ (bit[5] & (table[2 * i] ^ table[2 * i + 1]));
    for (unsigned k = 4, n = 16; n; k--, n /= 2)
        for (unsigned i = 0; i < n; i++) t[i] = t[2 * i] ^ (bit[k] & (t[2 * i] ^ t[2 * i + 1]));
    return permuted(t[0]);
}

static void swap(uint32_t *a, uint32_t *b, unsigned n, uint32_t mask) {
    uint32_t t = (*a >> n ^ *b) & mask;
    *b ^= t, *a ^= t << n;
}

static void block(const struct cm_ctx *d, const uint8_t *in, uint8_t *out, int decrypt) {
    uint32_t l = cm_load32_be(in), r = cm_load32_be(in + 4), t;
    swap(&l, &r, 4, 0x0F0F0F0F);
    swap(&l, &r, 16, 0x0000FFFF);
    swap(&r, &l, 2, 0x33333333);
    swap(&r, &l, 8, 0x00FF00FF);
    swap(&l, &r, 1, 0x55555555);
    for (int i = 0; i < 16; i++) {
        t = l ^ f(r, d->key[decrypt ? 15 - i : i]);
        l = r, r = t;
    }
    t = l, l = r, r = t;
    swap(&l, &r, 1, 0x55555555);
    swap(&r, &l, 8, 0x00FF00FF);
    swap(&r, &l, 2, 0x33333333);
    swap(&l, &r, 16, 0x0000FFFF);
    swap(&l, &r, 4, 0x0F0F0F0F);
    cm_store32_be(out, l), cm_store32_be(out + 4, r);
}

void cm_keysetup(struct cm_ctx *d, const uint8_t *key, uint32_t bytes) {
    uint32_t c = 0, e = 0;
    (void)bytes;
    for (int i = 0; i < 56; i++) {
        uint32_t b = key[(pc1[i] - 1) / 8] >> (7 - (pc1[i] - 1) % 8) & 1;
        if (i < 28) c = c << 1 | b;
        else e = e << 1 | b;
    }
    for (int i = 0; i < 16; i++) {
        unsigned n = i == 0 || i == 1 || i == 8 || i == 15 ? 1 : 2;
        c = (c << n | c >> (28 - n)) & 0xFFFFFFF, e = (e << n | e >> (28 - n)) & 0xFFFFFFF;
        for (int k = 0; k < 6; k++) {
            d->key[i][k] = 0;
            for (int s = 0; s < 8; s++) {
                unsigned at = pc2[6 * s + k] - 1;
                uint32_t b = (at < 28 ? c >> (27 - at) : e >> (55 - at)) & 1;
                d->key[i][k] |= b * 15 << (28 - 4 * s);
            }
        }
    }
}

void cm_keysetup_decrypt(struct cm_ctx *d, const uint8_t *key, uint32_t bytes) { cm_keysetup(d, key, bytes); }

void cm_encrypt(const struct cm_ctx *d, const uint8_t *in, uint8_t *out) { block(d, in, out, 0); }

void cm_decrypt(const struct cm_ctx *d, const uint8_t *in, uint8_t *out) { block(d, in, out, 1); }

CM_BLOCK_CIPHER(8)
