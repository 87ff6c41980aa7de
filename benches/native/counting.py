"""Exact numbers of executed instructions, and of the bytes of code.

Two counters, one for each kind of program:

* ``qemu_riscv32``: QEMU's user mode translates one instruction at a time
  (``-singlestep``), does not chain translations (``nochain``), and logs each
  one it enters (``-d exec``). A line is then an executed instruction. Only
  addresses in ``.text`` are logged; the harness stands elsewhere.
* ``callgrind``: Valgrind counts instructions itself (``Ir``). It counts the
  harness too, which takes the same number whatever the message's length, and
  leaves out the last few instructions, with which the process ends itself.

Neither samples, and neither depends on the load of the computer: the same
program gives the same number on every run.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class ToolError(Exception):
    """A tool is missing, failed, or said what we cannot read."""


@dataclass(frozen=True)
class Run:
    """One run of a program."""

    instructions: int
    output: bytes


def call(command: list[str], **options) -> subprocess.CompletedProcess:
    """Run a tool; its own message is the best explanation of a failure."""
    try:
        answer = subprocess.run(command, capture_output=True, check=False, **options)
    except OSError as error:
        raise ToolError(f"{command[0]}: {error.strerror}") from None
    if answer.returncode:
        message = answer.stderr.decode(errors="replace").strip()
        raise ToolError(f"{' '.join(command)}: exit status {answer.returncode}\n{message}")
    return answer


def sections(program: Path) -> dict[str, tuple[int, int]]:
    """Address and size of an ELF file's sections, by name."""
    data = program.read_bytes()
    if data[:4] != b"\x7fELF" or data[5] != 1:
        raise ToolError(f"{program}: not a little-endian ELF file")
    wide = data[4] == 2
    offset = struct.unpack_from("<Q" if wide else "<I", data, 40 if wide else 32)[0]
    size, count, names = struct.unpack_from("<HHH", data, 58 if wide else 46)
    # name, type, flags, address, offset, size
    form = "<IIQQQQ" if wide else "<IIIIII"
    headers = [struct.unpack_from(form, data, offset + i * size) for i in range(count)]
    strings = headers[names][4]
    found = {}
    for name, _, _, address, _, length in headers:
        start = strings + name
        found[data[start : data.index(b"\0", start)].decode()] = (address, length)
    return found


def text_bytes(program: Path) -> int:
    """Bytes of code in ``.text``."""
    return sections(program).get(".text", (0, 0))[1]


def qemu_riscv32(program: Path, arguments: list[str]) -> Run:
    """Instructions executed in ``.text`` of a 32-bit RISC-V Linux program."""
    emulator = shutil.which("qemu-riscv32")
    if emulator is None:
        raise ToolError("qemu-riscv32 was not found")
    address, size = sections(program)[".text"]
    command = [
        emulator, _one_at_a_time(emulator), "-d", "exec,nochain",
        "-dfilter", f"{address:#x}+{size:#x}", str(program), *arguments,
    ]  # fmt: skip
    # The log goes to standard error; the program itself writes nothing there.
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE) as process:
            lines, other = 0, []
            for line in process.stderr:
                if line.startswith(b"Trace "):
                    lines += 1
                else:
                    other.append(line)
        if process.returncode or other:
            said = b"".join(other[:10]).decode(errors="replace").strip()
            raise ToolError(f"{' '.join(command)}: exit status {process.returncode}\n{said}")
        output.seek(0)
        return Run(lines, output.read())


@cache
def _one_at_a_time(emulator: str) -> str:
    """The option's name, which is another from QEMU 8.1 on."""
    new = "-one-insn-per-tb"
    return new if new.encode() in call([emulator, "-help"]).stdout else "-singlestep"


def callgrind(program: Path, arguments: list[str]) -> Run:
    """Instructions executed by a program for this computer's processor."""
    answer = call([
        "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), *arguments,
    ])  # fmt: skip
    for line in answer.stderr.decode(errors="replace").splitlines():
        head, _, number = line.rpartition(":")
        if head.endswith("Collected "):
            return Run(int(number), answer.stdout)
    raise ToolError(f"valgrind did not say how many instructions {program.name} took")
