"""MISTY1 and MISTY2 (M. Matsui, "New Block Encryption Algorithm MISTY", FSE 1997; RFC 2994).

The functions are written on pairs of halves with the subkeys KL, KO and KI by their indices as
the specification's tables give them, not in the flattened order of the C code, and the S-boxes
are made from their algebraic normal forms (RFC 2994, section 2.2). MISTY1 proves functions and
key schedule against published vectors; MISTY2 puts the same functions into the other network:
twelve FOs in MISTY's own network, fourteen FLs, two before every odd round and two at the end.
"""

# For each output bit its terms: products of input bits, "1" standing alone for the constant.
S7_TERMS = [
    "c 0 13 15 26 45 016 025 034 056 356",
    "c 6 02 04 06 15 34 36 056 146 236 245",
    "4 05 12 14 16 36 46 014 023 036 045 246 345",
    "c 0 1 03 24 26 56 012 046 136 145",
    "c 5 04 16 23 25 035 125 134 156 456",
    "0 1 2 03 05 06 14 35 012 015 024 123 256",
    "3 01 03 05 16 25 35 46 036 126 135 234 256",
]
S9_TERMS = [
    "c 04 05 15 16 26 27 37 38 48",
    "c 3 7 02 06 08 13 23 26 34 38 45 58",
    "4 8 01 04 06 13 17 24 34 37 45 56",
    "0 5 12 15 17 24 28 35 45 48 56 67",
    "1 6 03 05 23 26 28 35 46 56 67 78",
    "2 7 03 08 14 16 34 37 46 57 67 78",
    "c 3 8 01 08 14 25 27 45 48 57 68 78",
    "c 1 5 01 04 07 12 16 18 23 36 47 67",
    "c 0 4 01 05 07 08 12 25 36 38 56 68",
]


def table(terms: list[str]) -> list[int]:
    def bit(x: int, form: str) -> int:
        total = 0
        for term in form.split():
            total ^= 1 if term == "c" else all(x >> int(i) & 1 for i in term)
        return total

    return [sum(bit(x, form) << n for n, form in enumerate(terms)) for x in range(2 ** len(terms))]


S7, S9 = table(S7_TERMS), table(S9_TERMS)


def fi(x: int, ki: int) -> int:
    """Sixteen bits: nine on the left, seven on the right, three S-boxes."""
    left, right = divmod(x, 128)
    ki_left, ki_right = divmod(ki, 512)  # seven and nine bits
    left = S9[left] ^ right
    right = S7[right] ^ (left % 128)
    left ^= ki_right
    right ^= ki_left
    left = S9[left] ^ right
    return right << 9 | left


class Keys:
    """Subkeys of round i = 1, 2, ...; index tables of the specification, modulo 8 from 1."""

    def __init__(self, key: bytes):
        k = [int.from_bytes(key[i : i + 2], "big") for i in range(0, 16, 2)]
        derived = [fi(k[i], k[(i + 1) % 8]) for i in range(8)]
        self.k = lambda i: k[(i - 1) % 8]
        self.d = lambda i: derived[(i - 1) % 8]

    def ko(self, i: int, j: int) -> int:
        return self.k(i + {1: 0, 2: 2, 3: 7, 4: 4}[j])

    def ki(self, i: int, j: int) -> int:
        return self.d(i + {1: 5, 2: 1, 3: 3}[j])

    def kl(self, i: int, j: int) -> int:
        if i % 2 == 1:
            return self.k((i + 1) // 2) if j == 1 else self.d((i + 1) // 2 + 6)
        return self.d(i // 2 + 2) if j == 1 else self.k(i // 2 + 4)


def fo(x: int, keys: Keys, i: int) -> int:
    left, right = x >> 16, x & 0xFFFF
    for j in (1, 2, 3):
        left, right = right, fi(left ^ keys.ko(i, j), keys.ki(i, j)) ^ right
    return (left ^ keys.ko(i, 4)) << 16 | right


def fl(x: int, keys: Keys, i: int) -> int:
    left, right = x >> 16, x & 0xFFFF
    right ^= left & keys.kl(i, 1)
    left ^= right | keys.kl(i, 2)
    return left << 16 | right


def split(block: bytes) -> tuple[int, int]:
    return int.from_bytes(block[:4], "big"), int.from_bytes(block[4:], "big")


def join(left: int, right: int) -> bytes:
    return (left << 32 | right).to_bytes(8, "big")


def misty1(key: bytes, block: bytes, rounds: int = 8) -> bytes:
    """Encrypts one block: a Feistel network."""
    keys = Keys(key)
    left, right = split(block)
    for i in range(1, rounds + 1):
        if i % 2 == 1:
            left, right = fl(left, keys, i), fl(right, keys, i + 1)
        left, right = right ^ fo(left, keys, i), left
    left, right = fl(right, keys, rounds + 2), fl(left, keys, rounds + 1)
    return join(left, right)


def misty2(key: bytes, block: bytes, rounds: int = 12) -> bytes:
    """Encrypts one block: the MISTY network, in which the half that passes FO is replaced."""
    keys = Keys(key)
    left, right = split(block)
    for i in range(1, rounds + 1):
        if i % 2 == 1:
            left, right = fl(left, keys, i), fl(right, keys, i + 1)
        left, right = right, fo(left, keys, i) ^ right
    left, right = fl(left, keys, rounds + 1), fl(right, keys, rounds + 2)
    return join(left, right)
