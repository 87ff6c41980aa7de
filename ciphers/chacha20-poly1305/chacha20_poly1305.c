/*
 * ChaCha20-Poly1305 (RFC 8439): nonces of 12 bytes.
 *
 * Block 0 of the keystream is the key of Poly1305; the message is encrypted from block 1 on. The
 * tag is of the associated data, the ciphertext, each filled up with zeros to blocks of 16 bytes,
 * and their lengths. A block of ciphertext is authenticated as soon as it is there.
 */
#include "../poly1305/poly1305.h"

#define BLOCK 64

struct cm_ctx {
    uint32_t state[16];
    struct poly1305 p;
    uint8_t keystream[BLOCK];
    uint8_t last[POLY1305_BLOCK];
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    /* "expand 32-byte k" */
    static const uint32_t sigma[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    uint32_t i;

    (void)key_bytes;
    for (i = 0; i < 4; i++)
        ctx->state[i] = sigma[i];
    for (i = 0; i < 8; i++)
        ctx->state[4 + i] = cm_load32_le(key + 4 * i);
}

#define QUARTER(a, b, c, d)                                                                \
    x[a] += x[b];                                                                          \
    x[d] = cm_rotl32(x[d] ^ x[a], 16);                                                     \
    x[c] += x[d];                                                                          \
    x[b] = cm_rotl32(x[b] ^ x[c], 12);                                                     \
    x[a] += x[b];                                                                          \
    x[d] = cm_rotl32(x[d] ^ x[a], 8);                                                      \
    x[c] += x[d];                                                                          \
    x[b] = cm_rotl32(x[b] ^ x[c], 7);

/* out = in xor the next block of keystream. */
static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t x[16], i;

#define LOAD(n) x[n] = ctx->state[n];
    CM_SIXTEEN(LOAD)
    for (i = 0; i < 10; i++) {
        QUARTER(0, 4, 8, 12)
        QUARTER(1, 5, 9, 13)
        QUARTER(2, 6, 10, 14)
        QUARTER(3, 7, 11, 15)
        QUARTER(0, 5, 10, 15)
        QUARTER(1, 6, 11, 12)
        QUARTER(2, 7, 8, 13)
        QUARTER(3, 4, 9, 14)
    }
#define OUTPUT(n)                                                                          \
    cm_store32_le(out + 4 * (n), cm_load32_le(in + 4 * (n)) ^ (x[n] + ctx->state[n]));
    CM_SIXTEEN(OUTPUT)
    ctx->state[12]++;
}

/* Authenticate bytes and the zeros behind them. */
static void authenticate(struct cm_ctx *ctx, const uint8_t *in, uint32_t bytes)
{
    uint32_t whole = bytes & ~15u, i;

    poly1305_blocks(&ctx->p, in, bytes / POLY1305_BLOCK, POLY1305_HIGH);
    if (bytes == whole)
        return;
    for (i = 0; i < bytes - whole; i++)
        ctx->last[i] = in[whole + i];
    for (; i < POLY1305_BLOCK; i++)
        ctx->last[i] = 0;
    poly1305_blocks(&ctx->p, ctx->last, 1, POLY1305_HIGH);
}

static void start(struct cm_ctx *ctx, const uint8_t *nonce, const uint8_t *ad,
                  uint32_t ad_bytes)
{
    uint32_t i;

    ctx->state[12] = 0;
    for (i = 0; i < 3; i++)
        ctx->state[13 + i] = cm_load32_le(nonce + 4 * i);
    for (i = 0; i < BLOCK; i++)
        ctx->keystream[i] = 0;
    xor_block(ctx, ctx->keystream, ctx->keystream);
    poly1305_key(&ctx->p, ctx->keystream);
    poly1305_init(&ctx->p);
    authenticate(ctx, ad, ad_bytes);
}

/* Less than a block, which no caller need have room for. */
static void xor_rest(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < BLOCK; i++)
        ctx->keystream[i] = 0;
    xor_block(ctx, ctx->keystream, ctx->keystream);
    for (i = 0; i < bytes; i++)
        out[i] = in[i] ^ ctx->keystream[i];
}

static void finish(struct cm_ctx *ctx, uint8_t *tag, uint32_t bytes, uint32_t ad_bytes)
{
    cm_store64_le(ctx->last, ad_bytes);
    cm_store64_le(ctx->last + 8, bytes);
    poly1305_blocks(&ctx->p, ctx->last, 1, POLY1305_HIGH);
    poly1305_tag(&ctx->p, tag);
}

void cm_aead_encrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, const uint8_t *nonce,
                     const uint8_t *ad, uint32_t bytes, uint32_t ad_bytes)
{
    uint32_t left;

    start(ctx, nonce, ad, ad_bytes);
    for (left = bytes; left >= BLOCK; left -= BLOCK, in += BLOCK, out += BLOCK) {
        xor_block(ctx, in, out);
        poly1305_blocks(&ctx->p, out, BLOCK / POLY1305_BLOCK, POLY1305_HIGH);
    }
    if (left != 0) {
        xor_rest(ctx, in, out, left);
        authenticate(ctx, out, left);
    }
    finish(ctx, out + left, bytes, ad_bytes);
}

uint32_t cm_aead_decrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                         const uint8_t *nonce, const uint8_t *ad, uint32_t bytes,
                         uint32_t ad_bytes)
{
    uint8_t tag[16];
    uint32_t left;

    start(ctx, nonce, ad, ad_bytes);
    for (left = bytes; left >= BLOCK; left -= BLOCK, in += BLOCK, out += BLOCK) {
        poly1305_blocks(&ctx->p, in, BLOCK / POLY1305_BLOCK, POLY1305_HIGH);
        xor_block(ctx, in, out);
    }
    if (left != 0) {
        authenticate(ctx, in, left);
        xor_rest(ctx, in, out, left);
    }
    finish(ctx, tag, bytes, ad_bytes);
    return cm_differ(tag, in + left, sizeof(tag));
}

CM_AEAD(BLOCK, 12, 16)
