/*
 * A program around a cipher, for counting its instructions: reads key, IV and message
 * from standard input, makes the one call that is counted, writes the output.
 *
 * Arguments: key set-up, driver ("-" for the key set-up itself), bytes of key, IV and
 * message, and the driver's last argument. Memory comes from the C library, nothing
 * else does.
 */
#include "ciphermill.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A cipher may have one direction alone. */
#pragma weak cm_keysetup
#pragma weak cm_keysetup_decrypt
#pragma weak cm_encrypt_blocks
#pragma weak cm_decrypt_blocks
#pragma weak cm_encrypt_feedback
#pragma weak cm_decrypt_feedback

#if defined(CM_STREAM)
#define DRIVERS {"cm_keystream", (driver)cm_keystream}
#define SETUPS {"cm_keysetup", cm_keysetup}
#else
#define DRIVERS                                                                            \
    {"cm_encrypt_blocks", (driver)cm_encrypt_blocks},                                      \
    {"cm_decrypt_blocks", (driver)cm_decrypt_blocks},                                      \
    {"cm_encrypt_feedback", (driver)cm_encrypt_feedback},                                  \
    {"cm_decrypt_feedback", (driver)cm_decrypt_feedback}
#define SETUPS {"cm_keysetup", cm_keysetup}, {"cm_keysetup_decrypt", cm_keysetup_decrypt}
#endif

typedef void (*driver)(struct cm_ctx *, const uint8_t *, uint8_t *, uint32_t);
typedef void (*setup)(struct cm_ctx *, const uint8_t *, uint32_t);

static const struct { const char *name; driver call; } drivers[] = {DRIVERS};
static const struct { const char *name; setup call; } setups[] = {SETUPS};

static uint8_t *filled(size_t length)
{
    uint8_t *bytes = aligned_alloc(64, (length / 64 + 1) * 64);
    if (bytes == NULL || fread(bytes, 1, length, stdin) != length)
        exit(2);
    return bytes;
}

/* What is counted: everything in here and below. */
__attribute__((noinline)) void cm_counted(driver call, setup key_setup, struct cm_ctx *ctx,
                                          const uint8_t *in, uint8_t *out, uint32_t count)
{
    if (call != NULL)
        call(ctx, in, out, count);
    else
        key_setup(ctx, in, count);
}

int main(int argc, char **argv)
{
    driver call = NULL;
    setup key_setup = NULL;
    size_t i;
    if (argc != 7)
        return 2;
    for (i = 0; i < sizeof setups / sizeof setups[0]; i++)
        if (strcmp(argv[1], setups[i].name) == 0)
            key_setup = setups[i].call;
    for (i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (strcmp(argv[2], drivers[i].name) == 0)
            call = drivers[i].call;
    if (key_setup == NULL || (call == NULL && strcmp(argv[2], "-") != 0))
        return 2;
    size_t key_bytes = strtoul(argv[3], NULL, 10), iv_bytes = strtoul(argv[4], NULL, 10);
    size_t length = strtoul(argv[5], NULL, 10);
    uint32_t count = (uint32_t)strtoul(argv[6], NULL, 10);
    uint8_t *key = filled(key_bytes), *iv = filled(iv_bytes), *in = filled(length);
    uint8_t *out = calloc(length + 1, 1);
    struct cm_ctx *ctx = aligned_alloc(64, (cm_ctx_bytes() / 64 + 1) * 64);
    if (out == NULL || ctx == NULL)
        return 2;
    if (call == NULL) {
        cm_counted(NULL, key_setup, ctx, key, out, (uint32_t)key_bytes);
        return 0;
    }
    key_setup(ctx, key, (uint32_t)key_bytes);
#if defined(CM_STREAM)
    cm_ivsetup(ctx, iv, (uint32_t)iv_bytes);
#else
    (void)iv;
#endif
    cm_counted(call, key_setup, ctx, in, out, count);
    return fwrite(out, 1, length, stdout) == length ? 0 : 2;
}
