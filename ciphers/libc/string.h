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

CM_LIBC void *memchr(const void *in, int value, size_t bytes)
{
    const unsigned char *x = (const unsigned char *)in;
    for (; bytes != 0; bytes--, x++)
        if (*x == (unsigned char)value)
            return (void *)x;
    return 0;
}

CM_LIBC int strncmp(const char *a, const char *b, size_t bytes)
{
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    for (; bytes != 0; bytes--, x++, y++)
        if (*x != *y || *x == 0)
            return *x - *y;
    return 0;
}

CM_LIBC int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, (size_t)-1);
}

CM_LIBC char *strcpy(char *to, const char *from)
{
    return (char *)__builtin_memcpy(to, from, strlen(from) + 1);
}

CM_LIBC char *strncpy(char *to, const char *from, size_t bytes)
{
    size_t n = 0;
    for (; n < bytes && from[n] != 0; n++)
        to[n] = from[n];
    for (; n < bytes; n++)
        to[n] = 0;
    return to;
}

CM_LIBC char *strcat(char *to, const char *from)
{
    strcpy(to + strlen(to), from);
    return to;
}

/* Zeros that a compiler must write although nobody reads them. */
CM_LIBC void explicit_bzero(void *to, size_t bytes)
{
    __builtin_memset(to, 0, bytes);
    __asm__ volatile("" : : "r"(to) : "memory");
}

#undef CM_LIBC
#endif
