"""Memory of the emulated machine: pieces of it at given addresses.

Little-endian. An access that reaches outside every piece, or is not a multiple
of its size where the instruction demands it, is an error. Any object with
these methods can stand in for `Memory`.
"""

from __future__ import annotations


class AccessError(Exception):
    pass


class Memory:
    def __init__(self) -> None:
        self.pieces: list[tuple[int, int, bytearray]] = []

    def add(self, base: int, content: bytes | bytearray | int) -> bytearray:
        """A new piece: a bytearray is used as it is, a number means so many zeros."""
        piece = content if isinstance(content, bytearray) else bytearray(content)
        end = base + len(piece)
        for start, stop, _ in self.pieces:
            if base < stop and start < end:
                raise ValueError(f"memory at {base:#x} overlaps that at {start:#x}")
        self.pieces.append((base, end, piece))
        return piece

    def load(self, address: int, size: int) -> int:
        for base, end, piece in self.pieces:
            if base <= address and address + size <= end:
                at = address - base
                return int.from_bytes(piece[at : at + size], "little")
        raise AccessError(f"load of {size} bytes at {address:#010x}, where there is no memory")

    def store(self, address: int, size: int, value: int) -> None:
        for base, end, piece in self.pieces:
            if base <= address and address + size <= end:
                at = address - base
                piece[at : at + size] = value.to_bytes(size, "little")
                return
        raise AccessError(f"store of {size} bytes at {address:#010x}, where there is no memory")

    def bytes(self, address: int, size: int) -> bytes:
        """A copy, to look at results."""
        return self.load(address, size).to_bytes(size, "little")


def banks(address: int, size: int) -> frozenset[tuple[int, int]]:
    """The C6201's data banks that an access uses: block, and bank in it.

    Two blocks of 32 Kbytes, each of four banks of 16 bits, the banks
    interleaved by halfwords. Two accesses in one cycle that share a bank take
    one cycle more; accesses to different blocks never do.
    """
    block = address >> 15 & 1
    return frozenset((block, at >> 1 & 3) for at in range(address, address + size))
