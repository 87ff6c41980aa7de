/*
 * HC-256: two secret tables of 1024 words, one word of output and one changed table entry a
 * step. Shorter keys and IVs (16 bytes) are taken twice.
 *
 * For 1024 steps table P is renewed while Q hides it (its entries, picked by the four bytes
 * of a P entry, are added up to the mask), then the two change places. Sixteen steps make
 * one 64-byte block. Entry j needs entries j - 3, j - 10, j - 12 and j - 1023 = j + 1, all
 * modulo 1024; as a block begins at a multiple of 16, each lies at a fixed place in this
 * block, the one before or the one after. Renewal reads the other table too.
 */
#include "../ciphermill.h"

#define BLOCK 64
#define TABLE 1024

struct cm_ctx {
    uint32_t p[TABLE];
    uint32_t q[TABLE];
    uint32_t step; /* of the next word, modulo 2048; always a multiple of 16 */
    uint32_t key[8];
    CM_UNUSED_KEYSTREAM(BLOCK);
};

/* Where the entries of the sixteen steps that begin at `at` lie in their table. */
struct place {
    uint32_t *now, *before, *after;
};

CM_INLINE struct place find(uint32_t *table, uint32_t at)
{
    struct place place;

    place.now = table + at;
    place.before = table + ((at - 16) & (TABLE - 1));
    place.after = table + ((at + 16) & (TABLE - 1));
    return place;
}

/* The entry `back` steps before step i of the block. */
CM_INLINE uint32_t earlier(struct place t, uint32_t i, uint32_t back)
{
    return i < back ? t.before[16 + i - back] : t.now[i - back];
}

CM_INLINE uint32_t next(struct place t, uint32_t i)
{
    return i == 15 ? t.after[0] : t.now[i + 1];
}

/* Renews entry i of a block and returns h(entry i - 12); both read the other table. */
CM_INLINE uint32_t renew(struct place t, const uint32_t *other, uint32_t i)
{
    uint32_t recent = earlier(t, i, 3), oldest = next(t, i), picked = earlier(t, i, 12);

    t.now[i] += (cm_rotr32(recent, 10) ^ cm_rotr32(oldest, 23)) + earlier(t, i, 10)
        + other[(recent ^ oldest) & (TABLE - 1)];
    return other[cm_byte(picked, 0)] + other[256 + cm_byte(picked, 1)]
        + other[512 + cm_byte(picked, 2)] + other[768 + cm_byte(picked, 3)];
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    const uint32_t *other = ctx->step < TABLE ? ctx->q : ctx->p;
    struct place t = find(ctx->step < TABLE ? ctx->p : ctx->q, ctx->step & (TABLE - 1));
    uint32_t mask;

#define STEP(i)                                                                            \
    mask = renew(t, other, i);                                                             \
    cm_store32_le(out + 4 * (i), cm_load32_le(in + 4 * (i)) ^ mask ^ t.now[i]);
    CM_SIXTEEN(STEP)
#undef STEP
    ctx->step = (ctx->step + 16) & (2 * TABLE - 1);
}

/* 1024 steps without output through one table. */
static void run(uint32_t *table, const uint32_t *other)
{
    struct place t;
    uint32_t at;

#define STEP(i) renew(t, other, i);
    for (at = 0; at < TABLE; at += 16) {
        t = find(table, at);
        CM_SIXTEEN(STEP)
    }
#undef STEP
}

/* The message schedule of SHA-256 with the step number added. */
CM_INLINE uint32_t expand(const uint32_t *w, uint32_t i)
{
    uint32_t near = w[i - 2], far = w[i - 15];

    return (cm_rotr32(near, 17) ^ cm_rotr32(near, 19) ^ near >> 10) + w[i - 7]
        + (cm_rotr32(far, 7) ^ cm_rotr32(far, 18) ^ far >> 3) + w[i - 16];
}

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    uint32_t i;

    for (i = 0; i < 8; i++)
        ctx->key[i] = cm_load32_le(key + (4 * i & (key_bytes - 1)));
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    uint32_t w[16 + 512];
    uint32_t i;

    for (i = 0; i < 8; i++) {
        w[i] = ctx->key[i];
        w[i + 8] = cm_load32_le(iv + (4 * i & (iv_bytes - 1)));
    }
    /* 2560 words: the first 512 are thrown away, then come P and Q. */
    for (i = 16; i < 16 + 512; i++)
        w[i] = expand(w, i) + i;
    for (i = 0; i < 16; i++)
        ctx->p[i] = w[512 + i];
    for (i = 16; i < TABLE; i++)
        ctx->p[i] = expand(ctx->p, i) + 512 + i;
    for (i = 0; i < 16; i++)
        w[i] = ctx->p[TABLE - 16 + i];
    for (i = 16; i < 32; i++)
        ctx->q[i - 16] = w[i] = expand(w, i) + 512 + TABLE - 16 + i;
    for (i = 16; i < TABLE; i++)
        ctx->q[i] = expand(ctx->q, i) + 512 + TABLE + i;
    for (i = 0; i < 2; i++) {
        run(ctx->p, ctx->q);
        run(ctx->q, ctx->p);
    }
    ctx->step = 0;
    ctx->unused = 0;
}

CM_KEYSTREAM(BLOCK, xor_block)
CM_STREAM_CIPHER(BLOCK)
