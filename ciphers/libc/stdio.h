/* <stdio.h> for WebAssembly without a library: its types, for declarations nobody calls. */
#ifndef CIPHERMILL_STDIO_H
#define CIPHERMILL_STDIO_H

#include <stddef.h>

typedef struct cm_file FILE;

#endif
