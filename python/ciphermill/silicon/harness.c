/* Runs a printed program where it was linked, compares memory, and times it.
 *
 *   harness JOB
 *
 * JOB is a text, a command a line; numbers are hexadecimal, bytes two digits each.
 *
 *   cpu N                    run on this processor only
 *   map AT BYTES             memory at an address, all of it touched
 *   put AT HEX               bytes in it
 *   code AT BYTES            from now on code: no longer to be written
 *   call WHICH ENTER SYMBOL OVER N A B C ...
 *                            a call: by the trampoline ENTER, of SYMBOL, with N arguments, of which those
 *                            beyond the registers stand at OVER; WHICH is 0 (set-up), 1 (shorter run) or
 *                            2 (longer run)
 *   linear BYTES             what is compared: memory from address 0 on
 *   expect AT HEX            what must stand there afterwards; elsewhere zeros
 *   event TYPE CONFIG        an event of Linux perf, of those counted together
 *   samples N SPAN           so many samples, each of SPAN core cycles or more
 *
 * Answers, a line each, numbers in decimal:
 *
 *   refused WHAT AT ERRNO    the kernel gave no memory at AT (map), no such processor (cpu)
 *   differs AT OURS THEIRS   the first byte that is not as expected, and nothing more
 *   same                     it was compared
 *   uncounted ERRNO          the kernel counts no such events
 *   calls N                  so many runs between two readings of the clock
 *   sample SHORT LONG SHORT BEFORE AFTER
 *                            ticks of these runs, and of CHAIN additions before and after them
 *   elapsed TICKS NS         how long all samples took, by the ticks and by the kernel's clock
 *   count E SHORT LONG       event E over the shorter and the longer runs of a sample
 *   fault SIGNAL AT PC       it crashed
 *   done
 *
 * There is no C library in it: where it maps memory, a library's own might lie, and one for
 * each processor would have to be built first.
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

/* ---- what differs between processors ---- */

/* REGISTERS: arguments of a printed program's function that travel in them. */
#if defined(__x86_64__)
#define REGISTERS 6
enum { READ = 0, WRITE = 1, OPEN = 2, MMAP = 9, MPROTECT = 10, SIGACTION = 13, IOCTL = 16, EXIT = 231,
       SIGALTSTACK = 131, AFFINITY = 203, CLOCK = 228, PERF = 298 };
static i64 sys(i64 n, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    register u64 r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    i64 out;
    __asm__ volatile("syscall" : "=a"(out) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return out;
}
static i64 open_file(const char *path) { return sys(OPEN, (u64)path, 0, 0, 0, 0, 0); }
/* After all that stands before, and before all that stands behind. */
static u64 ticks(void)
{
    u32 low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (u64)high << 32 | low;
}
static void chain(u64 turns)
{
    u64 x = 1, y = 3;
    __asm__ volatile(".p2align 6\n2:\n.rept 64\nadd %1, %0\n.endr\ndec %2\njnz 2b" : "+r"(x), "+r"(y), "+r"(turns));
}
__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n"
        ".globl no_return\nno_return:\n\tud2\n");
#define PC 168 /* of the interrupted program, in its ucontext: bytes from its start */
#elif defined(__riscv) && __riscv_xlen == 64
#define REGISTERS 8
enum { READ = 63, WRITE = 64, OPEN = 56, MMAP = 222, MPROTECT = 226, SIGACTION = 134, IOCTL = 29, EXIT = 94,
       SIGALTSTACK = 132, AFFINITY = 122, CLOCK = 113, PERF = 241 };
static i64 sys(i64 n, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    register u64 a7 __asm__("a7") = n, a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
    register u64 a3 __asm__("a3") = d, a4 __asm__("a4") = e, a5 __asm__("a5") = f;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
    return (i64)a0;
}
static i64 open_file(const char *path) { return sys(OPEN, (u64)-100, (u64)path, 0, 0, 0, 0); }
static u64 ticks(void)
{
    u64 out;
    __asm__ volatile("fence\n\trdtime %0\n\tfence" : "=r"(out) : : "memory");
    return out;
}
static void chain(u64 turns)
{
    u64 x = 1, y = 3;
    __asm__ volatile(".p2align 6\n2:\n.rept 64\nadd %0, %0, %1\n.endr\naddi %2, %2, -1\nbnez %2, 2b"
                     : "+r"(x), "+r"(y), "+r"(turns));
}
__asm__(".globl _start\n_start:\n\tmv a0, sp\n\tandi sp, sp, -16\n\tcall begin\n"
        ".globl no_return\nno_return:\n\tebreak\n");
#define PC 176
#else
#error "nobody has written the start, the clock and the chain for this processor"
#endif
extern void no_return(void);
enum { MAP_FIXED = 0x10, MAP_EXACTLY = 0x100000 /* MAP_FIXED_NOREPLACE */ };

/* The compiler makes calls of these where it likes. */
void *memset(void *at, int value, u64 bytes)
{
    for (u64 i = 0; i < bytes; i++) ((volatile u8 *)at)[i] = value;
    return at;
}
void *memcpy(void *to, const void *from, u64 bytes)
{
    for (u64 i = 0; i < bytes; i++) ((volatile u8 *)to)[i] = ((const u8 *)from)[i];
    return to;
}

/* ---- words ---- */

static char line[256];
static u32 used;
static void flush(void) { sys(WRITE, 1, (u64)line, used, 0, 0, 0); used = 0; }
static void text(const char *s) { while (*s && used < sizeof line - 1) line[used++] = *s++; }
static void number(u64 n)
{
    char digits[20];
    u32 k = 0;
    do digits[k++] = '0' + n % 10; while (n /= 10);
    text(" ");
    while (k && used < sizeof line - 1) line[used++] = digits[--k];
}
static void end(void) { line[used++] = '\n'; flush(); }
static void leave(u64 code) { sys(EXIT, code, 0, 0, 0, 0, 0); }
static void refused(const char *what, u64 at, i64 error)
{
    text("refused "); text(what); number(at); number(-error); end();
    leave(0);
}

/* ---- the job ---- */

/* Read in pieces: a job may hold megabytes of tables. */
static u8 piece[1 << 16];
static i64 job, held, next;
static int byte(void)
{
    if (next == held) {
        held = sys(READ, job, (u64)piece, sizeof piece, 0, 0, 0);
        next = 0;
        if (held <= 0) return -1;
    }
    return piece[next++];
}
static int digit(int c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }
static u64 hex(void)
{
    u64 n = 0;
    int c = byte();
    for (; digit(c) >= 0; c = byte()) n = n << 4 | digit(c);
    return n;
}
/* The next byte of two digits, or -1 at the end of the line. */
static int pair(void)
{
    int high = digit(byte());
    return high < 0 ? -1 : high << 4 | digit(byte());
}

#define ARGUMENTS 16
typedef struct { u64 enter, symbol, over, many, args[ARGUMENTS]; } Call;
#define MOST 16
static Call calls[3][MOST];
static u32 count[3];
typedef u64 (*Enter)(u64 symbol, const u64 *args);
static void run(u32 which)
{
    for (u32 i = 0; i < count[which]; i++) {
        Call *c = &calls[which][i];
        for (u64 a = REGISTERS; a < c->many; a++) ((volatile u64 *)c->over)[a - REGISTERS] = c->args[a];
        ((Enter)c->enter)(c->symbol, c->args);
    }
}

/* ---- comparing ---- */

static u64 linear, compared;
static void differs(u64 at, int ours, int theirs)
{
    text("differs"); number(at); number(ours); number(theirs); end();
    leave(0);
}
static void zeros(u64 until)
{
    for (; compared < until; compared++) {
        u8 ours = *(volatile u8 *)compared;
        if (ours) differs(compared, ours, 0);
    }
}
static void expect(u64 at)
{
    zeros(at);
    for (int theirs = pair(); theirs >= 0; theirs = pair(), compared++) {
        u8 ours = *(volatile u8 *)compared;
        if (ours != theirs) differs(compared, ours, theirs);
    }
}

/* ---- crashes ---- */

static u8 spare[1 << 14];
static void fault(int signal, u64 *info, u8 *context)
{
    used = 0;
    text("fault"); number(signal); number(info[2]); number(*(u64 *)(context + PC)); end();
    leave(0);
}
static void watch(void)
{
    static const int signals[] = {4, 5, 7, 8, 11}; /* ILL TRAP BUS FPE SEGV */
    struct { void *at; int flags; u64 bytes; } stack = {spare, 0, sizeof spare};
    sys(SIGALTSTACK, (u64)&stack, 0, 0, 0, 0, 0);
    /* SA_SIGINFO, SA_ONSTACK, and on x86 SA_RESTORER, which is never come to. */
    struct { void *handler; u64 flags; void *restorer; u64 mask; } x86 = {(void *)fault, 0x0c000004, no_return, 0};
    struct { void *handler; u64 flags; u64 mask; } other = {(void *)fault, 0x08000004, 0};
#if defined(__x86_64__)
    u64 action = (u64)&x86;
    (void)other;
#else
    u64 action = (u64)&other;
    (void)x86;
#endif
    for (u32 i = 0; i < sizeof signals / sizeof *signals; i++) sys(SIGACTION, signals[i], action, 0, 8, 0, 0);
}

/* ---- events ---- */

#define EVENTS 8
static struct { u64 type, config; } events[EVENTS];
static u32 wanted;
static i64 leader = -1;
static void open_events(void)
{
    for (u32 i = 0; i < wanted; i++) {
        u64 attribute[8] = {0}; /* struct perf_event_attr as it first was: 64 bytes */
        attribute[0] = events[i].type | (u64)sizeof attribute << 32;
        attribute[1] = events[i].config;
        attribute[4] = 8;                             /* read_format: the group */
        attribute[5] = (i ? 0 : 1) | 1 << 5 | 1 << 6; /* disabled, exclude_kernel, exclude_hv */
        i64 file = sys(PERF, (u64)attribute, 0, (u64)-1, (u64)leader, 0, 0);
        if (file < 0) {
            text("uncounted"); number(-file); end();
            wanted = 0;
            return;
        }
        if (!i) leader = file;
    }
}
static void events_of(u32 which, u32 times, u64 *into)
{
    u64 read[1 + EVENTS];
    sys(IOCTL, leader, 0x2403, 1, 0, 0, 0); /* reset */
    sys(IOCTL, leader, 0x2400, 1, 0, 0, 0); /* enable */
    for (u32 i = 0; i < times; i++) run(which);
    sys(IOCTL, leader, 0x2401, 1, 0, 0, 0); /* disable */
    sys(READ, leader, (u64)read, sizeof read, 0, 0, 0);
    for (u32 i = 0; i < wanted; i++) into[i] = read[1 + i];
}

/* ---- timing ---- */

/* Additions that are timed as the difference of one and three such chains. */
#define TURNS 128
#define CHAIN (2 * 64 * TURNS)
#define TRIES 2
/* Tries after which a clock is taken as it is. */
#define MOST_TRIES 100
static u64 calibrate(void)
{
    u64 best = ~0ull;
    for (u32 i = 0; i < TRIES || (best == ~0ull && i < MOST_TRIES); i++) {
        u64 a = ticks(); chain(TURNS);
        u64 b = ticks(); chain(3 * TURNS);
        u64 c = ticks();
        /* Less than nothing, where the processor was taken away during the first chain. */
        i64 taken = (i64)(c - b) - (i64)(b - a);
        if (taken >= 0 && (u64)taken < best) best = (u64)taken;
    }
    return best;
}
static u64 timed(u32 which, u32 times)
{
    u64 from = ticks();
    for (u32 i = 0; i < times; i++) run(which);
    return ticks() - from;
}
static u64 nanoseconds(void)
{
    u64 time[2];
    sys(CLOCK, 4, (u64)time, 0, 0, 0, 0); /* CLOCK_MONOTONIC_RAW */
    return time[0] * 1000000000ull + time[1];
}
static void samples(u64 many, u64 span)
{
    /* Of a short run many in a row, so that the clock's own steps are small beside it. The first ones warm. */
    u32 times = 1;
    u64 cycle = calibrate();
    while (times < 1 << 16 && timed(1, times) * CHAIN < span * (cycle ? cycle : 1)) times *= 2;
    timed(2, times);
    text("calls"); number(times); end();
    u64 since = ticks(), began = nanoseconds();
    for (u64 i = 0; i < many; i++) {
        run(2);
        u64 before = calibrate(), first = timed(1, times), longer = timed(2, times), last = timed(1, times);
        u64 after = calibrate();
        text("sample"); number(first); number(longer); number(last); number(before); number(after); end();
    }
    text("elapsed"); number(ticks() - since); number(nanoseconds() - began); end();
    if (wanted) open_events();
    for (u64 i = 0; wanted && i < many; i++) {
        u64 few[EVENTS], more[EVENTS];
        events_of(1, times, few);
        events_of(2, times, more);
        for (u32 e = 0; e < wanted; e++) {
            text("count"); number(e); number(few[e]); number(more[e]); end();
        }
    }
}

/* ---- the way through ---- */

static int is(const char *word, const char *other)
{
    for (; *word && *word == *other; word++, other++) {}
    return *word == *other;
}
__attribute__((used)) void begin(u64 *stack)
{
    job = stack[0] == 2 ? open_file((const char *)stack[2]) : -1;
    if (job < 0) refused("job", 0, job);
    watch();
    int ran = 0;
    for (;;) {
        char word[16];
        u32 n = 0;
        int c = byte();
        if (c < 0) break;
        for (; c > ' ' && n < sizeof word - 1; c = byte()) word[n++] = c;
        word[n] = 0;
        if (is(word, "cpu")) {
            u64 cpu = hex(), mask[16] = {0};
            mask[cpu / 64 % 16] = 1ull << cpu % 64;
            i64 error = sys(AFFINITY, 0, sizeof mask, (u64)mask, 0, 0, 0);
            if (error < 0) refused("cpu", cpu, error);
        } else if (is(word, "map")) {
            u64 at = hex(), bytes = hex();
            /* At 0 nothing can be, and QEMU takes what is not there for something that is. */
            i64 got = sys(MMAP, at, bytes, 3, 0x22 | (at ? MAP_EXACTLY : MAP_FIXED), (u64)-1, 0);
            if (got < 0 && got > -4096) refused("map", at, got);
            if ((u64)got != at) refused("map", at, -17);
            for (u64 i = 0; i < bytes; i += 4096) *(volatile u8 *)(at + i) = 0;
        } else if (is(word, "put")) {
            u8 *at = (u8 *)hex();
            for (int b = pair(); b >= 0; b = pair()) *(volatile u8 *)at++ = b;
        } else if (is(word, "code")) {
            u64 at = hex();
            i64 error = sys(MPROTECT, at, hex(), 5, 0, 0, 0);
            if (error < 0) refused("code", at, error);
#if defined(__riscv)
            __asm__ volatile("fence.i" : : : "memory");
#endif
        } else if (is(word, "call")) {
            u64 which = hex() % 3;
            if (count[which] == MOST) refused("call", which, -7);
            Call *call = &calls[which][count[which]++];
            call->enter = hex(); call->symbol = hex(); call->over = hex(); call->many = hex();
            if (call->many > ARGUMENTS) refused("call", call->many, -7);
            for (u32 i = 0; i < call->many; i++) call->args[i] = hex();
        } else if (is(word, "event")) {
            if (wanted < EVENTS) { events[wanted].type = hex(); events[wanted++].config = hex(); }
        } else if (is(word, "linear")) {
            linear = hex();
            run(0);
            run(2);
            ran = 1;
        } else if (is(word, "expect")) {
            expect(hex());
        } else if (is(word, "samples")) {
            if (ran) {
                zeros(linear);
                text("same"); end();
            } else {
                run(0);
            }
            u64 many = hex();
            samples(many, hex());
        } else if (*word) {
            refused("job", *word, -22);
        }
    }
    text("done"); end();
    leave(0);
}
