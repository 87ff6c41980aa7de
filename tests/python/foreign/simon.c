/* SIMON64/128 and two rounds in an iteration, as a library for small machines has it.
 *
 * Beaulieu and others 2013, appendix B: key 0001020308090a0b1011121318191a1b, in 756e64206c696b65, out 7aa0dfb920fcc844
 */
#include "ciphermill.h"

enum { ROUNDS = 44 };

struct cm_ctx { uint32_t k[ROUNDS]; };

static inline uint32_t f(uint32_t x) { return (cm_rotl32(x, 1) & cm_rotl32(x, 8)) ^ cm_rotl32(x, 2); }

#define TWO_ROUNDS(x, y, k, l)      \
    do {                            \
        (y) ^= (k); (y) ^= f(x);    \
        (x) ^= (l); (x) ^= f(y);    \
    } while (0)

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    uint64_t z = 0xfc2ce51207a635dbULL; /* z3, the first bit lowest */
    for (int i = 0; i < 4; i++) c->k[i] = cm_load32_le(key + 4 * i % n);
    for (int i = 4; i < ROUNDS; i++) {
        uint32_t t = cm_rotr32(c->k[i - 1], 3) ^ c->k[i - 3];
        t ^= cm_rotr32(t, 1);
        c->k[i] = 0xfffffffc ^ (z & 1) ^ c->k[i - 4] ^ t;
        z >>= 1;
    }
}

void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *key, uint32_t n) { cm_keysetup(c, key, n); }

void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint32_t y = cm_load32_le(in), x = cm_load32_le(in + 4);
    for (unsigned i = 0; i < ROUNDS; i += 2) TWO_ROUNDS(x, y, c->k[i], c->k[i + 1]);
    cm_store32_le(out, y), cm_store32_le(out + 4, x);
}

void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint32_t y = cm_load32_le(in), x = cm_load32_le(in + 4);
    for (int i = ROUNDS - 2; i >= 0; i -= 2) TWO_ROUNDS(y, x, c->k[i + 1], c->k[i]);
    cm_store32_le(out, y), cm_store32_le(out + 4, x);
}

CM_BLOCK_CIPHER(8)
