/*
 * The part of <string.h> that ciphers use, for WebAssembly without a library. Copies of a
 * size known when compiled become loads and stores, others the bulk memory instructions.
 */
#ifndef CIPHERMILL_STRING_H
#define CIPHERMILL_STRING_H

#include <stddef.h>

#define CM_LIBC static inline __attribute__((always_inline, unused))

CM_LIBC void *memcpy(void *to, const void *from, size_t bytes)
{
    return __builtin_memcpy(to, from, bytes);
}

CM_LIBC void *memmove(void *to, const void *from, size_t bytes)
{
    return __builtin_memmove(to, from, bytes);
}

CM_LIBC void *memset(void *to, int value, size_t bytes)
{
    return __builtin_memset(to, value, bytes);
}

CM_LIBC int memcmp(const void *a, const void *b, size_t bytes)
{
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    for (; bytes != 0; bytes--, x++, y++)
        if (*x != *y)
            return *x < *y ? -1 : 1;
    return 0;
}

CM_LIBC size_t strlen(const char *text)
{
    size_t n = 0;
    while (text[n] != 0)
        n++;
    return n;
}

#undef CM_LIBC
#endif
