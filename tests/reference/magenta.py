"""MAGENTA (M. J. Jacobson Jr., K. Huber: AES submission, 1998), after the definitions of the
submission: functions f, A, PE, Pi, T, S, C and E on lists of bytes."""


def _powers() -> list[int]:
    """f(x) = a^x in GF(2)[a] / (a^8 + a^6 + a^5 + a^2 + 1); f(255) = 0."""
    table, value = [], 1
    for _ in range(255):
        table.append(value)
        value <<= 1
        if value & 0x100:
            value ^= 0x165
    return [*table, 0]


F = _powers()


def a(x: int, y: int) -> int:
    return F[x ^ F[y]]


def pe(x: int, y: int) -> list[int]:
    return [a(x, y), a(y, x)]


def pi(x: list[int]) -> list[int]:
    return [byte for i in range(8) for byte in pe(x[i], x[i + 8])]


def t(x: list[int]) -> list[int]:
    return pi(pi(pi(pi(x))))


def s(x: list[int]) -> list[int]:
    """The bytes at even places, then those at odd places."""
    return x[0::2] + x[1::2]


def c(k: int, x: list[int]) -> list[int]:
    if k == 1:
        return s(t(x))
    return s(t([p ^ q for p, q in zip(x, c(k - 1, x), strict=True)]))


def e(x: list[int], r: int = 3) -> list[int]:
    """The first half of C with r passes."""
    return c(r, x)[:8]


def magenta(key: bytes, block: bytes) -> bytes:
    """Encrypts one block."""
    k = [list(key[i : i + 8]) for i in range(0, len(key), 8)]
    order = {2: "001100", 3: "012210", 4: "01233210"}[len(k)]
    left, right = list(block[:8]), list(block[8:])
    for part in order:
        # The left half is changed, then the two change places.
        left, right = right, [p ^ q for p, q in zip(left, e(right + k[int(part)]), strict=True)]
    return bytes(left + right)
