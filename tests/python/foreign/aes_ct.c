/* AES-128 without tables: four bytes in a word at once, inverses by powers, for processors with caches that tell.
 *
 * FIPS 197, appendix C.1: key 000102030405060708090a0b0c0d0e0f, in 00112233445566778899aabbccddeeff,
 *   out 69c4e0d86a7b0430d8cdb78070b4c55a
 */
#include "ciphermill.h"

#define NR 10

struct cm_ctx { uint32_t rk[4 * (NR + 1)]; };

static uint32_t xtime4(uint32_t x) { return (x & 0x7f7f7f7f) << 1 ^ (x >> 7 & 0x01010101) * 0x1b; }

/* Products of each byte of a with that of b. */
static uint32_t mul4(uint32_t a, uint32_t b)
{
    uint32_t r = 0;
    for (int i = 0; i < 8; i++) {
        r ^= a & (b & 0x01010101) * 255;
        a = xtime4(a);
        b = b >> 1 & 0x7f7f7f7f;
    }
    return r;
}

static uint32_t sub4(uint32_t x)
{
    uint32_t x2 = mul4(x, x), x3 = mul4(x2, x), x12, x15, r, s;
    x12 = mul4(x3, x3), x12 = mul4(x12, x12);
    x15 = mul4(x12, x3);
    r = x15;
    for (int i = 0; i < 4; i++) r = mul4(r, r); /* x^240 */
    r = mul4(mul4(r, x12), x2);                 /* x^254 */
    s = r;
    for (int i = 0; i < 4; i++) {
        r = (r & 0x7f7f7f7f) << 1 | (r >> 7 & 0x01010101);
        s ^= r;
    }
    return s ^ 0x63636363;
}

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    uint32_t rcon = 1, *rk = c->rk;
    for (int i = 0; i < 4; i++) rk[i] = cm_load32_le(key + 4 * i % n);
    for (int i = 4; i < 4 * (NR + 1); i++) {
        uint32_t t = rk[i - 1];
        if (i % 4 == 0) {
            t = sub4(t >> 8 | t << 24) ^ rcon;
            rcon = xtime4(rcon);
        }
        rk[i] = rk[i - 4] ^ t;
    }
}

void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint32_t s[4], t[4];
    for (int i = 0; i < 4; i++) s[i] = cm_load32_le(in + 4 * i) ^ c->rk[i];
    for (int round = 1; round <= NR; round++) {
        for (int i = 0; i < 4; i++) t[i] = sub4(s[i]);
        for (int i = 0; i < 4; i++) {
            uint32_t u = (t[i] & 0xff) | (t[(i + 1) & 3] & 0xff00) | (t[(i + 2) & 3] & 0xff0000) | (t[(i + 3) & 3] & 0xff000000);
            if (round < NR) {
                uint32_t next = u >> 8 | u << 24;
                u = next ^ (u >> 16 | u << 16) ^ (u >> 24 | u << 8) ^ xtime4(u ^ next);
            }
            s[i] = u ^ c->rk[4 * round + i];
        }
    }
    for (int i = 0; i < 4; i++) cm_store32_le(out + 4 * i, s[i]);
}

CM_BLOCK_CIPHER(16)
