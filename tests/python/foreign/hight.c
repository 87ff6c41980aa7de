/* HIGHT on an array of eight bytes whose places move round: everything is a byte, and is cut to one after each sum.
 *
 * ISO/IEC 18033-3:2010, annex: key 00112233445566778899aabbccddeeff, in 0000000000000000, out 00f418aed94f03f2
 * the same: key ffeeddccbbaa99887766554433221100, in 0011223344556677, out 23ce9f72e543e6d8
 */
#include "ciphermill.h"

struct cm_ctx {
    uint8_t whitening[8];
    uint8_t subkey[128];
};

static inline uint8_t rotl8(uint8_t x, int n) { return (uint8_t)(x << n | x >> (8 - n)); }
static inline uint8_t f0(uint8_t x) { return rotl8(x, 1) ^ rotl8(x, 2) ^ rotl8(x, 7); }
static inline uint8_t f1(uint8_t x) { return rotl8(x, 3) ^ rotl8(x, 4) ^ rotl8(x, 6); }

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    uint8_t mk[16], lfsr = 0x5a;
    for (uint32_t i = 0; i < 16; i++) mk[i] = key[(15 - i) % n];
    for (int i = 0; i < 4; i++) c->whitening[i] = mk[i + 12];
    for (int i = 4; i < 8; i++) c->whitening[i] = mk[i - 4];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 16; j++) {
            c->subkey[16 * i + j] = (uint8_t)(mk[(j & 8) | ((j - i) & 7)] + lfsr);
            lfsr = (uint8_t)(lfsr >> 1 | ((lfsr ^ lfsr >> 3) & 1) << 6);
        }
}

void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *key, uint32_t n) { cm_keysetup(c, key, n); }

void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint8_t x[8];
    const uint8_t *sk = c->subkey, *wk = c->whitening;
    for (int i = 0; i < 8; i++) x[i] = in[7 - i];
    x[0] += wk[0], x[2] ^= wk[1], x[4] += wk[2], x[6] ^= wk[3];
    for (int round = 0; round < 32; round++, sk += 4) {
        uint8_t last = x[7], sixth = x[6];
        x[7] = sixth;
        x[6] = x[5] + (f1(x[4]) ^ sk[2]);
        x[5] = x[4];
        x[4] = x[3] ^ (uint8_t)(f0(x[2]) + sk[1]);
        x[3] = x[2];
        x[2] = x[1] + (f1(x[0]) ^ sk[0]);
        x[1] = x[0];
        x[0] = last ^ (uint8_t)(f0(sixth) + sk[3]);
    }
    /* The last round leaves the bytes where they are. */
    uint8_t first = x[0];
    for (int i = 0; i < 7; i++) x[i] = x[i + 1];
    x[7] = first;
    x[0] += wk[4], x[2] ^= wk[5], x[4] += wk[6], x[6] ^= wk[7];
    for (int i = 0; i < 8; i++) out[7 - i] = x[i];
}

void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint8_t x[8];
    const uint8_t *sk = c->subkey + 128, *wk = c->whitening;
    for (int i = 0; i < 8; i++) x[i] = in[7 - i];
    x[0] -= wk[4], x[2] ^= wk[5], x[4] -= wk[6], x[6] ^= wk[7];
    uint8_t last = x[7];
    for (int i = 7; i > 0; i--) x[i] = x[i - 1];
    x[0] = last;
    for (int round = 31; round >= 0; round--) {
        sk -= 4;
        uint8_t first = x[0];
        x[0] = x[1];
        x[1] = x[2] - (f1(x[0]) ^ sk[0]);
        x[2] = x[3];
        x[3] = x[4] ^ (uint8_t)(f0(x[2]) + sk[1]);
        x[4] = x[5];
        x[5] = x[6] - (f1(x[4]) ^ sk[2]);
        x[6] = x[7];
        x[7] = first ^ (uint8_t)(f0(x[6]) + sk[3]);
    }
    x[0] -= wk[0], x[2] ^= wk[1], x[4] -= wk[2], x[6] ^= wk[3];
    for (int i = 0; i < 8; i++) out[7 - i] = x[i];
}

CM_BLOCK_CIPHER(8)
