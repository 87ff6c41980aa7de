/*
 * MARS with the key schedule of the second round of the AES process ("tweaked", August
 * 1999); keys of 16, 24 or 32 bytes.
 *
 * Eight unkeyed mixing rounds of lookups forwards, sixteen rounds of a core that multiplies
 * and rotates by data, eight mixing rounds backwards. The S-box has 512 words; mixing uses
 * its halves by bytes, the core the whole by nine bits.
 */
#include "../ciphermill.h"
#include "sbox.h"

struct cm_ctx {
    uint32_t k[40];
};

/*
 * A key word that multiplies must be odd (its two lowest bits are set), and long runs of
 * equal bits in it are broken up. The result has ones where the word lies inside a run of
 * at least ten equal bits, the ends of the run and bits 0, 1 and 31 excepted.
 */
static uint32_t long_runs(uint32_t w)
{
    uint32_t same, runs, inside;

    same = ~(w ^ w >> 1) & 0x7fffffff;  /* bit i: bits i and i + 1 are equal */
    runs = same & same >> 1 & same >> 2;
    runs &= runs >> 3 & runs >> 6;      /* bit i: bits i to i + 9 are equal */
    inside = runs << 1;
    inside |= inside << 1;
    inside |= inside << 2;
    inside |= inside << 4;              /* bits i + 1 to i + 8 */
    return inside & 0x7ffffffc;
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t t[15];
    uint32_t words = key_bytes / 4;
    uint32_t i, j, n, w, pattern;

    for (i = 0; i < 15; i++)
        t[i] = i < words ? cm_load32_le(key + 4 * i) : 0;
    t[words] = words;
    for (j = 0; j < 4; j++) {
        for (i = 0; i < 15; i++)
            t[i] ^= cm_rotl32(t[(i + 8) % 15] ^ t[(i + 13) % 15], 3) ^ (4 * i + j);
        for (n = 0; n < 4; n++) {
            for (i = 0; i < 15; i++)
                t[i] = cm_rotl32(t[i] + sbox[t[(i + 14) % 15] & 511], 9);
        }
        for (i = 0; i < 10; i++)
            ctx->k[10 * j + i] = t[4 * i % 15];
    }
    for (i = 5; i < 37; i += 2) {
        w = ctx->k[i] | 3;
        pattern = cm_rotl32(sbox[265 + (ctx->k[i] & 3)], ctx->k[i - 1]);
        ctx->k[i] = w ^ (pattern & long_runs(w));
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

CM_INLINE uint32_t s0(uint32_t x)
{
    return sbox[x & 0xff];
}

CM_INLINE uint32_t s1(uint32_t x)
{
    return sbox[256 + (x & 0xff)];
}

CM_INLINE void mix_forwards(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *b = (*b ^ s0(*a)) + s1(*a >> 8);
    *c += s0(*a >> 16);
    *d ^= s1(*a >> 24);
    *a = cm_rotr32(*a, 24);
}

CM_INLINE void mix_backwards(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *b ^= s1(*a);
    *c -= s0(*a >> 24);
    *d = (*d - s1(*a >> 16)) ^ s0(*a >> 8);
    *a = cm_rotl32(*a, 24);
}

CM_INLINE void undo_mix_forwards(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *a = cm_rotl32(*a, 24);
    *d ^= s1(*a >> 24);
    *c -= s0(*a >> 16);
    *b = (*b - s1(*a >> 8)) ^ s0(*a);
}

CM_INLINE void undo_mix_backwards(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    *a = cm_rotr32(*a, 24);
    *d = (*d ^ s0(*a >> 8)) + s1(*a >> 16);
    *c += s0(*a >> 24);
    *b ^= s1(*a);
}

/* The core's expansion of one word into three. */
struct three {
    uint32_t l, m, r;
};

CM_INLINE struct three expand(uint32_t x, const uint32_t *k)
{
    struct three e;

    e.m = x + k[0];
    e.r = cm_rotl32(cm_rotl32(x, 13) * k[1], 5);
    e.l = sbox[e.m & 511] ^ e.r;
    e.m = cm_rotl32(e.m, e.r);
    e.r = cm_rotl32(e.r, 5);
    e.l = cm_rotl32(e.l ^ e.r, e.r);
    return e;
}

/* b and d change their parts after eight rounds. */
CM_INLINE void core(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d, const uint32_t *k)
{
    struct three e = expand(*a, k);

    *a = cm_rotl32(*a, 13);
    *b += e.l;
    *c += e.m;
    *d ^= e.r;
}

CM_INLINE void undo_core(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d, const uint32_t *k)
{
    struct three e;

    *a = cm_rotr32(*a, 13);
    e = expand(*a, k);
    *b -= e.l;
    *c -= e.m;
    *d ^= e.r;
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->k;
    uint32_t a = cm_load32_le(in) + k[0];
    uint32_t b = cm_load32_le(in + 4) + k[1];
    uint32_t c = cm_load32_le(in + 8) + k[2];
    uint32_t d = cm_load32_le(in + 12) + k[3];
    uint32_t i;

    for (i = 0; i < 2; i++) {
        mix_forwards(&a, &b, &c, &d);
        a += d;
        mix_forwards(&b, &c, &d, &a);
        b += c;
        mix_forwards(&c, &d, &a, &b);
        mix_forwards(&d, &a, &b, &c);
    }
    for (i = 4; i < 20; i += 8) {
        core(&a, &b, &c, &d, k + i);
        core(&b, &c, &d, &a, k + i + 2);
        core(&c, &d, &a, &b, k + i + 4);
        core(&d, &a, &b, &c, k + i + 6);
    }
    for (; i < 36; i += 8) {
        core(&a, &d, &c, &b, k + i);
        core(&b, &a, &d, &c, k + i + 2);
        core(&c, &b, &a, &d, k + i + 4);
        core(&d, &c, &b, &a, k + i + 6);
    }
    for (i = 0; i < 2; i++) {
        mix_backwards(&a, &b, &c, &d);
        mix_backwards(&b, &c, &d, &a);
        c -= b;
        mix_backwards(&c, &d, &a, &b);
        d -= a;
        mix_backwards(&d, &a, &b, &c);
    }
    cm_store32_le(out, a - k[36]);
    cm_store32_le(out + 4, b - k[37]);
    cm_store32_le(out + 8, c - k[38]);
    cm_store32_le(out + 12, d - k[39]);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->k;
    uint32_t a = cm_load32_le(in) + k[36];
    uint32_t b = cm_load32_le(in + 4) + k[37];
    uint32_t c = cm_load32_le(in + 8) + k[38];
    uint32_t d = cm_load32_le(in + 12) + k[39];
    uint32_t i;

    for (i = 0; i < 2; i++) {
        undo_mix_backwards(&d, &a, &b, &c);
        d += a;
        undo_mix_backwards(&c, &d, &a, &b);
        c += b;
        undo_mix_backwards(&b, &c, &d, &a);
        undo_mix_backwards(&a, &b, &c, &d);
    }
    for (i = 36; i > 20; i -= 8) {
        undo_core(&d, &c, &b, &a, k + i - 2);
        undo_core(&c, &b, &a, &d, k + i - 4);
        undo_core(&b, &a, &d, &c, k + i - 6);
        undo_core(&a, &d, &c, &b, k + i - 8);
    }
    for (; i > 4; i -= 8) {
        undo_core(&d, &a, &b, &c, k + i - 2);
        undo_core(&c, &d, &a, &b, k + i - 4);
        undo_core(&b, &c, &d, &a, k + i - 6);
        undo_core(&a, &b, &c, &d, k + i - 8);
    }
    for (i = 0; i < 2; i++) {
        undo_mix_forwards(&d, &a, &b, &c);
        undo_mix_forwards(&c, &d, &a, &b);
        b -= c;
        undo_mix_forwards(&b, &c, &d, &a);
        a -= d;
        undo_mix_forwards(&a, &b, &c, &d);
    }
    cm_store32_le(out, a - k[0]);
    cm_store32_le(out + 4, b - k[1]);
    cm_store32_le(out + 8, c - k[2]);
    cm_store32_le(out + 12, d - k[3]);
}

CM_BLOCK_CIPHER(16)
