"""What there is to tune: a cipher's variant, direction and mode of blocks on a machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import engine, library, manifest, paths, schedules, study
from .._core import InputError
from ..manifest import Cipher
from ..options import BLOCKS, USUAL, Options
from ..study import measure

#: Options with which other code is made, or other schedules are wanted, than `tune` searches for.
OTHER = ("optimise", "static", "optimal", "fresh", "patience")

#: A direction of its own beside those that make bytes of a message.
KEYSETUP = "keysetup"


@dataclass(frozen=True)
class Cell:
    """One program to be tuned: everything of a measurement, nothing left to be chosen but the code's form."""

    cipher: Cipher
    variant: str
    machine: str
    #: Direction, size of the key and mode of blocks are given.
    options: Options

    @property
    def note(self) -> str:
        """Whose its entries are in the file."""
        return schedules.note(self.cipher, self.variant, self.options)

    @property
    def title(self) -> str:
        return f"{self.note}, on {self.machine}"

    @property
    def file(self) -> Path:
        """Where its schedules are kept."""
        return schedules.file(self.machine, self.cipher)

    @property
    def name(self) -> str:
        """A name for files: of no other cell, wherever its cipher and machine are."""
        where = [str(path.resolve()) for path in (self.cipher.path, library.machine_path(self.machine))]
        return hashlib.sha256("\0".join([*where, self.note]).encode()).hexdigest()[:40]

    def module(self) -> engine.Module:
        return engine.module(self.cipher, self.variant, self.options.cc)

    def key(self, module: engine.Module) -> str:
        """Digest of all that decides what a search finds, but for what is kept."""
        asked = json.loads(engine.request(module, self.machine, self.options, judged=False, kept=()))
        del asked["origin"]
        text = "\0".join([engine.identity(), module.hash, json.dumps(asked, sort_keys=True)])
        return hashlib.sha256(text.encode()).hexdigest()[:40]

    def origin(self, module: engine.Module) -> dict[str, str]:
        """Digests of the module and of the machine, by which a later report knows what has changed."""
        return {"module": module.hash[:32], "machine": machine_digest(self.machine, self.options)}


def machine_digest(machine: str, options: Options) -> str:
    return str(engine.show_machine(machine, options)["hash"])[:32]


def keeps(machine: str, options: Options) -> bool:
    """Does the core write down schedules for a machine: one that schedules at compile time?

    Elsewhere there is nothing to search for. The rule is the core's (``crates/codegen/src/compile.rs``).
    """
    return bool(engine.show_machine(machine, options)["issue"]["explicit"])


def explicit(options: Options) -> list[str]:
    """The machines that come along and schedule at compile time."""
    options = replace(options, with_=(), without=(), set=())
    return [name for name in library.machine_names() if engine.show_machine(name, options)["issue"]["explicit"]]


def of_studies() -> list[str]:
    """Machine files of studies for which schedules are kept."""
    return [str(path) for path in sorted(paths.STUDIES.glob("*/machines/*.toml")) if schedules.common(path).is_file()]


def of(ciphers: Iterable[Cipher], variant: str | None, machines: Sequence[str], options: Options) -> list[Cell]:
    """All cells of some ciphers on some machines: every variant, direction and mode that is not said in words.

    What people use most comes first: default variants before others, blocks that are independent before
    feedback, key set-up last. Of several ciphers those are left out that do not have what is said.
    Raises InputError where there is nothing.
    """
    found: list[tuple[tuple[bool, ...], Cell]] = []
    refused: InputError | None = None
    for cipher in ciphers:
        try:
            mine = list(of_cipher(cipher, variant, options))
        except InputError as error:
            refused = refused or error
            continue
        for name, chosen in mine:
            rank = (chosen.direction == KEYSETUP, name != cipher.default_variant, chosen.blocks != "multi")
            found += [(rank, Cell(cipher, name, machine, chosen)) for machine in machines]
    if refused is not None and not found:
        raise refused
    return [cell for _, cell in sorted(found, key=lambda pair: pair[0])]


def of_study(name: str, cc: str) -> list[Cell]:
    """What a study measures on machines that schedule at compile time, each once. Raises InputError where that is nothing.

    Left out is what takes no kept schedule: fresh searches, and code for size.
    """
    there = measure.Shelf()
    found: dict[str, Cell] = {}
    for asked in study.find(name).work():
        machine = measure.of_machine(asked["on"], there) if "cipher" in asked else None
        if machine is None or asked["cipher"] not in there.ciphers:
            continue
        options = replace(measure.options(asked), cc=cc)
        if any(getattr(options, name) != USUAL[name] for name in OTHER) or not keeps(machine, options):
            continue
        cipher = manifest.find(asked["cipher"])
        variant = cipher.variant(asked.get("variant")).name
        direction = options.direction or engine.module(cipher, variant, cc).directions[0]
        key_bits = engine.default_key_bits(cipher.of(variant)) if options.key_bits is None else options.key_bits
        options = replace(options, direction=direction, blocks=options.blocks or "multi", key_bits=key_bits)
        cell = Cell(cipher, variant, machine, options)
        found.setdefault(cell.title, cell)
    if not found:
        raise InputError(f"--study {name}: it measures nothing on a machine that schedules at compile time")
    return list(found.values())


def of_cipher(cipher: Cipher, variant: str | None, options: Options) -> Iterator[tuple[str, Options]]:
    """A cipher's variants, each with all that is measured of it. Raises InputError where it has not what is said."""
    for name in [cipher.variant(variant).name] if variant is not None else cipher.variants:
        mine = cipher.of(name)
        key_bits = engine.default_key_bits(mine) if options.key_bits is None else options.key_bits
        mine.check_key_bits(key_bits)
        for direction, blocks in modes(cipher, name, options):
            yield name, replace(options, direction=direction, blocks=blocks, key_bits=key_bits)


def modes(cipher: Cipher, variant: str, options: Options) -> list[tuple[str, str]]:
    """Directions, each with the modes of blocks that differ there; those asked for where any are.

    Raises InputError where the cipher has not what is asked for.
    """
    module = engine.module(cipher, variant, options.cc)
    directions = [*module.directions, *([KEYSETUP] if KEYSETUP in module.modes else [])]
    found = []
    for direction in directions if options.direction is None else [options.direction]:
        if direction not in directions:
            raise InputError(f"--direction {direction}: {cipher.name} has {', '.join(directions)}")
        several = module.modes.get(direction, BLOCKS[::-1])
        found += [(direction, blocks) for blocks in several if options.blocks in (None, blocks)]
    if not found:
        raise InputError(f"--blocks {options.blocks}: {cipher.name} has no feedback from block to block; leave it out")
    return found


def named(names: Sequence[str]) -> list[Cipher]:
    """Ciphers by name or path; all that come along where none is named."""
    return [manifest.find(name) for name in names or manifest.names()]
