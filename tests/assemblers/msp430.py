"""The MSP430's first CPU, by TI's user's guide (SLAU049, chapters 3 and 7): machine code run in 64 KB of memory, and its cycles.

It knows nothing of the machine's file. Cycles are those of tables 3-15 and 3-16. mspdebug's simulator reads the constant
generator's constants as if they were in memory, which they are not; `constants` counts the cycles that this adds there.
"""

from __future__ import annotations

PC, SP, SR, CG = range(4)
C, Z, N, V = 1, 2, 4, 256
#: The multiplier: first operand (unsigned), second operand, result.
MPY, OP2, LOW, HIGH = 0x130, 0x138, 0x13A, 0x13C


class Wrong(Exception):
    """What the code must not do."""


class Cpu:
    def __init__(self) -> None:
        self.memory = bytearray(65536)
        self.regs = [0] * 16
        self.cycles = self.constants = 0

    def word(self, at: int) -> int:
        if at & 1:
            raise Wrong(f"a word at {at:#x}")
        return self.memory[at] | self.memory[at + 1] << 8

    def fetch(self) -> int:
        word = self.word(self.regs[PC])
        self.regs[PC] = self.regs[PC] + 2 & 0xFFFF
        return word

    def read(self, at: int, byte: bool) -> int:
        return self.memory[at] if byte else self.word(at)

    def write(self, at: int, value: int, byte: bool) -> None:
        if byte:
            self.memory[at] = value & 0xFF
            return
        if at & 1:
            raise Wrong(f"a word at {at:#x}")
        self.memory[at : at + 2] = value.to_bytes(2, "little")
        if at == OP2:
            product = self.word(MPY) * value
            self.memory[LOW : LOW + 4] = product.to_bytes(4, "little")

    def source(self, mode: int, reg: int, byte: bool) -> tuple[int, int]:
        """The operand, and the cycles that it takes more than a register."""
        regs = self.regs
        if reg == CG or (reg == SR and mode > 1):
            value = ((0, 1, 2, -1) if reg == CG else (0, 0, 4, 8))[mode]
            self.constants += (0, 2, 1, 1)[mode]
            return value & (0xFF if byte else 0xFFFF), 0
        if mode == 0:
            return regs[reg] & (0xFF if byte else 0xFFFF), 0
        if mode == 1:
            offset = self.fetch()
            base = 0 if reg == SR else regs[reg] - 2 * (reg == PC)
            return self.read(base + offset & 0xFFFF, byte), 2
        at = regs[reg]
        if mode == 3:
            regs[reg] = at + (1 if byte and reg > SP else 2) & 0xFFFF
        return self.read(at, byte), 1

    def flags(self, result: int, carry: bool, overflow: bool, top: int) -> None:
        self.regs[SR] = C * carry | Z * (not result) | N * bool(result & top) | V * overflow

    def double(self, code: int) -> None:
        regs, byte = self.regs, bool(code & 0x40)
        mask, top = (0xFF, 0x80) if byte else (0xFFFF, 0x8000)
        value, more = self.source(code >> 4 & 3, code >> 8 & 15, byte)
        to, op = code & 15, code >> 12
        at = None
        self.cycles += 1 + more
        if code & 0x80:
            offset = self.fetch()
            at = (0 if to == SR else regs[to]) + offset & 0xFFFF
            self.cycles += 3
        elif to == PC:
            # One more where the code is not a word longer.
            self.cycles += 1 if more < 2 else 0
        old = 0 if op == 4 else self.read(at, byte) if at is not None else regs[to] & mask
        carry = self.regs[SR] & C
        if op in (5, 6, 7, 8, 9):
            adds = value if op < 7 else ~value & mask
            total = old + adds + (carry if op in (6, 7) else 0 if op == 5 else 1)
            new = total & mask
            self.flags(new, total > mask, bool((old ^ new) & (adds ^ new) & top), top)
        elif op in (11, 14, 15):
            new = old ^ value if op == 14 else old & value
            self.flags(new, bool(new), op == 14 and bool(old & value & top), top)
        else:
            new = {4: value, 12: old & ~value, 13: old | value}[op]
        if op in (9, 11):
            return
        if at is not None:
            self.write(at, new, byte)
        elif to != CG:
            regs[to] = new

    def single(self, code: int) -> None:
        op, mode, reg = code >> 7 & 7, code >> 4 & 3, code & 15
        regs = self.regs
        if op == 5:
            to, _ = self.source(mode, reg, False)
            regs[SP] -= 2
            self.write(regs[SP], regs[PC], False)
            regs[PC] = to
            self.cycles += 4 if mode in (0, 2) else 5
            return
        if mode or code & 0x40 or op > 2:
            raise Wrong(f"{code:#06x}, which no program here has")
        old = regs[reg]
        self.cycles += 1
        if op == 1:
            regs[reg] = (old << 8 | old >> 8) & 0xFFFF
            return
        high = (regs[SR] & C) << 15 if op == 0 else old & 0x8000
        regs[reg] = old >> 1 | high
        self.flags(regs[reg], bool(old & 1), False, 0x8000)

    def jump(self, code: int) -> None:
        sr = self.regs[SR]
        differ = bool(sr & N) != bool(sr & V)
        taken = [not sr & Z, sr & Z, not sr & C, sr & C, sr & N, not differ, differ, True][code >> 10 & 7]
        if taken:
            offset = (code & 0x3FF) - (code & 0x200) * 2
            self.regs[PC] = self.regs[PC] + 2 * offset & 0xFFFF
        self.cycles += 2

    def run(self, until: int, most: int) -> int:
        """Go on to an address; the cycles that it took."""
        start = self.cycles
        while self.regs[PC] != until:
            code = self.fetch()
            if code >= 0x4000:
                self.double(code)
            elif code >= 0x2000:
                self.jump(code)
            elif code >= 0x1000:
                self.single(code)
            else:
                raise Wrong(f"{code:#06x} is no instruction")
            if self.cycles - start > most:
                raise Wrong(f"no end after {most} cycles")
        return self.cycles - start
