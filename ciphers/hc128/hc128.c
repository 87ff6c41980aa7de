/*
 * HC-128: two secret tables of 512 words, one word of output and one changed table entry a
 * step.
 *
 * For 512 steps table P is renewed while Q hides it (its entries, picked by bytes of a P
 * entry, are added up to the mask), then the two change places. Sixteen steps make one
 * 64-byte block. Entry j needs entries j - 3, j - 10, j - 12 and j - 511 = j + 1, all
 * modulo 512; as a block begins at a multiple of 16, each lies at a fixed place in this
 * block, the one before or the one after.
 *
 * HC128_STEPWISE makes the same output as its designer's reference implementation does: a
 * function makes one step, reduces every index modulo 512, and leaves its word in the
 * context, from where it is XORed to the message.
 */
#include "../ciphermill.h"

#define BLOCK 64
#define TABLE 512

struct cm_ctx {
    uint32_t p[TABLE];
    uint32_t q[TABLE];
    uint32_t step; /* of the next word, modulo 1024; between calls a multiple of 16 */
#ifdef HC128_STEPWISE
    uint32_t word;
#endif
    uint32_t key[4];
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

/* Renews entry i of a block and returns h(entry i - 12); h reads the other table. */
CM_INLINE uint32_t renew_p(struct place t, const uint32_t *q, uint32_t i)
{
    uint32_t picked = earlier(t, i, 12);

    t.now[i] += (cm_rotr32(earlier(t, i, 3), 10) ^ cm_rotr32(next(t, i), 23))
        + cm_rotr32(earlier(t, i, 10), 8);
    return q[cm_byte(picked, 0)] + q[256 + cm_byte(picked, 2)];
}

CM_INLINE uint32_t renew_q(struct place t, const uint32_t *p, uint32_t i)
{
    uint32_t picked = earlier(t, i, 12);

    t.now[i] += (cm_rotl32(earlier(t, i, 3), 10) ^ cm_rotl32(next(t, i), 23))
        + cm_rotl32(earlier(t, i, 10), 8);
    return p[cm_byte(picked, 0)] + p[256 + cm_byte(picked, 2)];
}

#ifdef HC128_STEPWISE
static __attribute__((noinline)) void one_step(struct cm_ctx *ctx)
{
    uint32_t i = ctx->step & (TABLE - 1);
    uint32_t i3 = (i - 3) & (TABLE - 1), i10 = (i - 10) & (TABLE - 1);
    uint32_t i12 = (i - 12) & (TABLE - 1), i511 = (i - 511) & (TABLE - 1);

#define STEP(p, q, rotate)                                                                 \
    ctx->p[i] += (rotate(ctx->p[i3], 10) ^ rotate(ctx->p[i511], 23))                       \
        + rotate(ctx->p[i10], 8);                                                          \
    ctx->word = ctx->p[i]                                                                  \
        ^ (ctx->q[cm_byte(ctx->p[i12], 0)] + ctx->q[256 + cm_byte(ctx->p[i12], 2)]);
    if (ctx->step < TABLE) {
        STEP(p, q, cm_rotr32)
    } else {
        STEP(q, p, cm_rotl32)
    }
#undef STEP
    ctx->step = (ctx->step + 1) & (2 * TABLE - 1);
}

static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    uint32_t i;

#if defined(__clang__)
#pragma clang loop unroll(disable) vectorize(disable)
#endif
    for (i = 0; i < BLOCK; i += 4) {
        one_step(ctx);
        cm_store32_le(out + i, cm_load32_le(in + i) ^ ctx->word);
    }
}
#else
static void xor_block(struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    struct place t;
    uint32_t mask;

#define OUTPUT(i) cm_store32_le(out + 4 * (i), cm_load32_le(in + 4 * (i)) ^ mask ^ t.now[i])
#define STEP_P(i) mask = renew_p(t, ctx->q, i); OUTPUT(i);
#define STEP_Q(i) mask = renew_q(t, ctx->p, i); OUTPUT(i);
    if (ctx->step < TABLE) {
        t = find(ctx->p, ctx->step);
        CM_SIXTEEN(STEP_P)
    } else {
        t = find(ctx->q, ctx->step - TABLE);
        CM_SIXTEEN(STEP_Q)
    }
#undef STEP_P
#undef STEP_Q
#undef OUTPUT
    ctx->step = (ctx->step + 16) & (2 * TABLE - 1);
}
#endif

/* One pass through both tables in which the output goes back into the entry renewed. */
static void mix_tables(struct cm_ctx *ctx)
{
    struct place t;
    uint32_t at, mask;

#define STEP_P(i) mask = renew_p(t, ctx->q, i); t.now[i] ^= mask;
#define STEP_Q(i) mask = renew_q(t, ctx->p, i); t.now[i] ^= mask;
    for (at = 0; at < TABLE; at += 16) {
        t = find(ctx->p, at);
        CM_SIXTEEN(STEP_P)
    }
    for (at = 0; at < TABLE; at += 16) {
        t = find(ctx->q, at);
        CM_SIXTEEN(STEP_Q)
    }
#undef STEP_P
#undef STEP_Q
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

    (void)key_bytes;
    for (i = 0; i < 4; i++)
        ctx->key[i] = cm_load32_le(key + 4 * i);
}

void cm_ivsetup(struct cm_ctx *ctx, const uint8_t *iv, uint32_t iv_bytes)
{
    uint32_t w[16 + 256];
    uint32_t i;

    (void)iv_bytes;
    for (i = 0; i < 4; i++) {
        w[i] = w[i + 4] = ctx->key[i];
        w[i + 8] = w[i + 12] = cm_load32_le(iv + 4 * i);
    }
    /* 1280 words: the first 256 are thrown away, then come P and Q. */
    for (i = 16; i < 16 + 256; i++)
        w[i] = expand(w, i) + i;
    for (i = 0; i < 16; i++)
        ctx->p[i] = w[256 + i];
    for (i = 16; i < TABLE; i++)
        ctx->p[i] = expand(ctx->p, i) + 256 + i;
    for (i = 0; i < 16; i++)
        w[i] = ctx->p[TABLE - 16 + i];
    for (i = 16; i < 32; i++)
        ctx->q[i - 16] = w[i] = expand(w, i) + 256 + TABLE - 16 + i;
    for (i = 16; i < TABLE; i++)
        ctx->q[i] = expand(ctx->q, i) + 256 + TABLE + i;
    mix_tables(ctx);
    ctx->step = 0;
    ctx->unused = 0;
}

CM_KEYSTREAM(BLOCK, xor_block)
CM_STREAM_CIPHER(BLOCK)
