/* alloca() takes memory from the stack; the compiler has it. */
#ifndef CIPHERMILL_ALLOCA_H
#define CIPHERMILL_ALLOCA_H

#define alloca(bytes) __builtin_alloca(bytes)

#endif
