"""Programs linked into C: object files and headers, run under QEMU against the official vectors."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import ROOT, XOR_CIPHER

import ciphermill as cm
from ciphermill.firmware import relocate, targets

EXAMPLE = ROOT / "docs" / "examples" / "firmware"
ZIG = (sys.executable, "-m", "ziglang", "cc")
FREE = ("-O1", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-nostdlib", "-static", "-Wall", "-Werror")

#: Machine: its emulator, a compiler for C beside the object, and where the linker puts code and data.
MACHINES = {
    "rv32": ("qemu-riscv32", (*ZIG, "-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m"), ()),
    "rv64": ("qemu-riscv64", ("riscv64-linux-gnu-gcc", "-march=rv64imac", "-mabi=lp64", "-mcmodel=medlow"), ("-Wl,-Ttext=0x1234000",)),
    "cortex-m4": ("qemu-arm", (*ZIG, "-target", "thumb-freestanding-eabi", "-mcpu=cortex_m4"), ()),
    "cortex-m0plus": ("qemu-arm", (*ZIG, "-target", "thumb-freestanding-eabi", "-mcpu=cortex_m0plus"), ()),
}  # fmt: skip


def ready(machine: str) -> None:
    emulator, compiler, _ = MACHINES[machine]
    if missing := [name for name in (emulator, compiler[0]) if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")


def done(*command: object, cwd: Path | None = None) -> str:
    answer = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=cwd, timeout=300, check=False)
    assert answer.returncode == 0, answer
    return answer.stdout


def array(name: str, data: str) -> str:
    return f"static const uint8_t {name}[] = {{{', '.join(map(str, bytes.fromhex(data) or bytes(1)))}}};"


def calling(cipher: str, variant: str, prefix: str) -> str:
    """A C program that checks vectors of a cipher and leaves with the number of the first that is wrong."""
    folder = ROOT / "ciphers" / cipher
    checks, data = [], []
    for file in sorted(folder.rglob("*.json")):
        found = json.loads(file.read_text())
        if found["kind"] not in ("block", "stream") or variant not in found.get("variants", [variant]):
            continue
        for v in found["vectors"][:: max(1, len(found["vectors"]) // 8)]:
            n = len(checks) + 1
            key = array(f"key{n}", v["key"])
            if found["kind"] == "block":
                data += [key, array(f"plain{n}", v["plaintext"]), array(f"coded{n}", v["ciphertext"])]
                size = len(v["plaintext"]) // 2
                # At an odd address, in place, and back.
                checks.append(f"""
    copy(buffer + 1, plain{n}, {size});
    {prefix}keysetup(&context, key{n}, sizeof key{n});
    {prefix}encrypt_blocks(&context, buffer + 1, buffer + 1, 1);
    if (differ(buffer + 1, coded{n}, {size})) leave({n});
    {prefix}keysetup_decrypt(&context, key{n}, sizeof key{n});
    {prefix}decrypt(&context, buffer + 1, buffer + 1);
    if (differ(buffer + 1, plain{n}, {size})) leave({n});""")
                continue
            chunk = v["chunks"][0]
            size = len(chunk["hex"]) // 2
            if "plaintext" in v or chunk["offset"] or size > 1024:
                continue
            data += [key, array(f"iv{n}", v.get("iv", "")), array(f"coded{n}", chunk["hex"])]
            # In two calls.
            checks.append(f"""
    clear(buffer, {size});
    {prefix}keysetup(&context, key{n}, sizeof key{n});
    {prefix}ivsetup(&context, iv{n}, {len(v.get("iv", "")) // 2});
    {prefix}keystream(&context, buffer, buffer, {size // 3});
    {prefix}keystream(&context, buffer + {size // 3}, buffer + {size // 3}, {size - size // 3});
    if (differ(buffer, coded{n}, {size})) leave({n});""")
    assert len(checks) > 2
    return f"""
#include "cipher.h"
void print(const char *text);
void leave(int code);
{chr(10).join(data)}
static {prefix}ctx context;
static uint8_t buffer[2048];
static void copy(uint8_t *to, const uint8_t *from, int n) {{ while (n--) to[n] = from[n]; }}
static void clear(uint8_t *to, int n) {{ while (n--) to[n] = 0; }}
static int differ(const uint8_t *a, const uint8_t *b, int n) {{ while (n--) if (a[n] != b[n]) return 1; return 0; }}
/* What the compiler makes of them. */
void *memset(void *to, int c, __SIZE_TYPE__ n) {{ for (uint8_t *p = to; n--;) *p++ = (uint8_t)c; return to; }}
void *memcpy(void *to, const void *from, __SIZE_TYPE__ n) {{ copy(to, from, (int)n); return to; }}
void begin(void) {{ (void)copy; (void)clear;{"".join(checks)}
    print("{len(checks)} right");
    leave(0);
}}
"""


@pytest.mark.parametrize(
    ("machine", "cipher", "variant"),
    [
        ("rv32", "rijndael", "ttable"), ("rv32", "chacha20", None), ("rv64", "rijndael", "compact"),
        ("cortex-m4", "rijndael", "ttable"), ("cortex-m4", "chacha20", None), ("cortex-m0plus", "rijndael", "compact"),
    ],
)  # fmt: skip
def test_official_vectors_in_a_c_program(tmp_path, machine, cipher, variant):
    ready(machine)
    emulator, compiler, place = MACHINES[machine]
    made = cm.asm(cipher, machine, variant=variant, relocatable=True, prefix="my_")
    made.write(tmp_path / "cipher.o")
    made.write(tmp_path / "cipher.h")
    (tmp_path / "main.c").write_text(calling(cipher, made.firmware.module.variant.name, "my_"))
    done(*compiler, *FREE, *place, "-I.", "main.c", EXAMPLE / "start.c", "cipher.o", "-o", "program", cwd=tmp_path)
    assert re.fullmatch(r"\d+ right", done(emulator, "./program", cwd=tmp_path))


@pytest.mark.parametrize("machine", ["rv32", "cortex-m4"])
def test_the_example(tmp_path, machine):
    ready(machine)
    if shutil.which("make") is None:
        pytest.skip("not installed: make")
    said = done("make", "-s", "run", f"MACHINE={machine}", f"PYTHON={sys.executable}", f"BUILD={tmp_path}",
                f"CIPHERMILL={sys.executable} -m ciphermill", cwd=EXAMPLE)  # fmt: skip
    assert said == "AES-128: right\n"


def test_text_object_and_header(cli, tmp_path):
    answer = cli(
        "asm", "rijndael", "--on", "rv32", "--object", "aes.o", "--header", "aes.h", "--prefix", "aes_", "-o", "aes.s"
    )
    assert (answer.code, answer.out) == (0, ""), answer
    text, header = (tmp_path / "aes.s").read_text(), (tmp_path / "aes.h").read_text()
    assert "\tlui" in text and "cm_" not in text.replace("cm_global", "") and "Link .text at" not in text
    # No number of the code is an address of where it was compiled.
    assert not re.search(r"%hi\(\d", text) and "%hi(aes_tables)" in text
    sections = set(re.findall(r"\t\.section ([^,\s]+),", text))
    assert {".text.aes_encrypt", ".rodata.aes_tables"} <= sections
    for name in re.findall(r"\t\.globl (\w+)", text):
        assert f"\t.size {name}, . - {name}\n" in text and f"\t.type {name}, @function\n" in text
    assert (tmp_path / "aes.o").read_bytes()[:6] == b"\x7fELF\x01\x01"
    assert "#define AES_BLOCK_BYTES 16\n#define AES_KEY_BYTES 32 /* or 16, 24 */" in header
    assert "void aes_encrypt(const aes_ctx *ctx, const uint8_t *in, uint8_t *out);" in header
    assert (
        header.startswith("/* rijndael, variant ttable") and header.endswith("#endif\n") and "#ifndef AES_H" in header
    )
    free = ("-target", "riscv32-freestanding-none", "-Wall", "-Werror")
    for language in ("c", "c++"):
        done(*ZIG, *free, "-c", "-x", language, tmp_path / "aes.h", "-o", tmp_path / "header.o")
    # Without a file for it the text is printed; the same bytes each time.
    assert cli("asm", "rijndael", "--on", "rv32", "--relocatable", "--prefix", "aes_").out == text


def test_on_arm_tables_are_named_by_halves():
    text = cm.asm("rijndael", "cortex-m4", relocatable=True).text
    lows, highs = (
        re.findall(rf"\t{m} (\w+), #:{part}16:(\w+)", text) for m, part in (("movw", "lower"), ("movt", "upper"))
    )
    assert len(lows) == len(highs) > 10 and set(lows) == set(highs)
    assert "\t.type rijndael_encrypt, %function" in text and "\t.balign 64\n\t.type rijndael_tables, %object" in text


PLACES = (relocate.Place(1232896, 1495040), relocate.Place(1417216, 1810432))


def test_what_is_no_address_stays():
    """The same number in both programs is none, whatever its value."""
    one = ["\t.text", "f:", "\tlui a0, %hi(1495040)", "\tlui a1, %hi(1499136)", '\t.section .cm_linear,"aw"']
    other = [*one[:3], "\tlui a1, %hi(1814528)", one[4]]
    rv32 = targets.of("rv32")
    found = relocate.relocated("\n".join(one), "\n".join(other), PLACES, rv32)
    assert found == ["f:", one[2], relocate.Address("\tlui a1, %hi(", 4096, ")")]
    # Moved by something else than the data: another program.
    other[3] = "\tlui a1, %hi(1818624)"
    assert relocate.relocated("\n".join(one), "\n".join(other), PLACES, rv32) is None
    # With C's stack.
    on_stack = [[line.replace("1499136", str(place.stack)) for line in one] for place in PLACES]
    with pytest.raises(relocate.OnStack):
        relocate.relocated(*("\n".join(lines) for lines in on_stack), PLACES, rv32)
    # Another instruction; another length.
    other[3] = "\tauipc a1, %hi(1814528)"
    assert relocate.relocated("\n".join(one), "\n".join(other), PLACES, rv32) is None
    assert relocate.relocated("\n".join(one), "\n".join(one[1:]).replace("f:", "\t.text"), PLACES, rv32) is None


def test_halves_that_do_not_belong_together_are_not_taken():
    m4 = targets.of("cortex-m4")
    head, tail = ["\t.text", "f:"], ['\t.section .cm_linear,"aw"']

    def halves(at: int, between: str) -> str:
        return "\n".join([*head, f"\tmovw r1, #{at & 0xFFFF}", between, f"\tmovt r1, #{at >> 16}", *tail])

    places = (relocate.Place(0x12D040, 0x16D040), relocate.Place(0x15A980, 0x1BA980))
    data, stack = [place.data for place in places], [place.stack for place in places]
    taken = relocate.relocated(*(halves(at + 8, "\tmov r2, r3") for at in data), places, m4)
    assert taken and taken[1] == relocate.Address("\tmovw r1, #:lower16:", 8, "")
    assert relocate.relocated(*(halves(at + 8, "\tmov r1, r3") for at in data), places, m4) is None
    assert relocate.relocated(*(halves(at + 8, ".L0_1:") for at in data), places, m4) is None
    with pytest.raises(relocate.OnStack):
        relocate.relocated(*(halves(at - 16, "\tmov r2, r3") for at in stack), places, m4)


#: An array of which nobody knows which byte is written.
C_STACK = XOR_CIPHER.replace(
    "{ for (int i = 0; i < 16; i++) out[i] = in[i] ^ ctx->key[i]; }",
    "{ uint8_t a[16] = {0}; for (int i = 0; i < 16; i++) a[in[i] & 15] ^= in[i]; for (int i = 0; i < 16; i++) out[i] = a[i] ^ ctx->key[i]; }",
)
assert C_STACK != XOR_CIPHER


def test_what_cannot_be_linked(refused, write, tmp_path):
    assert "no object is made for it" in refused("asm", "rijndael", "--on", "leon2", "--object", "x.o")
    assert "names are as in the C interface" in refused("asm", "rijndael", "--on", "rv32", "--prefix", "x_")
    assert "--prefix 1x: C's names begin so" in refused(
        "asm", "rijndael", "--on", "rv32", "--header", "x.h", "--prefix", "1x"
    )
    assert "there is no folder" in refused("asm", "rijndael", "--on", "rv32", "--object", "nowhere/x.o")
    assert "--static: " in refused("asm", "rijndael", "--on", "rv32", "--relocatable", "--static")
    write("stack.c", C_STACK)
    assert "arrays on C's own stack" in refused("asm", "stack.c", "--on", "rv32", "--object", "x.o")
    assert "arrays on C's own stack" in refused("asm", "stack.c", "--on", "cortex-m4", "--object", "x.o")
    assert "memory at a fixed address" in refused(
        "asm", "ascon", "--variant", "aead", "--on", "cortex-m4", "--object", "x.o"
    )
    # Nothing is written where something is refused.
    assert not list(tmp_path.glob("*.o"))


def test_a_module_without_its_c(refused, write):
    from ciphermill import engine, manifest

    wasm = engine.module(manifest.find("rijndael")).wasm
    assert "a .wasm says nothing of which" in refused("asm", write("aes.wasm", wasm), "--on", "rv32", "--relocatable")


def test_assembly_of_fixed_addresses_has_no_object():
    made = cm.asm("chacha20", "rv32")
    assert "Link .text at" in made.text == str(made) and made.firmware is None
    with pytest.raises(cm.InputError, match="relocatable=True"):
        made.object()
