/*
 * PRESENT without tables. If bit j of all sixteen nibbles is gathered into slice j, the
 * S-boxes are Boolean operations on slices, and the four slices side by side already are
 * the permuted state. So a round is the gathering: four exchanges of bits between places.
 *
 * Place w * 32 + p of the state (w the word) holds bit b = p & 3 of nibble n; gathering
 * moves it to place 16 b + n. As places are numbers of six bits, that is a rotation of
 * those six by two, made of four swaps.
 */
#include "present.h"

struct words {
    uint32_t low, high;
};

/* Exchanges bits `mask` << `distance` of a word with bits `mask`. */
CM_INLINE uint32_t exchange(uint32_t x, uint32_t mask, uint32_t distance)
{
    uint32_t t = (x >> distance ^ x) & mask;

    return x ^ t ^ t << distance;
}

/* Exchanges bits `mask` << `distance` of the lower word with bits `mask` of the upper. */
CM_INLINE struct words cross(struct words x, uint32_t mask, uint32_t distance)
{
    uint32_t t = (x.low >> distance ^ x.high) & mask;

    x.high ^= t;
    x.low ^= t << distance;
    return x;
}

CM_INLINE struct words gather(struct words x)
{
    x = cross(x, 0x00ff00ff, 8);
    x = cross(x, 0x33333333, 2);
    x.low = exchange(exchange(x.low, 0x0000f0f0, 12), 0x0000aaaa, 15);
    x.high = exchange(exchange(x.high, 0x0000f0f0, 12), 0x0000aaaa, 15);
    return x;
}

CM_INLINE struct words scatter(struct words x)
{
    x.low = exchange(exchange(x.low, 0x0000aaaa, 15), 0x0000f0f0, 12);
    x.high = exchange(exchange(x.high, 0x0000aaaa, 15), 0x0000f0f0, 12);
    x = cross(x, 0x33333333, 2);
    return cross(x, 0x00ff00ff, 8);
}

/* The S-boxes on slices that lie as 0 | 1 << 16 and 2 | 3 << 16. */
CM_INLINE struct words substitute_slices(struct words x)
{
    uint32_t slice[4] = {x.low, x.low >> 16, x.high, x.high >> 16};

    substitute_bits(slice);
    x.low = (slice[0] & 0xffff) | slice[1] << 16;
    x.high = (slice[2] & 0xffff) | slice[3] << 16;
    return x;
}

CM_INLINE struct words unsubstitute_slices(struct words x)
{
    uint32_t a = x.low, b = x.low >> 16, c = x.high, d = x.high >> 16;

    c ^= b & d;
    d ^= c;
    c = ~c;
    b ^= a;
    d ^= b;
    a ^= c;
    b ^= a | d;
    d ^= b & c;
    c ^= b & d;
    b ^= d;
    x.low = (a & 0xffff) | b << 16;
    x.high = (d & 0xffff) | c << 16;
    return x;
}

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    struct words x;
    uint32_t i;

    x.high = cm_load32_be(in);
    x.low = cm_load32_be(in + 4);
    for (i = 0; i < ROUNDS; i++) {
        x.low ^= ctx->round_key[i][0];
        x.high ^= ctx->round_key[i][1];
        x = substitute_slices(gather(x));
    }
    cm_store32_be(out, x.high ^ ctx->round_key[ROUNDS][1]);
    cm_store32_be(out + 4, x.low ^ ctx->round_key[ROUNDS][0]);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    struct words x;
    uint32_t i;

    x.high = cm_load32_be(in) ^ ctx->round_key[ROUNDS][1];
    x.low = cm_load32_be(in + 4) ^ ctx->round_key[ROUNDS][0];
    for (i = ROUNDS; i-- != 0;) {
        x = scatter(unsubstitute_slices(x));
        x.low ^= ctx->round_key[i][0];
        x.high ^= ctx->round_key[i][1];
    }
    cm_store32_be(out, x.high);
    cm_store32_be(out + 4, x.low);
}

CM_BLOCK_CIPHER(8)
