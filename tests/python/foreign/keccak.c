/* Keccak-f[1600] with its lanes in 25 variables and its round written out by macros, as the keystream of SHAKE128.
 *
 * FIPS 202, SHAKE128 of the key and then the IV; compared with another implementation in the test.
 */
#include "ciphermill.h"

#define RATE 168
#define ROL64(a, offset) ((a) << ((offset) & 63) | (a) >> ((64 - (offset)) & 63))

struct cm_ctx {
    uint64_t lane[25];
    uint8_t key[64];
    uint32_t key_bytes;
    CM_UNUSED_KEYSTREAM(RATE);
};

static const uint64_t RC[24] = {
    0x0000000000000001ULL, 0x0000000000008082ULL, 0x800000000000808aULL, 0x8000000080008000ULL,
    0x000000000000808bULL, 0x0000000080000001ULL, 0x8000000080008081ULL, 0x8000000000008009ULL,
    0x000000000000008aULL, 0x0000000000000088ULL, 0x0000000080008009ULL, 0x000000008000000aULL,
    0x000000008000808bULL, 0x800000000000008bULL, 0x8000000000008089ULL, 0x8000000000008003ULL,
    0x8000000000008002ULL, 0x8000000000000080ULL, 0x000000000000800aULL, 0x800000008000000aULL,
    0x8000000080008081ULL, 0x8000000000008080ULL, 0x0000000080000001ULL, 0x8000000080008008ULL,
};

#define COLUMN(x) A##x##0 ^ A##x##1 ^ A##x##2 ^ A##x##3 ^ A##x##4
#define ADD(x, d) A##x##0 ^= d, A##x##1 ^= d, A##x##2 ^= d, A##x##3 ^= d, A##x##4 ^= d
#define CHI(y, b0, b1, b2, b3, b4)                                                      \
    A0##y = b0 ^ (~b1 & b2), A1##y = b1 ^ (~b2 & b3), A2##y = b2 ^ (~b3 & b4),          \
    A3##y = b3 ^ (~b4 & b0), A4##y = b4 ^ (~b0 & b1)
#define EVERY(f) f(0, 0) f(1, 0) f(2, 0) f(3, 0) f(4, 0) f(0, 1) f(1, 1) f(2, 1) f(3, 1) f(4, 1) \
    f(0, 2) f(1, 2) f(2, 2) f(3, 2) f(4, 2) f(0, 3) f(1, 3) f(2, 3) f(3, 3) f(4, 3)               \
    f(0, 4) f(1, 4) f(2, 4) f(3, 4) f(4, 4)
#define READ(x, y) uint64_t A##x##y = s[x + 5 * y];
#define WRITE(x, y) s[x + 5 * y] = A##x##y;

static void KeccakF1600(uint64_t s[25])
{
    EVERY(READ)
    for (int round = 0; round < 24; round++) {
        uint64_t C0 = COLUMN(0), C1 = COLUMN(1), C2 = COLUMN(2), C3 = COLUMN(3), C4 = COLUMN(4);
        uint64_t D0 = C4 ^ ROL64(C1, 1), D1 = C0 ^ ROL64(C2, 1), D2 = C1 ^ ROL64(C3, 1);
        uint64_t D3 = C2 ^ ROL64(C4, 1), D4 = C3 ^ ROL64(C0, 1);
        ADD(0, D0), ADD(1, D1), ADD(2, D2), ADD(3, D3), ADD(4, D4);
        uint64_t B00 = A00, B10 = ROL64(A11, 44), B20 = ROL64(A22, 43), B30 = ROL64(A33, 21), B40 = ROL64(A44, 14);
        uint64_t B01 = ROL64(A30, 28), B11 = ROL64(A41, 20), B21 = ROL64(A02, 3), B31 = ROL64(A13, 45), B41 = ROL64(A24, 61);
        uint64_t B02 = ROL64(A10, 1), B12 = ROL64(A21, 6), B22 = ROL64(A32, 25), B32 = ROL64(A43, 8), B42 = ROL64(A04, 18);
        uint64_t B03 = ROL64(A40, 27), B13 = ROL64(A01, 36), B23 = ROL64(A12, 10), B33 = ROL64(A23, 15), B43 = ROL64(A34, 56);
        uint64_t B04 = ROL64(A20, 62), B14 = ROL64(A31, 55), B24 = ROL64(A42, 39), B34 = ROL64(A03, 41), B44 = ROL64(A14, 2);
        CHI(0, B00, B10, B20, B30, B40);
        CHI(1, B01, B11, B21, B31, B41);
        CHI(2, B02, B12, B22, B32, B42);
        CHI(3, B03, B13, B23, B33, B43);
        CHI(4, B04, B14, B24, B34, B44);
        A00 ^= RC[round];
    }
    EVERY(WRITE)
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    ctx->key_bytes = key_bytes;
    for (uint32_t i = 0; i < key_bytes; i++)
        ctx->key[i] = key[i];
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    uint8_t block[RATE] = { 0 };
    uint32_t n = 0, i;
    for (i = 0; i < ctx->key_bytes; i++)
        block[n++] = ctx->key[i];
    for (i = 0; i < iv_bytes; i++)
        block[n++] = iv[i];
    block[n] ^= 0x1f;
    block[RATE - 1] ^= 0x80;
    for (i = 0; i < 25; i++)
        ctx->lane[i] = 8 * i < RATE ? cm_load64_le(block + 8 * i) : 0;
    KeccakF1600(ctx->lane);
    ctx->unused = 0;
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    for (uint32_t i = 0; i < RATE / 8; i++)
        cm_store64_le(out + 8 * i, cm_load64_le(in + 8 * i) ^ ctx->lane[i]);
    KeccakF1600(ctx->lane);
}

CM_KEYSTREAM(RATE, xor_block)
CM_STREAM_CIPHER(RATE)
