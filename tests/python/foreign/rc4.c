#include "ciphermill.h"
struct cm_ctx { unsigned char s[256], i, j; uint8_t key[32]; uint32_t n; };
void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n) { for (c->n = 0; c->n < n; c->n++) c->key[c->n] = key[c->n]; }
void cm_ivsetup(struct cm_ctx *c, const uint8_t *iv, uint32_t n)
{
    unsigned i = 0, j = 0; unsigned char t;
    (void)iv; (void)n;
    do c->s[i] = i; while (i++ < 255);
    for (i = 0; i < 256; i++) { j = (j + c->s[i] + c->key[i % c->n]) % 256; t = c->s[i]; c->s[i] = c->s[j]; c->s[j] = t; }
    c->i = c->j = 0;
}
void cm_keystream(struct cm_ctx *c, const uint8_t *in, uint8_t *out, uint32_t bytes)
{
    unsigned char i = c->i, j = c->j, *s = c->s;
    while (bytes--) {
        unsigned char a, b;
        a = s[++i]; j += a; b = s[j]; s[j] = a; s[i] = b;
        *out++ = *in++ ^ s[(a + b) & 255];
    }
    c->i = i; c->j = j;
}
CM_STREAM_CIPHER(1)
