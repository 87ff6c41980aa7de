/*
 * AES-GCM (NIST SP 800-38D): AES in counter mode, and GHASH of the associated data, the
 * ciphertext and their lengths. Nonces of 12 bytes, tags of 16.
 *
 * AES has Rijndael's four tables a column, GHASH a table of the multiples of H. A block of
 * ciphertext is hashed as soon as it is there.
 */
#define GHASH_TABLE
#define RIJNDAEL_OWN_CONTEXT
#include "../ghash/ghash.h"

#define BLOCK 16

struct cm_ctx {
    uint32_t round_key[60];
    uint32_t rounds;
    struct ghash g;
    uint8_t counter[BLOCK];
    uint8_t mask[BLOCK]; /* of the tag */
    uint8_t last[BLOCK];
};

#include "../rijndael/rijndael.h"
#include "../rijndael/ttables.h"

#define COLUMN(a, b, c, d)                                                                 \
    (encrypt_0[cm_byte(a, 0)] ^ encrypt_1[cm_byte(b, 1)] ^ encrypt_2[cm_byte(c, 2)] ^      \
     encrypt_3[cm_byte(d, 3)])
#define LAST(a, b, c, d)                                                                   \
    ((uint32_t)sbox[cm_byte(a, 0)] | (uint32_t)sbox[cm_byte(b, 1)] << 8 |                  \
     (uint32_t)sbox[cm_byte(c, 2)] << 16 | (uint32_t)sbox[cm_byte(d, 3)] << 24)

/* out = in xor E(counter); the counter goes on. */
static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *k = ctx->round_key;
    uint32_t a = cm_load32_le(ctx->counter) ^ k[0];
    uint32_t b = cm_load32_le(ctx->counter + 4) ^ k[1];
    uint32_t c = cm_load32_le(ctx->counter + 8) ^ k[2];
    uint32_t d = cm_load32_le(ctx->counter + 12) ^ k[3];
    uint32_t round, e, f, g, h;

    for (round = ctx->rounds - 1; round != 0; round--) {
        k += 4;
        e = COLUMN(a, b, c, d) ^ k[0];
        f = COLUMN(b, c, d, a) ^ k[1];
        g = COLUMN(c, d, a, b) ^ k[2];
        h = COLUMN(d, a, b, c) ^ k[3];
        a = e;
        b = f;
        c = g;
        d = h;
    }
    cm_store32_le(out, cm_load32_le(in) ^ LAST(a, b, c, d) ^ k[4]);
    cm_store32_le(out + 4, cm_load32_le(in + 4) ^ LAST(b, c, d, a) ^ k[5]);
    cm_store32_le(out + 8, cm_load32_le(in + 8) ^ LAST(c, d, a, b) ^ k[6]);
    cm_store32_le(out + 12, cm_load32_le(in + 12) ^ LAST(d, a, b, c) ^ k[7]);
    cm_store32_be(ctx->counter + 12, cm_load32_be(ctx->counter + 12) + 1);
}

static void zero(uint8_t *block)
{
    uint32_t i;

    for (i = 0; i < BLOCK; i++)
        block[i] = 0;
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    expand_key(ctx, key, key_bytes);
    zero(ctx->counter);
    zero(ctx->last);
    xor_block(ctx, ctx->last, ctx->last);
    ghash_key(&ctx->g, ctx->last);
}

/* Hash bytes and the zeros behind them. */
static void authenticate(struct cm_ctx *ctx, const uint8_t *in, uint32_t bytes)
{
    uint32_t whole = bytes & ~15u, i;

    ghash_blocks(&ctx->g, in, bytes / BLOCK);
    if (bytes == whole)
        return;
    zero(ctx->last);
    for (i = 0; i < bytes - whole; i++)
        ctx->last[i] = in[whole + i];
    ghash_blocks(&ctx->g, ctx->last, 1);
}

static void start(struct cm_ctx *ctx, const uint8_t *nonce, const uint8_t *ad,
                  uint32_t ad_bytes)
{
    uint32_t i;

    for (i = 0; i < 12; i++)
        ctx->counter[i] = nonce[i];
    cm_store32_be(ctx->counter + 12, 1);
    zero(ctx->mask);
    xor_block(ctx, ctx->mask, ctx->mask);
    ghash_init(&ctx->g);
    authenticate(ctx, ad, ad_bytes);
}

static void xor_rest(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes)
{
    uint32_t i;

    zero(ctx->last);
    xor_block(ctx, ctx->last, ctx->last);
    for (i = 0; i < bytes; i++)
        out[i] = in[i] ^ ctx->last[i];
}

static void finish(struct cm_ctx *ctx, uint8_t *tag, uint32_t bytes, uint32_t ad_bytes)
{
    uint32_t i;

    cm_store64_be(ctx->last, 8 * (uint64_t)ad_bytes);
    cm_store64_be(ctx->last + 8, 8 * (uint64_t)bytes);
    ghash_blocks(&ctx->g, ctx->last, 1);
    ghash_sum(&ctx->g, tag);
    for (i = 0; i < BLOCK; i++)
        tag[i] ^= ctx->mask[i];
}

void cm_aead_encrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, const uint8_t *nonce,
                     const uint8_t *ad, uint32_t bytes, uint32_t ad_bytes)
{
    uint32_t left;

    start(ctx, nonce, ad, ad_bytes);
    for (left = bytes; left >= BLOCK; left -= BLOCK, in += BLOCK, out += BLOCK) {
        xor_block(ctx, in, out);
        ghash_blocks(&ctx->g, out, 1);
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
    uint8_t tag[BLOCK];
    uint32_t left;

    start(ctx, nonce, ad, ad_bytes);
    for (left = bytes; left >= BLOCK; left -= BLOCK, in += BLOCK, out += BLOCK) {
        ghash_blocks(&ctx->g, in, 1);
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
