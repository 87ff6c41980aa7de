"""Two judges of programs for the C6000: an emulator, and GNU binutils.

`load` reads a printed program for the `c6201` or the `c64x`, refuses it if it
breaks a rule of the machine, and runs it with the pipeline exposed as the
hardware does (`program.py`, `core.py`). `judge` assembles it with GNU as and
compares the outcome with the text (`assembler.py`). Neither shares anything
with the compiler or the simulator. What a program may look like is written in
`syntax.py`, the instruction set in `table.py` and `semantics.py`.
"""

from .assembler import Disagreement, Missing, judge, missing
from .core import Result, Stopped
from .memory import Memory
from .operands import Fault, Illegal
from .program import Program, load

__all__ = [
    "Disagreement",
    "Fault",
    "Illegal",
    "Memory",
    "Missing",
    "Program",
    "Result",
    "Stopped",
    "judge",
    "load",
    "missing",
]
