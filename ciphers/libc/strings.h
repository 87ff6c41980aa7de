/* <strings.h> for WebAssembly without a library: what is left of BSD's names. */
#ifndef CIPHERMILL_STRINGS_H
#define CIPHERMILL_STRINGS_H

#include <string.h>

static inline __attribute__((always_inline, unused)) void bzero(void *to, size_t bytes)
{
    __builtin_memset(to, 0, bytes);
}

#endif
