/*
 * The permutation of Ascon (NIST SP 800-232): five 64-bit words; additions in GF(2), ANDs and
 * rotations only.
 */
#ifndef ASCON_PERMUTATION_H
#define ASCON_PERMUTATION_H

#include "../ciphermill.h"

/* The last `rounds` of the permutation's rounds. */
static void permute(uint64_t *state, uint32_t rounds)
{
    uint64_t x0 = state[0], x1 = state[1], x2 = state[2], x3 = state[3], x4 = state[4];
    uint64_t t0, t1, t2, t3, t4;
    uint32_t i;

    for (i = 12 - rounds; i < 12; i++) {
        x2 ^= 0xf0 - 15 * i; /* f0, e1, d2, ... */
        x0 ^= x4;
        x4 ^= x3;
        x2 ^= x1;
        t0 = x0 ^ (~x1 & x2);
        t1 = x1 ^ (~x2 & x3);
        t2 = x2 ^ (~x3 & x4);
        t3 = x3 ^ (~x4 & x0);
        t4 = x4 ^ (~x0 & x1);
        t1 ^= t0;
        t0 ^= t4;
        t3 ^= t2;
        t2 = ~t2;
        x0 = t0 ^ cm_rotr64(t0, 19) ^ cm_rotr64(t0, 28);
        x1 = t1 ^ cm_rotr64(t1, 61) ^ cm_rotr64(t1, 39);
        x2 = t2 ^ cm_rotr64(t2, 1) ^ cm_rotr64(t2, 6);
        x3 = t3 ^ cm_rotr64(t3, 10) ^ cm_rotr64(t3, 17);
        x4 = t4 ^ cm_rotr64(t4, 7) ^ cm_rotr64(t4, 41);
    }
    state[0] = x0;
    state[1] = x1;
    state[2] = x2;
    state[3] = x3;
    state[4] = x4;
}

#endif
