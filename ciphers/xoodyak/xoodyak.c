/*
 * Xoodyak (Daemen, Hoffert, Mella, Peeters, Van Assche, Van Keer, 2018; finalist of NIST's
 * lightweight competition), authenticated encryption with nonces of 16 bytes.
 *
 * Xoodoo permutes three planes of four words. Around it Cyclist absorbs up to 44 bytes or encrypts
 * up to 24 at a time, and tells by a byte at the end of the state what each piece is.
 */
#include "../ciphermill.h"

#define STATE 48
#define ABSORB 44
#define BLOCK 24
#define TAG 16

struct cm_ctx {
    uint8_t key[16];
    uint32_t a[12];
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    for (i = 0; i < key_bytes; i++)
        ctx->key[i] = key[i];
}

#define FOUR(step) step(0) step(1) step(2) step(3)

/* XOR a byte to the state. */
#define AT(ctx, i, byte) (ctx)->a[(i) / 4] ^= (uint32_t)(byte) << (8 * ((i) % 4))

/* What comes next is of this sort; then the permutation. */
static void up(struct cm_ctx *ctx, uint32_t sort)
{
    static const uint16_t constants[12] = {0x058, 0x038, 0x3c0, 0x0d0, 0x120, 0x014,
                                           0x060, 0x02c, 0x380, 0x0f0, 0x1a0, 0x012};
    uint32_t a[12], b[12], p[4], e, round;

    AT(ctx, STATE - 1, sort);
#define TAKE(i) a[i] = ctx->a[i]; a[4 + (i)] = ctx->a[4 + (i)]; a[8 + (i)] = ctx->a[8 + (i)];
    FOUR(TAKE)
    for (round = 0; round < 12; round++) {
        /* Parities of columns go to the columns beside. */
#define PARITY(x) p[x] = a[x] ^ a[4 + (x)] ^ a[8 + (x)];
        FOUR(PARITY)
#define SPREAD(x)                                                                          \
    e = cm_rotl32(p[((x) + 3) & 3], 5) ^ cm_rotl32(p[((x) + 3) & 3], 14);                  \
    a[x] ^= e;                                                                             \
    a[4 + (x)] ^= e;                                                                       \
    a[8 + (x)] ^= e;
        FOUR(SPREAD)
        /* Planes 1 and 2 are shifted. */
#define WEST(x)                                                                            \
    b[x] = a[x];                                                                           \
    b[4 + (x)] = a[4 + (((x) + 3) & 3)];                                                   \
    b[8 + (x)] = cm_rotl32(a[8 + (x)], 11);
        FOUR(WEST)
        b[0] ^= constants[round];
        /* The only step that is not linear, a column at a time; then another shift. */
#define CHI(x)                                                                             \
    a[x] = b[x] ^ (~b[4 + (x)] & b[8 + (x)]);                                              \
    a[4 + (x)] = cm_rotl32(b[4 + (x)] ^ (~b[8 + (x)] & b[x]), 1);                          \
    a[8 + (((x) + 2) & 3)] = cm_rotl32(b[8 + (x)] ^ (~b[x] & b[4 + (x)]), 8);
        FOUR(CHI)
    }
#define GIVE(i) ctx->a[i] = a[i]; ctx->a[4 + (i)] = a[4 + (i)]; ctx->a[8 + (i)] = a[8 + (i)];
    FOUR(GIVE)
}

/* Bytes of a piece of this sort, and the mark behind them. */
static void down(struct cm_ctx *ctx, const uint8_t *in, uint32_t bytes, uint32_t sort)
{
    uint32_t i;

    for (i = 0; i < bytes; i++)
        AT(ctx, i, in[i]);
    AT(ctx, bytes, 1);
    AT(ctx, STATE - 1, sort);
}

static void start(struct cm_ctx *ctx, const uint8_t *nonce, const uint8_t *ad,
                  uint32_t ad_bytes)
{
    uint32_t i, now, sort = 3;

    for (i = 0; i < 12; i++)
        ctx->a[i] = 0;
    /* The key, the nonce and its length are the first piece. */
    for (i = 0; i < 16; i++) {
        AT(ctx, i, ctx->key[i]);
        AT(ctx, 16 + i, nonce[i]);
    }
    AT(ctx, 32, 16);
    AT(ctx, 33, 1);
    AT(ctx, STATE - 1, 2);
    do {
        now = ad_bytes < ABSORB ? ad_bytes : ABSORB;
        up(ctx, 0);
        down(ctx, ad, now, sort);
        sort = 0;
        ad += now;
        ad_bytes -= now;
    } while (ad_bytes != 0);
}

/* A whole block, which the state takes in as plaintext. */
static void block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t decrypt)
{
    uint32_t i, given, made;

    for (i = 0; i < BLOCK / 4; i++) {
        given = cm_load32_le(in + 4 * i);
        made = given ^ ctx->a[i];
        ctx->a[i] ^= decrypt ? made : given;
        cm_store32_le(out + 4 * i, made);
    }
    AT(ctx, BLOCK, 1);
}

static uint32_t crypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
                      uint32_t decrypt)
{
    uint32_t i, sort = 0x80, done = bytes;

    for (; bytes > BLOCK; bytes -= BLOCK, in += BLOCK, out += BLOCK) {
        up(ctx, sort);
        sort = 0;
        block(ctx, in, out, decrypt);
    }
    up(ctx, sort);
    for (i = 0; i < bytes; i++) {
        uint8_t given = in[i], made = (uint8_t)(given ^ (ctx->a[i / 4] >> (8 * (i % 4))));

        AT(ctx, i, decrypt ? made : given);
        out[i] = made;
    }
    AT(ctx, bytes, 1);
    up(ctx, 0x40);
    return done;
}

void cm_aead_encrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, const uint8_t *nonce,
                     const uint8_t *ad, uint32_t bytes, uint32_t ad_bytes)
{
    uint32_t i;

    start(ctx, nonce, ad, ad_bytes);
    out += crypt(ctx, in, out, bytes, 0);
    for (i = 0; i < TAG / 4; i++)
        cm_store32_le(out + 4 * i, ctx->a[i]);
}

uint32_t cm_aead_decrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                         const uint8_t *nonce, const uint8_t *ad, uint32_t bytes,
                         uint32_t ad_bytes)
{
    uint8_t tag[TAG];
    uint32_t i;

    start(ctx, nonce, ad, ad_bytes);
    in += crypt(ctx, in, out, bytes, 1);
    for (i = 0; i < TAG / 4; i++)
        cm_store32_le(tag + 4 * i, ctx->a[i]);
    return cm_differ(tag, in, TAG);
}

CM_AEAD(BLOCK, 16, TAG)
