"""Bringing a cipher: the skeleton, and what is said when foreign C does not fit."""

from __future__ import annotations

import json

import pytest
from samples import XOR_CIPHER

import ciphermill as cm

DIRECTIONS = {
    "block": ("encrypt", "decrypt", "keysetup"), "stream": ("keystream", "keysetup"), "permutation": ("permute",), "hash": ("hash",),
    "mac": ("mac", "keysetup"), "aead": ("encrypt", "decrypt", "authenticate", "keysetup"), "kernel": ("run",),
}  # fmt: skip


@pytest.mark.parametrize("kind", DIRECTIONS)
def test_a_skeleton_runs_as_it_is(cli, tmp_path, kind):
    answer = cli("new", "my-cipher", "--kind", kind, "--into", tmp_path)
    assert answer.code == 0, answer
    folder = tmp_path / "my-cipher"
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == [
        "README.md", "cipher.toml", "my_cipher.c", "vectors/example.json",
    ]  # fmt: skip
    assert not any("@" in p.read_text() for p in folder.rglob("*") if p.is_file())
    for direction in DIRECTIONS[kind]:
        answer = cli("run", folder / "cipher.toml", "--on", "rv32,leon2", "--direction", direction, "--json")
        assert answer.code == 0, answer
        for m in json.loads(answer.out)["measurements"]:
            assert m["verified"] is True
            assert m["constant_time"] is True and m["provenance"]["vectors"] == 1


@pytest.mark.parametrize("kind", DIRECTIONS)
def test_a_skeletons_vector_is_checked(cli, tmp_path, kind):
    assert cli("new", "mine", "--kind", kind, "--into", tmp_path).code == 0
    source = tmp_path / "mine" / "mine.c"
    source.write_text(source.read_text().replace(", 7)", ", 8)"))
    answer = cli("run", tmp_path / "mine" / "cipher.toml", "--on", "rv32")
    assert answer.code != 0 and "example.json" in answer.err


def test_nothing_is_overwritten(cli, refused, tmp_path):
    assert cli("new", "mine", "--into", tmp_path).code == 0
    (tmp_path / "mine" / "mine.c").write_text("precious")
    assert "nothing is overwritten" in refused("new", "mine", "--into", tmp_path)
    assert (tmp_path / "mine" / "mine.c").read_text() == "precious"


@pytest.mark.parametrize(
    "arguments, mend",
    [
        (("My Cipher",), "for instance my-cipher"),
        (("../evil",), "for instance evil"),
        (("",), "lower-case letter"),
        (("rijndael",), "my-rijndael"),
        (("mine", "--kind", "blok"), "did you mean 'block'?"),
        (("mine", "--into", "/no/such/folder"), "make it first"),
    ],
)
def test_what_is_refused_says_what_to_do(refused, arguments, mend):
    assert mend in refused("new", *arguments)


FOREIGN = XOR_CIPHER.replace("{ cm_encrypt(ctx, in, out); }", "{ foreign(out, in, 16); cm_encrypt(ctx, out, out); }")


def test_string_h_is_there(cli, write):
    source = write(
        "lib.c",
        "#include <string.h>\n#include <stdlib.h>\n#include <stdio.h>\n#include <assert.h>\n"
        + FOREIGN.replace("foreign(", "assert(memcmp(in, in, 16) == 0); memmove(").replace(
            "#include <ciphermill.h>", ""
        ),
    )
    for direction in ("encrypt", "decrypt"):
        answer = cli("run", source, "--on", "rv32", "--direction", direction, "--json")
        assert answer.code == 0, answer


@pytest.mark.parametrize(
    "declaration, used, mend",
    [
        ("void *memcpy(void *, const void *, size_t);", "memcpy", "include <string.h>"),
        ("void *calloc(void *, const void *, size_t);", "calloc", "keep what the cipher allocates in struct cm_ctx"),
        ("void zeromem(void *, const void *, size_t);", "zeromem", "name every C file it needs"),
        ('int printf(const char *, ...);\n#define printf(a, b, c) printf("%u", c)', "printf", "nothing can be printed"),
    ],
)
def test_a_function_nobody_defines(refused, write, declaration, used, mend):
    text = FOREIGN.replace("struct cm_ctx {", f"{declaration}\nstruct cm_ctx {{", 1).replace("foreign(", f"{used}(")
    message = refused("run", write("lib.c", text), "--on", "rv32")
    assert message.count(f"lib.c uses {used}, which no source defines") == 1
    assert mend in message and ".o:" not in message


def test_headers_of_habit(write):
    """What published C includes and calls in passing, and debugging lines that nobody reaches."""
    source = write(
        "habit.c",
        """
#include <alloca.h>
#include <byteswap.h>
#include <ctype.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/types.h>
static void dump(u_int32_t x) { printf("%08" PRIx32 "\\n", x); }
static void whole(const uint8_t *in, uint8_t *out)
{
    char text[16];
    uint8_t *p = alloca((size_t)(in[0] & 3) + 8);
    strcpy(text, "ab");
    strcat(text, "cD");
    bzero(p, 8);
    p[0] = (uint8_t)(abs((int)in[1] - 200) + isdigit(in[2]) + toupper(text[3]) + (memchr(in, 7, 16) != NULL));
    p[1] = (uint8_t)(strcmp(text, "abcD") + 2 * strncmp("ax", text, 1) + tolower('Q'));
    for (int i = 2; i < 16; i++)
        out[i] = in[i];
    out[0] = p[0], out[1] = p[1];
    if (be32toh(bswap_32((u_int32_t)in[3])) != in[3])
        dump(in[3]), exit(EXIT_FAILURE);
    explicit_bzero(p, 8);
}
"""
        + XOR_CIPHER.replace("{ cm_encrypt(ctx, in, out); }", "{ whole(in, out); (void)ctx; }"),
    )
    data = bytes([1, 30, ord("5"), 9, 7, *range(11)])
    expected = bytes([170 + 1 + ord("D") + 1, ord("q")]) + data[2:]
    assert cm.cipher(source).decrypt(bytes(16), data) == expected
    assert cm.run(source, on="leon2", direction="decrypt", bytes=64).verified


@pytest.mark.parametrize(
    "line", ["#include <emmintrin.h>", 'static void f(void) { __asm__("roll $3, %eax"); }\nvoid (*g)(void) = f;']
)
def test_code_for_one_processor(refused, write, line):
    message = refused("run", write("a.c", line + "\n" + XOR_CIPHER), "--on", "rv32")
    assert message.endswith("take the portable C, usually by a macro in flags")
    assert message.count("\n") < 8


def test_a_function_no_header_has(refused, write):
    source = write(
        "a.c", "#include <stdlib.h>\n" + XOR_CIPHER.replace("out[i] = in[i]", "qsort(out, 1, 1, 0), out[i] = in[i]")
    )
    assert "no header here declares qsort; define it in a source" in refused("run", source, "--on", "rv32")


def test_a_header_that_is_not_there(refused, write):
    assert "no <unistd.h>" in refused("run", write("a.c", "#include <unistd.h>\n" + XOR_CIPHER))
    assert 'flags = ["-I' in refused("run", write("b.c", '#include "tables.h"\n' + XOR_CIPHER))


NAMED = """\
name = "foreign"
kind = "block"
block_bytes = 16
key_bits = [128]
[variants.wasm]
sources = ["foreign.wasm"]
[variants.wasm.exports]
"""


def test_a_module_with_names_of_its_own(cli, refused, write, xor_cipher):
    from ciphermill import engine, manifest

    wasm = engine.module(manifest.find(str(xor_cipher))).wasm
    # The same length, so that the file stays a module.
    write("foreign.wasm", wasm.replace(b"cm_keysetup\x00", b"my_keysetup\x00"))
    path = write("foreign.toml", NAMED + 'cm_keysetup = "my_keysetup"\n')
    answer = cli("run", path, "--on", "rv32", "--json")
    assert answer.code == 0, answer
    write("foreign.toml", NAMED)
    assert "does not export cm_keysetup" in refused("run", path, "--on", "rv32")
    write("foreign.toml", NAMED + 'cm_keysetup = "my_setup"\n')
    assert "exports no 'my_setup'; it exports" in refused("run", path, "--on", "rv32")
