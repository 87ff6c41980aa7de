/*
 * PRESENT by bytes: one lookup gives what two S-boxes and the bit permutation make of a
 * byte; the permutation treats the eight bytes alike but for a shift. 3.25 KB of tables.
 */
#include "present.h"
#include "tables.h"

void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t high = cm_load32_be(in), low = cm_load32_be(in + 4);
    uint32_t i, n, a, b, x;

    for (i = 0; i < ROUNDS; i++) {
        low ^= ctx->round_key[i][0];
        high ^= ctx->round_key[i][1];
        a = b = 0;
        for (n = 0; n < 4; n++) {
            x = cm_byte(low, n);
            a |= spread_low[x] << 2 * n;
            b |= spread_high[x] << 2 * n;
            x = cm_byte(high, n);
            a |= spread_low[x] << (8 + 2 * n);
            b |= spread_high[x] << (8 + 2 * n);
        }
        low = a;
        high = b;
    }
    cm_store32_be(out, high ^ ctx->round_key[ROUNDS][1]);
    cm_store32_be(out + 4, low ^ ctx->round_key[ROUNDS][0]);
}

CM_INLINE uint32_t inverse_sub_word(uint32_t x)
{
    return (uint32_t)inverse_pair[cm_byte(x, 0)] | (uint32_t)inverse_pair[cm_byte(x, 1)] << 8
        | (uint32_t)inverse_pair[cm_byte(x, 2)] << 16
        | (uint32_t)inverse_pair[cm_byte(x, 3)] << 24;
}

/* Bytes 0, 2, 4, 6 of the state hold bits 0, 1, 2, 3 of the lower word's nibbles. */
void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t high = cm_load32_be(in) ^ ctx->round_key[ROUNDS][1];
    uint32_t low = cm_load32_be(in + 4) ^ ctx->round_key[ROUNDS][0];
    uint32_t i, a, b;

    for (i = ROUNDS; i-- != 0;) {
        a = gather[cm_byte(low, 0)] | gather[cm_byte(low, 2)] << 1
            | gather[cm_byte(high, 0)] << 2 | gather[cm_byte(high, 2)] << 3;
        b = gather[cm_byte(low, 1)] | gather[cm_byte(low, 3)] << 1
            | gather[cm_byte(high, 1)] << 2 | gather[cm_byte(high, 3)] << 3;
        low = inverse_sub_word(a) ^ ctx->round_key[i][0];
        high = inverse_sub_word(b) ^ ctx->round_key[i][1];
    }
    cm_store32_be(out, high);
    cm_store32_be(out + 4, low);
}

CM_BLOCK_CIPHER(8)
