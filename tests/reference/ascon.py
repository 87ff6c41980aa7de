"""The keystream of Ascon-AEAD128 (NIST SP 800-232) for a message of zeros, on integers; the S-box
as a table of 5-bit values, column by column."""

SBOX = [
    4, 11, 31, 20, 26, 21, 9, 2, 27, 5, 8, 18, 29, 3, 6, 28,
    30, 19, 7, 14, 0, 13, 17, 24, 16, 12, 1, 25, 22, 10, 15, 23,
]  # fmt: skip
ROTATIONS = [(19, 28), (61, 39), (1, 6), (10, 17), (7, 41)]
CONSTANTS = [0xF0, 0xE1, 0xD2, 0xC3, 0xB4, 0xA5, 0x96, 0x87, 0x78, 0x69, 0x5A, 0x4B]


def rotr(x: int, n: int) -> int:
    return (x >> n | x << (64 - n)) % 2**64


def permute(state: list[int], rounds: int) -> list[int]:
    for constant in CONSTANTS[-rounds:]:
        x = list(state)
        x[2] ^= constant
        y = [0] * 5
        for bit in range(64):
            column = sum((x[i] >> bit & 1) << (4 - i) for i in range(5))
            for i in range(5):
                y[i] |= (SBOX[column] >> (4 - i) & 1) << bit
        state = [v ^ rotr(v, a) ^ rotr(v, b) for v, (a, b) in zip(y, ROTATIONS, strict=True)]
    return state


def keystream(key: bytes, nonce: bytes, length: int) -> bytes:
    k = [int.from_bytes(key[i : i + 8], "little") for i in (0, 8)]
    n = [int.from_bytes(nonce[i : i + 8], "little") for i in (0, 8)]
    state = permute([0x00001000808C0001, *k, *n], 12)
    state[3] ^= k[0]
    state[4] ^= k[1] ^ 1 << 63
    out = b""
    while len(out) < length:
        out += b"".join(word.to_bytes(8, "little") for word in state[:2])
        state = permute(state, 8)
    return out[:length]
