/*
 * <stdlib.h> for WebAssembly without a library: no more than lets a file that includes it
 * out of habit be compiled. There is no heap: a cipher's memory is its `struct cm_ctx`.
 */
#ifndef CIPHERMILL_STDLIB_H
#define CIPHERMILL_STDLIB_H

#include <stddef.h>

static inline __attribute__((always_inline, noreturn, unused)) void abort(void)
{
    __builtin_trap();
}

#endif
