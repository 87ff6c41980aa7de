/* SM4 with the S-box as its only table; L is four rotations of the whole word. */
#include "sm4.h"

CM_INLINE uint32_t round_function(uint32_t x)
{
    x = sub_word(x);
    return x ^ cm_rotl32(x, 2) ^ cm_rotl32(x, 10) ^ cm_rotl32(x, 18) ^ cm_rotl32(x, 24);
}

SM4_ROUNDS
CM_BLOCK_CIPHER(16)
