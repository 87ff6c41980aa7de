/* <time.h> for WebAssembly without a library: its types, for declarations nobody calls. */
#ifndef CIPHERMILL_TIME_H
#define CIPHERMILL_TIME_H

#include <stddef.h>

typedef long time_t;
typedef long clock_t;

#endif
