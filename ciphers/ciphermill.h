/*
 * The C interface of a primitive: a block or stream cipher, a permutation, a hash function, a
 * message authentication code, or an authenticated cipher.
 *
 * It is one C file (or several) that defines `struct cm_ctx` and the functions of its kind
 * declared below, includes this header, and ends with the macro of its kind, such as
 * CM_BLOCK_CIPHER(bytes). A block cipher may have one direction alone. It needs no library: <stdint.h> and <stddef.h> come with every
 * compiler. Compiled for WebAssembly every function declared here is an export; compiled
 * natively it is an ordinary global function, so that the same file can be tested on the
 * host.
 *
 * Rules that every cipher keeps, and that its callers may rely on:
 *
 *   - Keys, IVs and messages are byte strings at any alignment. A word is put together
 *     from bytes by cm_load32_le() and its kin; a compiler turns those into one load where
 *     the machine has one. `struct cm_ctx` is aligned as the compiler wants it.
 *   - The context never overlaps any other buffer. `in` and `out` are the same buffer or
 *     do not overlap at all.
 *   - A function takes its buffers first, then lengths: in bytes, or in whole blocks.
 *   - `key_bytes` and `iv_bytes` are lengths that the manifest lists; they are not checked.
 *   - Nothing is allocated, nothing static is written, there is no undefined behaviour.
 */
#ifndef CIPHERMILL_H
#define CIPHERMILL_H

#include <stddef.h>
#include <stdint.h>

#if defined(__wasm__)
#define CM_EXPORT(name) __attribute__((export_name(#name)))
#elif defined(__GNUC__)
#define CM_EXPORT(name) __attribute__((visibility("default")))
#else
#define CM_EXPORT(name)
#endif

#define CM_INLINE static inline __attribute__((always_inline, unused))

/* All that the cipher keeps between calls: expanded key, state, unused keystream. */
struct cm_ctx;

/* ------------------------------------------------------------------ every cipher --- */

/* Expands the key. For a block cipher: for encryption. */
CM_EXPORT(cm_keysetup)
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes);

/* sizeof(struct cm_ctx). Emitted by the macro at the end of the file. */
CM_EXPORT(cm_ctx_bytes) uint32_t cm_ctx_bytes(void);

/* A block cipher's block; the number of keystream bytes that a stream cipher makes at once. */
CM_EXPORT(cm_block_bytes) uint32_t cm_block_bytes(void);

/* ----------------------------------------------------------------- block ciphers --- */

/*
 * Expands the key for decryption. A context is for one direction only. A cipher that does
 * not decrypt defines neither this nor cm_decrypt(), one that does not encrypt neither
 * cm_keysetup() nor cm_encrypt().
 */
CM_EXPORT(cm_keysetup_decrypt)
void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes);

/* One block each. */
CM_EXPORT(cm_encrypt)
void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out);
CM_EXPORT(cm_decrypt)
void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out);

/* `blocks` blocks one after another, each on its own (ECB). Emitted by CM_BLOCK_CIPHER. */
CM_EXPORT(cm_encrypt_blocks)
void cm_encrypt_blocks(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                       uint32_t blocks);
CM_EXPORT(cm_decrypt_blocks)
void cm_decrypt_blocks(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                       uint32_t blocks);

/*
 * One block goes through the cipher `times` times, each time from the result before (what
 * a feedback mode does to a processor). `in` and `out` are one block. Emitted by
 * CM_BLOCK_CIPHER.
 */
CM_EXPORT(cm_encrypt_feedback)
void cm_encrypt_feedback(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                         uint32_t times);
CM_EXPORT(cm_decrypt_feedback)
void cm_decrypt_feedback(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                         uint32_t times);

/* ---------------------------------------------------------------- stream ciphers --- */

/* Starts a new stream with this IV under the key set up before. */
CM_EXPORT(cm_ivsetup)
void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes);

/*
 * out = in xor keystream, `bytes` bytes of any number, from where the last call stopped.
 * A cipher makes its keystream in whole blocks; what a call leaves over of the last one
 * waits in the context for the next call. CM_KEYSTREAM writes this function.
 */
CM_EXPORT(cm_keystream)
void cm_keystream(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes);

/* ------------------------------------------------------------------ permutations --- */

/* A permutation has no context and no key. `in` and `out` are one state each. */
CM_EXPORT(cm_permute)
void cm_permute(const uint8_t *in, uint8_t *out);

/* `blocks` states, each on its own; one state `times` times. Emitted by CM_PERMUTATION. */
CM_EXPORT(cm_permute_blocks)
void cm_permute_blocks(const uint8_t *in, uint8_t *out, uint32_t blocks);
CM_EXPORT(cm_permute_feedback)
void cm_permute_feedback(const uint8_t *in, uint8_t *out, uint32_t times);

/* --------------------------------- hash functions and message authentication codes --- */

/*
 * A message goes through cm_init(), cm_absorb() for whole blocks, and cm_final() for what is
 * left: the last 1 to `block` bytes, or none of an empty message. So the last block comes to
 * cm_final() even where it is whole, and a function that marks its last block can. A code's
 * cm_init() begins a message under the key of cm_keysetup(). cm_final() writes the digest or
 * the tag; of an extendable-output function `out_bytes` bytes, of any other what it has.
 */
CM_EXPORT(cm_init) void cm_init(struct cm_ctx *ctx);
CM_EXPORT(cm_absorb)
void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks);
CM_EXPORT(cm_final)
void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
              uint32_t out_bytes);

/* A whole message. Emitted by CM_HASH and CM_MAC. */
CM_EXPORT(cm_hash)
void cm_hash(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
             uint32_t out_bytes);
CM_EXPORT(cm_mac)
void cm_mac(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes);

/* Bytes of the digest or the tag. Emitted by CM_HASH, CM_MAC and CM_AEAD. */
CM_EXPORT(cm_tag_bytes) uint32_t cm_tag_bytes(void);

/* ---------------------------------------------------------- authenticated ciphers --- */

/*
 * A whole message under the key of cm_keysetup(): `bytes` bytes of it and `ad_bytes` of
 * associated data, of any number. Encryption writes `bytes` of ciphertext and the tag behind
 * them; decryption reads both, writes `bytes` of plaintext, and returns 0 if the tag is right,
 * else another number. It writes them whatever the tag is: who calls it discards them, and the
 * time it takes tells nothing of the tag.
 */
CM_EXPORT(cm_aead_encrypt)
void cm_aead_encrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, const uint8_t *nonce,
                     const uint8_t *ad, uint32_t bytes, uint32_t ad_bytes);
CM_EXPORT(cm_aead_decrypt)
uint32_t cm_aead_decrypt(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out,
                         const uint8_t *nonce, const uint8_t *ad, uint32_t bytes,
                         uint32_t ad_bytes);

/* Bytes of the nonce. Emitted by CM_AEAD. */
CM_EXPORT(cm_nonce_bytes) uint32_t cm_nonce_bytes(void);

/* -------------------------------------------------------------- words from bytes --- */

CM_INLINE uint32_t cm_load32_le(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

CM_INLINE uint32_t cm_load32_be(const uint8_t *p)
{
    return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}

CM_INLINE uint32_t cm_load16_be(const uint8_t *p)
{
    return (uint32_t)p[1] | (uint32_t)p[0] << 8;
}

CM_INLINE uint64_t cm_load64_le(const uint8_t *p)
{
    return (uint64_t)cm_load32_le(p) | (uint64_t)cm_load32_le(p + 4) << 32;
}

CM_INLINE uint64_t cm_load64_be(const uint8_t *p)
{
    return (uint64_t)cm_load32_be(p + 4) | (uint64_t)cm_load32_be(p) << 32;
}

CM_INLINE void cm_store32_le(uint8_t *p, uint32_t x)
{
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
    p[2] = (uint8_t)(x >> 16);
    p[3] = (uint8_t)(x >> 24);
}

CM_INLINE void cm_store32_be(uint8_t *p, uint32_t x)
{
    p[0] = (uint8_t)(x >> 24);
    p[1] = (uint8_t)(x >> 16);
    p[2] = (uint8_t)(x >> 8);
    p[3] = (uint8_t)x;
}

CM_INLINE void cm_store16_be(uint8_t *p, uint32_t x)
{
    p[0] = (uint8_t)(x >> 8);
    p[1] = (uint8_t)x;
}

CM_INLINE void cm_store64_le(uint8_t *p, uint64_t x)
{
    cm_store32_le(p, (uint32_t)x);
    cm_store32_le(p + 4, (uint32_t)(x >> 32));
}

CM_INLINE void cm_store64_be(uint8_t *p, uint64_t x)
{
    cm_store32_be(p, (uint32_t)(x >> 32));
    cm_store32_be(p + 4, (uint32_t)x);
}

/* Rotations by any amount; the amount is taken modulo the word size. */
CM_INLINE uint32_t cm_rotl32(uint32_t x, uint32_t n)
{
    return x << (n & 31) | x >> (-n & 31);
}

CM_INLINE uint32_t cm_rotr32(uint32_t x, uint32_t n)
{
    return x >> (n & 31) | x << (-n & 31);
}

CM_INLINE uint64_t cm_rotl64(uint64_t x, uint32_t n)
{
    return x << (n & 63) | x >> (-n & 63);
}

CM_INLINE uint64_t cm_rotr64(uint64_t x, uint32_t n)
{
    return x >> (n & 63) | x << (-n & 63);
}

/* Byte n of a word, 0 the least significant. */
CM_INLINE uint32_t cm_byte(uint32_t x, uint32_t n)
{
    return (x >> (8 * n)) & 0xff;
}

/* Writes step(0) to step(15), for code that must be unrolled to keep its words in registers. */
#define CM_SIXTEEN(step)                                                                   \
    step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7)                        \
    step(8) step(9) step(10) step(11) step(12) step(13) step(14) step(15)

/* The same for eight. */
#define CM_EIGHT(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7)

/* ------------------------------------------------------ once at the end of a file --- */

#define CM_SIZES(block)                                                                    \
    uint32_t cm_ctx_bytes(void) { return (uint32_t)sizeof(struct cm_ctx); }                \
    uint32_t cm_block_bytes(void) { return (block); }

#define CM_BLOCKS(direction, block)                                                        \
    void cm_##direction##_blocks(const struct cm_ctx *ctx, const uint8_t *in,              \
                                 uint8_t *out, uint32_t blocks)                            \
    {                                                                                      \
        for (; blocks != 0; blocks--) {                                                    \
            cm_##direction(ctx, in, out);                                                  \
            in += (block);                                                                 \
            out += (block);                                                                \
        }                                                                                  \
    }

#define CM_FEEDBACK(direction, block)                                                      \
    void cm_##direction##_feedback(const struct cm_ctx *ctx, const uint8_t *in,            \
                                   uint8_t *out, uint32_t times)                           \
    {                                                                                      \
        uint32_t i;                                                                        \
        for (i = 0; i < (block); i++)                                                      \
            out[i] = in[i];                                                                \
        for (; times != 0; times--)                                                        \
            cm_##direction(ctx, out, out);                                                 \
    }

/*
 * Where only one of cm_encrypt() and cm_decrypt() is defined, the drivers of the other are
 * left out. ciphermill sees that by itself; who compiles otherwise says it by a macro.
 */
#if defined(CM_DECRYPT_ONLY)
#define CM_DRIVE_ENCRYPT(drivers)
#else
#define CM_DRIVE_ENCRYPT(drivers) drivers
#endif
#if defined(CM_ENCRYPT_ONLY)
#define CM_DRIVE_DECRYPT(drivers)
#else
#define CM_DRIVE_DECRYPT(drivers) drivers
#endif

/* The drivers of a block cipher with blocks of this many bytes. */
#define CM_BLOCK_CIPHER(block)                                                             \
    CM_SIZES(block)                                                                        \
    CM_DRIVE_ENCRYPT(CM_BLOCKS(encrypt, block))                                            \
    CM_DRIVE_DECRYPT(CM_BLOCKS(decrypt, block))                                            \
    CM_DRIVE_ENCRYPT(CM_FEEDBACK(encrypt, block))                                          \
    CM_DRIVE_DECRYPT(CM_FEEDBACK(decrypt, block))

/* The same for a cipher that brings its own cm_encrypt_blocks() and cm_decrypt_blocks(). */
#define CM_BLOCK_CIPHER_WITH_OWN_BLOCKS(block)                                             \
    CM_SIZES(block)                                                                        \
    CM_DRIVE_ENCRYPT(CM_FEEDBACK(encrypt, block))                                          \
    CM_DRIVE_DECRYPT(CM_FEEDBACK(decrypt, block))

/* What a stream cipher exports besides its functions. */
#define CM_STREAM_CIPHER(block) CM_SIZES(block)

/* What a permutation exports, with states of this many bytes. */
#define CM_PERMUTATION(bytes)                                                              \
    uint32_t cm_block_bytes(void) { return (bytes); }                                      \
    void cm_permute_blocks(const uint8_t *in, uint8_t *out, uint32_t blocks)               \
    {                                                                                      \
        for (; blocks != 0; blocks--) {                                                    \
            cm_permute(in, out);                                                           \
            in += (bytes);                                                                 \
            out += (bytes);                                                                \
        }                                                                                  \
    }                                                                                      \
    void cm_permute_feedback(const uint8_t *in, uint8_t *out, uint32_t times)              \
    {                                                                                      \
        uint32_t i;                                                                        \
        for (i = 0; i < (bytes); i++)                                                      \
            out[i] = in[i];                                                                \
        for (; times != 0; times--)                                                        \
            cm_permute(out, out);                                                          \
    }

/* All blocks of a message but the last, and then the last. */
#define CM_MESSAGE(block, out_bytes)                                                       \
    uint32_t whole = bytes == 0 ? 0 : (bytes - 1) / (block);                               \
    cm_init(ctx);                                                                          \
    cm_absorb(ctx, in, whole);                                                             \
    cm_final(ctx, in + whole * (block), out, bytes - whole * (block), (out_bytes));

/*
 * What a hash function exports that absorbs blocks of `block` bytes and has a digest of
 * `digest` (an extendable-output function: that usually has).
 */
#define CM_HASH(block, digest)                                                             \
    CM_SIZES(block)                                                                        \
    uint32_t cm_tag_bytes(void) { return (digest); }                                       \
    void cm_hash(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,      \
                 uint32_t out_bytes)                                                       \
    {                                                                                      \
        CM_MESSAGE(block, out_bytes)                                                       \
    }

/* The same for a message authentication code with tags of `tag` bytes. */
#define CM_MAC(block, tag)                                                                 \
    CM_SIZES(block)                                                                        \
    uint32_t cm_tag_bytes(void) { return (tag); }                                          \
    void cm_mac(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes)       \
    {                                                                                      \
        CM_MESSAGE(block, tag)                                                             \
    }

/* What an authenticated cipher exports that takes a message in blocks of `block` bytes. */
#define CM_AEAD(block, nonce, tag)                                                         \
    CM_SIZES(block)                                                                        \
    uint32_t cm_nonce_bytes(void) { return (nonce); }                                      \
    uint32_t cm_tag_bytes(void) { return (tag); }

/* Whether two tags differ, in a time that does not depend on where. */
CM_INLINE uint32_t cm_differ(const uint8_t *a, const uint8_t *b, uint32_t bytes)
{
    uint32_t found = 0;

    for (; bytes != 0; bytes--)
        found |= (uint32_t)(*a++ ^ *b++);
    return found;
}

/*
 * For a stream cipher that makes `block` bytes at once: the field that `struct cm_ctx`
 * needs, what cm_ivsetup() sets, and cm_keystream() made from
 *
 *     static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out);
 *
 * which XORs the next whole block of keystream to `in`. Whole blocks go straight through
 * it; only a message's ragged ends pass through the buffer, whose last `unused` bytes are
 * keystream not yet given out.
 */
#define CM_UNUSED_KEYSTREAM(block) uint32_t unused; uint8_t keystream[block]

#define CM_KEYSTREAM(block, xor_block)                                                     \
    void cm_keystream(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes) \
    {                                                                                      \
        uint32_t i;                                                                        \
        for (; bytes != 0 && ctx->unused != 0; bytes--)                                    \
            *out++ = *in++ ^ ctx->keystream[(block) - ctx->unused--];                      \
        for (; bytes >= (block); bytes -= (block)) {                                       \
            xor_block(ctx, in, out);                                                       \
            in += (block);                                                                 \
            out += (block);                                                                \
        }                                                                                  \
        if (bytes == 0)                                                                    \
            return;                                                                        \
        for (i = 0; i < (block); i++)                                                      \
            ctx->keystream[i] = 0;                                                         \
        xor_block(ctx, ctx->keystream, ctx->keystream);                                    \
        for (i = 0; i < bytes; i++)                                                        \
            out[i] = in[i] ^ ctx->keystream[i];                                            \
        ctx->unused = (block) - bytes;                                                     \
    }

#endif
