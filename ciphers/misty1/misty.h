/*
 * The functions FI, FO and FL of MISTY1 and MISTY2 (M. Matsui, FSE 1997; RFC 2994) and
 * their key schedule.
 *
 * All three are small networks within the large one: FO is three rounds of FI on 16-bit
 * halves, FI three rounds of S-boxes on 9 and 7 bits. Halves of unequal width, masks and
 * shifts all over, are what costs in software. The subkeys are laid out in the order of use.
 */
#ifndef MISTY_H
#define MISTY_H

#include "../ciphermill.h"
#include "sboxes.h"

/* KO1, KI1, KO2, KI2, KO3, KI3, KO4 of one FO. */
#define FO_KEYS 7
/* KL1 and KL2 of one FL. */
#define FL_KEYS 2

CM_INLINE uint32_t fi(uint32_t x, uint32_t k)
{
    uint32_t nine = x >> 7, seven = x & 0x7f;

    nine = s9[nine] ^ seven;
    seven = s7[seven] ^ (nine & 0x7f) ^ k >> 9;
    nine = s9[nine ^ (k & 0x1ff)] ^ seven;
    return seven << 9 | nine;
}

static uint32_t fo(uint32_t x, const uint16_t *k)
{
    uint32_t a = x >> 16, b = x & 0xffff;

    a = fi(a ^ k[0], k[1]) ^ b;
    b = fi(b ^ k[2], k[3]) ^ a;
    a = fi(a ^ k[4], k[5]) ^ b;
    return (b ^ k[6]) << 16 | a;
}

CM_INLINE uint32_t fl(uint32_t x, const uint16_t *k)
{
    uint32_t a = x >> 16, b = x & 0xffff;

    b ^= a & k[0];
    a ^= b | k[1];
    return a << 16 | b;
}

CM_INLINE uint32_t inverse_fl(uint32_t x, const uint16_t *k)
{
    uint32_t a = x >> 16, b = x & 0xffff;

    a ^= b | k[1];
    b ^= a & k[0];
    return a << 16 | b;
}

/* Subkeys for `rounds` FO functions and rounds + 2 FL functions from a 16-byte key. */
static void expand_key(uint16_t *fo_keys, uint16_t *fl_keys, const uint8_t *key,
                       uint32_t rounds)
{
    uint32_t k[8], l[8]; /* the key, and the key through FI with its neighbour */
    uint32_t i, half;

    for (i = 0; i < 8; i++)
        k[i] = cm_load16_be(key + 2 * i);
    for (i = 0; i < 8; i++)
        l[i] = fi(k[i], k[(i + 1) & 7]);
    for (i = 0; i < rounds; i++, fo_keys += FO_KEYS) {
        fo_keys[0] = (uint16_t)k[i & 7];
        fo_keys[1] = (uint16_t)l[(i + 5) & 7];
        fo_keys[2] = (uint16_t)k[(i + 2) & 7];
        fo_keys[3] = (uint16_t)l[(i + 1) & 7];
        fo_keys[4] = (uint16_t)k[(i + 7) & 7];
        fo_keys[5] = (uint16_t)l[(i + 3) & 7];
        fo_keys[6] = (uint16_t)k[(i + 4) & 7];
    }
    for (i = 0; i < rounds + 2; i += 2, fl_keys += 2 * FL_KEYS) {
        half = i / 2;
        fl_keys[0] = (uint16_t)k[half & 7];
        fl_keys[1] = (uint16_t)l[(half + 6) & 7];
        fl_keys[2] = (uint16_t)l[(half + 2) & 7];
        fl_keys[3] = (uint16_t)k[(half + 4) & 7];
    }
}

#endif
