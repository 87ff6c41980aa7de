/*
 * Twofish's fixed byte permutations q0 and q1, worked out from the permutations of half
 * bytes that they are made of (section 4.3.5 of the submission): 128 bytes of tables
 * instead of 512, and some twenty operations for a byte instead of a lookup.
 */
#ifndef TWOFISH_NIBBLES_H
#define TWOFISH_NIBBLES_H

#include "../ciphermill.h"

static const uint8_t nibbles0[4][16] = {
    {8, 1, 7, 13, 6, 15, 3, 2, 0, 11, 5, 9, 14, 12, 10, 4},
    {14, 12, 11, 8, 1, 2, 3, 5, 15, 4, 10, 6, 7, 0, 9, 13},
    {11, 10, 5, 14, 6, 13, 9, 0, 12, 8, 15, 3, 2, 4, 7, 1},
    {13, 7, 15, 4, 1, 2, 6, 14, 9, 11, 3, 0, 8, 5, 12, 10},
};
static const uint8_t nibbles1[4][16] = {
    {2, 8, 11, 13, 15, 7, 6, 14, 3, 1, 9, 4, 0, 10, 12, 5},
    {1, 14, 2, 11, 4, 12, 3, 7, 6, 13, 10, 5, 15, 9, 0, 8},
    {4, 12, 7, 5, 1, 6, 9, 10, 0, 14, 13, 8, 2, 11, 3, 15},
    {11, 9, 5, 1, 12, 3, 13, 14, 6, 4, 7, 15, 2, 0, 8, 10},
};

/* A byte through both layers of one permutation: mix the halves, look each of them up. */
static uint32_t permuted(uint32_t x, const uint8_t table[4][16])
{
    uint32_t a = x >> 4, b = x & 15;
    uint32_t layer, mixed;

    for (layer = 0; layer < 4; layer += 2) {
        mixed = (a ^ (b >> 1 | b << 3) ^ a << 3) & 15; /* a + b rotated by a bit + 8 a */
        a = table[layer][a ^ b];
        b = table[layer + 1][mixed];
    }
    return b << 4 | a;
}

CM_INLINE uint32_t q0(uint32_t x)
{
    return permuted(x, nibbles0);
}

CM_INLINE uint32_t q1(uint32_t x)
{
    return permuted(x, nibbles1);
}

#endif
