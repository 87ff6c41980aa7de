/*
 * <stdlib.h> for WebAssembly without a library. There is no heap: a cipher's memory is its
 * `struct cm_ctx`. What is only declared here disappears if nobody reaches it, and is
 * otherwise refused by the linker, by name.
 */
#ifndef CIPHERMILL_STDLIB_H
#define CIPHERMILL_STDLIB_H

#include <stddef.h>

static inline __attribute__((always_inline, noreturn, unused)) void abort(void)
{
    __builtin_trap();
}

static inline __attribute__((always_inline, noreturn, unused)) void exit(int status)
{
    (void)status;
    __builtin_trap();
}

#define abs(x) __builtin_abs(x)
#define labs(x) __builtin_labs(x)
#define llabs(x) __builtin_llabs(x)

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *from, size_t bytes);
void free(void *from);
int rand(void);
void srand(unsigned seed);

#endif
