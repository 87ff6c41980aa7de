"""Salsa20 (D. J. Bernstein, 2005) and ChaCha (2008) with any number of rounds, from the papers'
formulas on lists of words."""

MASK = 0xFFFFFFFF
COLUMNS = [(0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11)]
ROWS = [(0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14)]
STRAIGHT = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
DIAGONAL = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]


def rotl(x: int, n: int) -> int:
    return (x << n | x >> (32 - n)) & MASK


def words(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


def salsa_quarter(x: list[int], a: int, b: int, c: int, d: int) -> None:
    x[b] ^= rotl((x[a] + x[d]) & MASK, 7)
    x[c] ^= rotl((x[b] + x[a]) & MASK, 9)
    x[d] ^= rotl((x[c] + x[b]) & MASK, 13)
    x[a] ^= rotl((x[d] + x[c]) & MASK, 18)


def chacha_quarter(x: list[int], a: int, b: int, c: int, d: int) -> None:
    for target, added, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[target] = (x[target] + x[added]) & MASK
        x[mixed] = rotl(x[mixed] ^ x[target], turn)


def _constants_and_key(key: bytes) -> tuple[list[int], list[int], list[int]]:
    text = b"expand 32-byte k" if len(key) == 32 else b"expand 16-byte k"
    return words(text), words(key[:16]), words(key[-16:])


def _block(state: list[int], rounds: int, quarter, layers) -> bytes:
    x = list(state)
    for n in range(rounds):
        for places in layers[n % 2]:
            quarter(x, *places)
    return b"".join(((a + b) & MASK).to_bytes(4, "little") for a, b in zip(x, state, strict=True))


def salsa20(key: bytes, iv: bytes, length: int, rounds: int = 20, counter: int = 0) -> bytes:
    """`length` bytes of keystream from block `counter` on; the counter has 64 bits."""
    c, low, high = _constants_and_key(key)
    out = b""
    while len(out) < length:
        t = words(iv) + words((counter % 2**64).to_bytes(8, "little"))
        state = [c[0], *low, c[1], *t, c[2], *high, c[3]]
        out += _block(state, rounds, salsa_quarter, (COLUMNS, ROWS))
        counter += 1
    return out[:length]


def chacha(key: bytes, iv: bytes, length: int, rounds: int = 20, counter: int = 0) -> bytes:
    """The same for ChaCha; the counter has the 64 or 32 bits that an 8 or 12-byte IV leaves."""
    c, low, high = _constants_and_key(key)
    size = 16 - len(iv)
    out = b""
    while len(out) < length:
        t = words((counter % 256**size).to_bytes(size, "little")) + words(iv)
        out += _block([*c, *low, *high, *t], rounds, chacha_quarter, (STRAIGHT, DIAGONAL))
        counter += 1
    return out[:length]
