/* Grain-128a without its tag, 32 steps at a time: the registers are arrays of words, shifted by a loop.
 *
 * Agren and others 2011, appendix: key 0123456789abcdef123456789abcdef0, iv 0123456789abcdef12345678,
 *   out f88720c13f46e6a43c07eeed89161a4d
 * the same: key 00000000000000000000000000000000, iv 000000000000000000000000, out c0207f221660650b6a952ae26586136f
 */
#include "ciphermill.h"

typedef struct cm_ctx {
    uint32_t key[4];
    uint32_t lfsr[4];
    uint32_t nfsr[4];
    CM_UNUSED_KEYSTREAM(32);
} grain_ctx;

/* Bits n to n + 31 of a register, the first highest. */
static inline uint32_t at(const uint32_t *r, unsigned n)
{
    unsigned word = n / 32, bit = n % 32;
    return bit == 0 ? r[word] : r[word] << bit | r[word + 1] >> (32 - bit);
}

static void shift(uint32_t *r, uint32_t in)
{
    for (int i = 0; i < 3; i++)
        r[i] = r[i + 1];
    r[3] = in;
}

#define L(n) at(g->lfsr, n)
#define N(n) at(g->nfsr, n)

static uint32_t clock32(grain_ctx *g, uint32_t feedback)
{
    uint32_t f = L(0) ^ L(7) ^ L(38) ^ L(70) ^ L(81) ^ L(96);
    uint32_t n = L(0) ^ N(0) ^ N(26) ^ N(56) ^ N(91) ^ N(96) ^ (N(3) & N(67)) ^ (N(11) & N(13)) ^ (N(17) & N(18))
        ^ (N(27) & N(59)) ^ (N(40) & N(48)) ^ (N(61) & N(65)) ^ (N(68) & N(84)) ^ (N(88) & N(92) & N(93) & N(95))
        ^ (N(22) & N(24) & N(25)) ^ (N(70) & N(78) & N(82));
    uint32_t h = (N(12) & L(8)) ^ (L(13) & L(20)) ^ (N(95) & L(42)) ^ (L(60) & L(79)) ^ (N(12) & N(95) & L(94));
    uint32_t y = h ^ L(93) ^ N(2) ^ N(15) ^ N(36) ^ N(45) ^ N(64) ^ N(73) ^ N(89);
    shift(g->lfsr, f ^ (y & feedback));
    shift(g->nfsr, n ^ (y & feedback));
    return y;
}

void cm_keysetup(struct cm_ctx *g, const uint8_t *key, uint32_t bytes)
{
    for (int i = 0; i < 4; i++)
        g->key[i] = cm_load32_be(key + 4 * i % bytes);
}

void cm_ivsetup(struct cm_ctx *g, const uint8_t *iv, uint32_t bytes)
{
    for (int i = 0; i < 4; i++) {
        g->nfsr[i] = g->key[i];
        g->lfsr[i] = i < 3 && 4 * i + 4 <= (int)bytes ? cm_load32_be(iv + 4 * i) : 0;
    }
    g->lfsr[3] = 0xfffffffe;
    for (int i = 0; i < 8; i++)
        clock32(g, ~0u);
    g->unused = 0;
}

static void xor_block(struct cm_ctx *g, const uint8_t *in, uint8_t *out)
{
    for (int i = 0; i < 32; i += 4)
        cm_store32_be(out + i, cm_load32_be(in + i) ^ clock32(g, 0));
}

CM_KEYSTREAM(32, xor_block)
CM_STREAM_CIPHER(32)
