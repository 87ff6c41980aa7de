"""Every variant of every cipher on every machine: what the start page compares.

The settings are written out in full, in the words that studies use, so that
what a study has measured already is found kept.
"""

from __future__ import annotations

from typing import Any

from .. import engine, library, manifest


def work() -> list[dict[str, Any]]:
    """What is to be measured: many blocks (or a key stream), encrypting, at the usual key size."""
    machines = library.machine_names()
    return [
        {
            "cipher": cipher.name,
            "variant": variant,
            "on": machine,
            "direction": "keystream" if cipher.kind == "stream" else "encrypt",
            "key_bits": engine.default_key_bits(cipher),
            "blocks": "multi",
        }
        for cipher in map(manifest.find, manifest.names())
        for variant in cipher.variants
        for machine in machines
    ]
