"""What can be seen of a wheel without the computer that it is for.

    python3 .ci/look-at-wheel.py WHEEL [TARGET]

Its file name and its metadata say the same; every data file of the checkout is in it; the core is a library for the
target's processor and system, needs nothing but what each such system has, and offers what Python asks for. On macOS,
moreover, it says the oldest version that the wheel names, and its signature, without which Apple's processors do not
start it, is that of its bytes.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = "ciphermill/_core.abi3.so"
ENTRY = b"PyInit__core"
DATA = ("ciphers", "machines", "extensions", "schedules", "studies", "rtl")

#: By the processor in a target's name: ELF's e_machine (ELF, gABI 4.1) and Mach-O's cputype (mach/machine.h).
ELF = {"x86_64": 62, "aarch64": 183}
MACH = {"x86_64": 0x0100_0007, "aarch64": 0x0100_000C}
#: Mach-O's load commands (mach-o/loader.h).
SYMTAB, LOAD_DYLIB, CODE_SIGNATURE, VERSION_MIN_MACOSX, BUILD_VERSION = 0x2, 0xC, 0x1D, 0x24, 0x32
#: Of a signature (cs_blobs.h): all of it, and the list of its pages' hashes.
SUPERBLOB, CODE_DIRECTORY = 0xFADE_0CC0, 0xFADE_0C02


def main(wheel: Path, target: str | None) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/WHEEL"))
        lines = archive.read(metadata).decode().splitlines()
        core = archive.read(CORE)
    tags = {line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")}
    *_, python, abi, platforms = wheel.stem.split("-")
    assert tags == {f"{python}-{abi}-{platform}" for platform in platforms.split(".")}, (wheel.name, tags)
    missing = [name for name in kept() if f"ciphermill/data/{name}" not in names]
    assert not missing, f"{len(missing)} files are not in the wheel: {missing[:5]}"
    assert ENTRY in core, "Python could not import it"
    if target is not None:
        processor = target.split("-")[0]
        print("core:", mach(core, processor, platforms) if "apple" in target else elf(core, processor))


def kept() -> Iterator[str]:
    """The checkout's data files."""
    listed = subprocess.run(["git", "ls-files", *DATA], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return (name for name in listed.splitlines() if not name.endswith("/.gitignore"))


def elf(core: bytes, processor: str) -> str:
    assert core[:6] == b"\x7fELF\x02\x01", core[:6]
    (machine,) = struct.unpack_from("<H", core, 18)
    assert machine == ELF[processor], machine
    return f"ELF for {processor}"


def mach(core: bytes, processor: str, platforms: str) -> str:
    magic, cpu, _, kind, commands, *_ = struct.unpack_from("<8I", core)
    assert (magic, cpu, kind in (6, 8)) == (0xFEED_FACF, MACH[processor], True), (magic, cpu, kind)
    needs, oldest, symbols, signature = [], None, set(), None
    at = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", core, at)
        if command == LOAD_DYLIB:
            (name,) = struct.unpack_from("<I", core, at + 8)
            needs.append(core[at + name : at + size].split(b"\0")[0].decode())
        elif command in (BUILD_VERSION, VERSION_MIN_MACOSX):
            (version,) = struct.unpack_from("<I", core, at + (12 if command == BUILD_VERSION else 8))
            oldest = f"{version >> 16}_{version >> 8 & 255}"
        elif command == SYMTAB:
            _, _, texts, bytes_ = struct.unpack_from("<4I", core, at + 8)
            symbols = set(core[texts : texts + bytes_].split(b"\0"))
        elif command == CODE_SIGNATURE:
            signature = struct.unpack_from("<2I", core, at + 8)
        at += size
    assert platforms.startswith(f"macosx_{oldest}_"), (platforms, oldest)
    assert b"_" + ENTRY in symbols, "Python could not import it"
    assert all(name.startswith(("/usr/lib/", "/System/Library/")) for name in needs), needs
    # Intel's start what has none.
    assert signature is not None or processor == "x86_64", "it is not signed"
    if signature is not None:
        signed(core, *signature)
    return f"Mach-O for {processor} from macOS {oldest.replace('_', '.')} on, needs {', '.join(needs)}"


def signed(core: bytes, at: int, size: int) -> None:
    """The hashes of a signature are those of the pages before it."""
    blob = core[at : at + size]
    magic, _, count = struct.unpack_from(">3I", blob)
    assert magic == SUPERBLOB, hex(magic)
    for n in range(count):
        _, start = struct.unpack_from(">2I", blob, 12 + 8 * n)
        if struct.unpack_from(">I", blob, start)[0] != CODE_DIRECTORY:
            continue
        hashes, _, _, slots, limit = struct.unpack_from(">5I", blob, start + 16)
        length, kind, _, page = struct.unpack_from(">4B", blob, start + 36)
        assert (length, kind) == (32, 2), "hashes are SHA-256"
        # What the loader checks.
        for slot in range(slots):
            page_at = slot << page
            found = hashlib.sha256(core[page_at : min(limit, page_at + (1 << page))]).digest()
            wanted = blob[start + hashes + 32 * slot :][:32]
            assert found == wanted, f"page {slot} is not what was signed"
        return
    raise AssertionError("the signature has no list of pages")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
