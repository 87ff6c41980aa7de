/*
 * Rijndael (AES) without tables, in constant time: two blocks at once, bitsliced.
 *
 * Word i of eight holds bit i of all 32 bytes. In a word, byte r is row r of both states;
 * in that byte bits 2 c and 2 c + 1 belong to column c of the first and the second block. So
 * SubBytes is a circuit on words, ShiftRows a rotation within bytes, MixColumns rotations of
 * words. The circuit is J. Boyar's and R. Peralta's of 2009 (113 to 115 gates).
 *
 * A single block does the work of two; in the feedback mode half of it is lost.
 */
#include "../ciphermill.h"

struct cm_ctx {
    uint32_t round_key[15][8]; /* bitsliced, the same key for both blocks */
    uint32_t rounds;           /* 10, 12 or 14 */
};

CM_INLINE void exchange(uint32_t *x, uint32_t *y, uint32_t mask, uint32_t distance)
{
    uint32_t t = (*x >> distance ^ *y) & mask;

    *y ^= t;
    *x ^= t << distance;
}

/* Transposes the 8 by 8 bits of byte r of the eight words, for each r; its own inverse. */
static void transpose(uint32_t q[8])
{
    uint32_t i;

    for (i = 0; i < 8; i += 2)
        exchange(&q[i], &q[i + 1], 0x55555555, 1);
    for (i = 0; i < 8; i += 4) {
        exchange(&q[i], &q[i + 2], 0x33333333, 2);
        exchange(&q[i + 1], &q[i + 3], 0x33333333, 2);
    }
    for (i = 0; i < 4; i++)
        exchange(&q[i], &q[i + 4], 0x0f0f0f0f, 4);
}

static void sub_bytes(uint32_t q[8])
{
    uint32_t x0 = q[7], x1 = q[6], x2 = q[5], x3 = q[4], x4 = q[3], x5 = q[2], x6 = q[1];
    uint32_t x7 = q[0];
    uint32_t y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17, y18;
    uint32_t y19, y20, y21, z0, z1, z2, z3, z4, z5, z6, z7, z8, z9, z10, z11, z12, z13, z14;
    uint32_t z15, z16, z17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, r, s, t, s3;

    /* Linear part going in. */
    y14 = x3 ^ x5;
    y13 = x0 ^ x6;
    y9 = x0 ^ x3;
    y8 = x0 ^ x5;
    t = x1 ^ x2;
    y1 = t ^ x7;
    y4 = y1 ^ x3;
    y12 = y13 ^ y14;
    y2 = y1 ^ x0;
    y5 = y1 ^ x6;
    y3 = y5 ^ y8;
    s = x4 ^ y12;
    y15 = s ^ x5;
    y20 = s ^ x1;
    y6 = y15 ^ x7;
    y10 = y15 ^ t;
    y11 = y20 ^ y9;
    y7 = x7 ^ y11;
    y17 = y10 ^ y11;
    y19 = y10 ^ y8;
    y16 = t ^ y11;
    y21 = y13 ^ y16;
    y18 = x0 ^ y16;

    /* Inversion in GF(2^8) by way of GF(2^4). */
    a = y12 & y15;
    b = (y3 & y6) ^ a;
    c = (y4 & x7) ^ a;
    d = y13 & y16;
    e = (y5 & y1) ^ d;
    f = (y2 & y7) ^ d;
    g = y9 & y11;
    h = (y14 & y17) ^ g;
    i = (y8 & y10) ^ g;
    b ^= h ^ y20;
    c ^= i ^ y19;
    e ^= h ^ y21;
    f ^= i ^ y18;
    j = b ^ c;
    k = b & e;
    l = f ^ k;
    m = (j & l) ^ c;
    n = ((c ^ k) & (e ^ f)) ^ f;
    o = f & (l ^ n);
    p = o ^ e ^ n;
    r = j ^ (m & (l ^ o));

    a = r ^ p;
    b = m ^ n;
    c = m ^ r;
    d = n ^ p;
    e = b ^ a;
    z0 = d & y15;
    z1 = p & y6;
    z2 = n & x7;
    z3 = c & y16;
    z4 = r & y1;
    z5 = m & y7;
    z6 = b & y11;
    z7 = e & y17;
    z8 = a & y10;
    z9 = d & y12;
    z10 = p & y3;
    z11 = n & y4;
    z12 = c & y13;
    z13 = r & y5;
    z14 = m & y2;
    z15 = b & y9;
    z16 = e & y14;
    z17 = a & y8;

    /* Linear part going out. */
    a = z15 ^ z16;
    b = z10 ^ z11;
    c = z5 ^ z13;
    d = z9 ^ z10;
    e = z2 ^ z12;
    f = z2 ^ z5;
    g = z7 ^ z8;
    h = z0 ^ z3;
    i = z6 ^ z7;
    j = z16 ^ z17;
    k = z12 ^ c;
    l = e ^ h;
    m = z4 ^ a;
    n = z3 ^ i;
    o = a ^ l;
    p = z14 ^ l;
    r = g ^ m;
    s = d ^ m;
    t = z4 ^ n;
    p ^= r;
    s3 = h ^ z1 ^ s;
    q[7] = n ^ s;
    q[1] = k ^ ~r;
    q[0] = c ^ ~o;
    q[4] = s3;
    q[3] = f ^ z1 ^ s;
    q[2] = b ^ p;
    q[6] = t ^ ~s3;
    q[5] = j ^ ~(t ^ p);
}

/* The inverse of the S-box's affine map: bits i + 2, i + 5, i + 7 of x + 63. */
static void inverse_affine(uint32_t q[8])
{
    uint32_t x[8];
    uint32_t i;

    for (i = 0; i < 8; i++)
        x[i] = q[i];
    x[0] = ~x[0];
    x[1] = ~x[1];
    x[5] = ~x[5];
    x[6] = ~x[6];
    for (i = 0; i < 8; i++)
        q[i] = x[(i + 2) & 7] ^ x[(i + 5) & 7] ^ x[(i + 7) & 7];
}

/* With S = A o inversion, the inverse is inversion o A', that is A' o S o A'. */
static void inverse_sub_bytes(uint32_t q[8])
{
    inverse_affine(q);
    sub_bytes(q);
    inverse_affine(q);
}

/* Row r moves by r columns, two bits each. */
CM_INLINE void shift_rows(uint32_t q[8])
{
    uint32_t i, x;

    for (i = 0; i < 8; i++) {
        x = q[i];
        q[i] = (x & 0x000000ff) | (x & 0x0000fc00) >> 2 | (x & 0x00000300) << 6
            | (x & 0x00f00000) >> 4 | (x & 0x000f0000) << 4 | (x & 0xc0000000) >> 6
            | (x & 0x3f000000) << 2;
    }
}

CM_INLINE void inverse_shift_rows(uint32_t q[8])
{
    uint32_t i, x;

    for (i = 0; i < 8; i++) {
        x = q[i];
        q[i] = (x & 0x000000ff) | (x & 0x00003f00) << 2 | (x & 0x0000c000) >> 6
            | (x & 0x00f00000) >> 4 | (x & 0x000f0000) << 4 | (x & 0x03000000) << 6
            | (x & 0xfc000000) >> 2;
    }
}

/* (02 03 01 01): twice the sum of this row and the next, and the other three rows. */
CM_INLINE void mix_columns(uint32_t q[8])
{
    uint32_t next[8], pair[8];
    uint32_t i, top;

    for (i = 0; i < 8; i++) {
        next[i] = cm_rotr32(q[i], 8);
        pair[i] = q[i] ^ next[i];
    }
    top = pair[7];
    for (i = 0; i < 8; i++)
        q[i] = next[i] ^ cm_rotr32(pair[i], 16) ^ (i == 0 ? top : pair[i - 1]);
    q[1] ^= top;
    q[3] ^= top;
    q[4] ^= top;
}

/* (0e 0b 0d 09) = (02 03 01 01) x (05 00 04 00) */
CM_INLINE void inverse_mix_columns(uint32_t q[8])
{
    uint32_t u[8];
    uint32_t i;

    for (i = 0; i < 8; i++)
        u[i] = q[i] ^ cm_rotr32(q[i], 16);
    for (i = 2; i < 8; i++)
        q[i] ^= u[i - 2];
    q[0] ^= u[6];
    q[1] ^= u[6] ^ u[7];
    q[2] ^= u[7];
    q[3] ^= u[6];
    q[4] ^= u[6] ^ u[7];
    q[5] ^= u[7];
    mix_columns(q);
}

CM_INLINE void add_round_key(uint32_t q[8], const uint32_t *k)
{
    uint32_t i;

    for (i = 0; i < 8; i++)
        q[i] ^= k[i];
}

static uint32_t sub_word(uint32_t x)
{
    uint32_t q[8] = {0};

    q[0] = x;
    transpose(q);
    sub_bytes(q);
    transpose(q);
    return q[0];
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t w[60];
    uint32_t *q;
    uint32_t key_words = key_bytes / 4;
    uint32_t i, j, in_turn = 0, constant = 1, t = 0;

    ctx->rounds = key_words + 6;
    for (i = 0; i < key_words; i++)
        w[i] = t = cm_load32_le(key + 4 * i);
    for (; i < 4 * (ctx->rounds + 1); i++) {
        if (in_turn == 0) {
            t = sub_word(cm_rotr32(t, 8)) ^ constant;
            constant = constant << 1 ^ (constant >> 7) * 0x11b;
        } else if (in_turn == 4 && key_words == 8) {
            t = sub_word(t);
        }
        t ^= w[i - key_words];
        w[i] = t;
        if (++in_turn == key_words)
            in_turn = 0;
    }
    for (i = 0; i <= ctx->rounds; i++) {
        q = ctx->round_key[i];
        for (j = 0; j < 4; j++)
            q[2 * j] = q[2 * j + 1] = w[4 * i + j];
        transpose(q);
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

CM_INLINE void load(uint32_t q[8], const uint8_t *first, const uint8_t *second)
{
    uint32_t i;

    for (i = 0; i < 4; i++) {
        q[2 * i] = cm_load32_le(first + 4 * i);
        q[2 * i + 1] = cm_load32_le(second + 4 * i);
    }
    transpose(q);
}

/* The second block goes out first, so that it may be the same place as the first. */
CM_INLINE void store(uint32_t q[8], uint8_t *first, uint8_t *second)
{
    uint32_t i;

    transpose(q);
    for (i = 0; i < 4; i++)
        cm_store32_le(second + 4 * i, q[2 * i + 1]);
    for (i = 0; i < 4; i++)
        cm_store32_le(first + 4 * i, q[2 * i]);
}

static void encrypt_two(const struct cm_ctx *ctx, uint32_t q[8])
{
    uint32_t i;

    add_round_key(q, ctx->round_key[0]);
    for (i = 1; i < ctx->rounds; i++) {
        sub_bytes(q);
        shift_rows(q);
        mix_columns(q);
        add_round_key(q, ctx->round_key[i]);
    }
    sub_bytes(q);
    shift_rows(q);
    add_round_key(q, ctx->round_key[i]);
}

static void decrypt_two(const struct cm_ctx *ctx, uint32_t q[8])
{
    uint32_t i;

    add_round_key(q, ctx->round_key[ctx->rounds]);
    for (i = ctx->rounds - 1; i != 0; i--) {
        inverse_shift_rows(q);
        inverse_sub_bytes(q);
        add_round_key(q, ctx->round_key[i]);
        inverse_mix_columns(q);
    }
    inverse_shift_rows(q);
    inverse_sub_bytes(q);
    add_round_key(q, ctx->round_key[0]);
}

#define TWO_AT_ONCE(direction)                                                             \
    void cm_##direction(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)         \
    {                                                                                      \
        uint32_t q[8];                                                                     \
                                                                                           \
        load(q, in, in);                                                                   \
        direction##_two(ctx, q);                                                           \
        store(q, out, out);                                                                \
    }                                                                                      \
    void cm_##direction##_blocks(const struct cm_ctx *ctx, const uint8_t *in,              \
                                 uint8_t *out, uint32_t blocks)                            \
    {                                                                                      \
        uint32_t q[8];                                                                     \
                                                                                           \
        for (; blocks >= 2; blocks -= 2, in += 32, out += 32) {                            \
            load(q, in, in + 16);                                                          \
            direction##_two(ctx, q);                                                       \
            store(q, out, out + 16);                                                       \
        }                                                                                  \
        if (blocks != 0)                                                                   \
            cm_##direction(ctx, in, out);                                                  \
    }

TWO_AT_ONCE(encrypt)
TWO_AT_ONCE(decrypt)
CM_BLOCK_CIPHER_WITH_OWN_BLOCKS(16)
