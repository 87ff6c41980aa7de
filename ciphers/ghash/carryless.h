/*
 * Carry-less products of words in constant time, on machines that multiply integers.
 *
 * A word is taken apart into four, each with every fourth of its bits. Products of such words have
 * room for carries: what comes to bit k is the number of pairs of bits whose places come to k, of which
 * there are fewer than sixteen, and its parity is what is wanted. (T. Pornin, BearSSL, 2016.)
 */
#ifndef CARRYLESS_H
#define CARRYLESS_H

#include "../ciphermill.h"

#if GHASH_PRODUCTS == 32

#define EACH_FOURTH 0x11111111u
#define FOURTHS 0x1111111111111111u

/* 32 bits by 32 bits. */
CM_INLINE uint64_t carryless(uint32_t x, uint32_t y)
{
    uint64_t sum = 0;

    for (int k = 0; k < 4; k++) {
        uint64_t part = 0;

        for (int i = 0; i < 4; i++)
            part ^= (uint64_t)(x & EACH_FOURTH << i) * (y & EACH_FOURTH << ((k - i) & 3));
        sum |= part & FOURTHS << k;
    }
    return sum;
}

/* 64 bits by 64 bits, with three products in place of four (A. Karatsuba, 1962). */
CM_INLINE void carryless128(uint64_t x, uint64_t y, uint64_t *low, uint64_t *high)
{
    uint32_t x0 = (uint32_t)x, x1 = (uint32_t)(x >> 32), y0 = (uint32_t)y, y1 = (uint32_t)(y >> 32);
    uint64_t a = carryless(x0, y0), b = carryless(x1, y1);
    uint64_t middle = carryless(x0 ^ x1, y0 ^ y1) ^ a ^ b;

    *low = a ^ middle << 32;
    *high = b ^ middle >> 32;
}

#else

#define EACH_FOURTH 0x1111111111111111u

/* The lower half of 64 bits by 64 bits. What a sum of sixteen carries falls out at the top. */
CM_INLINE uint64_t carryless_low(uint64_t x, uint64_t y)
{
    uint64_t sum = 0;

    for (int k = 0; k < 4; k++) {
        uint64_t part = 0;

        for (int i = 0; i < 4; i++)
            part ^= (x & EACH_FOURTH << i) * (y & EACH_FOURTH << ((k - i) & 3));
        sum |= part & EACH_FOURTH << k;
    }
    return sum;
}

CM_INLINE uint64_t reversed(uint64_t x)
{
    x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
    x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
    x = (x >> 8 & 0x00ff00ff00ff00ff) | (x & 0x00ff00ff00ff00ff) << 8;
    x = (x >> 16 & 0x0000ffff0000ffff) | (x & 0x0000ffff0000ffff) << 16;
    return x >> 32 | x << 32;
}

/* 64 bits by 64 bits: the upper half is the lower one of the words with their bits reversed. */
CM_INLINE void carryless128(uint64_t x, uint64_t y, uint64_t *low, uint64_t *high)
{
    *low = carryless_low(x, y);
    *high = reversed(carryless_low(reversed(x), reversed(y))) >> 1;
}

#endif

#endif
