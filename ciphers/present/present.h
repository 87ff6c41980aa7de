/*
 * What both variants of PRESENT share: the context and the key schedule.
 *
 * 31 rounds on 64 bits: the round key is XORed, sixteen 4-bit S-boxes are applied, and bit i
 * moves to place 16 i mod 63. Keys of 10 or 16 bytes. The state is two words, big-endian.
 */
#ifndef PRESENT_H
#define PRESENT_H

#include "../ciphermill.h"

#define ROUNDS 31

struct cm_ctx {
    uint32_t round_key[ROUNDS + 1][2]; /* lower word, upper word */
};

/*
 * The S-box on four words, bit 0 of each S-box's input in x[0]; 14 operations found by a
 * search over chains of in-place steps.
 */
CM_INLINE void substitute_bits(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    b ^= c;
    d ^= b & c;
    c ^= b & d;
    b ^= a | c;
    a ^= d;
    d = ~d;
    c ^= d;
    c ^= b;
    b ^= a;
    d ^= b & c;
    x[0] = a;
    x[1] = b;
    x[2] = d;
    x[3] = c;
}

CM_INLINE void put_key(struct cm_ctx *ctx, uint32_t i, uint64_t k)
{
    ctx->round_key[i][0] = (uint32_t)k;
    ctx->round_key[i][1] = (uint32_t)(k >> 32);
}

/* An S-box on the four bits of k that begin at bit `at`; no lookup, because k is secret. */
CM_INLINE uint64_t substitute(uint64_t k, uint32_t at)
{
    uint32_t nibble = (uint32_t)(k >> at) & 15;
    uint32_t x[4] = {nibble, nibble >> 1, nibble >> 2, nibble >> 3};
    uint32_t y;

    substitute_bits(x);
    y = (x[0] & 1) | (x[1] & 1) << 1 | (x[2] & 1) << 2 | (x[3] & 1) << 3;
    return k ^ (uint64_t)(nibble ^ y) << at;
}

/* The key register is rotated left by 61 bits between round keys, its upper 64 bits. */
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint64_t high = cm_load64_be(key), old;
    uint64_t low = key_bytes == 10 ? cm_load16_be(key + 8) : cm_load64_be(key + 8);
    uint32_t i;

    put_key(ctx, 0, high);
    for (i = 1; i <= ROUNDS; i++) {
        old = high;
        if (key_bytes == 10) {
            high = ((old & 7) << 16 | low) << 45 | old >> 19;
            low = old >> 3 & 0xffff;
            high = substitute(high, 60) ^ i >> 1;
            low ^= (uint64_t)(i & 1) << 15;
        } else {
            high = old << 61 | low >> 3;
            low = low << 61 | old >> 3;
            high = substitute(substitute(high, 60), 56) ^ i >> 2;
            low ^= (uint64_t)(i & 3) << 62;
        }
        put_key(ctx, i, high);
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

#endif
