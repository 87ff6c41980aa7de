/* Blowfish as many libraries have it: a structure with P and S, rounds in pairs by a macro.
 *
 * Schneier, vectors by Young: key 0000000000000000, in 0000000000000000, out 4ef997456198dd78
 * the same: key 0123456789abcdef, in 1111111111111111, out 61f9c3802281b096
 */
#include "ciphermill.h"
#include "blowfish_pi.h"

#define BF_ROUNDS 16

typedef struct cm_ctx {
    uint32_t P[BF_ROUNDS + 2];
    uint32_t S[4 * 256];
} BF_KEY;

#define BF_F(s, x) ((((s)[(x) >> 24] + (s)[256 + ((x) >> 16 & 0xff)]) ^ (s)[512 + ((x) >> 8 & 0xff)]) + (s)[768 + ((x) & 0xff)])
#define BF_ENC(l, r, s, p) (r ^= (p), r ^= BF_F(s, l))

static void BF_encrypt(uint32_t data[2], const BF_KEY *key)
{
    uint32_t l = data[0], r = data[1];
    const uint32_t *p = key->P, *s = key->S;

    l ^= p[0];
    for (int i = 1; i <= BF_ROUNDS; i += 2) {
        BF_ENC(l, r, s, p[i]);
        BF_ENC(r, l, s, p[i + 1]);
    }
    r ^= p[BF_ROUNDS + 1];
    data[1] = l;
    data[0] = r;
}

static void BF_decrypt(uint32_t data[2], const BF_KEY *key)
{
    uint32_t l = data[0], r = data[1];
    const uint32_t *p = key->P, *s = key->S;

    l ^= p[BF_ROUNDS + 1];
    for (int i = BF_ROUNDS; i > 0; i -= 2) {
        BF_ENC(l, r, s, p[i]);
        BF_ENC(r, l, s, p[i - 1]);
    }
    r ^= p[0];
    data[1] = l;
    data[0] = r;
}

void cm_keysetup(BF_KEY *key, const uint8_t *data, uint32_t len)
{
    uint32_t in[2] = { 0, 0 }, at = 0;
    int i, k;

    for (i = 0; i < BF_ROUNDS + 2; i++) {
        uint32_t word = 0;
        for (k = 0; k < 4; k++) {
            word = word << 8 | data[at];
            if (++at == len)
                at = 0;
        }
        key->P[i] = PI[i] ^ word;
    }
    for (i = 0; i < 4 * 256; i++)
        key->S[i] = PI[BF_ROUNDS + 2 + i];
    for (i = 0; i < BF_ROUNDS + 2; i += 2) {
        BF_encrypt(in, key);
        key->P[i] = in[0];
        key->P[i + 1] = in[1];
    }
    for (i = 0; i < 4 * 256; i += 2) {
        BF_encrypt(in, key);
        key->S[i] = in[0];
        key->S[i + 1] = in[1];
    }
}

void cm_keysetup_decrypt(BF_KEY *key, const uint8_t *data, uint32_t len) { cm_keysetup(key, data, len); }

void cm_encrypt(const BF_KEY *key, const uint8_t *in, uint8_t *out)
{
    uint32_t d[2] = { cm_load32_be(in), cm_load32_be(in + 4) };
    BF_encrypt(d, key);
    cm_store32_be(out, d[0]);
    cm_store32_be(out + 4, d[1]);
}

void cm_decrypt(const BF_KEY *key, const uint8_t *in, uint8_t *out)
{
    uint32_t d[2] = { cm_load32_be(in), cm_load32_be(in + 4) };
    BF_decrypt(d, key);
    cm_store32_be(out, d[0]);
    cm_store32_be(out + 4, d[1]);
}

CM_BLOCK_CIPHER(8)
