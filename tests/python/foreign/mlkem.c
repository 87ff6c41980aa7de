/* The number-theoretic transform of ML-KEM and its inverse, on 256 halfwords: three loops in each other, Montgomery products.
 *
 * FIPS 203, algorithms 9 and 10; compared in the test with sums of powers of 17. No key has a part in it.
 */
#include "ciphermill.h"

#define Q 3329
#define QINV (-3327) /* 1 / Q modulo 2^16 */

struct cm_ctx { uint32_t none; };

static const int16_t zetas[128] = {
    -1044, -758, -359, -1517, 1493, 1422, 287, 202, -171, 622, 1577, 182, 962, -1202, -1474, 1468,
    573, -1325, 264, 383, -829, 1458, -1602, -130, -681, 1017, 732, 608, -1542, 411, -205, -1571,
    1223, 652, -552, 1015, -1293, 1491, -282, -1544, 516, -8, -320, -666, -1618, -1162, 126, 1469,
    -853, -90, -271, 830, 107, -1421, -247, -951, -398, 961, -1508, -725, 448, -1065, 677, -1275,
    -1103, 430, 555, 843, -1251, 871, 1550, 105, 422, 587, 177, -235, -291, -460, 1574, 1653,
    -246, 778, 1159, -147, -777, 1483, -602, 1119, -1590, 644, -872, 349, 418, 329, -156, -75,
    817, 1097, 603, 610, 1322, -1285, -1465, 384, -1215, -136, 1218, -1335, -874, 220, -1187, -1659,
    -1185, -1530, -1278, 794, -1510, -854, -870, 478, -108, -308, 996, 991, 958, -1460, 1522, 1628,
};

static int16_t montgomery_reduce(int32_t a)
{
    int16_t t = (int16_t)((uint32_t)a * (uint32_t)QINV);
    return (int16_t)((a - (int32_t)t * Q) >> 16);
}

static int16_t barrett_reduce(int16_t a)
{
    const int16_t v = ((1 << 26) + Q / 2) / Q;
    int16_t t = (int16_t)(((int32_t)v * a + (1 << 25)) >> 26);
    return (int16_t)(a - t * Q);
}

static int16_t fqmul(int16_t a, int16_t b) { return montgomery_reduce((int32_t)a * b); }

static void ntt(int16_t r[256])
{
    unsigned len, start, j, k = 1;
    for (len = 128; len >= 2; len >>= 1)
        for (start = 0; start < 256; start = j + len) {
            int16_t zeta = zetas[k++];
            for (j = start; j < start + len; j++) {
                int16_t t = fqmul(zeta, r[j + len]);
                r[j + len] = (int16_t)(r[j] - t);
                r[j] = (int16_t)(r[j] + t);
            }
        }
}

static void invntt(int16_t r[256])
{
    unsigned len, start, j, k = 127;
    for (len = 2; len <= 128; len <<= 1)
        for (start = 0; start < 256; start = j + len) {
            int16_t zeta = zetas[k--];
            for (j = start; j < start + len; j++) {
                int16_t t = r[j];
                r[j] = barrett_reduce((int16_t)(t + r[j + len]));
                r[j + len] = fqmul(zeta, (int16_t)(r[j + len] - t));
            }
        }
    /* 512 is 2^16 / 128: the product takes Montgomery's factor out again. */
    for (j = 0; j < 256; j++)
        r[j] = fqmul(r[j], 512);
}

static void read(int16_t r[256], const uint8_t *in)
{
    for (int i = 0; i < 256; i++)
        r[i] = barrett_reduce((int16_t)(in[2 * i] | in[2 * i + 1] << 8));
}

/* From 0 to Q - 1, whatever the sign. */
static void write(uint8_t *out, const int16_t r[256])
{
    for (int i = 0; i < 256; i++) {
        int16_t a = barrett_reduce(r[i]);
        a = (int16_t)(a + (a >> 15 & Q));
        out[2 * i] = (uint8_t)a;
        out[2 * i + 1] = (uint8_t)(a >> 8);
    }
}

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n) { (void)key, (void)n, c->none = 0; }
void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *key, uint32_t n) { cm_keysetup(c, key, n); }

void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    int16_t r[256];
    (void)c;
    read(r, in);
    ntt(r);
    write(out, r);
}

void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    int16_t r[256];
    (void)c;
    read(r, in);
    invntt(r);
    write(out, r);
}

CM_BLOCK_CIPHER(512)
