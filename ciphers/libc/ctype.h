/* <ctype.h> for WebAssembly without a library: nothing, for files that include it out of habit. */
#ifndef CIPHERMILL_CTYPE_H
#define CIPHERMILL_CTYPE_H

#include <stddef.h>

#endif
