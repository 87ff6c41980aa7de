/* Salsa20's hash of 64 bytes, as its specification says it: rounds of columns and of rows on arrays, by index.
 *
 * Salsa20 specification, section 8: key 00000000000000000000000000000000,
 *   in d39f0d734c3752b70375de25bfbbea8831edb330016ab2dbafc7a6305610b3cf1ff0203f0f535da174933071ee37cc244fc9eb4f03519c2fcb1af4f358766836,
 *   out 6d2ab2a89cf0f8eea8c4becb1a6eaa9a1d1d961a961eebf9bea3fb30459033397628989db4391b5e6b2aec231b6f7272dbece8876f9b6e1218e85f9eb31330ca
 */
#include "ciphermill.h"

struct cm_ctx { uint32_t none; };

static void doubleround(uint32_t y[16])
{
    static const uint8_t amount[4] = { 7, 9, 13, 18 };
    uint32_t z[4];

    /* Columns: step k changes the word k + 1 rows below the diagonal. */
    for (unsigned c = 0; c < 4; c++) {
        for (unsigned k = 0; k < 4; k++) z[k] = y[(5 * c + 4 * k) % 16];
        for (unsigned k = 0; k < 4; k++) z[(k + 1) % 4] ^= cm_rotl32(z[k] + z[(k + 3) % 4], amount[k]);
        for (unsigned k = 0; k < 4; k++) y[(5 * c + 4 * k) % 16] = z[k];
    }
    /* Rows. */
    for (unsigned r = 0; r < 4; r++) {
        for (unsigned k = 0; k < 4; k++) z[k] = y[4 * r + (r + k) % 4];
        for (unsigned k = 0; k < 4; k++) z[(k + 1) % 4] ^= cm_rotl32(z[k] + z[(k + 3) % 4], amount[k]);
        for (unsigned k = 0; k < 4; k++) y[4 * r + (r + k) % 4] = z[k];
    }
}

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n) { (void)key, (void)n, c->none = 0; }

void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint32_t x[16], y[16];
    (void)c;
    for (unsigned i = 0; i < 16; i++) x[i] = y[i] = cm_load32_le(in + 4 * i);
    for (unsigned i = 0; i < 10; i++) doubleround(y);
    for (unsigned i = 0; i < 16; i++) cm_store32_le(out + 4 * i, x[i] + y[i]);
}

CM_BLOCK_CIPHER(64)
