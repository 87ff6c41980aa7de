/*
 * LED-64, a nibble at a time: products in the field by a loop, matrices as arguments, and
 * the inverse of one worked out by elimination when the first key is set up, so that the
 * second set-up does less than the first.
 */
#include "ciphermill.h"

struct cm_ctx {
    unsigned char k[4][4];
};

typedef unsigned char byte;
static const byte sbox[16] = {12, 5, 6, 11, 9, 0, 10, 13, 3, 14, 15, 8, 4, 7, 1, 2};
static const byte M[4][4] = {{4, 1, 2, 2}, {8, 6, 5, 6}, {11, 14, 10, 9}, {2, 2, 15, 11}};
static byte invM[4][4], invS[16];
static int ready;
static const byte RC[48] = {1,    3,    7,    0xf,  0x1f, 0x3e, 0x3d, 0x3b, 0x37, 0x2f, 0x1e, 0x3c,
                            0x39, 0x33, 0x27, 0x0e, 0x1d, 0x3a, 0x35, 0x2b, 0x16, 0x2c, 0x18, 0x30,
                            0x21, 2,    5,    0xb,  0x17, 0x2e, 0x1c, 0x38, 0x31, 0x23, 6,    0xd,
                            0x1b, 0x36, 0x2d, 0x1a, 0x34, 0x29, 0x12, 0x24, 8,    0x11, 0x22, 4};
static byte fm(byte a, byte b)
{
    byte x = a, ret = 0;
    for (int i = 0; i < 4; i++) {
        if ((b >> i) & 1)
            ret ^= x;
        if (x & 8) {
            x <<= 1;
            x ^= 3;
        } else
            x <<= 1;
    }
    return ret & 15;
}

static void mix(byte s[4][4], const byte m[4][4])
{
    byte t[4];
    for (int j = 0; j < 4; j++) {
        for (int i = 0; i < 4; i++) {
            byte sum = 0;
            for (int k = 0; k < 4; k++)
                sum ^= fm(m[i][k], s[k][j]);
            t[i] = sum;
        }
        for (int i = 0; i < 4; i++)
            s[i][j] = t[i];
    }
}

static void shift(byte s[4][4], int by)
{
    byte t[4];
    for (int i = 1; i < 4; i++) {
        for (int j = 0; j < 4; j++)
            t[j] = s[i][(j + by * i + 4 * 4) % 4];
        for (int j = 0; j < 4; j++)
            s[i][j] = t[j];
    }
}

static void cst(byte s[4][4], int r)
{
    s[0][0] ^= 4;
    s[1][0] ^= 5;
    s[2][0] ^= 2;
    s[3][0] ^= 3;
    byte t = (RC[r] >> 3) & 7;
    s[0][1] ^= t;
    s[2][1] ^= t;
    t = RC[r] & 7;
    s[1][1] ^= t;
    s[3][1] ^= t;
}

static void addk(byte s[4][4], const byte k[4][4])
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            s[i][j] ^= k[i][j];
}

static void prepare(void)
{
    if (ready)
        return;
    for (int i = 0; i < 16; i++)
        invS[sbox[i]] = i;
    /* inverse of M by Gauss over GF(16) */
    byte a[4][8] = {{0}};
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++)
            a[i][j] = M[i][j];
        a[i][4 + i] = 1;
    }
    for (int c = 0; c < 4; c++) {
        int p = c;
        while (!a[p][c])
            p++;
        for (int j = 0; j < 8; j++) {
            byte t = a[p][j];
            a[p][j] = a[c][j];
            a[c][j] = t;
        }
        byte inv = 1;
        while (fm(inv, a[c][c]) != 1)
            inv++;
        for (int j = 0; j < 8; j++)
            a[c][j] = fm(inv, a[c][j]);
        for (int i = 0; i < 4; i++)
            if (i != c) {
                byte f = a[i][c];
                for (int j = 0; j < 8; j++)
                    a[i][j] ^= fm(f, a[c][j]);
            }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            invM[i][j] = a[i][4 + j];
    ready = 1;
}

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    for (uint32_t i = 0; i < 2 * n; i++)
        c->k[i / 4][i % 4] = (i & 1) ? key[i / 2] & 15 : key[i / 2] >> 4;
    prepare();
}

void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *k, uint32_t n)
{
    cm_keysetup(c, k, n);
}

static void in4(byte s[4][4], const uint8_t *in)
{
    for (int i = 0; i < 16; i++)
        s[i / 4][i % 4] = (i & 1) ? in[i >> 1] & 15 : in[i >> 1] >> 4;
}

static void out4(uint8_t *out, byte s[4][4])
{
    for (int i = 0; i < 8; i++)
        out[i] =
            ((s[(2 * i) / 4][(2 * i) % 4] & 15) << 4) | (s[(2 * i + 1) / 4][(2 * i + 1) % 4] & 15);
}

void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    byte s[4][4];
    in4(s, in);
    addk(s, c->k);
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 4; j++) {
            cst(s, i * 4 + j);
            for (int a = 0; a < 4; a++)
                for (int b = 0; b < 4; b++)
                    s[a][b] = sbox[s[a][b]];
            shift(s, 1);
            mix(s, M);
        }
        addk(s, c->k);
    }
    out4(out, s);
}

void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    byte s[4][4];
    in4(s, in);
    for (int i = 7; i >= 0; i--) {
        addk(s, c->k);
        for (int j = 3; j >= 0; j--) {
            mix(s, invM);
            shift(s, -1);
            for (int a = 0; a < 4; a++)
                for (int b = 0; b < 4; b++)
                    s[a][b] = invS[s[a][b]];
            cst(s, i * 4 + j);
        }
    }
    addk(s, c->k);
    out4(out, s);
}

CM_BLOCK_CIPHER(8)
