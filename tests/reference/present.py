"""PRESENT (A. Bogdanov and others, CHES 2007) on integers, bit by bit."""

SBOX = [0xC, 5, 6, 0xB, 9, 0, 0xA, 0xD, 3, 0xE, 0xF, 8, 4, 7, 1, 2]


def round_keys(key: bytes) -> list[int]:
    bits = 8 * len(key)
    register = int.from_bytes(key, "big")
    keys = []
    for counter in range(1, 33):
        keys.append(register >> (bits - 64))
        register = (register << 61 | register >> (bits - 61)) % 2**bits
        for at in {80: [76], 128: [124, 120]}[bits]:
            nibble = register >> at & 15
            register ^= (nibble ^ SBOX[nibble]) << at
        register ^= counter << {80: 15, 128: 62}[bits]
    return keys


def present(key: bytes, block: bytes) -> bytes:
    """Encrypts one block."""
    state = int.from_bytes(block, "big")
    *keys, last = round_keys(key)
    for k in keys:
        state ^= k
        state = sum(SBOX[state >> i & 15] << i for i in range(0, 64, 4))
        state = sum((state >> i & 1) << (63 if i == 63 else 16 * i % 63) for i in range(64))
    return (state ^ last).to_bytes(8, "big")
