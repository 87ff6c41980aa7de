/*
 * SOSEMANUK: an LFSR of ten words over GF(2^32), a two-register state machine, and a
 * Serpent S-box over every four words of output. Keys of 1 to 32 bytes, an IV of 16.
 *
 * The machine's multiplexer (add one LFSR word or another one besides, as bit 0 of a
 * register says) is the only choice that depends on data. SOSEMANUK_BRANCHING makes it a
 * conditional jump; otherwise it is a mask. SOSEMANUK_BYTEWISE makes a block of keystream
 * first and XORs it to the message byte by byte, as the designers' reference does. Twenty steps bring the LFSR's words back to
 * where they were, so a block is 80 bytes and nothing is ever shifted.
 */
#include "../serpent/sboxes.h"
#include "alpha.h"

#define BLOCK 80
#define ROUNDS 24

struct cm_ctx {
    uint32_t round_key[4 * (ROUNDS + 1)];
    uint32_t s[10];
    uint32_t r1, r2;
    CM_UNUSED_KEYSTREAM(BLOCK);
};

/* Serpent's key schedule, as far as 25 round keys. */
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint8_t padded[32];
    uint32_t w[8];
    uint32_t *k = ctx->round_key;
    uint32_t i, x;

    for (i = 0; i < 32; i++)
        padded[i] = i < key_bytes ? key[i] : i == key_bytes;
    for (i = 0; i < 8; i++)
        w[i] = cm_load32_le(padded + 4 * i);
    for (i = 0; i < 4 * (ROUNDS + 1); i++) {
        x = w[i & 7] ^ w[(i + 3) & 7] ^ w[(i + 5) & 7] ^ w[(i + 7) & 7] ^ 0x9e3779b9 ^ i;
        k[i] = w[i & 7] = cm_rotl32(x, 11);
    }
    for (i = 0; i < 3; i++, k += 32) {
        sbox_3(k);
        sbox_2(k + 4);
        sbox_1(k + 8);
        sbox_0(k + 12);
        sbox_7(k + 16);
        sbox_6(k + 20);
        sbox_5(k + 24);
        sbox_4(k + 28);
    }
    sbox_3(k);
}

CM_INLINE void add_key(uint32_t x[4], const uint32_t *k)
{
    x[0] ^= k[0];
    x[1] ^= k[1];
    x[2] ^= k[2];
    x[3] ^= k[3];
}

CM_INLINE void mix(uint32_t x[4])
{
    x[0] = cm_rotl32(x[0], 13);
    x[2] = cm_rotl32(x[2], 3);
    x[1] = cm_rotl32(x[1] ^ x[0] ^ x[2], 1);
    x[3] = cm_rotl32(x[3] ^ x[2] ^ x[0] << 3, 7);
    x[0] = cm_rotl32(x[0] ^ x[1] ^ x[3], 5);
    x[2] = cm_rotl32(x[2] ^ x[3] ^ x[1] << 7, 22);
}

#define ROUND(n)                                                                           \
    add_key(x, k);                                                                         \
    sbox_##n(x);                                                                           \
    mix(x);                                                                                \
    k += 4

/* The IV goes through 24 rounds of Serpent; the states after 12, 18 and 24 start the LFSR. */
void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    const uint32_t *k = ctx->round_key;
    uint32_t x[4];
    uint32_t i;

    (void)iv_bytes;
    for (i = 0; i < 4; i++)
        x[i] = cm_load32_le(iv + 4 * i);
    ROUND(0);
    ROUND(1);
    ROUND(2);
    ROUND(3);
    ROUND(4);
    ROUND(5);
    ROUND(6);
    ROUND(7);
    ROUND(0);
    ROUND(1);
    ROUND(2);
    ROUND(3);
    ctx->s[9] = x[0];
    ctx->s[8] = x[1];
    ctx->s[7] = x[2];
    ctx->s[6] = x[3];
    ROUND(4);
    ROUND(5);
    ROUND(6);
    ROUND(7);
    ROUND(0);
    ROUND(1);
    ctx->r1 = x[0];
    ctx->s[4] = x[1];
    ctx->r2 = x[2];
    ctx->s[5] = x[3];
    ROUND(2);
    ROUND(3);
    ROUND(4);
    ROUND(5);
    ROUND(6);
    ROUND(7);
    add_key(x, k);
    ctx->s[3] = x[0];
    ctx->s[2] = x[1];
    ctx->s[1] = x[2];
    ctx->s[0] = x[3];
    ctx->unused = 0;
}

/* s1, or s1 ^ s8 if bit 0 of r1 is set. */
CM_INLINE uint32_t multiplex(uint32_t r1, uint32_t s1, uint32_t s8)
{
#ifdef SOSEMANUK_BRANCHING
    if (r1 & 1) {
        /* Nothing, but a compiler cannot turn the branch around it into a select. */
        __asm__ volatile("" : "+r"(s1));
        s1 ^= s8;
    }
    return s1;
#else
    return s1 ^ (s8 & -(r1 & 1));
#endif
}

/*
 * One step, t modulo 10: the machine moves, its output f is added up, and the LFSR's oldest
 * word, which v gets, is replaced by the new one.
 */
CM_INLINE void step(uint32_t s[10], uint32_t *r1, uint32_t *r2, uint32_t t, uint32_t *f,
                    uint32_t *v)
{
    uint32_t oldest = s[t % 10], third = s[(t + 3) % 10], newest = s[(t + 9) % 10];
    uint32_t sum = *r2 + multiplex(*r1, s[(t + 1) % 10], s[(t + 8) % 10]);

    *r2 = cm_rotl32(*r1 * 0x54655307, 7);
    *r1 = sum;
    *f = (newest + *r1) ^ *r2;
    *v = oldest;
    s[t % 10] = newest ^ third >> 8 ^ over_alpha[third & 0xff] ^ oldest << 8
        ^ times_alpha[oldest >> 24];
}

/* Four steps; Serpent's S-box S2 over their outputs, the LFSR's words over that. */
CM_INLINE void four_steps(uint32_t s[10], uint32_t *r1, uint32_t *r2, uint32_t t,
                          uint32_t with_in, const uint8_t *in, uint8_t *out)
{
    uint32_t f[4], v[4];
    uint32_t i;

    step(s, r1, r2, t, &f[0], &v[0]);
    step(s, r1, r2, t + 1, &f[1], &v[1]);
    step(s, r1, r2, t + 2, &f[2], &v[2]);
    step(s, r1, r2, t + 3, &f[3], &v[3]);
    sbox_2(f);
    for (i = 0; i < 4; i++)
        cm_store32_le(out + 4 * i, (with_in ? cm_load32_le(in + 4 * i) : 0) ^ f[i] ^ v[i]);
}

/* The next block, XORed to `in` if it is wanted `with_in`. */
CM_INLINE void next_block(struct cm_ctx *ctx, uint32_t with_in, const uint8_t *in, uint8_t *out)
{
    uint32_t s[10];
    uint32_t r1 = ctx->r1, r2 = ctx->r2;
    uint32_t i;

    for (i = 0; i < 10; i++)
        s[i] = ctx->s[i];
    four_steps(s, &r1, &r2, 0, with_in, in, out);
    four_steps(s, &r1, &r2, 4, with_in, in + 16, out + 16);
    four_steps(s, &r1, &r2, 8, with_in, in + 32, out + 32);
    four_steps(s, &r1, &r2, 12, with_in, in + 48, out + 48);
    four_steps(s, &r1, &r2, 16, with_in, in + 64, out + 64);
    for (i = 0; i < 10; i++)
        ctx->s[i] = s[i];
    ctx->r1 = r1;
    ctx->r2 = r2;
}

#ifdef SOSEMANUK_BYTEWISE
static __attribute__((noinline)) void make_block(struct cm_ctx *ctx)
{
    next_block(ctx, 0, ctx->keystream, ctx->keystream);
}

/* Functions of their own, as in the reference: this loop knows neither length nor buffers. */
static __attribute__((noinline)) void xor_bytes(const uint8_t *a, const uint8_t *b,
                                                uint8_t *out, uint32_t bytes)
{
#if defined(__clang__)
#pragma clang loop unroll(disable) vectorize(disable)
#endif
    for (; bytes > 0; bytes--)
        *out++ = *a++ ^ *b++;
}

/* Whatever the length, all of it goes through the block in the context. */
void cm_keystream(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes)
{
    uint32_t now = ctx->unused < bytes ? ctx->unused : bytes;

    xor_bytes(in, ctx->keystream + BLOCK - ctx->unused, out, now);
    for (ctx->unused -= now; bytes > now; ctx->unused = BLOCK - now) {
        in += now;
        out += now;
        bytes -= now;
        make_block(ctx);
        now = bytes < BLOCK ? bytes : BLOCK;
        xor_bytes(in, ctx->keystream, out, now);
    }
}
#else
static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    next_block(ctx, 1, in, out);
}

CM_KEYSTREAM(BLOCK, xor_block)
#endif
CM_STREAM_CIPHER(BLOCK)
