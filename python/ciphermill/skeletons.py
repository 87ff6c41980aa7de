"""Skeletons of what is no block and no stream cipher: permutations, hash functions, codes, authenticated
ciphers, kernels. Like those of `ciphermill.skeleton` each is whole and worthless: one toy permutation of
four words, and around it what its kind asks for.
"""

from __future__ import annotations

MANIFEST = """\
name = "@NAME@"
title = "@NAME@"          # as its designers write it
kind = "@KIND@"
block_bytes = 16          # @BLOCK@
@SIZES@
[variants.plain]
sources = ["@SOURCE@"]
@MORE@trades = "nothing"        # what this variant gives and what it takes
constant_time = true      # no branch, no address depends on key or message; audit checks it

[[vectors]]
file = "vectors/example.json"
source = "the toy of the skeleton; put the published vectors here"
"""

KEY = "key_bits = [128]          # every length that cm_keysetup accepts\n"
NONCE = "iv_bits = [128]           # lengths of the nonce\n"
PARAMETERS = """\
function = "mix_words"          # what is measured; what it is given, in order:
parameters = [
    { buffer = "state", access = "update", bytes = 16, align = 4 },
]
"""

#: For each kind: what block_bytes counts, sizes, more of the variant.
SAID = {
    "permutation": ("bytes of the state", "", ""),
    "hash": ("bytes absorbed at once", "", ""),
    "mac": ("bytes absorbed at once", KEY, ""),
    "aead": ("bytes encrypted at once", KEY + NONCE, ""),
    "kernel": ("bytes that a call counts as", "", PARAMETERS),
}

HEAD = """\
/*
 * @NAME@, a skeleton of kind @KIND@. What stands here is a toy that shows where things go.
 *
 * ciphermill.h says what each function promises, and has loads and stores of words from
 * bytes (cm_load32_le, cm_store32_be, ...) and rotations (cm_rotl32, ...). No library is
 * needed; memcpy, memset, memmove and memcmp are there if <string.h> is included.
 */
#include "ciphermill.h"

#define BLOCK 16

/* Fill in: the permutation. */
@STATIC@void mix_words(uint32_t *x)
{
    uint32_t i, round;

    for (round = 0; round < 8; round++)
        for (i = 0; i < 4; i++)
            x[i] = cm_rotl32(x[i] ^ x[(i + 1) % 4], 7) + (x[(i + 2) % 4] ^ round);
}
"""

ADD = """
/* A block that may be short, XORed to the state. */
static void add(uint32_t *x, const uint8_t *in, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < bytes; i++)
        x[i / 4] ^= (uint32_t)in[i] << (8 * (i % 4));
}
"""

PERMUTATION = """
void cm_permute(const uint8_t *in, uint8_t *out)
{
    uint32_t x[4], i;

    for (i = 0; i < 4; i++)
        x[i] = cm_load32_le(in + 4 * i);
    mix_words(x);
    for (i = 0; i < 4; i++)
        cm_store32_le(out + 4 * i, x[i]);
}

CM_PERMUTATION(BLOCK)
"""

CONTEXT = """
/* Fill in: all that is kept between calls. */
struct cm_ctx {
    uint32_t x[4];@KEYWORDS@
};
"""

KEYSETUP = """
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    (void)key_bytes;
    for (i = 0; i < 4; i++)
        ctx->key[i] = cm_load32_le(key + 4 * i);
}
"""

SPONGE = """
void cm_init(struct cm_ctx *ctx)
{
    uint32_t i;

    for (i = 0; i < 4; i++)
        ctx->x[i] = @START@;
}

void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks)
{
    for (; blocks != 0; blocks--, in += BLOCK) {
        add(ctx->x, in, BLOCK);
        mix_words(ctx->x);
    }
}

/* The last 1 to BLOCK bytes, or none of an empty message. */
void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
              uint32_t out_bytes)
{
    uint32_t i;

    (void)out_bytes;
    add(ctx->x, in, bytes);
    ctx->x[0] ^= bytes + 1;
    mix_words(ctx->x);
    for (i = 0; i < 4; i++)
        cm_store32_le(out + 4 * i, ctx->x[i]);
}

@MACRO@(BLOCK, 16)
"""

AEAD = """
static void start(struct cm_ctx *ctx, const uint8_t *nonce, const uint8_t *ad, uint32_t ad_bytes)
{
    uint32_t i;

    for (i = 0; i < 4; i++)
        ctx->x[i] = ctx->key[i] ^ cm_load32_le(nonce + 4 * i);
    mix_words(ctx->x);
    for (; ad_bytes > BLOCK; ad_bytes -= BLOCK, ad += BLOCK) {
        add(ctx->x, ad, BLOCK);
        mix_words(ctx->x);
    }
    add(ctx->x, ad, ad_bytes);
    ctx->x[3] ^= ad_bytes + 1;
    mix_words(ctx->x);
}

/* Bytes of a block into the other text; the state takes the plaintext in. */
static void crypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes, uint32_t decrypt)
{
    uint32_t i;

    for (i = 0; i < bytes; i++) {
        uint8_t given = in[i], made = (uint8_t)(given ^ (ctx->x[i / 4] >> (8 * (i % 4))));

        out[i] = made;
        ctx->x[i / 4] ^= (uint32_t)(decrypt ? made : given) << (8 * (i % 4));
    }
    mix_words(ctx->x);
}

static void finish(struct cm_ctx *ctx, uint8_t *tag, uint32_t bytes)
{
    uint32_t i;

    ctx->x[0] ^= bytes;
    for (i = 0; i < 4; i++)
        ctx->x[i] ^= ctx->key[i];
    mix_words(ctx->x);
    for (i = 0; i < 4; i++)
        cm_store32_le(tag + 4 * i, ctx->x[i]);
}

/* The ciphertext and the tag behind it. */
void cm_aead_encrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, const uint8_t *nonce,
                     const uint8_t *ad, uint32_t bytes, uint32_t ad_bytes)
{
    uint32_t left;

    start(ctx, nonce, ad, ad_bytes);
    for (left = bytes; left >= BLOCK; left -= BLOCK, in += BLOCK, out += BLOCK)
        crypt(ctx, in, out, BLOCK, 0);
    crypt(ctx, in, out, left, 0);
    finish(ctx, out + left, bytes);
}

/* The plaintext, whatever the tag is; 0 if that is right. */
uint32_t cm_aead_decrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, const uint8_t *nonce,
                         const uint8_t *ad, uint32_t bytes, uint32_t ad_bytes)
{
    uint8_t tag[16];
    uint32_t left;

    start(ctx, nonce, ad, ad_bytes);
    for (left = bytes; left >= BLOCK; left -= BLOCK, in += BLOCK, out += BLOCK)
        crypt(ctx, in, out, BLOCK, 1);
    crypt(ctx, in, out, left, 1);
    finish(ctx, tag, bytes);
    return cm_differ(tag, in + left, sizeof(tag));
}

CM_AEAD(BLOCK, 16, 16)
"""

KEYED = CONTEXT.replace("@KEYWORDS@", "\n    uint32_t key[4];") + KEYSETUP
CODE = {
    "permutation": PERMUTATION,
    "hash": CONTEXT.replace("@KEYWORDS@", "")
    + ADD
    + SPONGE.replace("@MACRO@", "CM_HASH").replace("@START@", "0x01234567 + i"),
    "mac": KEYED + ADD + SPONGE.replace("@MACRO@", "CM_MAC").replace("@START@", "ctx->key[i]"),
    "aead": KEYED + ADD + AEAD,
    "kernel": "",
}

#: The fields of each kind's only vector.
FIELDS = {
    "permutation": '"input": "000102030405060708090a0b0c0d0e0f", "output": "078a9b449eb336b141642d951a32b511"',
    "kernel": (
        '"in": {"state": "000102030405060708090a0b0c0d0e0f"}, "out": {"state": "078a9b449eb336b141642d951a32b511"}'
    ),
    "hash": ('"message": "000102030405060708090a0b0c0d0e0f10111213", "digest": "c6ab0a9d52657b41d2e34e33f1456f2a"'),
    "mac": (
        '"key": "000102030405060708090a0b0c0d0e0f", "message": "000102030405060708090a0b0c0d0e0f101'
        '11213", "tag": "d8e02bd57f3522f1d2b3ffa53bf773a8"'
    ),
    "aead": (
        '"key": "000102030405060708090a0b0c0d0e0f", "nonce": "000102030405060708090a0b0c0d0e0f", "a'
        'd": "616263", "plaintext": "000102030405060708090a0b0c0d0e0f10111213", "ciphertext": "5d7d'
        '83980ebbec7ceef92d2d35a422b19b9261f9", "tag": "7f1b1cc32c27e799ea5f7dd4a022ea1c"'
    ),
}


def parts(kind: str) -> tuple[str, str, str]:
    """Manifest, C and vectors of a kind."""
    block, sizes, more = SAID[kind]
    text = MANIFEST.replace("@BLOCK@", block).replace("@SIZES@", sizes).replace("@MORE@", more)
    head = HEAD.replace("@STATIC@", "" if kind == "kernel" else "static ")
    vector = "{" + f'"id": "toy", {FIELDS[kind]}' + "}"
    vectors = (
        f'{{"source": "the toy of the skeleton; say here where the vectors were published",\n "kind": "{kind}",\n'
        f' "vectors": [\n  {vector}\n ]}}\n'
    )
    return text.replace("@KIND@", kind), (head + CODE[kind]).replace("@KIND@", kind), vectors
