/*
 * Simon (Beaulieu, Shors, Smith, Treatman-Clark, Weeks, Wingers, 2013) with blocks of 128 bits
 * (keys of 128, 192 or 256), or with SIMON64 of 64 (keys of 96 or 128). Bytes are ordered as in the
 * designers' implementation guide: little-endian words, the second of the paper's first.
 */
#include "../ciphermill.h"

#ifdef SIMON64
#define BLOCK 8
#define MOST_ROUNDS 44
typedef uint32_t word;
#define LOAD cm_load32_le
#define STORE cm_store32_le
#define LEFT cm_rotl32
#define RIGHT cm_rotr32
#else
#define BLOCK 16
#define MOST_ROUNDS 72
typedef uint64_t word;
#define LOAD cm_load64_le
#define STORE cm_store64_le
#define LEFT cm_rotl64
#define RIGHT cm_rotr64
#endif

#define WORD (BLOCK / 2)

struct cm_ctx {
    word key[MOST_ROUNDS];
    uint32_t rounds;
};

/* The paper's sequences z2, z3 and z4 of 62 bits, the first bit the least significant one. */
static const uint64_t sequence[3] = {0x3369f885192c0ef5, 0x3c2ce51207a635db,
                                     0x3dc94c3a046d678b};

void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
#ifdef SIMON64
    static const uint8_t rounds[5] = {0, 0, 0, 42, 44}, which[5] = {0, 0, 0, 0, 1};
#else
    static const uint8_t rounds[5] = {0, 0, 68, 69, 72}, which[5] = {0, 0, 0, 1, 2};
#endif
    uint32_t words = key_bytes / WORD, i;
    uint64_t z = sequence[which[words]];

    for (i = 0; i < words; i++)
        ctx->key[i] = LOAD(key + WORD * i);
    ctx->rounds = rounds[words];
    for (; i < ctx->rounds; i++) {
        word t = RIGHT(ctx->key[i - 1], 3);

        if (words == 4)
            t ^= ctx->key[i - 3];
        t ^= RIGHT(t, 1);
        ctx->key[i] = ~ctx->key[i - words] ^ t ^ (z >> ((i - words) % 62) & 1) ^ 3;
    }
}

void cm_keysetup_decrypt(struct cm_ctx *ctx, const uint8_t *key, uint32_t key_bytes)
{
    cm_keysetup(ctx, key, key_bytes);
}

#define MIX(x) ((LEFT(x, 1) & LEFT(x, 8)) ^ LEFT(x, 2))

/* Two rounds and no exchange; an odd number of rounds has one more at the end. */
void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    word y = LOAD(in), x = LOAD(in + WORD), t;
    uint32_t i;

    for (i = 0; i + 1 < ctx->rounds; i += 2) {
        y ^= MIX(x) ^ ctx->key[i];
        x ^= MIX(y) ^ ctx->key[i + 1];
    }
    if (i < ctx->rounds) {
        t = y ^ MIX(x) ^ ctx->key[i];
        y = x;
        x = t;
    }
    STORE(out, y);
    STORE(out + WORD, x);
}

void cm_decrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    word y = LOAD(in), x = LOAD(in + WORD), t;
    uint32_t i = ctx->rounds;

    if (i & 1) {
        t = x;
        x = y;
        y = t ^ MIX(x) ^ ctx->key[--i];
    }
    for (; i != 0; i -= 2) {
        x ^= MIX(y) ^ ctx->key[i - 1];
        y ^= MIX(x) ^ ctx->key[i - 2];
    }
    STORE(out, y);
    STORE(out + WORD, x);
}

CM_BLOCK_CIPHER(BLOCK)
