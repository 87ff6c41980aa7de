/* <sys/types.h> for WebAssembly without a library: BSD's names for integers. */
#ifndef CIPHERMILL_SYS_TYPES_H
#define CIPHERMILL_SYS_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u_int8_t;
typedef uint16_t u_int16_t;
typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t;
typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int, uint;
typedef unsigned long u_long;
typedef ptrdiff_t ssize_t;

#endif
