"""Lines of code for every form of every instruction, good and bad.

The tests hold the table against GNU as with them: what one takes, the other
must take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .table import ACCESS, FORMS, MACHINES, Form

#: Constants at and beyond the ends of what a code allows, on either machine.
EDGES = {
    "k": (-17, -16, 15, 16),
    "g": (-17, -16, -15, 15, 16, 17),
    "u": (-1, 0, 31, 32),
    "w": (-1, 0, 15, 16, 31, 32),
    "c": (-32769, -32768, 32767, 32768),
    "3": (-1, 0, 7, 8),
    "9": (0, 1, 9, 10),
}
MIDDLE = {"k": -7, "g": 7, "u": 9, "w": 3, "c": -1234, "v": 0x12345678, "h": 0x12345678, "3": 3, "9": 5, "a": "start"}
NEAR = ("addkpc", "bdec", "bpos", "bnop")


def line(form: Form, side: int, cross: bool = False, path: int = 0, constants: dict | None = None, address: str = ""):
    """One line; `constants` gives the text of operands by their place."""
    texts, number = [], 4
    for place, code in enumerate(form.codes):
        file = {1: "a", 2: "b"}[path if code in "ty" else 3 - side if code == "x" and cross else side]
        if constants and place in constants:
            texts.append(str(constants[place]))
        elif code in MIDDLE:
            texts.append(str(MIDDLE[code]))
        elif code in "mn":
            texts.append(address or f"*+{file}12[3]")
        elif code == "C":
            texts.append("amr")
        elif code in "lLDy":
            texts.append(f"{file}{number + 1}:{file}{number}")
        else:
            texts.append(f"{file}{number}")
        number = (number + 2) % 12 + 4 * (number > 9)
    unit = f".{form.unit}{side}{'x' * cross}{f't{path}' if path else ''} " if form.unit else ""
    return f"{form.mnemonic} {unit}{', '.join(texts)}".rstrip()


def marks(form: Form) -> Iterator[dict]:
    """Sides with cross mark or data path, whether or not the form allows them."""
    for side in (1, 2):
        if form.mnemonic in ACCESS:
            yield from ({"side": side, "path": path} for path in (1, 2))
        else:
            yield {"side": side}
            yield {"side": side, "cross": True}


def every_form(machine: str) -> list[str]:
    """Each form of the machine once for each side and mark that it allows."""
    found = []
    for form in (form for forms in FORMS.values() for form in forms):
        if form.isa > MACHINES[machine]:
            continue
        for mark in marks(form) if form.unit else [{"side": 1}]:
            only_b = form.mnemonic in ("mvc", "addkpc") or (form.mnemonic in ("b", "bnop") and form.codes[0] == "x")
            if (mark.get("cross") and not form.crosses) or (only_b and mark["side"] == 1):
                continue
            found.append(line(form, **mark))
    return near_first(found)


def every_unit() -> list[str]:
    """Each form on each unit with each mark, most of them wrong."""
    found = []
    for form in (form for forms in FORMS.values() for form in forms if form.unit):
        for unit in "lsmd":
            found += [line(replace(form, unit=unit), **mark) for mark in marks(form)]
    return near_first(sorted(set(found)))


def every_edge() -> list[str]:
    found = []
    for form in (form for forms in FORMS.values() for form in forms):
        path = 2 * (form.mnemonic in ACCESS)
        for place, code in enumerate(form.codes):
            found += [line(form, 2, path=path, constants={place: value}) for value in EDGES.get(code, ())]
    return near_first(sorted(set(found)))


def every_address() -> list[str]:
    """Loads and stores with every address mode and offset of interest."""
    offsets = [f"({n})" for n in (0, 1, 2, 4, 7, 8, 12, 31, 62, 124, 128, 248, 256)]
    offsets += [f"[{n}]" for n in (-1, 0, 1, 31, 32)]
    found = []
    for form in (form for forms in FORMS.values() for form in forms if form.mnemonic in ACCESS):
        for offset in ["", *offsets, "[{}5]", "({}5)", "[{}7]"]:
            for mode in ("*{}4", "*+{}4", "*-{}4", "*++{}4", "*--{}4", "*{}4++", "*{}4--"):
                for side, file in ((1, "a"), (2, "b")):
                    found.append(line(form, side, path=2, address=(mode + offset).format(file, file)))
        for address in ("*+b15[32]", "*+b15[32767]", "*+b14[32768]", "*-b15[32]", "*b15++[32]", "*+b15(32767)"):
            found.append(line(form, 2, path=1, address=address))
        found += [line(form, 1, path=1, address=address) for address in ("*+a15[32]", "*+b14[32]", "*+a4[b5]", "*b4")]
    return sorted(set(found))


def near_first(lines: list[str]) -> list[str]:
    """What reaches only near labels stands near the one label there is."""
    return sorted(lines, key=lambda text: not text.startswith(NEAR))


def program(lines: list[str]) -> str:
    """A packet for each line, the label `start` before the first."""
    return "\t.text\nstart:\n" + "".join(f"\t{text}\n" for text in lines)
