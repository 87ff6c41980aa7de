/*
 * Runs one cipher on one message, natively and without a C library.
 *
 * The arguments are the bytes of key, IV and message, in decimal. The ciphertext goes to
 * standard output, so that whoever counts instructions can see that the right work was
 * done. Key, IV and message are those that `ciphermill run` measures with: SplitMix64 from
 * the FNV-1a hash of the buffer's name.
 *
 * Everything outside the cipher's own driver takes the same number of instructions for
 * every message length: the whole input buffer is filled each time and the output written
 * by one system call. The difference of two runs is therefore the cipher's alone.
 */
#include "ciphermill.h"

#define HARNESS __attribute__((section(".harness")))
#define MOST_BYTES 16384
#define MOST_CONTEXT 65536

/* Which of them there are depends on the kind of cipher. */
#pragma weak cm_ivsetup
#pragma weak cm_keystream
#pragma weak cm_encrypt_blocks

int harness_main(const uintptr_t *stack);
void harness_write(const void *bytes, size_t length);

static uint8_t context[MOST_CONTEXT] __attribute__((aligned(64)));
static uint8_t key[64] __attribute__((aligned(64)));
static uint8_t iv[64] __attribute__((aligned(64)));
static uint8_t input[MOST_BYTES] __attribute__((aligned(64)));
static uint8_t output[MOST_BYTES] __attribute__((aligned(64)));

HARNESS static uint32_t decimal(const char *text)
{
    uint32_t value = 0;
    while (*text >= '0' && *text <= '9')
        value = 10 * value + (uint32_t)(*text++ - '0');
    return value;
}

HARNESS static void fill(const char *name, uint8_t *bytes, uint32_t length)
{
    uint64_t state = 0xcbf29ce484222325u, z = 0;
    uint32_t i;
    for (; *name != 0; name++)
        state = (state ^ (uint8_t)*name) * 0x100000001b3u;
    for (i = 0; i < length; i++) {
        if (i % 8 == 0) {
            state += 0x9e3779b97f4a7c15u;
            z = state;
            z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
            z = (z ^ z >> 27) * 0x94d049bb133111ebu;
            z ^= z >> 31;
        }
        bytes[i] = (uint8_t)(z >> 8 * (i % 8));
    }
}

/* The process's first stack words are the number of arguments and pointers to them. */
HARNESS int harness_main(const uintptr_t *stack)
{
    struct cm_ctx *ctx = (struct cm_ctx *)context;
    uint32_t key_bytes, iv_bytes, bytes;
    if (stack[0] != 4)
        return 2;
    key_bytes = decimal((const char *)stack[2]);
    iv_bytes = decimal((const char *)stack[3]);
    bytes = decimal((const char *)stack[4]);
    if (key_bytes > sizeof key || iv_bytes > sizeof iv || bytes > MOST_BYTES)
        return 2;
    if (cm_ctx_bytes() > MOST_CONTEXT)
        return 3;
    fill("key", key, sizeof key);
    fill("iv", iv, sizeof iv);
    fill("message", input, MOST_BYTES);
    cm_keysetup(ctx, key, key_bytes);
    if (cm_keystream != 0) {
        if (cm_ivsetup != 0)
            cm_ivsetup(ctx, iv, iv_bytes);
        cm_keystream(ctx, input, output, bytes);
    } else {
        cm_encrypt_blocks(ctx, input, output, bytes / cm_block_bytes());
    }
    harness_write(output, bytes);
    return 0;
}
