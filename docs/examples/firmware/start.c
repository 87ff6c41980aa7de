/* What a board's start-up code and its serial port would be, here two system calls of Linux: so that
   the program runs under QEMU's user emulation. It has no C library. */
void begin(void);

#if defined(__riscv)
__asm__(".section .text.start\n\t.globl _start\n_start:\n\tandi sp, sp, -16\n\tcall begin\n");
enum { WRITE = 64, EXIT = 93 };
static long call(long number, long a, long b, long c)
{
    register long a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c, a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}
#elif defined(__arm__)
__asm__(".section .text.start\n\t.globl _start\n\t.thumb_func\n_start:\n\tbl begin\n");
enum { WRITE = 4, EXIT = 1 };
static long call(long number, long a, long b, long c)
{
    /* r7 is the frame pointer of Thumb code, so the number is moved there and back. */
    register long r0 __asm__("r0") = a, r1 __asm__("r1") = b, r2 __asm__("r2") = c;
    __asm__ volatile("push {r7}\n\tmov r7, %3\n\tsvc #0\n\tpop {r7}" : "+r"(r0) : "r"(r1), "r"(r2), "r"(number) : "memory");
    return r0;
}
#else
#error "RISC-V or ARM"
#endif

void print(const char *text)
{
    long bytes = 0;
    while (text[bytes]) bytes++;
    call(WRITE, 1, (long)text, bytes);
}

void leave(int code)
{
    for (;;) call(EXIT, code, 0, 0);
}
