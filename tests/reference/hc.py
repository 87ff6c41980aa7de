"""HC-128 and HC-256 (H. Wu, 2004), step by step with indices taken modulo the table size."""

MASK = 0xFFFFFFFF


def rotr(x: int, n: int) -> int:
    return (x >> n | x << (32 - n)) & MASK


def words(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


def expanded(w: list[int], count: int) -> list[int]:
    w = list(w)
    for i in range(16, count):
        a, b = w[i - 2], w[i - 15]
        f2 = rotr(a, 17) ^ rotr(a, 19) ^ a >> 10
        f1 = rotr(b, 7) ^ rotr(b, 18) ^ b >> 3
        w.append((f2 + w[i - 7] + f1 + w[i - 16] + i) & MASK)
    return w


def byte(x: int, n: int) -> int:
    return x >> (8 * n) & 255


def step128(p: list[int], q: list[int], i: int) -> int:
    which, j = divmod(i % 1024, 512)
    table, other = (q, p) if which else (p, q)
    turn = (lambda x, n: rotr(x, 32 - n)) if which else rotr
    x, y, z = table[(j - 3) % 512], table[(j - 10) % 512], table[(j - 511) % 512]
    table[j] = (table[j] + (turn(x, 10) ^ turn(z, 23)) + turn(y, 8)) & MASK
    u = table[(j - 12) % 512]
    return (other[byte(u, 0)] + other[256 + byte(u, 2)]) & MASK ^ table[j]


def hc128(key: bytes, iv: bytes, length: int) -> bytes:
    k, v = words(key), words(iv)
    w = expanded(k + k + v + v, 1280)
    p, q = w[256:768], w[768:1280]
    for i in range(1024):
        (p if i < 512 else q)[i % 512] = step128(p, q, i)
    count = (length + 3) // 4
    return b"".join(step128(p, q, i).to_bytes(4, "little") for i in range(count))[:length]


def step256(p: list[int], q: list[int], i: int) -> int:
    which, j = divmod(i % 2048, 1024)
    table, other = (q, p) if which else (p, q)
    x, y, z = table[(j - 3) % 1024], table[(j - 10) % 1024], table[(j - 1023) % 1024]
    g = (rotr(x, 10) ^ rotr(z, 23)) + other[(x ^ z) % 1024]
    table[j] = (table[j] + y + g) & MASK
    u = table[(j - 12) % 1024]
    return sum(other[256 * n + byte(u, n)] for n in range(4)) & MASK ^ table[j]


def hc256(key: bytes, iv: bytes, length: int) -> bytes:
    k, v = words((key * 2)[:32]), words((iv * 2)[:32])
    w = expanded(k + v, 2560)
    p, q = w[512:1536], w[1536:2560]
    for i in range(4096):
        step256(p, q, i)
    count = (length + 3) // 4
    return b"".join(step256(p, q, i).to_bytes(4, "little") for i in range(count))[:length]
