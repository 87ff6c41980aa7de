"""What the start page compares: every block and stream cipher on every machine, but what takes long.

On machines whose work is divided between clusters, the ciphers that have kept schedules there (`tune`): of any other
the search takes up to half a minute of processor time (27 seconds for Salsa20 on the C6201).
Other variants than a cipher's default one, and hash functions, codes, authenticated ciphers, permutations and kernels are
on few machines, one of each sort: a table of all of them on all machines would take an hour.

The settings are written out in full, in the words that studies use, so that
what a study has measured already is found kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import engine, library, manifest, schedules
from ..options import Options

#: Kinds of which the default variant is measured on every machine.
EVERYWHERE = ("block", "stream")
#: Machines of all the rest: a static and a dynamic core of 32 bits, a microcontroller, and two of 64 bits.
FEW = ("rv32", "cortex-m4", "core2", "zen5")
#: What is measured of a kind.
DIRECTIONS = {
    "block": ("encrypt", "multi"), "stream": ("keystream", "multi"), "permutation": ("permute", "multi"),
    "hash": ("hash", "single"), "mac": ("mac", "single"), "aead": ("encrypt", "single"),
}  # fmt: skip


def work() -> list[dict[str, Any]]:
    """What is to be measured: many blocks (or a key stream, or a message), encrypting, at the usual key size."""
    machines = library.machine_names()
    found = []
    for cipher in map(manifest.find, manifest.names()):
        for variant in cipher.variants:
            mine = cipher.of(variant)
            direction, blocks = DIRECTIONS.get(mine.kind or "block", ("run", "multi" if _counts(mine) else "single"))
            for machine in machines:
                if machine in FEW or (
                    mine.kind in EVERYWHERE
                    and variant == cipher.default_variant
                    and not searched(machine, mine, variant)
                ):
                    found.append({
                        "cipher": cipher.name, "variant": variant, "on": machine, "direction": direction,
                        "key_bits": engine.default_key_bits(mine), "blocks": blocks,
                    })  # fmt: skip
    return found


def searched(machine: str, cipher: manifest.Cipher, variant: str) -> bool:
    """Would schedules have to be searched for, on a machine on which that is long?"""
    if not divided(machine):
        return False
    own = f"{cipher.name}/{variant} "
    return not any(
        entry.get(schedules.NOTE, "").startswith(own) for entry in schedules.present(schedules.file(machine, cipher))
    )


@cache
def divided(machine: str) -> bool:
    """Is a machine's work divided between clusters when the code is made?"""
    described = engine.show_machine(machine, Options())
    return described["issue"]["explicit"] and len({file["cluster"] for file in described["registers"]}) > 1


def _counts(cipher: manifest.Cipher) -> bool:
    """Is a kernel told how many blocks there are?"""
    return cipher.kernel is not None and any("count" in given for given in cipher.kernel["parameters"])
