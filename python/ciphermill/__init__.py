"""ciphermill: what a cipher costs on a processor you describe, and why.

    import ciphermill as cm
    m = cm.run("rijndael", on="leon2")
    print(m.cycles_per_block, m.why)

Names are loaded when they are first used, so that importing the package, and
starting the command, takes no longer than it must.
"""

from __future__ import annotations

from importlib import import_module as _import

#: Importing `typing` takes longer than all of this; who reads types knows the name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from ._core import InputError, InternalError
    from .answers import Assembly, Audit, Discovery, Explanation, Hardware, Sheet
    from .api import CipherModule, cipher, ciphers, extensions, machines, run, studies, sweep, trace
    from .calls import asm, audit, discover, explain, rtl, sheet
    from .measurement import Measurement, Measurements
    from .sweeps import Sweep

__all__ = [
    "Assembly",
    "Audit",
    "CipherModule",
    "Discovery",
    "Explanation",
    "Hardware",
    "InputError",
    "InternalError",
    "Measurement",
    "Measurements",
    "Sheet",
    "Sweep",
    "asm",
    "audit",
    "cipher",
    "ciphers",
    "discover",
    "explain",
    "extensions",
    "machines",
    "rtl",
    "run",
    "sheet",
    "studies",
    "sweep",
    "trace",
]

_HOME = {
    "InputError": "_core",
    "InternalError": "_core",
    "Measurement": "measurement",
    "Measurements": "measurement",
    "Sweep": "sweeps",
    **dict.fromkeys(("Assembly", "Audit", "Discovery", "Explanation", "Hardware", "Sheet"), "answers"),
    **dict.fromkeys(("asm", "audit", "discover", "explain", "rtl", "sheet"), "calls"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _import("._core", __name__).version()
    if name in __all__:
        return getattr(_import(f".{_HOME.get(name, 'api')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
