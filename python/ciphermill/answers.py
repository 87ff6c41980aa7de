"""What calls beside `run` answer: dataclasses with the data that ``--json`` prints, and the text of the command."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import paths
from ._core import InputError

if TYPE_CHECKING:
    from .firmware import Firmware
    from .measurement import Measurement
    from .plots import Picture

Row = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer. ``print`` writes what the command says; `to_dict` is its ``--json``, `rows` its ``--csv``."""

    #: The whole document.
    document: dict[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The document, as ``--json`` prints it."""
        return self.document

    @abstractmethod
    def rows(self) -> list[Row]:
        """A row for each result, as ``--csv`` prints them."""

    @abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Audit(Answer):
    """Where secrets decide the time of a cipher (docs/audit.md)."""

    cipher: str
    variant: str
    #: Nothing depends on a secret.
    clean: bool
    #: The manifest promises constant time; and that is not so. None: it says nothing.
    claimed: bool | None
    contradicted: bool
    #: A row for each kind, function and source line: ``kind``, ``function``, ``file``, ``line``, ``text``, ``times``
    #: (operations of that line that were seen), ``instructions``; of machine code also whose it is.
    findings: list[Row]

    def rows(self) -> list[Row]:
        return self.findings

    def __str__(self) -> str:
        from . import auditing

        return auditing.text(self.document)


@dataclass(frozen=True)
class Explanation(Answer):
    """Where the cycles of a measurement go (docs/measurement.md)."""

    measurement: Measurement
    #: The code that takes most cycles, the hottest first: ``function``, ``blocks``, ``cycles`` of a pass,
    #: ``instructions`` with their ``cycle`` and what each ``waits`` for.
    stretches: list[Row]
    #: Source lines, those with most cycles first: ``file``, ``line``, ``text``, ``cycles`` a pass of the stretch,
    #: ``share`` of it, ``instructions``, ``stretch`` (its number). Empty where there are no line tables.
    lines: list[Row]

    def rows(self) -> list[Row]:
        from . import explaining

        return explaining.records(self.document)

    def plot(self) -> Picture:
        """Cycles by source line (``--plot``)."""
        from . import plots

        return plots.Picture(plots.explain(self.measurement, self.document))

    def __str__(self) -> str:
        from . import explaining

        return explaining.text(self.measurement, self.document)


@dataclass(frozen=True)
class Discovery(Answer):
    """Instructions that a cipher would like to have (docs/hardware.md)."""

    cipher: str
    variant: str
    machine: str
    #: Cycles a block without any of them.
    cycles_per_block: float
    #: Those that save cycles, the most for a gate first: ``semantics``, ``saved`` cycles a block, ``gates``,
    #: ``saved_per_gate``, and ``extension``, the text of a file that adds it.
    candidates: list[Row]
    #: Those that save nothing.
    others: list[Row]
    #: Which candidate saves most within the gates allowed; None: none does.
    best: int | None

    def rows(self) -> list[Row]:
        return self.candidates

    def __str__(self) -> str:
        from . import discovering

        return discovering.text(self.document)

    def write(self, path: str | Path) -> None:
        """Write the best one's extension file. Raises InputError where there is none, or the file cannot be written."""
        from . import discovering

        discovering.write(self.document, Path(path))


@dataclass(frozen=True)
class Hardware(Answer):
    """Instructions as hardware (docs/hardware.md)."""

    machine: str
    #: ``name``, ``module``, ``gates`` (a 2-input NAND is 1), an FPGA's cells, ``proved``; or why it was ``refused``.
    instructions: list[Row]
    #: Hand-written units that do several of them.
    units: list[Row]
    #: Verilog and test benches by the names of their files.
    files: Mapping[str, str] = field(repr=False)

    @property
    def right(self) -> bool:
        """No module was found to be another function than its semantics."""
        from . import hardware

        return hardware.right(self.document)

    def rows(self) -> list[Row]:
        from . import hardware

        return hardware.records(self.document)

    def __str__(self) -> str:
        from . import hardware

        return hardware.text(self.document)

    def write(self, folder: str | Path) -> None:
        """Write Verilog and test benches. Raises InputError where they cannot be written."""
        from . import hardware

        hardware.write(dict(self.files), Path(folder))


@dataclass(frozen=True)
class Sheet(Answer):
    """Tiny loops beside what others measured (docs/new-machine.md)."""

    machine: str
    #: ``name``, ``group``, ``expected`` and ``ours`` in cycles or counts, ``within`` what is accepted.
    loops: list[Row]

    @property
    def within(self) -> bool:
        """Every figure is as expected."""
        return all(row["within"] for row in self.loops)

    def rows(self) -> list[Row]:
        return self.loops

    def __str__(self) -> str:
        from . import sheets

        return sheets.text(self.document)


@dataclass(frozen=True)
class Assembly:
    """A program as assembly (docs/firmware.md)."""

    text: str
    #: For a linker: sections, symbols, no fixed addresses. None: for the addresses that its head says.
    firmware: Firmware | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.text

    def _relocatable(self, what: str) -> Firmware:
        if self.firmware is None:
            raise InputError(f"{what}: of relocatable assembly only; ask for it with relocatable=True")
        return self.firmware

    def object(self) -> bytes:
        """The ELF object file. Raises InputError for instructions that the assembler does not know."""
        return self._relocatable("object()").object()

    def header(self) -> str:
        """The C declarations. Raises InputError for a kernel, whose parameters only its own source declares."""
        return self._relocatable("header()").header()

    def write(self, path: str | Path) -> None:
        """Write it: what ends in ``.o`` as an object file, in ``.h`` as a header, anything else as text."""
        path = Path(path)
        match path.suffix:
            case ".o":
                content = self.object()
            case ".h":
                content = self.header().encode()
            case _:
                content = self.text.encode()
        try:
            paths.write_atomically(path, content)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
