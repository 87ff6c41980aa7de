/*
 * <stdio.h> for WebAssembly without a library. Nothing is defined: a call that nobody
 * reaches disappears, any other is refused by the linker, by name.
 */
#ifndef CIPHERMILL_STDIO_H
#define CIPHERMILL_STDIO_H

#include <stddef.h>

typedef struct cm_file FILE;

extern FILE *const stdin, *const stdout, *const stderr;
int printf(const char *format, ...);
int fprintf(FILE *file, const char *format, ...);
int sprintf(char *to, const char *format, ...);
int snprintf(char *to, size_t bytes, const char *format, ...);
int puts(const char *text);
int putchar(int c);
int fflush(FILE *file);

#endif
