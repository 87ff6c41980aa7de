/* Threefish-512: rounds written out by macros for encryption, rolled up with tables of rotations and words for decryption. */
#include "ciphermill.h"
#include <string.h>
struct cm_ctx { uint64_t ks[9], ts[3]; };
#define ROTL_64(x,N) (((x) << ((N) & 63)) | ((x) >> ((64-(N)) & 63)))
#define RotR_64(x,N) (((x) >> ((N) & 63)) | ((x) << ((64-(N)) & 63)))
enum { R0_0=46,R0_1=36,R0_2=19,R0_3=37,R1_0=33,R1_1=27,R1_2=14,R1_3=42,R2_0=17,R2_1=49,R2_2=36,R2_3=39,R3_0=44,R3_1=9,R3_2=54,R3_3=56,
 R4_0=39,R4_1=30,R4_2=34,R4_3=24,R5_0=13,R5_1=50,R5_2=10,R5_3=17,R6_0=25,R6_1=29,R6_2=39,R6_3=43,R7_0=8,R7_1=35,R7_2=56,R7_3=22 };
void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    int i; (void)n;
    c->ks[8] = 0x1BD11BDAA9FC1A22ULL;
    for (i = 0; i < 8; i++) { c->ks[i] = cm_load64_le(key + 8*i); c->ks[8] ^= c->ks[i]; }
    c->ts[0] = c->ts[1] = 0; c->ts[2] = c->ts[0] ^ c->ts[1];
}
void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *k, uint32_t n) { cm_keysetup(c, k, n); }
#define MIX(a,b,R) X[a] += X[b]; X[b] = ROTL_64(X[b],R); X[b] ^= X[a];
#define Round512(p0,p1,p2,p3,p4,p5,p6,p7,ROT) MIX(p0,p1,ROT##_0) MIX(p2,p3,ROT##_1) MIX(p4,p5,ROT##_2) MIX(p6,p7,ROT##_3)
#define I512(R) for (i=0;i<8;i++) X[i] += ks[((R)+1+i)%9]; X[5] += ts[((R)+1)%3]; X[6] += ts[((R)+2)%3]; X[7] += (R)+1;
#define R512_8(R) \
 Round512(0,1,2,3,4,5,6,7,R0) Round512(2,1,4,7,6,5,0,3,R1) Round512(4,1,6,3,0,5,2,7,R2) Round512(6,1,0,7,2,5,4,3,R3) I512(2*(R)) \
 Round512(0,1,2,3,4,5,6,7,R4) Round512(2,1,4,7,6,5,0,3,R5) Round512(4,1,6,3,0,5,2,7,R6) Round512(6,1,0,7,2,5,4,3,R7) I512(2*(R)+1)
void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint64_t X[8]; const uint64_t *ks = c->ks, *ts = c->ts; int i;
    for (i = 0; i < 8; i++) X[i] = cm_load64_le(in + 8*i) + ks[i];
    X[5] += ts[0]; X[6] += ts[1];
    R512_8(0) R512_8(1) R512_8(2) R512_8(3) R512_8(4) R512_8(5) R512_8(6) R512_8(7) R512_8(8)
    for (i = 0; i < 8; i++) cm_store64_le(out + 8*i, X[i]);
}
static const uint8_t rot[8][4] = {{46,36,19,37},{33,27,14,42},{17,49,36,39},{44,9,54,56},{39,30,34,24},{13,50,10,17},{25,29,39,43},{8,35,56,22}};
void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{   /* rolled, by the permutation */
    uint64_t v[8], w[8]; int d, i;
    for (i = 0; i < 8; i++) v[i] = cm_load64_le(in + 8*i);
    for (d = 72; d >= 0; d--) {
        if (d % 4 == 0) {
            int s = d / 4;
            for (i = 0; i < 8; i++) v[i] -= c->ks[(s+i)%9];
            v[5] -= c->ts[s%3]; v[6] -= c->ts[(s+1)%3]; v[7] -= s;
            if (d == 0) break;
        }
        /* out[i] = in[pi[i]], pi = 2 1 4 7 6 5 0 3 */
        { static const int pi[8] = {2,1,4,7,6,5,0,3}; for (i = 0; i < 8; i++) w[pi[i]] = v[i]; }
        for (i = 0; i < 4; i++) {
            uint64_t y0 = w[2*i], y1 = w[2*i+1];
            y1 ^= y0; v[2*i+1] = RotR_64(y1, rot[(d-1)%8][i]); v[2*i] = y0 - v[2*i+1];
        }
    }
    memcpy(out, v, 64);
}
CM_BLOCK_CIPHER(64)
