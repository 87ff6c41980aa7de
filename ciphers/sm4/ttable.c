/* SM4 with S-box and L together in four 1 KB tables. */
#include "sm4.h"
#include "tables.h"

CM_INLINE uint32_t round_function(uint32_t x)
{
    return round_0[cm_byte(x, 3)] ^ round_1[cm_byte(x, 2)] ^ round_2[cm_byte(x, 1)]
        ^ round_3[cm_byte(x, 0)];
}

SM4_ROUNDS
CM_BLOCK_CIPHER(16)
