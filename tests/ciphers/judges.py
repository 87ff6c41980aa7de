"""Other people's implementations of the ciphers (and our own second ones), as judges.

A judge answers `block(cipher, key, data)` with the ECB encryption of whole blocks, or
`stream(cipher, variant, key, iv, data)`; None where it lacks this key length or variant. Its
`CIPHERS` names what it is worth asking about. Libraries that are not installed raise `Missing`
with what to install.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from functools import cache

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from reference import ascon, hc, magenta, misty, present, salsa20


class Missing(Exception):
    """The library is not on this machine."""


def rounds(variant: str) -> int:
    return int(variant[1:])


def _load(name: str, package: str) -> ctypes.CDLL:
    found = ctypes.util.find_library(name)
    if not found:
        raise Missing(f"lib{name} is not installed (Debian: {package})")
    return ctypes.CDLL(found)


class Reference:
    """The Python specifications in tests/reference."""

    CIPHERS = {"magenta", "misty1", "misty2", "present", "salsa20", "chacha20", "ascon", "hc128",
               "hc256"}  # fmt: skip

    def block(self, cipher, key, data):
        function, size = {
            "magenta": (magenta.magenta, 16),
            "misty1": (misty.misty1, 8),
            "misty2": (misty.misty2, 8),
            "present": (present.present, 8),
        }.get(cipher, (None, 0))
        if function is None:
            return None
        return b"".join(function(key, data[i : i + size]) for i in range(0, len(data), size))

    def stream(self, cipher, variant, key, iv, data):
        if cipher == "salsa20":
            stream = salsa20.salsa20(key, iv, len(data), rounds(variant))
        elif cipher == "chacha20":
            stream = salsa20.chacha(key, iv, len(data), rounds(variant))
        elif cipher == "ascon":
            stream = ascon.keystream(key, iv, len(data))
        elif cipher in ("hc128", "hc256"):
            stream = getattr(hc, cipher)(key, iv, len(data))
        else:
            return None
        return bytes(a ^ b for a, b in zip(stream, data, strict=True))


class Cryptography:
    """pyca/cryptography, that is OpenSSL."""

    CIPHERS = {"rijndael", "camellia", "sm4", "chacha20"}

    def __init__(self):
        try:
            from cryptography.hazmat.primitives import ciphers
            from cryptography.hazmat.primitives.ciphers import algorithms, modes
        except ImportError:
            raise Missing("pip install cryptography") from None
        try:
            from cryptography.hazmat.decrepit.ciphers import algorithms as old
        except ImportError:
            old = algorithms
        self.cipher, self.modes, self.algorithms = ciphers.Cipher, modes, algorithms
        self.camellia = getattr(old, "Camellia", None) or algorithms.Camellia

    def block(self, cipher, key, data):
        algorithm = {
            "rijndael": self.algorithms.AES,
            "camellia": self.camellia,
            "sm4": self.algorithms.SM4,
        }.get(cipher)
        if algorithm is None:
            return None
        return self.cipher(algorithm(key), self.modes.ECB()).encryptor().update(data)

    def stream(self, cipher, variant, key, iv, data):
        if (cipher, variant) != ("chacha20", "r20") or len(key) != 32:
            return None
        nonce = bytes(16 - len(iv)) + iv
        return self.cipher(self.algorithms.ChaCha20(key, nonce), None).encryptor().update(data)


class PyCryptodome:
    CIPHERS = {"rijndael", "salsa20", "chacha20", "des"}

    def __init__(self):
        try:
            from Crypto.Cipher import AES, DES, DES3, ChaCha20, Salsa20
        except ImportError:
            raise Missing("pip install pycryptodome") from None
        self.aes, self.des, self.des3, self.chacha, self.salsa = AES, DES, DES3, ChaCha20, Salsa20

    def block(self, cipher, key, data):
        module = {"rijndael": self.aes, "des": self.des if len(key) == 8 else self.des3}.get(cipher)
        return None if module is None else module.new(key, module.MODE_ECB).encrypt(data)

    def stream(self, cipher, variant, key, iv, data):
        module = {"salsa20": self.salsa, "chacha20": self.chacha}.get(cipher)
        if module is None or variant != "r20" or (cipher == "chacha20" and len(key) != 32):
            return None
        return module.new(key=key, nonce=iv).encrypt(data)


class Libgcrypt:
    NUMBERS = {
        ("rijndael", 16): 7, ("rijndael", 24): 8, ("rijndael", 32): 9,
        ("serpent", 16): 304, ("serpent", 24): 305, ("serpent", 32): 306,
        ("twofish", 16): 303, ("twofish", 32): 10,
        ("camellia", 16): 310, ("camellia", 24): 311, ("camellia", 32): 312,
        ("sm4", 16): 318,
    }  # fmt: skip
    STREAMS = {("salsa20", "r20"): 313, ("salsa20", "r12"): 314, ("chacha20", "r20"): 316}
    ECB, STREAM = 1, 4

    CIPHERS = {"rijndael", "serpent", "twofish", "camellia", "sm4", "salsa20", "chacha20"}

    def __init__(self):
        self.lib = _load("gcrypt", "libgcrypt20")
        self.lib.gcry_check_version.restype = ctypes.c_char_p
        self.lib.gcry_check_version(None)
        self.lib.gcry_control(38, 0)  # GCRYCTL_INITIALIZATION_FINISHED

    def _run(self, number, mode, key, iv, data):
        handle, size = ctypes.c_void_p(), ctypes.c_size_t
        if self.lib.gcry_cipher_open(ctypes.byref(handle), number, mode, 0):
            return None
        try:
            if self.lib.gcry_cipher_setkey(handle, key, size(len(key))):
                return None
            if iv and self.lib.gcry_cipher_setiv(handle, iv, size(len(iv))):
                return None
            out = ctypes.create_string_buffer(len(data) + 1)
            args = (out, size(len(data)), data, size(len(data)))
            if data and self.lib.gcry_cipher_encrypt(handle, *args):
                return None
            return out.raw[: len(data)]
        finally:
            self.lib.gcry_cipher_close(handle)

    def block(self, cipher, key, data):
        number = self.NUMBERS.get((cipher, len(key)))
        return None if number is None else self._run(number, self.ECB, key, b"", data)

    def stream(self, cipher, variant, key, iv, data):
        number = self.STREAMS.get((cipher, variant))
        return None if number is None else self._run(number, self.STREAM, key, iv, data)


class Botan:
    NAMES = {"serpent": "Serpent", "twofish": "Twofish", "sm4": "SM4", "misty1": "MISTY1"}

    CIPHERS = {"rijndael", "camellia", "serpent", "twofish", "sm4", "misty1"}

    def __init__(self):
        self.lib = _load("botan-2", "libbotan-2-19")

    def block(self, cipher, key, data):
        name = self.NAMES.get(cipher)
        if cipher in ("rijndael", "camellia"):
            name = {"rijndael": "AES", "camellia": "Camellia"}[cipher] + f"-{8 * len(key)}"
        handle, size = ctypes.c_void_p(), ctypes.c_size_t
        if name is None or self.lib.botan_block_cipher_init(ctypes.byref(handle), name.encode()):
            return None
        try:
            assert self.lib.botan_block_cipher_set_key(handle, key, size(len(key))) == 0
            blocks = len(data) // self.lib.botan_block_cipher_block_size(handle)
            out = ctypes.create_string_buffer(len(data) + 1)
            assert self.lib.botan_block_cipher_encrypt_blocks(handle, data, out, size(blocks)) == 0
            return out.raw[: len(data)]
        finally:
            self.lib.botan_block_cipher_destroy(handle)

    def stream(self, *_):
        return None


class Tomcrypt:
    """LibTomCrypt's RC6, beside Crypto++'s."""

    CIPHERS = {"rc6"}

    def __init__(self):
        self.lib = _load("tomcrypt", "libtomcrypt1")

    def block(self, cipher, key, data):
        if cipher != "rc6":
            return None
        schedule = ctypes.create_string_buffer(8192)
        assert self.lib.rc6_setup(key, len(key), 0, schedule) == 0
        out = ctypes.create_string_buffer(16)
        result = b""
        for i in range(0, len(data), 16):
            self.lib.rc6_ecb_encrypt(data[i : i + 16], out, schedule)
            result += out.raw
        return result

    def stream(self, *_):
        return None


class CryptoPlusPlus:
    BLOCKS = {"rijndael": 16, "camellia": 16, "mars": 16, "rc6": 16, "serpent": 16, "shark": 8,
              "sm4": 16, "square": 16, "twofish": 16, "lea": 16, "speck-s128": 16, "speck-s64": 8,
              "simon-s128": 16, "simon-s64": 8}  # fmt: skip
    # Without HC-256: that of Crypto++ 8.7 agrees with eSTREAM's vectors only for keys and IVs
    # whose words after the first are zero.
    STREAMS = {"salsa20", "chacha20", "hc128", "rabbit", "sosemanuk"}

    CIPHERS = STREAMS | BLOCKS.keys()

    def __init__(self):
        if not shutil.which("g++"):
            raise Missing("g++ is not installed")
        source = pathlib.Path(__file__).with_name("judge.cpp")
        name = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
        folder = pathlib.Path(os.environ.get("CIPHERMILL_TEST_CACHE", tempfile.gettempdir() + "/ciphermill-native"))
        folder.mkdir(parents=True, exist_ok=True)
        library = folder / f"judge-{name}.so"
        if not library.exists():
            partial = library.with_suffix(f".{os.getpid()}")
            command = ["g++", "-std=c++14", "-O1", "-w", "-shared", "-fPIC", "-o", partial, source]
            done = subprocess.run([*command, "-lcrypto++"], capture_output=True, text=True)
            if done.returncode:
                raise Missing("Crypto++ is not installed (Debian: libcrypto++-dev)")
            partial.rename(library)
        self.lib = ctypes.CDLL(str(library))

    def block(self, cipher, key, data, times=1, decrypt=False):
        if cipher not in self.BLOCKS:
            return None
        out = ctypes.create_string_buffer(len(data) + 1)
        size = ctypes.c_size_t
        count = size(len(data) // self.BLOCKS[cipher])
        failed = self.lib.judge_block(cipher.encode(), int(decrypt), key, size(len(key)), data, out, count, size(times))
        return None if failed else out.raw[: len(data)]

    def stream(self, cipher, variant, key, iv, data):
        if cipher not in self.STREAMS:
            return None
        turns = rounds(variant) if cipher in ("salsa20", "chacha20") else 0
        if cipher == "chacha20" and len(iv) == 12 and (turns != 20 or len(key) != 32):
            return None
        if len(iv) == 12:
            turns = 0
        out = ctypes.create_string_buffer(len(data) + 1)
        size = ctypes.c_size_t
        failed = self.lib.judge_stream(
            cipher.encode(), turns, key, size(len(key)), iv, size(len(iv)), data, out,
            size(len(data)),
        )  # fmt: skip
        return None if failed else out.raw[: len(data)]


ALL = {
    "reference": Reference,
    "cryptography": Cryptography,
    "pycryptodome": PyCryptodome,
    "libgcrypt": Libgcrypt,
    "botan": Botan,
    "libtomcrypt": Tomcrypt,
    "cryptopp": CryptoPlusPlus,
}


@cache
def judge(name: str):
    return ALL[name]()
