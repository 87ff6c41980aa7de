"""What tests are made of."""

from pathlib import Path

ROOT = Path(__file__).parents[2]

#: The smallest block cipher: xor with the key.
XOR_CIPHER = """\
#include "ciphermill.h"
struct cm_ctx { uint8_t key[16]; };
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t n)
{ for (uint32_t i = 0; i < 16; i++) ctx->key[i] = key[i % n]; }
void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t n) { cm_keysetup(ctx, key, n); }
void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{ for (int i = 0; i < 16; i++) out[i] = in[i] ^ ctx->key[i]; }
void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out) { cm_encrypt(ctx, in, out); }
CM_BLOCK_CIPHER(16)
"""
