"""Which ciphers let their secrets decide branches and addresses, and where."""

from __future__ import annotations

import json
import re

import pytest
from samples import XOR_CIPHER

CLEAN = [
    ("rijndael", "bitsliced"), ("chacha20", "r20"), ("salsa20", "r20"), ("rc6", "plain"), ("ascon", "plain"),
    ("serpent", "plain"), ("rabbit", "plain"), ("present", "sliced"),
]  # fmt: skip
NOT_CLEAN = [
    ("rijndael", "ttable"), ("rijndael", "compact"), ("rijndael", "sbox-only"), ("twofish", "full-keying"),
    ("sosemanuk", "branching"), ("sosemanuk", "branchless"), ("mars", "plain"), ("hc128", "plain"), ("sm4", "ttable"),
]  # fmt: skip


def audit(cipher, variant=None):
    from ciphermill import auditing as audit
    from ciphermill import manifest

    return audit.run(manifest.find(str(cipher)), variant)


@pytest.mark.parametrize("cipher, variant", CLEAN)
def test_clean(cipher, variant):
    answer = audit(cipher, variant)
    assert answer["clean"] and answer["findings"] == []
    assert answer["reached"] >= 0.9 * answer["sites"] > 0


@pytest.mark.parametrize("cipher, variant", NOT_CLEAN)
def test_not_clean(cipher, variant):
    answer = audit(cipher, variant)
    assert not answer["clean"]
    # Code that the compiler made of several lines has none (hc128's lookups).
    placed = [f for f in answer["findings"] if f["file"] is not None]
    assert placed and (len(placed) == len(answer["findings"]) or cipher == "hc128")
    for finding in placed:
        assert finding["file"].endswith((".c", ".h")) and finding["line"] > 0 and finding["text"]
    branches = [f for f in answer["findings"] if f["kind"] == "branch"]
    assert bool(branches) == (variant == "branching")


def test_the_branch_of_sosemanuk_by_line():
    [branch] = [f for f in audit("sosemanuk", "branching")["findings"] if f["kind"] == "branch"]
    assert branch["text"] == "if (r1 & 1) {" and branch["function"] == "xor_block"


def test_the_manifests_promise_is_kept():
    from ciphermill import manifest

    for cipher in map(manifest.find, manifest.names()):
        for variant in cipher.variants.values():
            if variant.constant_time is not None:
                assert audit(cipher.name, variant.name)["clean"] == variant.constant_time, (cipher.name, variant.name)


def test_debugging_information_changes_no_code(xor_cipher):
    from dataclasses import replace

    from ciphermill import engine, manifest, places

    def code(flags):
        cipher = manifest.find("rijndael")
        variant = replace(cipher.variants["ttable"], flags=flags)
        wasm = engine.module(replace(cipher, variants={"ttable": variant}), "ttable").wasm
        at, sections = 8, {}
        while at < len(wasm):
            kind, size, shift, at = wasm[at], 0, 0, at + 1
            while True:
                byte, at = wasm[at], at + 1
                size, shift = size | (byte & 127) << shift, shift + 7
                if byte < 128:
                    break
            sections[kind], at = wasm[at : at + size], at + size
        return sections[10]

    assert code(()) == code(places.DEBUG)


def test_a_leak_of_the_users_own(cli, write):
    leak = XOR_CIPHER.replace("out[i] = in[i] ^", "out[i] = (in[i] == 7 ? *(volatile uint8_t *)(in + 1) : in[i]) ^")
    path = write("leak.c", leak)
    answer = cli("audit", path)
    assert answer.code == 0 and "is not clean" in answer.out and "leak.c:7" in answer.out
    assert cli("audit", path, "--strict").code == 1
    document = json.loads(cli("audit", path, "--json").out)
    assert document["clean"] is False and {f["kind"] for f in document["findings"]} == {"branch"}


def test_in_words(cli, refused, xor_cipher):
    answer = cli("audit", xor_cipher, "--strict")
    assert answer.code == 0, answer
    assert answer.out.startswith(
        "mine/default is clean as a module: no branch, address or division depends on key or message.\n"
    )
    # What it says nothing of, it says.
    assert "the WebAssembly module only" in answer.out and "ask with --on MACHINE" in answer.out
    assert "no variant 'tabel'" in refused("audit", "rijndael", "--variant", "tabel")


def test_one_key_size(cli, refused, write):
    # Only a key of more than 24 bytes has a byte that decides.
    leak = XOR_CIPHER.replace(
        "{ for", "{ if (n > 24 && key[24] == 7) ctx->key[0] = *(volatile const uint8_t *)key;\n  for", 1
    )
    path = write("long.c", leak)

    def verdict(bits):
        document = json.loads(cli("audit", path, "--key-bits", bits, "--json").out)
        assert document["key_bits"] == [bits]
        return document["clean"]

    assert [verdict(bits) for bits in (128, 192, 200, 256)] == [True, True, False, False]
    assert "keys of 192 bits" in cli("audit", path, "--key-bits", 192).out
    assert json.loads(cli("audit", "rc6", "--key-bits", 256, "--json").out)["key_bits"] == [256]
    assert refused("audit", "rc6", "--key-bits", 100) == "rc6 has no 100-bit keys; it has 128, 192 or 256 bits"
    assert refused("audit", path, "--key-bits", 0).startswith("a key of 0 bits: it must be a multiple of 8")


def test_a_module_without_line_tables(cli, xor_cipher, tmp_path):
    from ciphermill import engine, manifest

    source = tmp_path / "t.c"
    source.write_text(XOR_CIPHER.replace("in[i] ^", "in[in[i] & 15] ^"))
    (tmp_path / "t.wasm").write_bytes(engine.module(manifest.find(str(source))).wasm)
    answer = cli("audit", tmp_path / "t.wasm")
    assert answer.code == 0 and "module offset 0x" in answer.out


# --------------------------------------------------------------------------- machine code

#: A select in WebAssembly, on a byte of message and key.
SELECT = XOR_CIPHER.replace(
    "out[i] = in[i] ^ ctx->key[i]; }",
    """{
  uint32_t x = in[i] ^ ctx->key[i], y = 3 * x + 77;
  out[i] = (uint8_t)(x > 100 ? x : y); } }""",
)
DIVIDES = XOR_CIPHER.replace("in[i] ^ ctx->key[i]", "(uint8_t)(1000000u / (in[i] | 1u) ^ ctx->key[i])")
LOOKS_UP = XOR_CIPHER.replace("in[i] ^ ctx->key[i]", "in[in[i] & 15] ^ ctx->key[i]")


def on(path, *machines, **options):
    from ciphermill import auditing as audit
    from ciphermill import engine, manifest

    answer = audit.on_machines(manifest.find(str(path)), None, machines, engine.Options(**options))
    return {one["machine"]: {f["kind"] for f in one["findings"]} for one in answer["audits"]}


def claiming(write, source, says="true"):
    write("cipher.c", source)
    return write(
        "cipher.toml",
        f"""
name = "mine"
title = "Mine"
year = 2024
kind = "block"
block_bytes = 16
key_bits = [128]
iv_bits = []
default_variant = "plain"
vectors = []
[variants.plain]
sources = ["cipher.c"]
trades = ""
constant_time = {says}
""",
    )


def test_a_select_is_a_branch_where_the_code_generator_makes_one(cli, write):
    path = write("select.c", SELECT)
    module = json.loads(cli("audit", path, "--strict", "--json").out)
    assert module["clean"] and module["scope"] == "module" and "WebAssembly module only" in module["not_looked_at"]
    answer = cli("audit", path, "--on", "core2", "--strict", "--json")
    document = json.loads(answer.out)
    assert answer.code == 1 and not document["clean"] and document["scope"] == "machine"
    [core2] = document["audits"]
    [finding] = core2["findings"]
    assert (finding["kind"], finding["function"]) == ("branch", "cm_encrypt_blocks")
    # The comparison's line: that of the selection, or of what it compares.
    assert finding["line"] in (8, 9) and finding["file"].endswith("select.c")
    assert finding["names"] and finding["names"][0].startswith("j") and finding["times"] > 0
    assert (core2["machine"], core2["direction"], core2["blocks"], core2["key_bits"]) == (
        "core2",
        "encrypt",
        "multi",
        128,
    )
    assert 4096 in core2["bytes"] and core2["reached"] == core2["sites"] > 0
    text = cli("audit", path, "--on", "core2,zen5").out
    assert "on core2 is not clean: 1 line where key or message decide (1 branch)" in text and "on zen5 is clean" in text
    assert "Not looked at: " in text


def test_the_measurement_has_the_machines_verdict(cli, write):
    path = write("select.c", SELECT)
    found = json.loads(cli("run", path, "--on", "core2,zen5", "--json").out)["measurements"]
    assert [m["constant_time"] for m in found] == [False, True]
    assert [m["leaks"]["kinds"]["branch"] > 0 for m in found] == [True, False]
    assert [m["leaks"]["places"] > 0 for m in found] == [True, False]
    said = cli("run", path, "--on", "core2").out
    assert "constant time" in said and re.search(r"no: key or message decide \d+ branch(es)? of the machine code", said)


@pytest.mark.parametrize(
    "machine",
    [
        "core2",
        "ia32",
        "leon2",
        "rv32",
        "rv64",
        "boom",
        "zen5",
        "epic",
        "scarv",
        "e31",
        "cortex-m0plus",
        "cortex-m4",
        "c64x",
    ],
)
def test_clean_on_every_machine(xor_cipher, machine):
    """Windows, an exposed pipeline, rotating registers, both byte orders."""
    assert on(xor_cipher, machine) == {machine: set()}


def test_a_division_where_the_divider_takes_its_time(write):
    kinds = on(write("divides.c", DIVIDES), "core2", "zen5", "boom", "rv32")
    assert "timing" in kinds["core2"] and "timing" in kinds["zen5"] and "timing" in kinds["boom"]
    # Always 34 cycles there, as the machine file says.
    assert kinds["rv32"] == set()


def test_a_machine_of_the_users_own_says_what_varies(cli, refused, write):
    inherits = '[machine]\nname = "{}"\ntitle = "t"\ninherits = "rv32"\n[timings.{}]\nvaries_with = ["{}"]\n'
    path = write("divides.c", DIVIDES)
    slow = write("slow.toml", inherits.format("slow", "div", "rs2"))
    assert on(path, str(slow)) == {"slow": {"timing"}}
    # The message goes through the divisor, not through the dividend.
    assert on(path, str(write("half.toml", inherits.format("half", "div", "rs1")))) == {"half": set()}
    multiplies = write("multiplies.c", XOR_CIPHER.replace("in[i] ^", "7 * in[i] * in[i] ^"))
    assert on(multiplies, str(write("early.toml", inherits.format("early", "mul", "rs1")))) == {"early": {"timing"}}
    assert "`rs3` is no operand and no register" in refused(
        "run", path, "--on", write("bad.toml", inherits.format("bad", "div", "rs3"))
    )
    assert "depends on rs2" in cli("show", slow).out


def test_a_lookup_is_an_address_and_a_table_of_an_instruction_is_none(write):
    path = write("lookup.c", LOOKS_UP)
    kinds = on(path, "leon2", "core2", "c64x", unroll=False)
    assert all("address" in found for found in kinds.values()), kinds
    from ciphermill import auditing as audit
    from ciphermill import engine, manifest

    aes = audit.on_machines(manifest.find("rijndael"), "ttable", ["rv32"], engine.Options(with_=["zkne"]))
    assert aes["audits"][0]["reached"] > 0


def test_a_claim_is_contradicted(cli, write):
    leak = XOR_CIPHER.replace("in[i] ^", "in[in[i] & 15] ^")
    path = claiming(write, leak)
    for arguments in (["audit", path], ["audit", path, "--on", "leon2"], ["run", path, "--on", "leon2"]):
        answer = cli(*arguments)
        assert answer.code == 1, answer
        assert "cipher.toml says constant_time = true of variant plain, and that is not so" in answer.err
    document = json.loads(cli("audit", path, "--on", "leon2", "--json").out)
    assert document["claimed"] is True and document["contradicted"] is True
    honest = claiming(write, leak, "false")
    assert [cli(*a).code for a in (["audit", honest], ["run", honest, "--on", "leon2"])] == [0, 0]


def test_a_claim_is_kept_by_the_code_generator(cli, write):
    """Who says constant time gets no branch of a select, on any machine."""
    path = claiming(write, SELECT)
    assert cli("audit", path, "--on", "core2,ia32,pentiumpro,leon2", "--strict").code == 0
    assert json.loads(cli("run", path, "--on", "core2", "--json").out)["measurements"][0]["constant_time"] is True
    assert cli("audit", claiming(write, SELECT, "false"), "--on", "core2", "--strict").code == 1


def test_options_of_a_machine_want_one(refused, xor_cipher):
    assert "say which with --on MACHINE" in refused("audit", xor_cipher, "--direction", "decrypt")
    assert "say which with --on MACHINE" in refused("audit", xor_cipher, "--with", "zbb")


@pytest.mark.parametrize(
    "machine", ["core2", "ia32", "pentiumpro", "leon2", "rv32", "rv64", "boom", "zen5", "scarv", "cortex-m4", "epic"]
)
@pytest.mark.parametrize(
    "cipher, variant",
    [("chacha20", "r20"), ("ascon", "plain"), ("rabbit", "plain"), ("rc6", "plain"), ("present", "sliced")],
)
def test_the_manifests_promise_is_kept_by_machine_code(cipher, variant, machine):
    from ciphermill import engine, manifest

    module = engine.module(manifest.find(cipher), variant)
    found = engine.measure(module, machine, engine.Options(bytes=1024, unroll=False if machine == "epic" else None))
    assert found.verified and found.constant_time is True, found.leaks
