/* SPECK48/96: words of 24 bits in 32-bit variables, masked by a bit-field. */
#include "ciphermill.h"
typedef struct { uint32_t v : 24; } u24;
struct cm_ctx { u24 k[23]; };
static u24 ror(u24 x, int n) { u24 r; r.v = x.v >> n | x.v << (24 - n); return r; }
static u24 rol(u24 x, int n) { return ror(x, 24 - n); }
static void round_(u24 *x, u24 *y, u24 k) { *x = ror(*x, 8); x->v += y->v; x->v ^= k.v; *y = rol(*y, 3); y->v ^= x->v; }
static void back(u24 *x, u24 *y, u24 k) { y->v ^= x->v; *y = ror(*y, 3); x->v ^= k.v; x->v -= y->v; *x = rol(*x, 8); }
static u24 get(const uint8_t *p) { u24 r; r.v = p[0] | p[1] << 8 | p[2] << 16; return r; }
static void put(uint8_t *p, u24 x) { p[0] = x.v; p[1] = x.v >> 8; p[2] = x.v >> 16; }
void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    u24 l[3], k = get(key), i; int j; (void)n;
    for (j = 0; j < 3; j++) l[j] = get(key + 3 + 3*j);
    for (j = 0; j < 23; j++) { c->k[j] = k; i.v = j; round_(&l[j % 3], &k, i); }
}
void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *k, uint32_t n) { cm_keysetup(c, k, n); }
void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) { u24 y = get(in), x = get(in + 3); int i; for (i = 0; i < 23; i++) round_(&x, &y, c->k[i]); put(out, y); put(out + 3, x); }
void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) { u24 y = get(in), x = get(in + 3); int i; for (i = 22; i >= 0; i--) back(&x, &y, c->k[i]); put(out, y); put(out + 3, x); }
CM_BLOCK_CIPHER(6)
