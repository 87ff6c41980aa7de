/*
 * What clang calls for 128-bit integers, which WebAssembly does not have. Linked to a
 * module that calls one of these, and to no other. No function here may use the operation
 * that it is: the compiler would call it again.
 */
#include <stdint.h>

typedef unsigned __int128 u128;
typedef __int128 i128;

static inline u128 joined(uint64_t high, uint64_t low)
{
    return (u128)high << 64 | low;
}

/* The product of two words, whole: four products of half words. */
static inline u128 wide(uint64_t a, uint64_t b)
{
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t low = al * bl;
    uint64_t m = ah * bl + (low >> 32);
    uint64_t n = al * bh + (uint32_t)m;
    return joined(ah * bh + (m >> 32) + (n >> 32), n << 32 | (uint32_t)low);
}

i128 __multi3(i128 x, i128 y)
{
    uint64_t a = (uint64_t)x, b = (uint64_t)y;
    uint64_t cross = a * (uint64_t)((u128)y >> 64) + b * (uint64_t)((u128)x >> 64);
    return (i128)(wide(a, b) + joined(cross, 0));
}

i128 __ashlti3(i128 x, int by)
{
    uint64_t low = (uint64_t)x, high = (uint64_t)((u128)x >> 64);
    if (by == 0)
        return x;
    if (by >= 64)
        return (i128)joined(low << (by - 64), 0);
    return (i128)joined(high << by | low >> (64 - by), low << by);
}

i128 __lshrti3(i128 x, int by)
{
    uint64_t low = (uint64_t)x, high = (uint64_t)((u128)x >> 64);
    if (by == 0)
        return x;
    if (by >= 64)
        return (i128)joined(0, high >> (by - 64));
    return (i128)joined(high >> by, low >> by | high << (64 - by));
}

i128 __ashrti3(i128 x, int by)
{
    uint64_t low = (uint64_t)x;
    int64_t high = (int64_t)((u128)x >> 64);
    if (by == 0)
        return x;
    if (by >= 64)
        return (i128)joined((uint64_t)(high >> 63), (uint64_t)(high >> (by - 64)));
    return (i128)joined((uint64_t)(high >> by), low >> by | (uint64_t)high << (64 - by));
}

/* Bit by bit, as by hand; a divisor of 0 traps, as it does for words. */
static u128 divided(u128 n, u128 d, u128 *rest)
{
    u128 quotient = 0, r = 0;
    if (d == 0)
        __builtin_trap();
    for (int i = 0; i < 128; i++) {
        uint64_t top = (uint64_t)(n >> 64) >> 63, carry = (uint64_t)(r >> 64) >> 63;
        r = r << 1 | top;
        n <<= 1;
        quotient <<= 1;
        if (carry || r >= d) {
            r -= d;
            quotient |= 1;
        }
    }
    *rest = r;
    return quotient;
}

u128 __udivti3(u128 n, u128 d)
{
    u128 rest;
    return divided(n, d, &rest);
}

u128 __umodti3(u128 n, u128 d)
{
    u128 rest;
    divided(n, d, &rest);
    return rest;
}

static u128 magnitude(i128 x)
{
    return x < 0 ? -(u128)x : (u128)x;
}

i128 __divti3(i128 n, i128 d)
{
    u128 rest, quotient = divided(magnitude(n), magnitude(d), &rest);
    return (i128)((n < 0) != (d < 0) ? -quotient : quotient);
}

i128 __modti3(i128 n, i128 d)
{
    u128 rest;
    divided(magnitude(n), magnitude(d), &rest);
    return (i128)(n < 0 ? -rest : rest);
}
