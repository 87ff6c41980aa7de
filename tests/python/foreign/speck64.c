/* SPECK64/128 as a library has it: macros, round keys in the context, words by bytes. */
#include "ciphermill.h"
#define ROR(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define ROL(x, n) ((x) << (n) | (x) >> (32 - (n)))
#define ER(x, y, k) ((x) = (ROR(x, 8) + (y)) ^ (k), (y) = ROL(y, 3) ^ (x))
#define DR(x, y, k) ((y) = ROR((y) ^ (x), 3), (x) = ROL(((x) ^ (k)) - (y), 8))
#define ROUNDS 27
struct cm_ctx { uint32_t rk[ROUNDS]; };
static uint32_t get(const uint8_t *p) { return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24; }
static void put(uint8_t *p, uint32_t x) { p[0] = x; p[1] = x >> 8; p[2] = x >> 16; p[3] = x >> 24; }
void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    uint32_t a = get(key), l[3] = { get(key + 4), get(key + 8), get(key + 12) }, i;
    (void)n;
    for (i = 0; i < ROUNDS; i++) { c->rk[i] = a; ER(l[i % 3], a, i); }
}
void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *key, uint32_t n) { cm_keysetup(c, key, n); }
void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint32_t y = get(in), x = get(in + 4), i;
    for (i = 0; i < ROUNDS; i++) ER(x, y, c->rk[i]);
    put(out, y); put(out + 4, x);
}
void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint32_t y = get(in), x = get(in + 4), i;
    for (i = ROUNDS; i-- > 0;) DR(x, y, c->rk[i]);
    put(out, y); put(out + 4, x);
}
CM_BLOCK_CIPHER(8)
