/*
 * <errno.h> for WebAssembly without a library: the numbers, for code that returns them.
 * Nothing here sets `errno`, which is refused by the linker if something reads it.
 */
#ifndef CIPHERMILL_ERRNO_H
#define CIPHERMILL_ERRNO_H

#define EPERM 1
#define ENOENT 2
#define EIO 5
#define EAGAIN 11
#define ENOMEM 12
#define EFAULT 14
#define EINVAL 22
#define EDOM 33
#define ERANGE 34

extern int errno;

#endif
