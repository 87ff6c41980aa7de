/* Magma (GOST R 34.12-2015, 64-bit), S-boxes as a table of strings; goto rounds. */
#include "ciphermill.h"
struct cm_ctx { uint32_t k[8]; };
static const char *const pi[8] = {
  "\14\4\6\2\12\5\13\11\16\10\15\7\0\3\17\1", "\6\10\2\3\11\12\5\14\1\16\4\7\13\15\0\17",
  "\13\3\5\10\2\17\12\15\16\1\7\4\14\11\6\0", "\14\10\2\1\15\4\17\6\7\0\12\5\3\16\11\13",
  "\7\17\5\12\10\1\6\15\0\11\3\16\13\4\2\14", "\5\15\17\6\11\2\14\12\13\7\10\1\4\3\16\0",
  "\10\16\2\5\6\11\1\14\17\4\13\0\15\12\3\7", "\1\7\16\15\0\5\10\3\4\17\12\6\11\14\13\2" };
static uint32_t g(uint32_t a, uint32_t k)
{
    uint32_t x = a + k, y = 0; int i;
    for (i = 7; i >= 0; --i) y = y << 4 | (uint32_t)pi[i][x >> 4 * i & 15];
    return y << 11 | y >> 21;
}
void cm_keysetup(struct cm_ctx *c, const uint8_t *k, uint32_t n) { for (int i = 0; i < 8; i++) c->k[i] = cm_load32_be(k + 4 * i % n); }
void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *k, uint32_t n) { cm_keysetup(c, k, n); }
static void run(const struct cm_ctx *c, const uint8_t *in, uint8_t *out, int d)
{
    uint32_t a1 = cm_load32_be(in), a0 = cm_load32_be(in + 4), t; int r = 0, i;
again:
    i = d ? (r < 8 ? r : 7 - (r & 7)) : (r < 24 ? r % 8 : 7 - r % 8);
    t = a1 ^ g(a0, c->k[i]);
    a1 = a0; a0 = t;
    if (++r < 32) goto again;
    cm_store32_be(out, a0); cm_store32_be(out + 4, a1);
}
void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) { run(c, in, out, 0); }
void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) { run(c, in, out, 1); }
CM_BLOCK_CIPHER(8)
