/* SAFER K-64 of six rounds: bytes in eight variables, tables of powers and logarithms, a key that is walked through.
 *
 * Massey, SAFER K-64, as LibTomCrypt has it too: key 0807060504030201, in 0102030405060708, out c8f29cdd87783ed9
 */
#include "ciphermill.h"

#define NOF_ROUNDS 6
#define ROL(x, n) ((uint8_t)((uint8_t)(x) << (n) | (uint8_t)(x) >> (8 - (n))))
#define EXP(x) c->exp[(x) & 0xff]
#define LOG(x) c->log[(x) & 0xff]
#define PHT(x, y) { y += x; x += y; }
#define IPHT(x, y) { x -= y; y -= x; }

struct cm_ctx {
    uint8_t key[8 * (1 + 2 * NOF_ROUNDS)];
    uint8_t exp[256], log[256];
};

void cm_keysetup(struct cm_ctx *c, const uint8_t *user, uint32_t n)
{
    uint8_t k[8], *key = c->key;
    uint32_t power = 1;

    for (uint32_t i = 0; i < 256; i++) {
        c->exp[i] = (uint8_t)power;
        c->log[power & 0xff] = (uint8_t)i;
        power = power * 45 % 257;
    }
    for (uint32_t j = 0; j < 8; j++)
        k[j] = *key++ = user[j % n];
    for (uint32_t j = 0; j < 8; j++)
        k[j] = ROL(k[j], 6);
    for (uint32_t i = 1; i <= NOF_ROUNDS; i++) {
        uint8_t first[8];
        for (uint32_t j = 0; j < 8; j++) {
            first[j] = ROL(user[j % n], 5);
            for (uint32_t times = 0; times < i; times++) first[j] = ROL(first[j], 6);
            *key++ = first[j] + c->exp[c->exp[18 * i + j + 1]];
        }
        for (uint32_t j = 0; j < 8; j++) {
            *key++ = k[j] + c->exp[c->exp[18 * i + j + 10]];
            k[j] = ROL(k[j], 6);
        }
    }
}

void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *user, uint32_t n) { cm_keysetup(c, user, n); }

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const struct cm_ctx *const c = ctx;
    const uint8_t *key = c->key;
    uint8_t a = in[0], b = in[1], d = in[2], e = in[3], f = in[4], g = in[5], h = in[6], i = in[7], t;

    for (int round = NOF_ROUNDS; round--;) {
        a ^= *key++, b += *key++, d += *key++, e ^= *key++;
        f ^= *key++, g += *key++, h += *key++, i ^= *key++;
        a = EXP(a) + *key++, b = LOG(b) ^ *key++, d = LOG(d) ^ *key++, e = EXP(e) + *key++;
        f = EXP(f) + *key++, g = LOG(g) ^ *key++, h = LOG(h) ^ *key++, i = EXP(i) + *key++;
        PHT(a, b) PHT(d, e) PHT(f, g) PHT(h, i)
        PHT(a, d) PHT(f, h) PHT(b, e) PHT(g, i)
        PHT(a, f) PHT(b, g) PHT(d, h) PHT(e, i)
        t = b, b = f, f = d, d = t;
        t = e, e = g, g = h, h = t;
    }
    a ^= *key++, b += *key++, d += *key++, e ^= *key++;
    f ^= *key++, g += *key++, h += *key++, i ^= *key++;
    out[0] = a, out[1] = b, out[2] = d, out[3] = e, out[4] = f, out[5] = g, out[6] = h, out[7] = i;
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const struct cm_ctx *const c = ctx;
    const uint8_t *key = c->key + sizeof c->key;
    uint8_t a = in[0], b = in[1], d = in[2], e = in[3], f = in[4], g = in[5], h = in[6], i = in[7], t;

    i ^= *--key, h -= *--key, g -= *--key, f ^= *--key;
    e ^= *--key, d -= *--key, b -= *--key, a ^= *--key;
    for (int round = NOF_ROUNDS; round--;) {
        t = f, f = b, b = d, d = t;
        t = g, g = e, e = h, h = t;
        IPHT(a, f) IPHT(b, g) IPHT(d, h) IPHT(e, i)
        IPHT(a, d) IPHT(f, h) IPHT(b, e) IPHT(g, i)
        IPHT(a, b) IPHT(d, e) IPHT(f, g) IPHT(h, i)
        i -= *--key, h ^= *--key, g ^= *--key, f -= *--key;
        e -= *--key, d ^= *--key, b ^= *--key, a -= *--key;
        i = LOG(i) ^ *--key, h = EXP(h) - *--key, g = EXP(g) - *--key, f = LOG(f) ^ *--key;
        e = LOG(e) ^ *--key, d = EXP(d) - *--key, b = EXP(b) - *--key, a = LOG(a) ^ *--key;
    }
    out[0] = a, out[1] = b, out[2] = d, out[3] = e, out[4] = f, out[5] = g, out[6] = h, out[7] = i;
}

CM_BLOCK_CIPHER(8)
