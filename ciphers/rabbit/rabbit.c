/*
 * Rabbit: eight state words x, eight counters c and a carry; 16 bytes of keystream a step.
 *
 * All nonlinearity is g(x, c): the sum squared, 32 by 32 to 64 bits, and the two halves of
 * the square XORed. The counters are one 256-bit number that grows by a constant. Without
 * an IV (iv_bytes 0) the state stays as the key left it.
 *
 * Bytes are in the order of the eSTREAM submission; RFC 4503 writes the key, the IV and
 * each 16-byte block of keystream backwards.
 *
 * RABBIT_HALVES makes the square from products of 16-bit halves, none wider than a word, as
 * the designers' reference implementation (and RFC 4503's) does for compilers without a
 * 64-bit type. There, and so here, the next state is a function of its own.
 */
#include "../ciphermill.h"

#define BLOCK 16

struct state {
    uint32_t x[8];
    uint32_t c[8];
    uint32_t carry;
};

struct cm_ctx {
    struct state work;
    struct state master; /* after the key, before any IV */
    CM_UNUSED_KEYSTREAM(BLOCK);
};

CM_INLINE uint32_t g(uint32_t x, uint32_t c)
{
#ifdef RABBIT_HALVES
    uint32_t sum = x + c, low = sum & 0xffff, high = sum >> 16;

    /* (high 2^16 + low)^2 without its lower word, and that word. */
    return (((((low * low) >> 17) + low * high) >> 15) + high * high) ^ (sum * sum);
#else
    uint64_t sum = (uint32_t)(x + c);
    uint64_t square = sum * sum;

    return (uint32_t)square ^ (uint32_t)(square >> 32);
#endif
}

#ifdef RABBIT_HALVES
__attribute__((noinline))
#endif
static void next_state(struct state *s)
{
    static const uint32_t step[8] = {
        0x4d34d34d, 0xd34d34d3, 0x34d34d34, 0x4d34d34d,
        0xd34d34d3, 0x34d34d34, 0x4d34d34d, 0xd34d34d3,
    };
    uint32_t v[8];
    uint32_t i, carry = s->carry;

    for (i = 0; i < 8; i++) {
        uint32_t old = s->c[i];
        uint32_t sum = old + step[i] + carry;
        /* The steps are neither 0 nor 2^32 - 1, so this sees a carry of one as well. */
        carry = sum < old;
        s->c[i] = sum;
        v[i] = g(s->x[i], sum);
    }
    s->carry = carry;
    s->x[0] = v[0] + cm_rotl32(v[7], 16) + cm_rotl32(v[6], 16);
    s->x[1] = v[1] + cm_rotl32(v[0], 8) + v[7];
    s->x[2] = v[2] + cm_rotl32(v[1], 16) + cm_rotl32(v[0], 16);
    s->x[3] = v[3] + cm_rotl32(v[2], 8) + v[1];
    s->x[4] = v[4] + cm_rotl32(v[3], 16) + cm_rotl32(v[2], 16);
    s->x[5] = v[5] + cm_rotl32(v[4], 8) + v[3];
    s->x[6] = v[6] + cm_rotl32(v[5], 16) + cm_rotl32(v[4], 16);
    s->x[7] = v[7] + cm_rotl32(v[6], 8) + v[5];
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    struct state *s = &ctx->master;
    uint32_t k[4];
    uint32_t i;

    (void)key_bytes;
    for (i = 0; i < 4; i++)
        k[i] = cm_load32_le(key + 4 * i);
    for (i = 0; i < 4; i++) {
        s->x[2 * i] = k[i];
        s->x[2 * i + 1] = k[(i + 3) & 3] << 16 | k[(i + 2) & 3] >> 16;
        s->c[2 * i] = cm_rotl32(k[(i + 2) & 3], 16);
        s->c[2 * i + 1] = (k[i] & 0xffff0000) | (k[(i + 1) & 3] & 0xffff);
    }
    s->carry = 0;
    for (i = 0; i < 4; i++)
        next_state(s);
    for (i = 0; i < 8; i++)
        s->c[i] ^= s->x[(i + 4) & 7];
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    struct state *s = &ctx->work;
    uint32_t v[4];
    uint32_t i;

    *s = ctx->master;
    ctx->unused = 0;
    if (iv_bytes == 0)
        return;
    v[0] = cm_load32_le(iv);
    v[2] = cm_load32_le(iv + 4);
    v[1] = v[0] >> 16 | (v[2] & 0xffff0000);
    v[3] = v[2] << 16 | (v[0] & 0xffff);
    for (i = 0; i < 8; i++)
        s->c[i] ^= v[i & 3];
    for (i = 0; i < 4; i++)
        next_state(s);
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *x = ctx->work.x;
    uint32_t i;

    next_state(&ctx->work);
    for (i = 0; i < 4; i++)
        cm_store32_le(out + 4 * i, cm_load32_le(in + 4 * i) ^ x[2 * i]
                          ^ x[(2 * i + 5) & 7] >> 16 ^ x[(2 * i + 3) & 7] << 16);
}

CM_KEYSTREAM(BLOCK, xor_block)
CM_STREAM_CIPHER(BLOCK)
