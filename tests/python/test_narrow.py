"""Tables and matrices on machines of 8 and 16 bits: instructions for single words and for all words of a value."""

from __future__ import annotations

import pytest

from ciphermill import engine, manifest

BYTE = """\
[extension]
name = "byte"
title = "A byte through the S-box of AES"
for = ["avr"]
[instructions]
source = "a test"
subbyte = { format = "rr", timing = "alu", semantics = "rd = box[rs]" }
[tables.box]
bits = 8
polynomial = 0x11b
formula = "inverse ^ rotl8(inverse, 1) ^ rotl8(inverse, 2) ^ rotl8(inverse, 3) ^ rotl8(inverse, 4) ^ 0x63"
source = "FIPS 197, 5.1.1"
"""

#: Both words of a column at once, and one after the other.
COLUMN = """\
[extension]
name = "column"
title = "MixColumns on the two words of a column"
for = ["msp430"]
[formats.column]
operands = {{ b0 = "r", b1 = "r", a0 = "r", a1 = "r" }}
asm = "{{name}} {{a0}}, {{a1}}, {{b0}}, {{b1}}"
bytes = 4
source = "a test"
{formats}[instructions]
source = "a test"
{instructions}
[matrices.mix]
polynomial = 0x11b
rows = ["2 3 1 1", "1 2 3 1", "1 1 2 3", "3 1 1 2"]
source = "FIPS 197, 5.1.3"
"""
WHOLE = "let p = linear(mix, a0 | (a1 << 16)); b0 = p; b1 = p >>u 16"
AT_ONCE = COLUMN.format(
    formats="", instructions=f'column = {{ format = "column", timing = "rr", semantics = "{WHOLE}" }}'
)
APART = COLUMN.format(
    formats="""\
[formats.word]
operands = { rd = "r", a0 = "r", a1 = "r" }
asm = "{name} {a0}, {a1}, {rd}"
bytes = 4
source = "a test"
""",
    instructions=f"""\
lower = {{ format = "word", timing = "rr", selectable = false, semantics = "rd = linear(mix, a0 | (a1 << 16))" }}
upper = {{ format = "word", timing = "rr", selectable = false, semantics = "rd = linear(mix, a0 | (a1 << 16)) >>u 16" }}
[compounds.column]
format = "column"
semantics = "{WHOLE}"
parts = ["lower $0, a0, a1", "upper b1, a0, a1", "mov b0, $0"]
""",
)


@pytest.mark.parametrize(
    ("machine", "extension", "uses"),
    [
        # 16 bytes a round, and as many in the last one.
        ("avr", BYTE, {"subbyte": 32}),
        ("msp430", AT_ONCE, {"column": 4}),
        ("msp430", APART, {"lower": 4, "upper": 4}),
    ],
)
def test_they_are_found(write, machine, extension, uses):
    module = engine.module(manifest.find("rijndael"), "compact")
    options = engine.Options(key_bits=128, bytes=64, unroll=False, with_=[str(write("own.toml", extension))])
    text = engine.assembly(module, machine, options).split("\ncm_encrypt:")[1].split("\ncm_decrypt:")[0]
    assert {name: text.count(f"\t{name} ") for name in uses} == uses
    measurement = engine.measure(module, machine, options)
    assert measurement.verified, measurement.failure
