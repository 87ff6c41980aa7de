"""From names to a measurement: the way every command and every call goes.

This is the only place that puts the pieces together: the cipher's manifest,
its compiled module, the machine's files, the official vectors, and the core
that does the work. The core is given bytes and text and reads no files; the
caches are kept here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from . import _core, cached, compile, exact, exports, library, paths, places, schedules
from .manifest import KEYED, Cipher, Variant
from .measurement import Measurement
from .options import Options as Options

#: What clang is told besides where code is to be small. As an option of the driver, zig
#: would take it as leave to strip names, among them those that tell constant data.
SMALL = ("-Xclang", "-Oz")


@dataclass(frozen=True)
class Module:
    """A compiled variant, and how it came to be."""

    cipher: Cipher
    variant: Variant
    wasm: bytes
    origin: dict[str, Any] = field(compare=False)
    #: By which compiler, and whether for small code.
    cc: str = field(default="zig", compare=False)
    small: bool = field(default=False, compare=False)
    #: Linked for a memory from here to there, and for constants at a third address.
    ram: tuple[int, ...] | None = field(default=None, compare=False)
    #: Linked with C's stack below the one address and its static data from the other on, not where they are usually.
    linked: tuple[int, int] | None = field(default=None, compare=False)
    #: What the vectors said, by direction and key size.
    verdicts: dict[tuple[str, int], dict[str, Any] | None] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def interface(self) -> dict[str, Any]:
        """Kind, sizes and exports, as the module itself says."""
        with places.told(self):
            said: dict[str, Any] = json.loads(_core.inspect(self.wasm, self.kernel()))
        return said

    @property
    def kind(self) -> str:
        """What sort of primitive it is: as the manifest says, or else the module."""
        kind: str = self.cipher.kind or self.interface["kind"]
        return kind

    @cached_property
    def modes(self) -> dict[str, list[str]]:
        """Its directions, each with the ways in which blocks may depend on each other, the usual one first in both."""
        return dict(self.interface["modes"])

    @property
    def directions(self) -> tuple[str, ...]:
        """Its directions besides the key set-up; what a block cipher has where it exports none, for the core to complain."""
        return tuple(way for way in self.modes if way != "keysetup") or ("encrypt", "decrypt")

    def kernel(self) -> str | None:
        """What the manifest says of a kernel, as the core reads it."""
        return None if self.cipher.kernel is None else json.dumps(self.cipher.kernel)

    @cached_property
    def hash(self) -> str:
        return hashlib.sha256(self.wasm).hexdigest()

    def with_lines(self) -> bytes | None:
        """The same code with line tables (`places.DEBUG`); None where it came as ``.wasm``."""
        if self.variant.sources[0].suffix == ".wasm":
            return None
        return self.relinked(debug=True).wasm

    def relinked(self, **differently: Any) -> Module:
        """The same compiled once more, `differently` in some of what `compiled` is told by name."""
        told = {"small": self.small, "ram": self.ram, "linked": self.linked, **differently}
        return compiled(self.cipher, self.variant.name, self.cc, **told)


def module(
    cipher: Cipher,
    variant: str | None = None,
    cc: str = "zig",
    *,
    small: bool = False,
    debug: bool = False,
    ram: tuple[int, ...] | None = None,
    linked: tuple[int, int] | None = None,
) -> Module:
    """A variant's WebAssembly module; where it is compiled from C, optionally for `small` code, with line tables, for
    a memory from the one to the other address, or `linked` with C's stack and its static data at two addresses."""
    chosen = cipher.variant(variant)
    cipher = cipher.of(chosen.name)
    first = chosen.sources[0]
    if first.suffix == ".wasm":
        origin: dict[str, Any] = {"module": paths.shown(first)}
        wasm = exports.renamed(library.read_bytes(first), chosen.exports, paths.shown(first))
        return Module(cipher, chosen, wasm, origin, cc)
    function = () if cipher.kernel is None else (f"-Wl,--export={cipher.kernel['function']}",)
    flags = (*chosen.flags, *function, *(SMALL if small else ()), *(places.DEBUG if debug else ()))
    flags = (*flags, *(compile.fitted(*ram) if ram else ()), *(compile.placed(*linked) if linked else ()))
    unit = compile.Unit(chosen.sources, (paths.CIPHERS, paths.LIBC), flags)
    origin = {
        "compiler": compile.compiler(cc)[1].splitlines()[0],
        "flags": [*compile.BASE_FLAGS, *flags],
        "sources": [paths.shown(source) for source in chosen.sources],
    }
    return Module(cipher, chosen, compile.module(unit, cc), origin, cc, small, ram, linked)


#: The function, where a parameter has its name.
compiled = module


def candidates(module: Module, options: Options) -> list[Module]:
    """The modules of which code may be made: for small code, that of a C compiler that also saves bytes is another."""
    if options.optimise != "size" or module.variant.sources[0].suffix == ".wasm":
        return [module]
    return [module, module.relinked(small=True)]


def suited(module: Module, machine: str, options: Options) -> Module:
    """Of the `candidates` the one whose program is smaller, of equals the faster one, for a message of the
    usual length or a shorter one. All are linked for the memory that the machine has."""
    if (ram := library.ram(machine)) is not None and module.variant.sources[0].suffix != ".wasm":
        module = with_tables(module.relinked(ram=ram), machine, options)
    modules = candidates(module, options)
    if len(modules) == 1:
        return module
    length = options.bytes if (options.bytes or 0) < 4096 else None
    usual = replace(options, bytes=length, trace=None, exact=False)

    def cost(m: Module) -> tuple[float, ...]:
        try:
            answer = json.loads(_core.measure(m.wasm, request(m, machine, usual, judged=False)))
        except (_core.InputError, _core.InternalError):
            # Whoever asks for it will be told.
            return (float("inf"),)
        return answer["code_bytes"] + answer["cipher_table_bytes"], answer["cycles_per_block"]

    return min(modules, key=cost)


#: Addresses of tables in flash are below this, and the first is a multiple of that: an index of a byte is then the
#: lower half of an address.
REACH, PAGE = 1 << 16, 1 << 8
#: Bytes to which a linker rounds the end of a module's data.
ROUNDED = 16


def with_tables(module: Module, machine: str, options: Options) -> Module:
    """A module that is linked for a small memory, with its constant tables in flash if the setting ``memory.tables``
    says so, or says nothing and RAM has no room for them."""
    said = library.memory(machine)
    stated = [change.partition("=")[2].strip(" \"'") for change in options.set if change.startswith("memory.tables=")]
    where = stated[-1] if stated else said.get("tables")
    if "flash_bytes" not in said or module.ram is None or where == "ram" or module.interface["constants"] is None:
        return module
    if where is None and _core.fits(module.wasm, request(module, machine, options, judged=False)):
        return module
    first, end = module.interface["constants"]
    behind = said.get("flash_from", 0) + said["flash_bytes"]
    at = (min(REACH, behind) - (end - first)) // PAGE * PAGE
    if module.interface["heap_base"] - end < ROUNDED and at >= module.ram[1]:
        return module.relinked(ram=(*module.ram[:2], at))
    if where is None:
        return module
    raise _core.InputError(
        f"memory.tables: {module.cipher.name}/{module.variant.name} has variables of its own behind its constants, or more "
        f"of these than {machine} has addresses for; leave memory.tables out, for tables in RAM"
    )


def measure(module: Module, machine: str, options: Options) -> Measurement:
    """One measurement. Raises InputError, or InternalError when we are at fault."""
    options.check()
    module = suited(module, machine, options)
    asked = request(module, machine, options, exact=exactly(module, machine, options))
    with places.told(module):
        answer = _core.measure(module.wasm, asked)
    if options.repeat:
        # Compiled once more, too.
        _core.forget()
        if _core.measure(module.wasm, asked) != answer:
            raise _core.InternalError(
                f"--repeat: two runs of {module.cipher.name}/{module.variant.name} on {machine} gave different measurements"
            )
    return Measurement(json.loads(answer))


def explanation(module: Module, machine: str, options: Options) -> dict[str, Any]:
    """The hottest stretches of the program that would be measured, cycle by cycle."""
    options.check()
    module = suited(module, machine, options)
    asked = request(module, machine, options, exact=exactly(module, machine, options))
    with places.told(module):
        told: dict[str, Any] = json.loads(_core.explain(module.wasm, asked))
    return told


def assembly(module: Module, machine: str, options: Options) -> str:
    """The whole program as assembly text for that machine's assembler."""
    options.check()
    module = suited(module, machine, options)
    asked = request(module, machine, options, judged=False, exact=exactly(module, machine, options))
    with places.told(module):
        return _core.assemble(module.wasm, asked)


def movable(module: Module, machine: str, options: Options) -> dict[str, Any]:
    """The program that `assembly` prints, with what it needs of memory."""
    options.check()
    module = suited(module, machine, options)
    asked = request(module, machine, options, judged=False, exact=exactly(module, machine, options))
    with places.told(module):
        said: dict[str, Any] = json.loads(_core.object(module.wasm, asked))
    return said


def native(module: Module, machine: str, options: Options, lengths: tuple[int, int]) -> dict[str, Any]:
    """The program that `assembly` prints, with the calls, buffers and memory by which a real processor is
    measured and checked; ``lengths`` are the bytes of the shorter and of the longer message."""
    options.check()
    module = suited(module, machine, options)
    asked = request(module, machine, options, judged=False, exact=exactly(module, machine, options))
    with places.told(module):
        said: dict[str, Any] = json.loads(_core.native(module.wasm, asked, *lengths))
    return said


def audit(module: Module, debug: bytes, machine: str, options: Options) -> dict[str, Any]:
    """Where secrets decide the time of the program that would be measured.

    ``debug`` is the same module with line tables, or the module itself.
    """
    options.check()
    asked = request(module, machine, options, judged=False)
    found: dict[str, Any] = json.loads(_core.audit_code(module.wasm, debug, asked))
    return found


def exactly(module: Module, machine: str, options: Options) -> dict[str, Any] | None:
    """What an exact scheduler says of the program's loops, if it is to be asked."""
    if not options.optimal:
        return None

    def loops(so_far: Mapping[str, Any]) -> dict[str, Any]:
        asked = request(module, machine, options, judged=False, exact=so_far)
        problems: dict[str, Any] = json.loads(_core.problems(module.wasm, asked))
        return problems

    return exact.answers(loops)


def request(
    module: Module,
    machine: str,
    options: Options,
    *,
    judged: bool = True,
    exact: Mapping[str, Any] | None = None,
    search: Mapping[str, Any] | None = None,
    kept: Sequence[schedules.Entry] | None = None,
) -> str:
    """What the core is asked for a measurement, as JSON.

    With the vectors' verdict if it is to be `judged`, with what an exact
    scheduler said of the loops, for a longer `search`, and with certain `kept`
    schedules in the place of those that there are.
    """
    if kept is None:
        kept = [] if options.fresh else schedules.known(machine, module.cipher)
    cipher = module.cipher
    key_bits = usual_key_bits(module) if options.key_bits is None else options.key_bits
    if module.kind in KEYED:
        cipher.check_key_bits(key_bits)
    elif key_bits:
        raise _core.InputError(f"{cipher.name} takes no key; leave --key-bits out")
    direction = options.direction or default_direction(module)
    blocks = options.blocks or default_blocks(module, direction)
    given = replace(options, direction=direction, key_bits=key_bits, blocks=blocks)
    note = schedules.note(cipher, module.variant.name, given)
    return json.dumps({
        "cipher": cipher.name,
        "variant": module.variant.name,
        "direction": direction,
        "key_bits": key_bits,
        "iv_bytes": iv_bytes(module),
        "kernel": cipher.kernel,
        "block_bytes": cipher.block_bytes,
        "blocks": blocks,
        "bytes": options.bytes,
        "limit": options.limit,
        "machine": library.request(machine, list(options.with_), list(options.without), list(options.set)),
        "jam": options.jam,
        "unroll": options.unroll,
        "aligned": options.aligned,
        "optimise": options.optimise,
        "static": options.static,
        "constant_time": module.variant.constant_time is True,
        "exact": exact,
        "schedules": schedules.plain(kept),
        "kept_in": schedules.forms(kept, note),
        "search": search,
        "patience": options.patience,
        "trace": options.trace,
        "whole": options.exact,
        "vectors": verdict(module, direction, key_bits, options.limit) if judged else None,
        "origin": module.origin,
    })  # fmt: skip


def default_key_bits(cipher: Cipher) -> int:
    """128, or the smallest size of a cipher that does not have it; 0 where there is no key."""
    if cipher.key_bits == ():
        return 0
    return 128 if cipher.key_bits is None or 128 in cipher.key_bits else cipher.key_bits[0]


def usual_key_bits(module: Module) -> int:
    """The key size measured where nobody says one."""
    return default_key_bits(module.cipher) if module.kind in KEYED else 0


def default_direction(module: Module) -> str:
    return module.directions[0]


def default_blocks(module: Module, direction: str) -> str:
    """How blocks depend on each other where nobody says so: not at all, if that can be."""
    return module.modes.get(direction, ["multi"])[0]


def iv_bytes(module: Module) -> int:
    """The size of the IV or nonce measured: the cipher's largest, or what the module says; of a stream cipher of
    which nothing is known, 64 bits."""
    sizes = module.cipher.iv_bits
    if sizes is None and module.kind == "stream":
        return 8
    nonce: int = module.interface["nonce_bytes"]
    return max(sizes or (), default=8 * nonce) // 8


def verdict(module: Module, direction: str, key_bits: int, limit: int | None = None) -> dict[str, Any] | None:
    """What `vectors` says, asked once of a module."""
    asked = (direction, key_bits)
    if asked not in module.verdicts:
        module.verdicts[asked] = vectors(module, direction, key_bits, limit)
    return module.verdicts[asked]


def vectors(module: Module, direction: str, key_bits: int, limit: int | None = None) -> dict[str, Any] | None:
    """What the official vectors say of this module; None when there are none.

    That all have passed depends on nothing but the module, the vectors and
    the core, so it is kept under a hash of the three. A failure is not kept:
    whoever sees one will want to see it again.
    """
    if not module.cipher.vectors:
        return None
    asked = {
        "variant": module.variant.name,
        "direction": direction,
        "key_bits": key_bits,
        "kernel": module.cipher.kernel,
        "files": [library.read(path) for path in module.cipher.vectors],
    }
    # What was allowed says nothing of what came out.
    digest = hashlib.sha256(f"{identity()}\0{module.hash}\0{json.dumps(asked)}".encode()).hexdigest()[:40]
    kept = cached.place("vectors", f"{digest}.json")
    report: dict[str, Any]
    if (known := cached.read(kept)) is not None:
        report = json.loads(known)
        return report
    try:
        with places.told(module):
            text = _core.check_vectors(module.wasm, json.dumps({**asked, "limit": limit}))
    except _core.InputError as error:
        if ": not a vector file: " not in str(error):
            raise
        raise _core.InputError(
            f"{error}; `ciphermill new` writes one to start from, ciphers/README.md says what is in it"
        ) from None
    report = json.loads(text)
    if report["failed"] is None:
        cached.write(kept, text.encode())
    return report


@cache
def identity() -> str:
    """What tells this build of the core from any other, for caches: its content.

    Not its date, which every `make build` sets anew. Asked once: a build beside a
    run that has begun must not put the old core's answers under the new one's name.
    """
    core = Path(_core.__file__).read_bytes()
    return f"{_core.version()} {hashlib.sha256(core).hexdigest()}"


def show_machine(machine: str, options: Options) -> dict[str, Any]:
    """A machine, resolved, as the core describes it."""
    texts = library.request(machine, list(options.with_), list(options.without), list(options.set))
    described: dict[str, Any] = json.loads(_core.describe_machine(json.dumps(texts)))
    return described
