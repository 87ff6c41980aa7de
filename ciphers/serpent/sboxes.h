/*
 * Serpent's eight S-boxes and their inverses as Boolean expressions on four words, 32
 * S-boxes side by side: bit 0 of each S-box's input is in a (x[0]), bit 3 in d (x[3]).
 *
 * The expressions were found by a meet-in-the-middle search over chains of in-place steps
 * (one word XORed with a function of at most three others, or inverted), each operation
 * counted as one; they take 13 to 16 operations, 14.5 on average. Moving the results to
 * their places costs nothing once compiled.
 */
#ifndef SERPENT_SBOXES_H
#define SERPENT_SBOXES_H

#include "../ciphermill.h"

/* 3 8 15 1 10 6 5 11 14 13 4 2 7 0 9 12 */
CM_INLINE void sbox_0(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    b ^= a | d;
    c ^= b;
    a ^= d;
    d ^= a | b;
    b = ~b;
    a ^= c | d;
    d ^= c;
    a ^= b;
    d ^= a;
    b ^= a | d;
    x[0] = a;
    x[1] = d;
    x[2] = b;
    x[3] = c;
}

/* 15 12 2 7 9 0 5 10 1 11 14 8 6 13 3 4 */
CM_INLINE void sbox_1(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    b ^= a;
    c ^= a | b;
    a ^= c;
    c ^= b & d;
    b ^= a | c;
    a = ~a;
    d ^= a;
    b ^= d;
    a ^= b & c;
    c ^= b;
    x[0] = a;
    x[1] = c;
    x[2] = d;
    x[3] = b;
}

/* 8 6 7 9 3 12 10 15 13 1 14 4 0 11 5 2 */
CM_INLINE void sbox_2(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    d ^= a & c;
    b ^= d;
    a ^= b & d;
    b ^= c;
    c ^= a & d;
    a ^= b;
    d ^= a | c;
    a = ~a;
    c ^= d;
    x[0] = b;
    x[1] = d;
    x[2] = c;
    x[3] = a;
}

/* 0 15 11 8 12 9 6 3 13 1 2 4 10 7 5 14 */
CM_INLINE void sbox_3(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    d ^= b;
    b ^= a | d;
    d ^= b | c;
    a ^= b | d;
    c ^= (a | b) & d;
    d ^= a & b;
    b ^= a & c;
    a ^= c;
    x[0] = b;
    x[1] = c;
    x[2] = a;
    x[3] = d;
}

/* 1 15 8 3 12 0 11 6 2 5 4 10 9 14 7 13 */
CM_INLINE void sbox_4(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    a ^= d;
    d ^= a & b;
    c ^= a & d;
    a ^= b | c;
    c ^= b;
    c = ~c;
    b ^= a;
    b ^= c & d;
    d ^= (a | b) & c;
    x[0] = c;
    x[1] = d;
    x[2] = b;
    x[3] = a;
}

/* 15 5 2 11 4 10 9 12 0 3 14 8 13 6 7 1 */
CM_INLINE void sbox_5(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    c ^= a | b;
    a ^= c;
    d = ~d;
    b ^= a | d;
    d ^= (a | b) & c;
    c ^= b;
    b ^= d;
    a ^= b | c;
    b ^= a & d;
    x[0] = a;
    x[1] = c;
    x[2] = b;
    x[3] = d;
}

/* 7 2 12 5 8 4 6 11 14 9 1 15 13 3 10 0 */
CM_INLINE void sbox_6(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    c ^= a & d;
    b ^= c;
    d ^= a;
    a ^= b | d;
    b = ~b;
    d ^= a | c;
    d ^= b;
    c ^= d;
    a ^= d;
    d ^= a & c;
    x[0] = a;
    x[1] = b;
    x[2] = c;
    x[3] = d;
}

/* 1 13 15 0 14 8 2 11 7 4 12 10 9 3 5 6 */
CM_INLINE void sbox_7(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    d ^= b | c;
    c ^= d;
    b ^= d;
    d ^= (b | c) & a;
    c ^= a | b;
    a = ~a;
    a ^= b | d;
    b ^= a | c;
    a ^= b | c;
    x[0] = b;
    x[1] = d;
    x[2] = a;
    x[3] = c;
}

/* 13 3 11 0 10 6 5 12 1 14 4 7 15 9 8 2 */
CM_INLINE void inverse_sbox_0(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    b ^= a;
    c ^= a | b;
    a ^= c;
    c = ~c;
    a ^= b | d;
    b ^= a | c;
    b ^= d;
    a ^= b;
    d ^= c;
    c ^= a | b;
    x[0] = a;
    x[1] = c;
    x[2] = d;
    x[3] = b;
}

/* 5 8 2 14 15 6 12 3 11 4 7 9 1 13 10 0 */
CM_INLINE void inverse_sbox_1(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    b ^= d;
    a ^= b & d;
    d ^= a & b;
    c ^= a;
    b ^= c & d;
    a ^= b;
    d ^= c;
    d ^= a;
    a = ~a;
    b ^= a | d;
    x[0] = a;
    x[1] = d;
    x[2] = b;
    x[3] = c;
}

/* 12 9 15 4 11 14 1 2 0 3 6 13 5 8 10 7 */
CM_INLINE void inverse_sbox_2(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    c ^= b;
    d = ~d;
    b ^= c | d;
    d ^= a;
    c ^= b & d;
    a ^= c;
    d ^= a & b;
    a ^= b;
    b ^= c & d;
    x[0] = d;
    x[1] = a;
    x[2] = c;
    x[3] = b;
}

/* 0 9 10 7 11 14 6 13 3 5 12 2 4 8 15 1 */
CM_INLINE void inverse_sbox_3(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    c ^= b;
    a ^= b & c;
    d ^= a & c;
    b ^= (a | c) & d;
    c ^= a | d;
    d ^= a | b;
    a ^= c | d;
    d ^= a;
    x[0] = c;
    x[1] = a;
    x[2] = b;
    x[3] = d;
}

/* 5 0 8 3 10 9 7 14 2 12 11 6 4 15 13 1 */
CM_INLINE void inverse_sbox_4(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    b ^= (c | d) & a;
    a = ~a;
    c ^= a | b;
    c ^= d;
    d ^= a | c;
    a ^= c;
    c ^= b & d;
    b ^= a & d;
    d ^= b;
    x[0] = d;
    x[1] = a;
    x[2] = c;
    x[3] = b;
}

/* 8 15 2 9 4 1 13 14 11 6 5 3 7 12 10 0 */
CM_INLINE void inverse_sbox_5(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    c ^= a & d;
    d ^= c;
    a ^= b | c;
    c ^= (a | d) & b;
    b ^= d;
    d ^= a | c;
    a ^= b;
    b ^= a | d;
    c = ~c;
    x[0] = a;
    x[1] = d;
    x[2] = b;
    x[3] = c;
}

/* 15 10 1 13 5 3 6 0 4 9 14 7 2 12 8 11 */
CM_INLINE void inverse_sbox_6(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    d ^= a | c;
    c ^= d;
    a ^= d;
    d ^= a & c;
    d ^= b;
    b = ~b;
    c ^= b | d;
    b ^= a;
    d ^= c;
    a ^= c & d;
    x[0] = c;
    x[1] = b;
    x[2] = a;
    x[3] = d;
}

/* 3 0 6 13 9 14 15 8 5 12 11 7 10 1 4 2 */
CM_INLINE void inverse_sbox_7(uint32_t x[4])
{
    uint32_t a = x[0], b = x[1], c = x[2], d = x[3];

    c ^= a | d;
    a ^= c | d;
    c ^= a | b;
    c = ~c;
    d ^= a | c;
    b ^= (a | d) & c;
    a ^= b;
    d ^= b;
    b ^= a | d;
    x[0] = c;
    x[1] = a;
    x[2] = d;
    x[3] = b;
}

#endif
