/* Corrected Block TEA on blocks of 5 words, as in the paper: n from the context, signed n chooses direction. */
#include "ciphermill.h"
#include <string.h>
#define MX (((z>>5^y<<2)+(y>>3^z<<4))^((sum^y)+(k[(p&3)^e]^z)))
struct cm_ctx { uint32_t k[4]; int n; };
static int btea(uint32_t *v, int n, const uint32_t *k)
{
    uint32_t z, y, sum, e, DELTA = 0x9e3779b9; int p, q;
    if (n > 1) {
        z = v[n-1]; q = 6 + 52/n; sum = 0;
        while (q-- > 0) {
            sum += DELTA; e = (sum >> 2) & 3;
            for (p = 0; p < n-1; p++) { y = v[p+1]; z = v[p] += MX; }
            y = v[0]; z = v[n-1] += MX;
        }
        return 0;
    } else if (n < -1) {
        n = -n; y = v[0]; q = 6 + 52/n; sum = q * DELTA;
        while (sum != 0) {
            e = (sum >> 2) & 3;
            for (p = n-1; p > 0; p--) { z = v[p-1]; y = v[p] -= MX; }
            z = v[n-1]; y = v[0] -= MX;
            sum -= DELTA;
        }
        return 0;
    }
    return 1;
}
void cm_keysetup(struct cm_ctx *c, const uint8_t *k, uint32_t n) { (void)n; memcpy(c->k, k, 16); c->n = 5; }
void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *k, uint32_t n) { (void)n; memcpy(c->k, k, 16); c->n = -5; }
static void both(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) { uint32_t v[5]; memcpy(v, in, 20); btea(v, c->n, c->k); memcpy(out, v, 20); }
void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) { both(c, in, out); }
void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) { both(c, in, out); }
CM_BLOCK_CIPHER(20)
