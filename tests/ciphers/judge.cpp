// Crypto++ behind two C functions, for the tests that compare with it. Not part of any cipher.
#include <crypto++/aes.h>
#include <crypto++/algparam.h>
#include <crypto++/camellia.h>
#include <crypto++/chacha.h>
#include <crypto++/hc128.h>
#include <crypto++/lea.h>
#include <crypto++/mars.h>
#include <crypto++/rabbit.h>
#include <crypto++/rc6.h>
#include <crypto++/salsa.h>
#include <crypto++/serpent.h>
#include <crypto++/shark.h>
#include <crypto++/simon.h>
#include <crypto++/sm4.h>
#include <crypto++/sosemanuk.h>
#include <crypto++/speck.h>
#include <crypto++/square.h>
#include <crypto++/twofish.h>

#include <cstring>
#include <memory>
#include <string>

using namespace CryptoPP;

template <class Cipher> static BlockCipher *make(bool decrypt)
{
    if (decrypt)
        return new typename Cipher::Decryption;
    return new typename Cipher::Encryption;
}

static BlockCipher *block_cipher(const std::string &name, bool decrypt)
{
    if (name == "rijndael") return make<AES>(decrypt);
    if (name == "camellia") return make<Camellia>(decrypt);
    if (name == "lea") return make<LEA>(decrypt);
    if (name == "simon-s64") return make<SIMON64>(decrypt);
    if (name == "simon-s128") return make<SIMON128>(decrypt);
    if (name == "speck-s64") return make<SPECK64>(decrypt);
    if (name == "speck-s128") return make<SPECK128>(decrypt);
    if (name == "mars") return make<MARS>(decrypt);
    if (name == "rc6") return make<RC6>(decrypt);
    if (name == "serpent") return make<Serpent>(decrypt);
    if (name == "shark") return make<SHARK>(decrypt);
    if (name == "sm4") return make<SM4>(decrypt);
    if (name == "square") return make<Square>(decrypt);
    if (name == "twofish") return make<Twofish>(decrypt);
    return nullptr;
}

static SymmetricCipher *stream_cipher(const std::string &name, size_t iv_bytes)
{
    if (name == "salsa20") return new Salsa20::Encryption;
    if (name == "chacha20" && iv_bytes == 12) return new ChaChaTLS::Encryption;
    if (name == "chacha20") return new ChaCha::Encryption;
    if (name == "hc128") return new HC128::Encryption;
    if (name == "rabbit" && iv_bytes == 0) return new Rabbit::Encryption;
    if (name == "rabbit") return new RabbitWithIV::Encryption;
    if (name == "sosemanuk") return new Sosemanuk::Encryption;
    return nullptr;
}

// Each returns 0, or 1 if Crypto++ has no such cipher, or 2 if it refuses the key or IV.
extern "C" int judge_block(const char *name, int decrypt, const unsigned char *key, size_t key_bytes,
                           const unsigned char *in, unsigned char *out, size_t blocks, size_t times)
{
    std::unique_ptr<BlockCipher> cipher(block_cipher(name, decrypt != 0));
    if (!cipher)
        return 1;
    try {
        cipher->SetKey(key, key_bytes);
    } catch (const Exception &) {
        return 2;
    }
    size_t size = cipher->BlockSize();
    for (size_t i = 0; i < blocks; i++) {
        std::memmove(out + i * size, in + i * size, size);
        for (size_t n = 0; n < times; n++)
            cipher->ProcessBlock(out + i * size);
    }
    return 0;
}

extern "C" int judge_stream(const char *name, int rounds, const unsigned char *key, size_t key_bytes,
                            const unsigned char *iv, size_t iv_bytes, const unsigned char *in,
                            unsigned char *out, size_t bytes)
{
    std::unique_ptr<SymmetricCipher> cipher(stream_cipher(name, iv_bytes));
    if (!cipher)
        return 1;
    try {
        AlgorithmParameters parameters = MakeParameters("Unused", 0, false);
        if (rounds)
            parameters("Rounds", rounds);
        if (iv_bytes)
            parameters("IV", ConstByteArrayParameter(iv, iv_bytes));
        cipher->SetKey(key, key_bytes, parameters);
    } catch (const Exception &) {
        return 2;
    }
    cipher->ProcessData(out, in, bytes);
    return 0;
}
