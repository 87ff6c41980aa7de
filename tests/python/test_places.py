"""Where a cipher's code is wrong: told by the user's own functions and lines, with the calls that led there."""

from __future__ import annotations

import pytest
from samples import XOR_CIPHER

from ciphermill.engine import module
from ciphermill.manifest import find

#: One that crashes three calls deep, all of which a compiler puts into the driver.
DEEP = """\
#include "ciphermill.h"
struct cm_ctx { uint8_t key[16]; };
void cm_keysetup(struct cm_ctx *ctx, const uint8_t *key, uint32_t n)
{ for (uint32_t i = 0; i < 16; i++) ctx->key[i] = key[i % n]; }
static uint8_t sub(const uint8_t *table, uint32_t x, uint32_t zero)
{
    return CRASH;
}
static void round(const struct cm_ctx *ctx, uint8_t *out, const uint8_t *in)
{
    for (int i = 0; i < 16; i++)
        out[i] = sub((const uint8_t *)0x40000000, in[i], ctx->key[i] >> 8);
}
void cm_encrypt(const struct cm_ctx *ctx, const uint8_t *in, uint8_t *out)
{
    round(ctx, out, in);
}
CM_BLOCK_CIPHER(16)
"""


@pytest.mark.parametrize(
    ("crash", "what"),
    [
        ("table[x]", "an access outside of memory"),
        ("x / *(volatile uint32_t *)(table - 0x40000000 + 70000)", "a division by zero"),
        ("(zero == 0 ? __builtin_trap() : (void)0, x)", "an unreachable place was reached (abort, a failed assertion, undefined behaviour)"),
    ],
)  # fmt: skip
def test_a_crash_names_line_function_and_calls(refused, write, crash, what):
    write("x.c", DEEP.replace("CRASH", crash))
    lines = refused("run", "x.c", "--on", "rv32").splitlines()
    assert lines[0] == f"x.c:7: sub: {what}, when cm_encrypt_blocks ran on the reference interpreter"
    assert lines[1].strip() == f"return {crash};"
    assert lines[2:5] == [
        "  called from round at x.c:12",
        "  called from cm_encrypt at x.c:16",
        "  called from cm_encrypt_blocks at x.c:18",
    ]


def test_recursion_without_an_end_is_told_in_a_few_lines(refused, write):
    deep = "__attribute__((noinline)) static uint8_t again(volatile uint8_t *x)\n{\n    uint8_t y[16] = {x[1]};\n    return again(y) + y[0];\n}\n"
    write(
        "x.c",
        XOR_CIPHER.replace("void cm_encrypt(", f"{deep}void cm_encrypt(").replace(
            "out[i] = in[i]", "out[i] = again(out)"
        ),
    )
    message = refused("run", "x.c", "--on", "rv32")
    assert message.startswith("x.c:") and ": again: " in message.splitlines()[0]
    assert "calls more" in message.splitlines()[-1] and len(message.splitlines()) < 20


def test_a_crash_under_a_vector_and_from_python(write):
    import ciphermill as cm

    cipher = cm.cipher(write("x.c", DEEP.replace("CRASH", "table[x]")))
    with pytest.raises(cm.InputError, match=r"x\.c:7: sub: an access outside of memory"):
        cipher.encrypt(bytes(16), bytes(16))


def test_a_module_is_told_by_functions_and_offsets(refused, write, tmp_path):
    source = write("x.c", DEEP.replace("CRASH", "table[x]"))
    (tmp_path / "x.wasm").write_bytes(module(find(str(source))).wasm)
    message = refused("run", "x.wasm", "--on", "rv32")
    assert message.startswith('function "cm_encrypt') and " at offset 0x" in message


def test_only_a_message_takes_a_compilation_with_debugging_information(monkeypatch, write):
    from ciphermill import compile, engine, places

    flags = []
    real = compile.module
    monkeypatch.setattr(compile, "module", lambda unit, cc="zig": flags.append(unit.flags) or real(unit, cc))
    engine.measure(engine.module(find(str(write("x.c", XOR_CIPHER)))), "rv32", engine.Options(bytes=64))
    assert flags == [()]
    with pytest.raises(engine._core.InputError):
        engine.measure(
            engine.module(find(str(write("y.c", DEEP.replace("CRASH", "table[x]"))))), "rv32", engine.Options()
        )
    assert flags == [(), (), places.DEBUG]


@pytest.mark.parametrize("command", [("run", "--on", "rv32"), ("audit",)])
def test_floating_point_by_line(refused, write, command):
    half = "static uint32_t half(uint32_t x)\n{\n    return (uint32_t)(x * 0.7f);\n}\n"
    write(
        "x.c",
        XOR_CIPHER.replace("void cm_encrypt(", f"{half}void cm_encrypt(").replace(
            "out[i] = in[i]", "out[i] = half(in[i])"
        ),
    )
    lines = refused(command[0], "x.c", *command[1:]).splitlines()
    assert lines[0].startswith("x.c:8: half: f32.") and lines[0].endswith(
        " is a floating-point operator; ciphermill takes integer code only"
    )
    assert lines[1].strip() == "return (uint32_t)(x * 0.7f);" and "called from cm_encrypt at x.c:" in lines[2]
