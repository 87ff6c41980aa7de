/* Xoodoo's twelve rounds on three planes of four lanes, in loops; a key comes in before and after, as in Even and Mansour's cipher.
 *
 * Extended Keccak Code Package, Xoodoo of zeros: key 00000000000000000000000000000000,
 *   in 000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000,
 *   out 8dd8d589bffc63a9192d231b14a0a5ff0681b136fec1c7afbe7ce5aebd4075a770e8862ec9b7f5fef2ad4f8b62404f5e
 */
#include "ciphermill.h"

#define NROWS 3
#define NCOLUMNS 4

typedef uint32_t xoodoo_lane;
typedef xoodoo_lane xoodoo_plane[NCOLUMNS];

struct cm_ctx { xoodoo_plane key; };

static const xoodoo_lane rc[12] = { 0x58, 0x38, 0x3c0, 0xd0, 0x120, 0x14, 0x60, 0x2c, 0x380, 0xf0, 0x1a0, 0x12 };

static void round_of(xoodoo_lane a[NROWS][NCOLUMNS], xoodoo_lane constant)
{
    xoodoo_plane p, e;
    xoodoo_lane b[NROWS][NCOLUMNS];
    unsigned x, y;

    for (x = 0; x < NCOLUMNS; x++)
        p[x] = a[0][x] ^ a[1][x] ^ a[2][x];
    for (x = 0; x < NCOLUMNS; x++)
        e[x] = cm_rotl32(p[(x + 3) % NCOLUMNS], 5) ^ cm_rotl32(p[(x + 3) % NCOLUMNS], 14);
    for (y = 0; y < NROWS; y++)
        for (x = 0; x < NCOLUMNS; x++)
            a[y][x] ^= e[x];
    for (x = 0; x < NCOLUMNS; x++) {
        b[0][x] = a[0][x];
        b[1][x] = a[1][(x + 3) % NCOLUMNS];
        b[2][x] = cm_rotl32(a[2][x], 11);
    }
    b[0][0] ^= constant;
    for (y = 0; y < NROWS; y++)
        for (x = 0; x < NCOLUMNS; x++)
            a[y][x] = b[y][x] ^ (~b[(y + 1) % NROWS][x] & b[(y + 2) % NROWS][x]);
    for (x = 0; x < NCOLUMNS; x++) {
        a[1][x] = cm_rotl32(a[1][x], 1);
        p[x] = cm_rotl32(a[2][(x + 2) % NCOLUMNS], 8);
    }
    for (x = 0; x < NCOLUMNS; x++)
        a[2][x] = p[x];
}

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    for (unsigned x = 0; x < NCOLUMNS; x++) c->key[x] = cm_load32_le(key + 4 * x % n);
}

void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    xoodoo_lane a[NROWS][NCOLUMNS];
    unsigned i;

    for (i = 0; i < NROWS * NCOLUMNS; i++)
        a[i / NCOLUMNS][i % NCOLUMNS] = cm_load32_le(in + 4 * i) ^ c->key[i % NCOLUMNS];
    for (i = 0; i < 12; i++)
        round_of(a, rc[i]);
    for (i = 0; i < NROWS * NCOLUMNS; i++)
        cm_store32_le(out + 4 * i, a[i / NCOLUMNS][i % NCOLUMNS] ^ c->key[i % NCOLUMNS]);
}

CM_BLOCK_CIPHER(48)
