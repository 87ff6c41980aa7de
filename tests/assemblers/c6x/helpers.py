"""What the tests of the emulator share."""

from __future__ import annotations

import pytest

from . import Illegal, Memory, Result, Stopped, load

RETURN = "\tb .s2 b3\n\tnop 5\n"
#: Cycles of `RETURN`: the branch and its five delay slots.
RETURN_CYCLES = 6
#: Where `run` puts 256 bytes of memory.
BUFFER = 0x2000


def lines(code: str) -> str:
    """Code of one line a packet: `;` parts packets, ` || ` the instructions of one."""
    packets = [packet.strip() for packet in code.split(";")]
    return "".join(f"\t{packet.replace(' || ', chr(10) + '||  ')}\n" for packet in packets if packet)


def program(code: str) -> str:
    return f"\t.text\nmain:\n{lines(code)}{RETURN}"


def run(code: str, machine="c64x", content: bytes = b"", bank_conflicts=False, **registers: int) -> Result:
    """Runs packets, then returns; `content` begins the buffer."""
    memory = Memory()
    memory.add(BUFFER, bytearray(content.ljust(256, b"\0")))
    return load(program(code), machine).run(
        "main", registers, memory=memory, bank_conflicts=bank_conflicts, limit=100_000
    )


def value(code: str, register: str, machine: str = "c64x", **registers: int) -> int:
    return run(code, machine, **registers).registers[register]


def cycles(code: str, machine: str = "c64x", **options) -> int:
    """Cycles of the packets, without those of the return."""
    return run(code, machine, **options).cycles - RETURN_CYCLES


def refused(code: str, machine: str, text: str) -> None:
    """The program breaks a rule that needs no run to be seen."""
    with pytest.raises(Illegal, match=text):
        load(program(code), machine)


def stops(code: str, text: str, machine: str = "c64x", **registers: int) -> None:
    """The program does what is undefined, when it runs."""
    with pytest.raises(Stopped, match=text):
        run(code, machine, **registers)
