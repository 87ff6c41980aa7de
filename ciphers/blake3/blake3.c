/*
 * BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020), the hash without a key.
 *
 * Chunks of 1024 bytes are leaves of a binary tree; their chaining values wait on a stack until
 * their sibling is there. The last block of all is not compressed before it is known to be the
 * last: its compression with the root flag is the output, of any length.
 */
#include "../ciphermill.h"

#define BLOCK 64
#define DIGEST 32
#define CHUNK_BLOCKS 16
#define DEPTH 54 /* of a tree of 2^64 bytes */

enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };

struct cm_ctx {
    uint32_t cv[8];      /* of the chunk so far */
    uint32_t block;      /* of the chunk, that comes next */
    uint64_t chunk;
    uint32_t waiting;    /* chaining values on the stack */
    uint32_t stack[DEPTH][8];
    uint8_t last[BLOCK];
};

static const uint32_t iv[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

#define G(a, b, c, d, x, y)                                                                \
    v[a] += v[b] + m[x];                                                                   \
    v[d] = cm_rotr32(v[d] ^ v[a], 16);                                                     \
    v[c] += v[d];                                                                          \
    v[b] = cm_rotr32(v[b] ^ v[c], 12);                                                     \
    v[a] += v[b] + m[y];                                                                   \
    v[d] = cm_rotr32(v[d] ^ v[a], 8);                                                      \
    v[c] += v[d];                                                                          \
    v[b] = cm_rotr32(v[b] ^ v[c], 7);

/* The message's words are permuted from round to round, which only renames them here. */
#define ROUND(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q)                              \
    G(0, 4, 8, 12, a, b)                                                                   \
    G(1, 5, 9, 13, c, d)                                                                   \
    G(2, 6, 10, 14, e, f)                                                                  \
    G(3, 7, 11, 15, g, h)                                                                  \
    G(0, 5, 10, 15, i, j)                                                                  \
    G(1, 6, 11, 12, k, l)                                                                  \
    G(2, 7, 8, 13, n, o)                                                                   \
    G(3, 4, 9, 14, p, q)

/* All sixteen words of output; the first eight are the chaining value. */
static void compress(uint32_t *v, const uint32_t *cv, const uint32_t *m, uint64_t counter,
                     uint32_t bytes, uint32_t flags)
{
#define TAKE(i) v[i] = cv[i];
    CM_EIGHT(TAKE)
    v[8] = iv[0];
    v[9] = iv[1];
    v[10] = iv[2];
    v[11] = iv[3];
    v[12] = (uint32_t)counter;
    v[13] = (uint32_t)(counter >> 32);
    v[14] = bytes;
    v[15] = flags;
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
    ROUND(3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1)
    ROUND(10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6)
    ROUND(12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4)
    ROUND(9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7)
    ROUND(11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13)
#define FEED(i) v[i] ^= v[8 + (i)]; v[8 + (i)] ^= cv[i];
    CM_EIGHT(FEED)
}

static void words(uint32_t *m, const uint8_t *in)
{
#define LOAD(i) m[i] = cm_load32_le(in + 4 * (i));
    CM_SIXTEEN(LOAD)
}

static void copy(uint32_t *to, const uint32_t *from)
{
#define COPY(i) to[i] = from[i];
    CM_EIGHT(COPY)
}

/* The value on top of the stack and another one become the message of their parent. */
static void pop(struct cm_ctx *ctx, uint32_t *m, const uint32_t *right)
{
    copy(m + 8, right);
    copy(m, ctx->stack[--ctx->waiting]);
}

void cm_init(struct cm_ctx *ctx)
{
    copy(ctx->cv, iv);
    ctx->block = 0;
    ctx->chunk = 0;
    ctx->waiting = 0;
}

/* More than these blocks follow, so no node that they complete is the root. */
void cm_absorb(struct cm_ctx *ctx, const uint8_t *in, uint32_t blocks)
{
    uint32_t v[16], m[16];
    uint64_t done;

    for (; blocks != 0; blocks--, in += BLOCK) {
        uint32_t end = ctx->block == CHUNK_BLOCKS - 1;

        words(m, in);
        compress(v, ctx->cv, m, ctx->chunk, BLOCK,
                 (ctx->block == 0 ? CHUNK_START : 0) | (end ? CHUNK_END : 0));
        copy(ctx->cv, v);
        ctx->block++;
        if (!end)
            continue;
        /* Each subtree that is complete now has a trailing 0 in the number of chunks. */
        for (done = ++ctx->chunk; (done & 1) == 0; done >>= 1) {
            pop(ctx, m, ctx->cv);
            compress(v, iv, m, 0, BLOCK, PARENT);
            copy(ctx->cv, v);
        }
        copy(ctx->stack[ctx->waiting++], ctx->cv);
        copy(ctx->cv, iv);
        ctx->block = 0;
    }
}

void cm_final(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out, uint32_t bytes,
              uint32_t out_bytes)
{
    uint32_t v[16], m[16], cv[8], i, length = bytes;
    uint32_t flags = (ctx->block == 0 ? CHUNK_START : 0) | CHUNK_END;
    uint64_t counter = ctx->chunk;

    for (i = 0; i < bytes; i++)
        ctx->last[i] = in[i];
    for (; i < BLOCK; i++)
        ctx->last[i] = 0;
    words(m, ctx->last);
    copy(cv, ctx->cv);
    while (ctx->waiting != 0) {
        compress(v, cv, m, counter, length, flags);
        pop(ctx, m, v);
        copy(cv, iv);
        counter = 0;
        length = BLOCK;
        flags = PARENT;
    }
    for (counter = flags == PARENT ? 0 : counter; out_bytes != 0; counter++) {
        compress(v, cv, m, counter, length, flags | ROOT);
        for (i = 0; i < BLOCK && out_bytes != 0; i++, out_bytes--)
            *out++ = (uint8_t)(v[i / 4] >> (8 * (i % 4)));
    }
}

CM_HASH(BLOCK, DIGEST)
