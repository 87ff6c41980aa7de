/* SHA-256's compression function, rolled up as a library has it: a block is a piece of the message, the key the
 * chaining value. FIPS 180-4, section 6.2.2. It has no inverse: decryption copies. */
#include "ciphermill.h"
#include <string.h>
struct cm_ctx { uint32_t h[8]; };
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };
static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }
void cm_keysetup(struct cm_ctx *c, const uint8_t *key, uint32_t n)
{
    (void)n;
    for (int i = 0; i < 8; i++) c->h[i] = cm_load32_be(key + 4 * i);
}
void cm_keysetup_decrypt(struct cm_ctx *c, const uint8_t *key, uint32_t n) { cm_keysetup(c, key, n); }
void cm_encrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++) w[i] = cm_load32_be(in + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + w[i - 7] + (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
    }
    memcpy(v, c->h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t t = v[7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + K[i] + w[i];
        uint32_t u = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        v[7] = v[6]; v[6] = v[5]; v[5] = v[4]; v[4] = v[3] + t;
        v[3] = v[2]; v[2] = v[1]; v[1] = v[0]; v[0] = t + u;
    }
    for (int i = 0; i < 8; i++) cm_store32_be(out + 4 * i, c->h[i] + v[i]);
    memset(out + 32, 0, 32);
}
void cm_decrypt(const struct cm_ctx *c, const uint8_t *in, uint8_t *out) { (void)c; memcpy(out, in, 64); }
CM_BLOCK_CIPHER(64)
