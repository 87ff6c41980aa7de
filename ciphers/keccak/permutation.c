/* The permutation Keccak-f[1600] alone, on states of 200 bytes. */
#include "keccak.h"

#define STATE (8 * LANES)

void cm_permute(const uint8_t *in, uint8_t *out)
{
    uint64_t a[LANES];

#define LOAD(i) a[i] = cm_load64_le(in + 8 * (i));
    CM_LANES(LOAD)
    keccak_f(a);
#define STORE(i) cm_store64_le(out + 8 * (i), a[i]);
    CM_LANES(STORE)
}

CM_PERMUTATION(STATE)
