/* Spritz: a permutation that is written by every byte, recursion of small functions, a loop left by gcd (w is odd). */
#include "ciphermill.h"
typedef struct { uint8_t s[256], a, i, j, k, w, z; } spritz;
struct cm_ctx { spritz t; };
#define N 256
#define S(x) (t->s[(uint8_t)(x)])
static void swap(spritz *t, int x, int y) { uint8_t v = t->s[x]; t->s[x] = t->s[y]; t->s[y] = v; }
static int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
static void update(spritz *t) { t->i += t->w; t->j = t->k + S(t->j + S(t->i)); t->k = t->i + t->k + S(t->j); swap(t, t->i, t->j); }
static void whip(spritz *t, int r) { while (r--) update(t); do t->w++; while (gcd(t->w, N) != 1); }
static void crush(spritz *t) { int v; for (v = 0; v < N / 2; v++) if (t->s[v] > t->s[N-1-v]) swap(t, v, N-1-v); }
static void shuffle(spritz *t) { whip(t, 2*N); crush(t); whip(t, 2*N); crush(t); whip(t, 2*N); t->a = 0; }
static void nibble(spritz *t, uint8_t x) { if (t->a == N/2) shuffle(t); swap(t, t->a, N/2 + x); t->a++; }
static void absorb(spritz *t, uint8_t b) { nibble(t, b & 15); nibble(t, b >> 4); }
static void stop(spritz *t) { if (t->a == N/2) shuffle(t); t->a++; }
static uint8_t drip(spritz *t) { if (t->a > 0) shuffle(t); update(t); return t->z = S(t->j + S(t->i + S(t->z + t->k))); }
void cm_keysetup(struct cm_ctx *c, const uint8_t *k, uint32_t n)
{
    spritz *t = &c->t; int v;
    t->i = t->j = t->k = t->z = t->a = 0; t->w = 1;
    for (v = 0; v < N; v++) t->s[v] = v;
    while (n--) absorb(t, *k++);
}
void cm_ivsetup(struct cm_ctx *c, const uint8_t *iv, uint32_t n) { if (n) { stop(&c->t); while (n--) absorb(&c->t, *iv++); } }
void cm_keystream(struct cm_ctx *c, const uint8_t *in, uint8_t *out, uint32_t n) { while (n--) *out++ = *in++ ^ drip(&c->t); }
CM_STREAM_CIPHER(1)
