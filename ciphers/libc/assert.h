/* assert() for WebAssembly without a library: an assertion that fails stops the run. */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif
#ifndef static_assert
#define static_assert _Static_assert
#endif
