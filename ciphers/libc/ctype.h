/* <ctype.h> for WebAssembly without a library: the letters of ASCII. */
#ifndef CIPHERMILL_CTYPE_H
#define CIPHERMILL_CTYPE_H

#include <stddef.h>

#define CM_LIBC static inline __attribute__((always_inline, unused))

CM_LIBC int isdigit(int c) { return (unsigned)c - '0' < 10; }
CM_LIBC int isupper(int c) { return (unsigned)c - 'A' < 26; }
CM_LIBC int islower(int c) { return (unsigned)c - 'a' < 26; }
CM_LIBC int isalpha(int c) { return isupper(c) || islower(c); }
CM_LIBC int isalnum(int c) { return isalpha(c) || isdigit(c); }
CM_LIBC int isspace(int c) { return c == ' ' || (unsigned)c - '\t' < 5; }
CM_LIBC int isxdigit(int c) { return isdigit(c) || ((unsigned)c | 32) - 'a' < 6; }
CM_LIBC int tolower(int c) { return isupper(c) ? c + 'a' - 'A' : c; }
CM_LIBC int toupper(int c) { return islower(c) ? c + 'A' - 'a' : c; }

#undef CM_LIBC
#endif
