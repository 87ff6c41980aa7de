"""Mutated cipher manifests: each is read, or refused with a message.

    .venv/bin/python fuzz/manifests.py --seconds 60

A manifest is a user's file, and nothing in one may lead to anything but a
cipher that the later stages can trust or an `InputError` (exit code 2 of the
command) in one line. This takes the manifests of all ciphers, changes them,
and looks at what `ciphermill.manifest` makes of the result.

There is no coverage feedback: the reader is small, and the inputs are close
to valid ones, so that most get past the TOML parser. Mutations work on four
levels: bytes, tokens (what stands between signs), lines (a key and its value),
and whole manifests (splices). What they put in is what readers stumble over:
other types, huge numbers, deep nesting, paths that lead elsewhere.

A cipher that was read is used as every command uses one: described as JSON,
its sizes and variants asked for. So a value that only a later stage would
stumble over is a failure here. So is an input that takes seconds.

Input number `n` of seed `s` depends on nothing else: `--seed s --first n`
makes it again. The first input of each kind of failure is saved as a file
(in build/fuzz, or the folder --save names); the exit code is then 1.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ciphermill import _core, engine, manifest, paths

#: Processor time that no manifest may take, in seconds.
LIMIT = 5.0

#: What a message may be long, in characters.
LONGEST = 2000

#: Nobody's cipher: the keys that no manifest of ours has.
FOREIGN = b"""\
name = "foreign"
kind = "block"
block_bytes = 8
key_bits = [64, 128]
iv_bits = [0, 64]
[variants.module]
sources = ["module.wasm"]
exports = { cm_keysetup = "setup", cm_encrypt = "go" }
[variants."with space"]
sources = ["plain.c"]
flags = ["-DX=1", "-I."]
constant_time = false
[[vectors]]
file = "v.json"
source = '''somebody's'''
"""

PATHS = (
    '"../.."', '"../../../../../../../../etc/passwd"', '"/"', '"/etc/passwd"', '"/dev/null"', '""', '"."', '".."',
    '"a\\u0000b.c"', '"\\u0000"', '"~"', '"-o"', '"con.c"', '" "', '"\\n"', '"a//b.c"', "'\\\\server\\x'", '"\\u202e"',
)  # fmt: skip
NUMBERS = (
    "0", "-1", "7", "8", "65536", "65544", "2147483648", "9223372036854775807", "-9223372036854775808",
    "18446744073709551616", "0x" + "f" * 40, "0x" + "f" * 9000, "9" * 60, "9" * 5000, "0b1" + "0" * 3000, "1e400",
    "-0.0", "inf", "nan", "1_000", "0o17", "1e5", "128.0",
)  # fmt: skip
OTHERS = (
    "true", "false", "[]", "{}", "[[]]", "[{}]", '[""]', "[1, true]", '["a", 1]', "1979-05-27", "07:32:00",
    "1979-05-27T07:32:00Z", '"block"', '"stream"', '"x"', '"""\n\n"""', "''''''", '"\\U0001F600"', '{ a = { b = 1 } }',
    '"\\u001b[31m"', "[128, 128]", "[128, []]", "[nan]", "[1979-05-27]", '"' + "x" * 5000 + '"', "{ file = 1 }",
)  # fmt: skip
KEYS = (
    "name", "title", "year", "kind", "block_bytes", "key_bits", "iv_bits", "default_variant", "variants", "vectors",
    "note", "sources", "flags", "trades", "constant_time", "exports", "file", "source", "[variants]", "[[variants]]",
    "[vectors]", "[[vectors]]", '[variants.""]', '[variants."\\n"]', "[variants.plain]", '""', "a.b.c", "plain",
)  # fmt: skip

TOKEN = re.compile(rb"\"[^\"\n]*\"|[A-Za-z0-9_]+|[^\sA-Za-z0-9_]")


@dataclass
class Mutator:
    """Changes manifests; every choice comes from one generator."""

    random: random.Random
    corpus: list[bytes]

    def input(self) -> bytes:
        data = self.random.choice(self.corpus)
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3, 6))):
            data = self.random.choice(MUTATIONS)(self, data)
        return data

    def at(self, data: bytes) -> int:
        return self.random.randrange(len(data) + 1)

    def flip(self, data: bytes) -> bytes:
        if not data:
            return data
        at = self.random.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << self.random.randrange(8)]) + data[at + 1 :]

    def stray(self, data: bytes) -> bytes:
        """Bytes that are not UTF-8, control characters, signs of TOML."""
        strays = [
            b"\xff",
            b"\xc3",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\xef\xbb\xbf",
            b"\0",
            b"\r",
            b"\x1b[2J",
            b"\x7f",
        ]
        strays += [bytes([c]) for c in b"\"'[]{}=.,#\n\\\t "] + [
            b'"""',
            b"'''",
            b"\\u0000",
            b"\\UFFFFFFFF",
            "\u2028".encode(),
        ]
        at = self.at(data)
        return data[:at] + self.random.choice(strays) + data[at:]

    def cut(self, data: bytes) -> bytes:
        return data[: self.at(data)]

    def remove(self, data: bytes) -> bytes:
        a, b = sorted((self.at(data), self.at(data)))
        return data[:a] + data[min(b, a + 40) :]

    def swap_tokens(self, data: bytes) -> bytes:
        found = list(TOKEN.finditer(data))
        if len(found) < 2:
            return data
        a, b = sorted(self.random.sample(found, 2), key=lambda m: m.start())
        return data[: a.start()] + b[0] + data[a.end() : b.start()] + a[0] + data[b.end() :]

    def replace_token(self, data: bytes) -> bytes:
        found = list(TOKEN.finditer(data))
        if not found:
            return data
        old, new = self.random.choice(found), self.value()
        return data[: old.start()] + new + data[old.end() :]

    def value(self) -> bytes:
        kinds = (PATHS, NUMBERS, OTHERS, KEYS, None)
        texts = self.random.choice(kinds)
        return self.nested() if texts is None else self.random.choice(texts).encode()

    def nested(self) -> bytes:
        depth = self.random.choice((3, 30, 200, 2000))
        shape = self.random.randrange(4)
        if shape == 0:
            return b"[" * depth + b"]" * depth
        if shape == 1:
            return b"{a=" * depth + b"1" + b"}" * depth
        if shape == 2:
            return b"[" * depth
        return b"1\n" + b".".join([b"a"] * depth) + b" = 1"

    def retype(self, data: bytes) -> bytes:
        """Another value for a key."""
        lines = data.split(b"\n")
        keyed = [i for i, line in enumerate(lines) if b"=" in line]
        if not keyed:
            return data
        at = self.random.choice(keyed)
        lines[at] = lines[at].split(b"=")[0] + b"= " + self.value()
        return b"\n".join(lines)

    def rename(self, data: bytes) -> bytes:
        """Another key for a value."""
        lines = data.split(b"\n")
        at = self.random.randrange(len(lines))
        key = self.random.choice(KEYS).encode()
        lines[at] = key + b" =" + lines[at].split(b"=", 1)[1] if b"=" in lines[at] else key
        return b"\n".join(lines)

    def line(self, data: bytes) -> bytes:
        """Delete, double, or move a line."""
        lines = data.split(b"\n")
        line = lines.pop(self.random.randrange(len(lines)))
        for _ in range(self.random.randrange(3)):
            lines.insert(self.random.randrange(len(lines) + 1), line)
        return b"\n".join(lines)

    def splice(self, data: bytes) -> bytes:
        other = self.random.choice(self.corpus)
        if self.random.randrange(2):
            return data[: self.at(data)] + other[self.at(other) :]
        a, b = data.split(b"\n"), other.split(b"\n")
        return b"\n".join(a[: self.random.randrange(len(a) + 1)] + b[self.random.randrange(len(b) + 1) :])


MUTATIONS: tuple[Callable[[Mutator, bytes], bytes], ...] = (
    Mutator.flip, Mutator.stray, Mutator.cut, Mutator.remove, Mutator.swap_tokens, Mutator.replace_token,
    Mutator.replace_token, Mutator.retype, Mutator.retype, Mutator.retype, Mutator.rename, Mutator.line, Mutator.splice,
)  # fmt: skip


class Slow(BaseException):
    """The time for one input is over. No handler for errors takes it."""


class Wrong(Exception):
    """A cipher was read that no later stage should have to look at."""


@dataclass
class Campaign:
    """Inputs one after the other, and what became of them."""

    seed: int
    save: Path
    read: int = 0
    refused: int = 0
    #: Saved inputs by kind of failure, and how often each kind was met.
    failures: dict[str, Path] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.corpus = [FOREIGN, *((paths.CIPHERS / name / manifest.FILE).read_bytes() for name in manifest.names())]

    def run(self, first: int = 0, inputs: int | None = None, seconds: float | None = None) -> None:
        start = time.monotonic()
        previous = signal.signal(signal.SIGVTALRM, _too_slow)
        try:
            with tempfile.TemporaryDirectory(prefix="ciphermill-fuzz-") as folder:
                files(Path(folder))
                number = first
                while inputs is None or number < first + inputs:
                    if seconds is not None and time.monotonic() - start >= seconds:
                        break
                    self.one(number, Path(folder) / manifest.FILE)
                    number += 1
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, previous)

    def one(self, number: int, path: Path) -> None:
        # Seeded by a string: the same in every version of Python.
        data = Mutator(random.Random(f"{self.seed}/{number}"), self.corpus).input()
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
        try:
            try:
                use(path, data)
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self.read += 1
        except _core.InputError as error:
            if problem := bad_message(str(error)):
                self.failed(number, data, problem, f"{problem}: {str(error)[:300]!r}")
            else:
                self.refused += 1
        except Wrong as error:
            self.failed(number, data, str(error), str(error))
        except (Exception, Slow) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} in {place.name} ({Path(place.filename).name}:{place.lineno})"
            if isinstance(error, (RecursionError, Slow)):
                kind = type(error).__name__  # where it happens is chance
            self.failed(number, data, kind, f"{kind}: {str(error)[:300]}")

    def failed(self, number: int, data: bytes, kind: str, message: str) -> None:
        self.times[kind] = self.times.get(kind, 0) + 1
        if kind in self.failures:
            return
        self.save.mkdir(parents=True, exist_ok=True)
        path = self.save / f"manifest-{self.seed}-{number}.toml"
        path.write_bytes(data)
        self.failures[kind] = path
        print(f"seed {self.seed}, input {number}, saved as {path}\n  {message}", flush=True)


def files(folder: Path) -> None:
    """What the manifests name, so that a mutant is not refused for a missing file alone."""
    for name in manifest.names():
        for path in sorted((paths.CIPHERS / name).rglob("*")):
            link = folder / path.relative_to(paths.CIPHERS / name)
            if path.is_dir():
                link.mkdir(exist_ok=True)
            elif path.name != manifest.FILE and not link.exists():
                link.symlink_to(path.resolve())
    for name in ("module.wasm", "plain.c", "v.json"):
        (folder / name).touch()


def use(path: Path, data: bytes) -> None:
    """Read a manifest and do with it what every command does."""
    cipher = manifest.parse(path, data)
    document = json.dumps(cipher.describe())
    if json.loads(document) != cipher.describe():
        raise Wrong("the description is not plain JSON")
    if cipher.variant(None).name != cipher.default_variant:
        raise Wrong("the default variant is another one")
    for bits in cipher.key_bits:
        cipher.check_key_bits(bits)
    takes_key = cipher.kind in (None, *engine.KEYED)
    if engine.default_key_bits(cipher) < int(takes_key) or min(cipher.iv_bits or (0,)) < 0:
        raise Wrong("sizes below zero")
    for variant in cipher.variants.values():
        for text in (*map(str, variant.sources), *variant.flags):
            if "\0" in text:
                raise Wrong("a NUL character for the compiler's command line")
        if not all(source.is_file() for source in variant.sources):
            raise Wrong("a source that is no file")
    if not all(vector.is_file() for vector in cipher.vectors):
        raise Wrong("vectors that are no file")
    for name in (cipher.name, *cipher.variants):
        if not name or not name.isprintable():
            raise Wrong("a name that cannot be printed")


def bad_message(message: str) -> str | None:
    if not message.isprintable():
        return "a message with control characters or line ends"
    if len(message) > LONGEST:
        return "a message longer than a screen"
    if manifest.FILE not in message:
        return "a message that does not name the file"
    return None


def _too_slow(*_: object) -> None:
    raise Slow(f"more than {LIMIT:g} s of processor time")


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutated cipher manifests: each is read, or refused with a message.")
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--seed", type=int, help="start of every choice (default: the clock)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first input")
    parser.add_argument("--inputs", type=int, metavar="N", help="stop after so many inputs, whatever the time")
    parser.add_argument("--save", type=Path, default=Path("build/fuzz"), metavar="DIR", help="where failures go")
    chosen = parser.parse_args()
    seed = time.time_ns() // 1000 % 2**32 if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    campaign = Campaign(seed, chosen.save)
    campaign.run(chosen.first, chosen.inputs, None if chosen.inputs is not None else chosen.seconds)
    print(f"{campaign.read} manifests read, {campaign.refused} refused, ", end="")
    print(f"{sum(campaign.times.values())} failures of {len(campaign.failures)} kinds")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
