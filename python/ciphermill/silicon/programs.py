"""The programs that a cipher is: its variants, directions and modes, each with a name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from .. import engine, manifest
from .._core import InputError
from ..engine import Module, Options
from ..suggest import did_you_mean

#: Of the programs so many are one that is held out, by a hash of the name.
HELD_OUT = 3


@dataclass(frozen=True)
class Program:
    """One program to measure."""

    module: Module
    options: Options

    @property
    def direction(self) -> str:
        return self.options.direction or engine.default_direction(self.module)

    @property
    def blocks(self) -> str:
        return self.options.blocks or "multi"

    @property
    def name(self) -> str:
        """What it is called in tables and files of figures: ``rijndael-ttable-encrypt-multi``."""
        return f"{self.module.cipher.name}-{self.module.variant.name}-{self.direction}-{self.blocks}"


def held_out(name: str) -> bool:
    """Whether a program belongs to the third that nobody looks at while a model is worked on.

    Its name's SHA-256, as a number, decides: whoever adds a program has no say in it.
    """
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % HELD_OUT == 0


def chosen(names: list[str], options: Options) -> list[Program]:
    """The programs that a command line names.

    ``CIPHER`` is the manifest's variant, ``CIPHER/VARIANT`` another, ``all`` every variant
    of every built-in cipher, in every direction and mode that the options leave open.
    """
    found: list[Program] = []
    for name in names or ["all"]:
        if name == "all":
            for cipher in map(manifest.find, manifest.names()):
                for each in cipher.variants:
                    found += every(engine.module(cipher, each, options.cc), options)
            continue
        cipher, variant = named(name)
        found.append(Program(engine.module(cipher, variant, options.cc), options))
    if not found:
        raise InputError(
            f"--direction {options.direction} with --blocks {options.blocks}: no cipher has that; leave one of the two out"
        )
    return list({one.name: one for one in found}.values())


def named(name: str) -> tuple[manifest.Cipher, str | None]:
    """A cipher and a variant from ``CIPHER/VARIANT``; a path is a cipher with all its slashes."""
    first, slash, variant = name.rpartition("/")
    if slash and first in manifest.names():
        cipher = manifest.find(first)
        if variant not in cipher.variants:
            known = list(cipher.variants)
            raise InputError(
                f"{first} has no variant {variant!r}{did_you_mean(variant, known)}; it has {', '.join(known)}"
            )
        return cipher, variant
    return manifest.find(name), None


def every(module: Module, options: Options) -> list[Program]:
    """A variant in the directions and modes that are left open: each direction with independent
    blocks, and encryption in a feedback mode. The others are there where they are asked for."""
    asked = (options.direction, options.blocks)
    ways = [(direction, engine.default_blocks(module, direction)) for direction in module.directions]
    if module.kind == "block":
        ways += [("encrypt", "single")] if "encrypt" in module.directions else []
        ways += [("decrypt", "single")] if "decrypt" in module.directions and asked == ("decrypt", "single") else []
    ways += [("keysetup", "multi")] if options.direction == "keysetup" else []
    return [
        Program(module, replace(options, direction=direction, blocks=blocks))
        for direction, blocks in ways
        if options.direction in (None, direction) and options.blocks in (None, blocks)
    ]
