/* AES-128 whose code ciphermill made, called from C as any other function: the vector of FIPS 197,
   appendix C.1, forwards and backwards. Prints what came of it; the exit code is 0 where it is right. */
#include "aes.h"

void print(const char *text);
void leave(int code);

static const uint8_t key[16] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
                                0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f};
static const uint8_t plain[AES_BLOCK_BYTES] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                               0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
static const uint8_t coded[AES_BLOCK_BYTES] = {0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30,
                                               0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a};

static aes_ctx context;
static uint8_t block[AES_BLOCK_BYTES];

static int same(const uint8_t *a, const uint8_t *b)
{
    int difference = 0;
    for (int i = 0; i < AES_BLOCK_BYTES; i++) difference |= a[i] ^ b[i];
    return difference == 0;
}

void begin(void)
{
    int right;
    aes_keysetup(&context, key, sizeof key);
    aes_encrypt(&context, plain, block);
    right = same(block, coded);
    aes_keysetup_decrypt(&context, key, sizeof key);
    aes_decrypt(&context, block, block);
    right &= same(block, plain);
    print(right ? "AES-128: right\n" : "AES-128: wrong\n");
    leave(!right);
}
