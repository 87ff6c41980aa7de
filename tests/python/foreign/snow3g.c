/*
 * SNOW 3G with its state in globals that move one by one, products by powers of x by
 * recursion, S-boxes worked out with the first key, and keystream byte by byte.
 */
#include "ciphermill.h"

typedef unsigned char u8;
typedef uint32_t u32;
struct cm_ctx {
    u32 k[4];
    u32 S[16];
    u32 F[3];
    u8 buf[4];
    int left;
};

static u32 LFSR_S0, LFSR_S1, LFSR_S2, LFSR_S3, LFSR_S4, LFSR_S5, LFSR_S6, LFSR_S7, LFSR_S8, LFSR_S9,
    LFSR_S10, LFSR_S11, LFSR_S12, LFSR_S13, LFSR_S14, LFSR_S15;
static u32 FSM_R1, FSM_R2, FSM_R3;
static u8 SR[256], SQ[256];
static int boxes;
static u8 MULx(u8 V, u8 c)
{
    if (V & 0x80)
        return (V << 1) ^ c;
    else
        return V << 1;
}

static u8 MULxPOW(u8 V, u8 i, u8 c)
{
    if (i == 0)
        return V;
    else
        return MULx(MULxPOW(V, i - 1, c), c);
}

static u8 gmul(u8 a, u8 b, u8 c)
{
    u8 r = 0;
    for (; b; b >>= 1) {
        if (b & 1)
            r ^= a;
        a = MULx(a, c);
    }
    return r;
}

static u8 gpow(u8 a, int e, u8 c)
{
    return e == 0 ? 1 : e & 1 ? gmul(a, gpow(a, e - 1, c), c) : gpow(gmul(a, a, c), e / 2, c);
}

static void make(void)
{
    for (int i = 0; i < 256; i++) {
        u8 x = i, v = i ? gpow(x, 254, 0x1b) : 0, y = v;
        for (int j = 0; j < 4; j++) {
            v = v << 1 | v >> 7;
            y ^= v;
        }
        SR[i] = y ^ 0x63;
        static const u8 ex[] = {1, 9, 13, 15, 33, 41, 45, 47, 49};
        y = 0x25;
        for (unsigned j = 0; j < sizeof ex; j++)
            y ^= gpow(x, ex[j], 0x69);
        SQ[i] = y;
    }
    boxes = 1;
}

static u32 MULalpha(u8 c)
{
    return ((u32)MULxPOW(c, 23, 0xa9) << 24) | ((u32)MULxPOW(c, 245, 0xa9) << 16) |
           ((u32)MULxPOW(c, 48, 0xa9) << 8) | MULxPOW(c, 239, 0xa9);
}

static u32 DIValpha(u8 c)
{
    return ((u32)MULxPOW(c, 16, 0xa9) << 24) | ((u32)MULxPOW(c, 39, 0xa9) << 16) |
           ((u32)MULxPOW(c, 6, 0xa9) << 8) | MULxPOW(c, 64, 0xa9);
}

static u32 Sbox(u32 w, const u8 *T, u8 p)
{
    u8 r0, r1, r2, r3, a = T[w >> 24 & 0xff], b = T[w >> 16 & 0xff], c = T[w >> 8 & 0xff],
                       d = T[w & 0xff];
    r0 = MULx(a, p) ^ b ^ c ^ MULx(d, p) ^ d;
    r1 = MULx(a, p) ^ a ^ MULx(b, p) ^ c ^ d;
    r2 = a ^ MULx(b, p) ^ b ^ MULx(c, p) ^ d;
    r3 = a ^ b ^ MULx(c, p) ^ c ^ MULx(d, p);
    return (u32)r0 << 24 | (u32)r1 << 16 | (u32)r2 << 8 | r3;
}

static void Clock(u32 F)
{
    u32 v = ((LFSR_S0 << 8) & 0xffffff00) ^ MULalpha(LFSR_S0 >> 24 & 0xff) ^ LFSR_S2 ^
            ((LFSR_S11 >> 8) & 0x00ffffff) ^ DIValpha(LFSR_S11 & 0xff) ^ F;
    LFSR_S0 = LFSR_S1;
    LFSR_S1 = LFSR_S2;
    LFSR_S2 = LFSR_S3;
    LFSR_S3 = LFSR_S4;
    LFSR_S4 = LFSR_S5;
    LFSR_S5 = LFSR_S6;
    LFSR_S6 = LFSR_S7;
    LFSR_S7 = LFSR_S8;
    LFSR_S8 = LFSR_S9;
    LFSR_S9 = LFSR_S10;
    LFSR_S10 = LFSR_S11;
    LFSR_S11 = LFSR_S12;
    LFSR_S12 = LFSR_S13;
    LFSR_S13 = LFSR_S14;
    LFSR_S14 = LFSR_S15;
    LFSR_S15 = v;
}

static u32 ClockFSM(void)
{
    u32 F = (LFSR_S15 + FSM_R1) ^ FSM_R2, r = FSM_R2 + (FSM_R3 ^ LFSR_S5);
    FSM_R3 = Sbox(FSM_R2, SQ, 0x69);
    FSM_R2 = Sbox(FSM_R1, SR, 0x1b);
    FSM_R1 = r;
    return F;
}

void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    (void)n;
    for (int i = 0; i < 4; i++)
        c->k[i] = cm_load32_be(key + 4 * i);
    if (!boxes)
        make();
}

void cm_ivsetup(struct cm_ctx *c, const uint8_t *iv, uint32_t n)
{
    const u32 *k = c->k;
    u32 IV[4] = {0};
    if (n)
        for (int i = 0; i < 4; i++)
            IV[i] = cm_load32_be(iv + 4 * i);
    LFSR_S15 = k[3] ^ IV[0];
    LFSR_S14 = k[2];
    LFSR_S13 = k[1];
    LFSR_S12 = k[0] ^ IV[1];
    LFSR_S11 = ~k[3];
    LFSR_S10 = ~k[2] ^ IV[2];
    LFSR_S9 = ~k[1] ^ IV[3];
    LFSR_S8 = ~k[0];
    LFSR_S7 = k[3];
    LFSR_S6 = k[2];
    LFSR_S5 = k[1];
    LFSR_S4 = k[0];
    LFSR_S3 = ~k[3];
    LFSR_S2 = ~k[2];
    LFSR_S1 = ~k[1];
    LFSR_S0 = ~k[0];
    FSM_R1 = FSM_R2 = FSM_R3 = 0;
    for (int i = 0; i < 32; i++) {
        u32 F = ClockFSM();
        Clock(F);
    }
    ClockFSM();
    Clock(0);
    c->left = 0;
}

void cm_keystream(struct cm_ctx *c, const uint8_t *in, uint8_t *out, uint32_t bytes)
{
    while (bytes--) {
        if (c->left == 0) {
            u32 z = ClockFSM() ^ LFSR_S0;
            Clock(0);
            cm_store32_be(c->buf, z);
            c->left = 4;
        }
        *out++ = *in++ ^ c->buf[4 - c->left--];
    }
}

CM_STREAM_CIPHER(4)
