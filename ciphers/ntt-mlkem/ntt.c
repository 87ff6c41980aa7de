/*
 * The number-theoretic transform of ML-KEM (FIPS 203): polynomials of 256 coefficients modulo 3329,
 * transformed to 128 polynomials of degree one.
 *
 * Three functions, as kernels: the transform, its inverse, and the product of what has been
 * transformed ("base multiplication"). Coefficients are words of 16 bits from 0 to 3328, before and
 * after. Roots of unity come in Montgomery's form, times 2^16.
 */
#include <stdint.h>

#define N 256
#define Q 3329
#define Q_INVERSE -3327 /* modulo 2^16 */

/* 17 to the power of i with its seven bits reversed, times 2^16 modulo Q. */
static const int16_t roots[128] = {
    -1044, -758, -359, -1517, 1493, 1422, 287, 202, -171, 622, 1577, 182,
    962, -1202, -1474, 1468, 573, -1325, 264, 383, -829, 1458, -1602, -130,
    -681, 1017, 732, 608, -1542, 411, -205, -1571, 1223, 652, -552, 1015,
    -1293, 1491, -282, -1544, 516, -8, -320, -666, -1618, -1162, 126, 1469,
    -853, -90, -271, 830, 107, -1421, -247, -951, -398, 961, -1508, -725,
    448, -1065, 677, -1275, -1103, 430, 555, 843, -1251, 871, 1550, 105,
    422, 587, 177, -235, -291, -460, 1574, 1653, -246, 778, 1159, -147,
    -777, 1483, -602, 1119, -1590, 644, -872, 349, 418, 329, -156, -75,
    817, 1097, 603, 610, 1322, -1285, -1465, 384, -1215, -136, 1218, -1335,
    -874, 220, -1187, -1659, -1185, -1530, -1278, 794, -1510, -854, -870, 478,
    -108, -308, 996, 991, 958, -1460, 1522, 1628,
};

/* x / 2^16 modulo Q, from -Q to Q, for x from -Q 2^15 to Q 2^15. */
static inline int16_t reduce(int32_t x)
{
    int16_t t = (int16_t)((int16_t)x * Q_INVERSE);

    return (int16_t)((x - (int32_t)t * Q) >> 16);
}

static inline int16_t multiply(int16_t a, int16_t b) { return reduce((int32_t)a * b); }

/* From 0 to Q - 1. The quotient is off by less than one. */
static inline int16_t canonical(int16_t x)
{
    int16_t t = (int16_t)(x - (int16_t)(((int32_t)x * 20159 + (1 << 25)) >> 26) * Q);

    return (int16_t)(t + ((t >> 15) & Q));
}

void mlkem_ntt(int16_t *r)
{
    uint32_t length, start, j, k = 1;

    for (length = 128; length >= 2; length >>= 1)
        for (start = 0; start < N; start += 2 * length) {
            int16_t root = roots[k++];

            for (j = start; j < start + length; j++) {
                int16_t t = multiply(root, r[j + length]);

                r[j + length] = (int16_t)(r[j] - t);
                r[j] = (int16_t)(r[j] + t);
            }
        }
    for (j = 0; j < N; j++)
        r[j] = canonical(r[j]);
}

void mlkem_inverse_ntt(int16_t *r)
{
    uint32_t length, start, j, k = 127;

    for (length = 2; length <= 128; length <<= 1)
        for (start = 0; start < N; start += 2 * length) {
            int16_t root = roots[k--];

            for (j = start; j < start + length; j++) {
                int16_t t = r[j];

                r[j] = canonical((int16_t)(t + r[j + length]));
                r[j + length] = multiply(root, (int16_t)(r[j + length] - t));
            }
        }
    /* Divided by 128, the number of transforms' halvings. */
    for (j = 0; j < N; j++)
        r[j] = canonical(multiply(r[j], 512));
}

/* r = a b, polynomials of degree one modulo X^2 - root and X^2 + root in turn. */
void mlkem_multiply(int16_t *r, const int16_t *a, const int16_t *b)
{
    uint32_t i, sign;

    for (i = 0; i < N / 4; i++)
        for (sign = 0; sign < 2; sign++, r += 2, a += 2, b += 2) {
            int16_t root = sign ? (int16_t)-roots[64 + i] : roots[64 + i];
            int16_t high = multiply(multiply(a[1], b[1]), root);

            r[0] = canonical(multiply((int16_t)(high + multiply(a[0], b[0])), 1353));
            r[1] = canonical(multiply((int16_t)(multiply(a[0], b[1]) + multiply(a[1], b[0])), 1353));
        }
}
