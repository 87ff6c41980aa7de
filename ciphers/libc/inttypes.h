/*
 * <inttypes.h> for WebAssembly without a library: the integer types. Nothing is printed
 * here; the formats are for lines of code that nobody reaches.
 */
#ifndef CIPHERMILL_INTTYPES_H
#define CIPHERMILL_INTTYPES_H

#include <stdint.h>

#define PRId8 "d"
#define PRIu8 "u"
#define PRIx8 "x"
#define PRIX8 "X"
#define PRId16 "d"
#define PRIu16 "u"
#define PRIx16 "x"
#define PRIX16 "X"
#define PRId32 "d"
#define PRIu32 "u"
#define PRIx32 "x"
#define PRIX32 "X"
#define PRId64 "lld"
#define PRIu64 "llu"
#define PRIx64 "llx"
#define PRIX64 "llX"

#endif
