/* Camellia with S-boxes and P-function together in four 1 KB tables. */
#include "camellia.h"
#include "tables.h"

CM_INLINE void f(uint32_t *to, const uint32_t *from, const uint32_t *key)
{
    uint32_t x = from[0] ^ key[0], y = from[1] ^ key[1];
    uint32_t u, d;

    u = sp1110[cm_byte(x, 3)] ^ sp0222[cm_byte(x, 2)] ^ sp3033[cm_byte(x, 1)]
        ^ sp4404[cm_byte(x, 0)];
    d = u ^ sp0222[cm_byte(y, 3)] ^ sp3033[cm_byte(y, 2)] ^ sp4404[cm_byte(y, 1)]
        ^ sp1110[cm_byte(y, 0)];
    to[0] ^= d;
    to[1] ^= d ^ cm_rotr32(u, 8);
}

CM_BLOCK_CIPHER(16)
