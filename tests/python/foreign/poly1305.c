/* Poly1305 of one block: five limbs of 26 bits, products of 64, and a constant-time last subtraction.
 *
 * RFC 8439, appendix A.3, vector 7 and 8: key 0200000000000000000000000000000000000000000000000000000000000000,
 *   in ffffffffffffffffffffffffffffffff, out 03000000000000000000000000000000
 * the same: key 02000000000000000000000000000000ffffffffffffffffffffffffffffffff,
 *   in 02000000000000000000000000000000, out 03000000000000000000000000000000
 */
#include "ciphermill.h"

struct cm_ctx {
    uint32_t r[5];
    uint32_t pad[4];
};

static const uint32_t mask26 = 0x3ffffff;

static void limbs(uint32_t h[5], const uint32_t w[4])
{
    h[0] = w[0] & mask26;
    h[1] = (w[0] >> 26 | w[1] << 6) & mask26;
    h[2] = (w[1] >> 20 | w[2] << 12) & mask26;
    h[3] = (w[2] >> 14 | w[3] << 18) & mask26;
    h[4] = w[3] >> 8;
}

void cm_keysetup(struct cm_ctx *st, const uint8_t *key, uint32_t n)
{
    uint32_t w[4];
    for (uint32_t i = 0; i < 4; i++) {
        w[i] = cm_load32_le(key + 4 * i % n) & (i ? 0x0ffffffc : 0x0fffffff);
        st->pad[i] = cm_load32_le(key + (16 + 4 * i) % n);
    }
    limbs(st->r, w);
}

void cm_encrypt(const struct cm_ctx *st, const uint8_t *m, uint8_t *mac)
{
    uint32_t w[4], h[5], g[5], c, mask;
    uint64_t d[5], f;
    int i, j;

    for (i = 0; i < 4; i++)
        w[i] = cm_load32_le(m + 4 * i);
    limbs(h, w);
    h[4] |= 1 << 24;

    for (i = 0; i < 5; i++) {
        d[i] = 0;
        for (j = 0; j < 5; j++)
            d[i] += (uint64_t)h[j] * (j <= i ? st->r[i - j] : 5 * st->r[5 + i - j]);
    }
    for (i = 0, f = 0; i < 5; i++) {
        f += d[i];
        h[i] = (uint32_t)f & mask26;
        f >>= 26;
    }
    h[0] += (uint32_t)f * 5;
    for (i = 0, c = 0; i < 5; i++) {
        h[i] += c;
        c = h[i] >> 26;
        h[i] &= mask26;
    }
    h[0] += 5 * c;
    h[1] += h[0] >> 26;
    h[0] &= mask26;

    /* h, or h - p where that is not negative. */
    for (i = 0, c = 5; i < 5; i++) {
        g[i] = h[i] + c;
        c = g[i] >> 26;
        g[i] &= mask26;
    }
    mask = 0u - c;
    for (i = 0; i < 5; i++)
        h[i] = (h[i] & ~mask) | (g[i] & mask);

    w[0] = h[0] | h[1] << 26;
    w[1] = h[1] >> 6 | h[2] << 20;
    w[2] = h[2] >> 12 | h[3] << 14;
    w[3] = h[3] >> 18 | h[4] << 8;
    for (i = 0, f = 0; i < 4; i++) {
        f += (uint64_t)w[i] + st->pad[i];
        cm_store32_le(mac + 4 * i, (uint32_t)f);
        f >>= 32;
    }
}

CM_BLOCK_CIPHER(16)
