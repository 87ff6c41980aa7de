"""Instructions per block: native compilers' beside ours.

    .venv/bin/python benches/native/compare.py

compiles every variant of every cipher natively with gcc -O2 and clang -O2,
runs it on two message lengths, checks each ciphertext against the reference
interpreter's, and takes the difference of the instruction counts per block.
The same two lengths go through ``ciphermill`` on a machine with the same
instruction set. The result is ``docs/native-comparison.md``. With names of
ciphers only those are measured, and the tables are printed instead.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from counting import ToolError, text_bytes
from toolchains import FLAGS, HERE, TARGETS, Target

from ciphermill import _core, engine, manifest, paths

ROOT = HERE.parents[1]
DOCUMENT = ROOT / "docs" / "native-comparison.md"

#: The shorter message has at least so many bytes, the longer one twice its blocks.
SHORTER = 1024


@dataclass(frozen=True)
class Cost:
    """What a block costs."""

    instructions: float
    code_bytes: int


@dataclass
class Row:
    """One variant, as every compiler makes it."""

    cipher: str
    variant: str
    ours: Cost
    native: dict[str, Cost] = field(default_factory=dict)

    @property
    def best(self) -> float:
        return min(cost.instructions for cost in self.native.values())

    @property
    def ratio(self) -> float:
        return self.ours.instructions / self.best


class Work:
    """One variant and the two messages it is measured with."""

    def __init__(self, module: engine.Module) -> None:
        self.module = module
        cipher = module.cipher
        self.key_bits = engine.default_key_bits(cipher)
        self.iv_bytes = engine.iv_bytes(module)
        self.block_bytes = cipher.block_bytes
        shorter = math.ceil(SHORTER / self.block_bytes)
        self.blocks = (shorter, 2 * shorter)
        self.driver = "cm_keystream" if cipher.kind == "stream" else "cm_encrypt_blocks"

    @property
    def name(self) -> str:
        return f"{self.module.cipher.name}/{self.module.variant.name}"

    def per_block(self, counts: list[int]) -> float:
        return (counts[1] - counts[0]) / (self.blocks[1] - self.blocks[0])

    def lengths(self) -> list[int]:
        return [n * self.block_bytes for n in self.blocks]

    def expected(self, length: int) -> bytes:
        """The ciphertext, by the reference interpreter."""
        key, message = buffer("key", self.key_bits // 8), buffer("message", length)
        if self.driver == "cm_encrypt_blocks":
            return _core.crypt(self.module.wasm, key, message, False)
        iv = buffer("iv", self.iv_bytes) if self.iv_bytes else None
        stream = _core.keystream(self.module.wasm, key, iv, length)
        return bytes(a ^ b for a, b in zip(message, stream, strict=True))

    def ours(self, machine: str) -> Cost:
        """As ``ciphermill run --on`` the machine measures it."""
        counts = []
        for length in self.lengths():
            measured = engine.measure(self.module, machine, engine.Options(bytes=length))
            if not measured.verified:
                raise ToolError(f"{self.name} on {machine}: our own code is wrong: {measured.failure}")
            counts.append(measured.instructions)
        return Cost(self.per_block(counts), measured.code_bytes)


def buffer(name: str, length: int) -> bytes:
    """The bytes that ``ciphermill run`` puts into the buffer of that name.

    SplitMix64 from the FNV-1a hash of the name; ``start_main.c`` does the same.
    """
    mask = 2**64 - 1
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & mask
    out = bytearray()
    while len(out) < length:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        out += (z ^ z >> 31).to_bytes(8, "little")
    return bytes(out[:length])


class Bench:
    """A target with what all its programs share."""

    def __init__(self, target: Target, scratch: Path) -> None:
        self.target = target
        self.scratch = scratch
        main = target.compile("gcc", [HERE / "start_main.c"], (f"-I{paths.CIPHERS}",), scratch)
        # Otherwise the compiler makes memcpy() call memcpy().
        alone = ("-fno-builtin", "-fno-tree-loop-distribute-patterns")
        self.runtime = target.compile("gcc", [HERE / "start_runtime.c"], alone, scratch)
        self.harness = [target.start_object(scratch), *main]

    def measure(self, work: Work, compiler: str) -> Cost:
        variant = work.module.variant
        flags = (f"-I{paths.CIPHERS}", *variant.flags)
        cipher = self.target.compile(compiler, list(variant.sources), flags, self.scratch)
        program = self.scratch / f"{self.target.name}-{compiler}"
        self.target.link([*self.harness, *cipher, *self.runtime], program)
        counts = []
        for length in work.lengths():
            arguments = [str(work.key_bits // 8), str(work.iv_bytes), str(length)]
            run = self.target.counter(program, arguments)
            if run.output != work.expected(length):
                raise ToolError(f"{work.name}, {compiler} for {self.target.title}: the ciphertext is wrong")
            counts.append(run.instructions)
        alone = self.target.link([*cipher, *self.runtime], self.scratch / f"{program.name}-alone", work.driver)
        return Cost(work.per_block(counts), text_bytes(alone))


def works(names: list[str]) -> list[Work]:
    found = []
    for name in names or manifest.names():
        cipher = manifest.find(name)
        found += [Work(engine.module(cipher, variant)) for variant in cipher.variants]
    return found


def measure(target: Target, todo: list[Work], scratch: Path) -> list[Row]:
    bench = Bench(target, scratch)
    rows = []
    for work in todo:
        ours = work.ours(target.machine)
        row = Row(work.module.cipher.name, work.module.variant.name, ours)
        for compiler in target.compilers():
            row.native[compiler] = bench.measure(work, compiler)
        rows.append(row)
        shown = ", ".join(f"{name} {cost.instructions:.1f}" for name, cost in row.native.items())
        print(f"{target.name} {work.name}: {shown}, ours {ours.instructions:.1f}", file=sys.stderr, flush=True)
    return rows


def table(rows: list[Row]) -> str:
    """Markdown: the worst ratio first, the geometric mean last."""
    compilers = list(rows[0].native)
    head = ["cipher", "variant", *compilers, "better", "ours", "ratio"]
    head += [f"{name}, bytes" for name in [*compilers, "ours"]]
    lines = [head, ["---"] * 2 + ["---:"] * (len(head) - 2)]
    for row in sorted(rows, key=lambda row: (-row.ratio, row.cipher, row.variant)):
        natives = [row.native[name] for name in compilers]
        lines.append([
            row.cipher, row.variant,
            *(number(cost.instructions) for cost in natives),
            number(row.best), number(row.ours.instructions), f"{row.ratio:.3f}",
            *(str(cost.code_bytes) for cost in [*natives, row.ours]),
        ])  # fmt: skip
    mean = math.exp(sum(math.log(row.ratio) for row in rows) / len(rows))
    lines.append(["**geometric mean**", *[""] * (len(compilers) + 3), f"**{mean:.3f}**", *[""] * (len(compilers) + 1)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float) -> str:
    """One decimal where there is one."""
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def document(results: dict[str, list[Row]], lacking: dict[str, str]) -> str:
    parts = [(HERE / "introduction.md").read_text().replace("@FLAGS@", " ".join(FLAGS))]
    for target in TARGETS:
        parts.append(f"\n## {target.title}\n\n")
        if target.name in lacking:
            parts.append(f"Not measured: {lacking[target.name]}.\n")
        elif target.name in results:
            parts.append(f"Ours: `{target.machine}`; {target.versions()}.\n\n{table(results[target.name])}")
    return "".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("cipher", nargs="*", help="default: all, and the document is written")
    parser.add_argument("--target", action="append", choices=[t.name for t in TARGETS], help="default: all")
    chosen = parser.parse_args()
    targets = [t for t in TARGETS if not chosen.target or t.name in chosen.target]
    results: dict[str, list[Row]] = {}
    lacking: dict[str, str] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="ciphermill-native-") as folder:
            scratch = Path(folder)
            todo = works(chosen.cipher)
            for target in targets:
                if reason := target.missing(scratch):
                    lacking[target.name] = reason
                    print(f"{target.title}: not measured: {reason}", file=sys.stderr)
                    continue
                if "clang" not in target.compilers():
                    print(f"{target.title}: no clang: the Python package ziglang is missing", file=sys.stderr)
                results[target.name] = measure(target, todo, scratch)
        if chosen.cipher or chosen.target:
            for name, rows in results.items():
                print(f"{name}\n\n{table(rows)}")
        elif results:
            paths.write_atomically(DOCUMENT, document(results, lacking).encode())
            print(f"written: {paths.shown(DOCUMENT)}", file=sys.stderr)
    except (ToolError, _core.InputError, _core.InternalError) as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 1
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
