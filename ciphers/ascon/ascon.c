/*
 * The permutation of Ascon-AEAD128 (NIST SP 800-232) as a stream cipher: a 16-byte key, a
 * 16-byte IV (the nonce).
 *
 * The sponge is started as for encryption without associated data; each block of keystream
 * is the rate, 16 of the state's 40 bytes, and eight rounds follow. That is Ascon-AEAD128's
 * ciphertext of a message of zeros. (Ascon itself absorbs the message and makes a tag.)
 * Five 64-bit words; additions in GF(2), ANDs and rotations only.
 */
#include "permutation.h"

#define BLOCK 16

struct cm_ctx {
    uint64_t x[5];
    uint64_t key[2];
    CM_UNUSED_KEYSTREAM(BLOCK);
};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    (void)key_bytes;
    ctx->key[0] = cm_load64_le(key);
    ctx->key[1] = cm_load64_le(key + 8);
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    (void)iv_bytes;
    ctx->x[0] = 0x00001000808c0001; /* names the variant: tag, rate, rounds */
    ctx->x[1] = ctx->key[0];
    ctx->x[2] = ctx->key[1];
    ctx->x[3] = cm_load64_le(iv);
    ctx->x[4] = cm_load64_le(iv + 8);
    permute(ctx->x, 12);
    ctx->x[3] ^= ctx->key[0];
    ctx->x[4] ^= ctx->key[1] ^ 0x8000000000000000; /* no (more) associated data */
    ctx->unused = 0;
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    cm_store64_le(out, cm_load64_le(in) ^ ctx->x[0]);
    cm_store64_le(out + 8, cm_load64_le(in + 8) ^ ctx->x[1]);
    permute(ctx->x, 8);
}

CM_KEYSTREAM(BLOCK, xor_block)
CM_STREAM_CIPHER(BLOCK)
