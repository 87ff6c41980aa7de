/*
 * What compilers call of their own accord, for programs without a C library. It stands in
 * .text and is counted like the code that calls it. Compiled with
 * -fno-builtin and -fno-tree-loop-distribute-patterns, so that memcpy() is not made of
 * itself.
 */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);

void *memcpy(void *to, const void *from, size_t bytes)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    if ((((uintptr_t)out | (uintptr_t)in) & 3) == 0) {
        for (; bytes >= 4; bytes -= 4, in += 4, out += 4)
            *(uint32_t __attribute__((may_alias)) *)out =
                *(const uint32_t __attribute__((may_alias)) *)in;
    }
    while (bytes-- != 0)
        *out++ = *in++;
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    unsigned char *out = to;
    while (bytes-- != 0)
        *out++ = (unsigned char)value;
    return to;
}
