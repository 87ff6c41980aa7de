/* <byteswap.h> for WebAssembly without a library. */
#ifndef CIPHERMILL_BYTESWAP_H
#define CIPHERMILL_BYTESWAP_H

#define bswap_16(x) __builtin_bswap16(x)
#define bswap_32(x) __builtin_bswap32(x)
#define bswap_64(x) __builtin_bswap64(x)

#endif
