/*
 * Camellia with one 256-byte S-box: the other three are rotations of its values or of its
 * index. The P-function on whole words is four rotations and four XORs.
 */
#include "camellia.h"
#include "sbox.h"

CM_INLINE uint32_t box1(uint32_t x)
{
    return s1[x];
}

CM_INLINE uint32_t box2(uint32_t x)
{
    return ((uint32_t)s1[x] << 1 & 0xff) | s1[x] >> 7;
}

CM_INLINE uint32_t box3(uint32_t x)
{
    return ((uint32_t)s1[x] << 7 & 0xff) | s1[x] >> 1;
}

CM_INLINE uint32_t box4(uint32_t x)
{
    return s1[(x << 1 & 0xff) | x >> 7];
}

CM_INLINE void f(uint32_t *to, const uint32_t *from, const uint32_t *key)
{
    uint32_t x = from[0] ^ key[0], y = from[1] ^ key[1];

    x = box1(cm_byte(x, 3)) << 24 | box2(cm_byte(x, 2)) << 16 | box3(cm_byte(x, 1)) << 8
        | box4(cm_byte(x, 0));
    y = box2(cm_byte(y, 3)) << 24 | box3(cm_byte(y, 2)) << 16 | box4(cm_byte(y, 1)) << 8
        | box1(cm_byte(y, 0));
    x ^= cm_rotl32(y, 8);
    y ^= cm_rotl32(x, 16);
    x ^= cm_rotr32(y, 8);
    y ^= cm_rotr32(x, 8);
    to[0] ^= y;
    to[1] ^= x;
}

CM_BLOCK_CIPHER(16)
