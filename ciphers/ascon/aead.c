/*
 * Ascon-AEAD128 (NIST SP 800-232): key, nonce and tag of 16 bytes, blocks of 16, eight rounds
 * for each and twelve at both ends.
 */
#include "permutation.h"

#define BLOCK 16
#define ENDS 12
#define ROUNDS 8

struct cm_ctx {
    uint64_t x[5];
    uint64_t key[2];
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    (void)key_bytes;
    ctx->key[0] = cm_load64_le(key);
    ctx->key[1] = cm_load64_le(key + 8);
}

/* Less than 8 bytes as a word. */
static uint64_t load_rest(const uint8_t *in, uint32_t bytes)
{
    uint64_t x = 0;
    uint32_t i;

    for (i = 0; i < bytes; i++)
        x |= (uint64_t)in[i] << (8 * i);
    return x;
}

static void store_rest(uint8_t *out, uint64_t x, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < bytes; i++)
        out[i] = (uint8_t)(x >> (8 * i));
}

/* The bit behind a message's last byte. */
#define PAD(bytes) ((uint64_t)1 << (8 * (bytes)))

static void start(struct cm_ctx *ctx, const uint8_t *nonce, const uint8_t *ad,
                  uint32_t ad_bytes)
{
    ctx->x[0] = 0x00001000808c0001; /* names the variant: tag, rate, rounds */
    ctx->x[1] = ctx->key[0];
    ctx->x[2] = ctx->key[1];
    ctx->x[3] = cm_load64_le(nonce);
    ctx->x[4] = cm_load64_le(nonce + 8);
    permute(ctx->x, ENDS);
    ctx->x[3] ^= ctx->key[0];
    ctx->x[4] ^= ctx->key[1];
    if (ad_bytes != 0) {
        for (; ad_bytes >= BLOCK; ad_bytes -= BLOCK, ad += BLOCK) {
            ctx->x[0] ^= cm_load64_le(ad);
            ctx->x[1] ^= cm_load64_le(ad + 8);
            permute(ctx->x, ROUNDS);
        }
        if (ad_bytes >= 8) {
            ctx->x[0] ^= cm_load64_le(ad);
            ctx->x[1] ^= load_rest(ad + 8, ad_bytes - 8) ^ PAD(ad_bytes - 8);
        } else {
            ctx->x[0] ^= load_rest(ad, ad_bytes) ^ PAD(ad_bytes);
        }
        permute(ctx->x, ROUNDS);
    }
    ctx->x[4] ^= 0x8000000000000000; /* no more associated data */
}

static void finish(struct cm_ctx *ctx, uint8_t *tag)
{
    ctx->x[2] ^= ctx->key[0];
    ctx->x[3] ^= ctx->key[1];
    permute(ctx->x, ENDS);
    cm_store64_le(tag, ctx->x[3] ^ ctx->key[0]);
    cm_store64_le(tag + 8, ctx->x[4] ^ ctx->key[1]);
}

void cm_aead_encrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, const uint8_t *nonce,
                     const uint8_t *ad, uint32_t bytes, uint32_t ad_bytes)
{
    start(ctx, nonce, ad, ad_bytes);
    for (; bytes >= BLOCK; bytes -= BLOCK, in += BLOCK, out += BLOCK) {
        ctx->x[0] ^= cm_load64_le(in);
        ctx->x[1] ^= cm_load64_le(in + 8);
        cm_store64_le(out, ctx->x[0]);
        cm_store64_le(out + 8, ctx->x[1]);
        permute(ctx->x, ROUNDS);
    }
    if (bytes >= 8) {
        ctx->x[0] ^= cm_load64_le(in);
        ctx->x[1] ^= load_rest(in + 8, bytes - 8);
        cm_store64_le(out, ctx->x[0]);
        store_rest(out + 8, ctx->x[1], bytes - 8);
        ctx->x[1] ^= PAD(bytes - 8);
    } else {
        ctx->x[0] ^= load_rest(in, bytes);
        store_rest(out, ctx->x[0], bytes);
        ctx->x[0] ^= PAD(bytes);
    }
    finish(ctx, out + bytes);
}

/* Of the last words the plaintext is XORed in: what they hold is ciphertext then. */
static void open_rest(uint64_t *x, const uint8_t *in, uint8_t *out, uint32_t bytes)
{
    uint64_t plain = (*x ^ load_rest(in, bytes)) & (PAD(bytes) - 1);

    store_rest(out, plain, bytes);
    *x ^= plain ^ PAD(bytes);
}

uint32_t cm_aead_decrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                         const uint8_t *nonce, const uint8_t *ad, uint32_t bytes,
                         uint32_t ad_bytes)
{
    uint8_t tag[16];
    uint64_t c;

    start(ctx, nonce, ad, ad_bytes);
    for (; bytes >= BLOCK; bytes -= BLOCK, in += BLOCK, out += BLOCK) {
        c = cm_load64_le(in);
        cm_store64_le(out, ctx->x[0] ^ c);
        ctx->x[0] = c;
        c = cm_load64_le(in + 8);
        cm_store64_le(out + 8, ctx->x[1] ^ c);
        ctx->x[1] = c;
        permute(ctx->x, ROUNDS);
    }
    if (bytes >= 8) {
        c = cm_load64_le(in);
        cm_store64_le(out, ctx->x[0] ^ c);
        ctx->x[0] = c;
        open_rest(&ctx->x[1], in + 8, out + 8, bytes - 8);
    } else {
        open_rest(&ctx->x[0], in, out, bytes);
    }
    finish(ctx, tag);
    return cm_differ(tag, in + bytes, sizeof(tag));
}

CM_AEAD(BLOCK, 16, 16)
