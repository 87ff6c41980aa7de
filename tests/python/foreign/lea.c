/* LEA-128 as in its authors' library: rounds in a loop over six round-key words, four words that move on by one place.
 *
 * ISO/IEC 29192-2:2019, annex: key 0f1e2d3c4b5a69788796a5b4c3d2e1f0, in 101112131415161718191a1b1c1d1e1f,
 *   out 9fc84e3528c6c6185532c7a704648bfd
 */
#include "ciphermill.h"

#define LEA_ROUNDS 24
#define ROL32(x, n) (((x) << ((n) & 31)) | ((x) >> ((32 - (n)) & 31)))
#define ROR32(x, n) ROL32(x, 32 - (n))

typedef struct cm_ctx {
    uint32_t rk[LEA_ROUNDS][6];
} LEA_KEY;

static const uint32_t delta[4] = { 0xc3efe9dbU, 0x44626b02U, 0x79e27c8aU, 0x78df30ecU };

void cm_keysetup(LEA_KEY *key, const uint8_t *mk, uint32_t mk_len)
{
    uint32_t t[4];
    int i;

    for (i = 0; i < 4; ++i)
        t[i] = cm_load32_le(mk + 4 * i % mk_len);
    for (i = 0; i < LEA_ROUNDS; ++i) {
        const uint32_t d = delta[i & 3];
        t[0] = ROL32(t[0] + ROL32(d, i), 1);
        t[1] = ROL32(t[1] + ROL32(d, i + 1), 3);
        t[2] = ROL32(t[2] + ROL32(d, i + 2), 6);
        t[3] = ROL32(t[3] + ROL32(d, i + 3), 11);
        key->rk[i][0] = t[0];
        key->rk[i][2] = t[2];
        key->rk[i][4] = t[3];
        key->rk[i][1] = key->rk[i][3] = key->rk[i][5] = t[1];
    }
}

void cm_keysetup_decrypt(LEA_KEY *key, const uint8_t *mk, uint32_t mk_len)
{
    cm_keysetup(key, mk, mk_len);
}

void cm_encrypt(const LEA_KEY *key, const uint8_t *pt, uint8_t *ct)
{
    uint32_t x[4], t;
    const uint32_t *rk = &key->rk[0][0];
    int i;

    for (i = 0; i < 4; ++i)
        x[i] = cm_load32_le(pt + 4 * i);
    for (i = 0; i < LEA_ROUNDS; ++i, rk += 6) {
        t = x[0];
        x[0] = ROL32((x[0] ^ rk[0]) + (x[1] ^ rk[1]), 9);
        x[1] = ROR32((x[1] ^ rk[2]) + (x[2] ^ rk[3]), 5);
        x[2] = ROR32((x[2] ^ rk[4]) + (x[3] ^ rk[5]), 3);
        x[3] = t;
    }
    for (i = 0; i < 4; ++i)
        cm_store32_le(ct + 4 * i, x[i]);
}

void cm_decrypt(const LEA_KEY *key, const uint8_t *ct, uint8_t *pt)
{
    uint32_t x[4], t;
    const uint32_t *rk = &key->rk[LEA_ROUNDS - 1][0];
    int i;

    for (i = 0; i < 4; ++i)
        x[i] = cm_load32_le(ct + 4 * i);
    for (i = 0; i < LEA_ROUNDS; ++i, rk -= 6) {
        t = x[3];
        x[3] = ROL32(x[2], 3);
        x[2] = ROL32(x[1], 5);
        x[1] = ROR32(x[0], 9);
        x[0] = t;
        x[1] = (x[1] - (x[0] ^ rk[0])) ^ rk[1];
        x[2] = (x[2] - (x[1] ^ rk[2])) ^ rk[3];
        x[3] = (x[3] - (x[2] ^ rk[4])) ^ rk[5];
    }
    for (i = 0; i < 4; ++i)
        cm_store32_le(pt + 4 * i, x[i]);
}

CM_BLOCK_CIPHER(16)
