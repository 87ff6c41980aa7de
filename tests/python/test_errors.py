"""What is refused, and in which words: the place, and the mend."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from samples import XOR_CIPHER

import ciphermill as cm
from ciphermill import compile, paths
from ciphermill.engine import module
from ciphermill.manifest import find


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "rijndel"], "no cipher 'rijndel' (did you mean 'rijndael'?); there are "),
        (["run", "aes"], "no cipher 'aes' (did you mean 'rijndael', Rijndael (AES)?); there are "),
        (["run", "SHA3-256"], "no cipher 'SHA3-256' (did you mean keccak --variant sha3-256?); there are "),
        (["run", "rijndael", "--on", "leon3"], "no machine 'leon3' (did you mean 'leon2'?); there are "),
        (["run", "rijndael", "--on", "no/such.toml"], "no/such.toml: no such file; "),
        (["run", "no/such.c"], "no/such.c: no such file; "),
        (["run", 300 * "x"], f"{300 * 'x'}: File name too long"),
        (["run", 300 * "x" + ".c"], f"{300 * 'x'}.c: File name too long"),
        (["run", "rc6", "--on", 300 * "x" + ".toml"], f"{300 * 'x'}.toml: File name too long"),
        (["asm", "rc6", "--on", "rv32", "-o", 300 * "x"], f"-o {300 * 'x'}: File name too long"),
        (["run", "rijndael", "--variant", "tables"], "rijndael has no variant 'tables' (did you mean 'ttable'?); it has "),
        (["run", "rijndael", "--key-bits", "100"], "rijndael has no 100-bit keys; it has 128, 192 or 256 bits"),
        (["run", "rijndael", "--direction", "encode"], "--direction encode: it is one of encrypt, decrypt, keysetup, keystream"),
        (["run", "rijndael", "--blocks", "many"], "--blocks many: it is single (a feedback mode) or multi (independent blocks)"),
        (["run", "rijndael", "--on", "rv32", "--jam", "2", "--blocks", "single"], "--jam 2: only blocks that do not wait for each other can be carried together"),
        (["run", "rijndael", "--jam", "0"], "--jam 0: it is the number of blocks carried together, 1 to 8"),
        (["run", "rijndael", "--on", "rv32", "--bytes", "20"], "--bytes 20: a message is a whole number of blocks of 16 bytes; use --bytes 32"),
        (["run", "rijndael", "--on", "rv32", "--bytes", "0"], "--bytes 0: a message has 1 to 4000000000 bytes here"),
        (["run", "rijndael", "--on", "rv32", "--direction", "keystream"], "--direction keystream: rijndael is a block cipher; use encrypt or decrypt"),
        (["run", "salsa20", "--on", "rv32", "--direction", "encrypt"], "--direction encrypt: salsa20 is a stream cipher; use keystream"),
        (["run", "salsa20", "--on", "rv32", "--blocks", "single"], "--blocks single: a stream cipher has no feedback mode"),
        (["run", "rc6", "--on", "rv32", "--direction", "keysetup", "--bytes", "64"], "--bytes: a key set-up has no message"),
        (["run", "rijndael", "--on", "rv32", "--with", "zbbb"], "no extension 'zbbb' (did you mean 'zbb'?); there are addr-aligned, "),
        (["run", "rijndael", "--on", "rv32", "--with", "no/such.toml"], "no/such.toml: no such file; "),
        (["run", "rijndael", "--on", ","], "--on is given and empty; name a machine, or leave --on out"),
        (["run", "rijndael", "--on", "rv32", "--key-bits", "0"], "rijndael has no 0-bit keys; it has 128, 192 or 256 bits"),
        (["run", "rijndael", "--on", "rv32", "--bytes", "-4"], "--bytes -4: a negative number; leave --bytes out"),
        (["run", "rijndael", "--on", "rv32", "--jam", "5000000000"], "--jam 5000000000: too large a number; leave --jam out"),
        (["run", "rijndael", "--on", "rv32", "--benchmark-json", "no/such/x.json"], "--benchmark-json no/such/x.json: there is no folder no/such"),
        (["run", "."], ".: a folder without cipher.toml; give the C file in it"),
        (["rtl", "no-such.toml"], "no-such.toml: no such file; give a file that exists, or one of addr-aligned, "),
        (["discover", "rc6", "--on", "rv32", "-o", "no/such/x.toml"], "-o no/such/x.toml: there is no folder no/such"),
        (["run", "rijndael", "--on", "rv32", "--set", "clock"], "--set clock: write PATH=VALUE, for instance issue.width=4"),
        (["run", "rijndael", "--cc", "no-such-compiler"], "--cc no-such-compiler: no program no-such-compiler was found on the PATH"),
        (["run", "rijndael", "--limit", "0"], "--limit 0: it is the number of steps after which a run is given up, 1 to "),
        (["audit", "rijndael", "--limit", "-1"], "--limit -1: it is the number of steps after which a run is given up, 1 to "),
        (["run", "rijndael", "--on", "rv32", "--limit", "100"], "cm_keysetup stopped on the reference interpreter: the limit of 100 steps "),
        (["explain", "rijndael", "--on", "rv32", "--limit", "100"], "cm_keysetup stopped on the reference interpreter: the limit of 100 steps "),
        (["audit", "rijndael", "--limit", "100"], "cm_keysetup: function \"expand_key\" was still running at the limit of 100 operations"),
        (["run", "rijndael", "--frobnicate"], "No such option"),
        (["run", "rijndael", "--tolerance", "1%"], "--tolerance 1%: nothing is compared; name a baseline with --compare FILE"),
        (["rtl", "zbb", "--tolerance", "1%"], "--tolerance 1%: nothing is compared; name a baseline with --compare FILE"),
        (["run"], "Missing argument 'CIPHER'; see ciphermill run --help"),
        (["run", "rijndael", "--key-bits", "many"], "Invalid value for '--key-bits': 'many' is not a valid int"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["list", "cipher"], "no list of 'cipher' (did you mean 'ciphers'?); there are ciphers, machines, extensions"),
        (["asm", "rijndael", "--on", "leon2", "-o", "no/such/folder/x.s"], "-o no/such/folder/x.s: there is no folder no/such/folder"),
        (["explain", "rc6", "--on", "rv32", "--html", "no/such/x.html"], "--html no/such/x.html: there is no folder no/such; make it first, or name another"),
        (["trace", "rc6", "--on", "boom", "--kanata", "no/such/k.log"], "--kanata no/such/k.log: there is no folder no/such"),
        (["trace", "rc6", "--on", "boom", "--perfetto", "no/such/p.json"], "--perfetto no/such/p.json: there is no folder no/such"),
        (["trace", "rc6", "--on", "boom", "--html", "no/such/x.html"], "--html no/such/x.html: there is no folder no/such"),
        (["report", "-o", "no/such/x.html"], "-o no/such/x.html: there is no folder no/such"),
        (["study", "--figures", "no/such/figures"], "--figures no/such/figures: there is no folder no/such"),
        (["rtl", "zbb", "-o", "no/such/hardware"], "-o no/such/hardware: there is no folder no/such"),
        (["run", "rc6", "--on", "rv32", "--direction", "keysetup", "--blocks", "single"], "--blocks single: a key set-up has no blocks that could depend on each other; leave --blocks out"),
        (["show", "zbb"], "zbb is an extension, not a machine; add it to one: "),
        (["run", "rc6", "--on", "rv32", "--with", "leon2"], "leon2 is a machine, not an extension; run on it: --on leon2"),
        (["run", "rc6", "--on", "core2", "--set", "issue.width=2"], "machine core2: issue.width: a core that schedules at run time makes its own bundles; set it to 1"),
        (["show", "leon3"], "no machine 'leon3' (did you mean 'leon2'?)"),
    ],
)  # fmt: skip
def test_refusals(refused, arguments, message):
    assert refused(*arguments).startswith(message)


@pytest.mark.parametrize(
    ("without", "lacking"),
    [
        ("sll,srl,mul", "`rd = a << b`"),
        ("lbu,lb", "`rd = mem8[a]`"),
        ("xor", "`rd = a ^ b`"),
        ("lui", "`rd = imm` where imm is 0x"),
    ],
)
def test_what_a_machine_lacks_is_named_as_an_instruction_would_have_it(refused, without, lacking):
    variable = Path(__file__).parent / "foreign" / "idea.toml" if without != "sll,srl,mul" else "rc6"
    message = refused("run", variable, "--on", "rv32", "--without", without)
    assert f"for {lacking}" in message and "add an instruction that means just that" in message


def test_a_machine_file_for_a_cipher(refused, write):
    write("mine.toml", '[machine]\nname = "mine"\ninherits = "rv32"\n')
    assert (
        refused("run", "mine.toml")
        == "mine.toml: a machine or extension file, no cipher's manifest; give it to --on or --with"
    )


def test_what_lies_beside_a_machine_file_need_not_be_one(cli, write):
    write("mine.toml", '[machine]\nname = "mine"\ninherits = "rv32"\n')
    write("other.toml", b"\xff\xfe")
    write("folder.toml/cipher.toml", "")
    assert cli("show", "mine.toml").code == 0


def heir(name: str, inherits: str, more: str = "") -> str:
    """A machine file that inherits."""
    return f'[machine]\nname = "{name}"\ntitle = "{name}"\ninherits = "{inherits}"\n{more}'


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_or_a_link_to_itself_beside_a_machine_file(cli, refused, write, tmp_path):
    write("mine.toml", heir("mine", "rv32"))
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    (tmp_path / "nowhere.toml").symlink_to("gone.toml")
    assert cli("show", "mine.toml").code == 0
    assert "pipe.toml: a pipe or a device, not a file" in refused("show", "pipe.toml")
    for lost in ("loop.toml", "nowhere.toml"):
        assert f"{lost}: no such file" in refused("show", lost)
    # The same where it is the ancestor that is named.
    for parent in ("pipe", "loop"):
        write("heir.toml", heir("heir", parent))
        assert f"there is no machine `{parent}` to inherit from" in refused("show", "heir.toml")
        write("heir.toml", heir("heir", f"./{parent}.toml"))
        assert f"there is no file `{parent}.toml` to inherit from" in refused("show", "heir.toml")


def test_ancestors_by_a_path(cli, refused, write, tmp_path):
    write("boards/base.toml", heir("base", "rv32", '[units]\nalu = 3\nsource = "test"\n'))
    write("boards/middle.toml", heir("middle", "./base.toml"))
    write("mine.toml", heir("mine", "boards/../boards/middle.toml"))
    write("boards/beside.toml", heir("beside", "middle"))
    for file, folder in (
        ("mine.toml", tmp_path),
        ("boards/beside.toml", tmp_path),
        ("beside.toml", tmp_path / "boards"),
    ):
        assert "3 alu" in cli("show", file, cwd=folder).out
    assert "3 alu" in cli("show", tmp_path / "mine.toml", cwd=tmp_path / "boards").out
    write("lost.toml", heir("lost", "./base.toml"))
    message = refused("show", "lost.toml")
    assert "there is no file `base.toml` to inherit from" in message and "lost.toml:4:" in message
    write("one.toml", heir("one", "./two.toml"))
    write("two.toml", heir("two", "./one.toml"))
    write("self.toml", heir("self", "self"))
    for circle in ("one.toml", "self.toml"):
        assert "is among its own ancestors" in refused("show", circle)


def test_a_misspelt_table_of_an_heir(refused, write):
    write("mine.toml", heir("mine", "rv32", '[timings.laod]\nlatency = 9\nsource = "test"\n'))
    message = refused("run", "rijndael", "--on", "mine.toml")
    assert (
        "nothing refers to the timing `laod`" in message
        and "mine.toml:5:" in message
        and "did you mean `load`?" in message
    )


def test_what_only_ones_own_extension_uses(cli, refused, write):
    """Named by --with, or beside the machine's file."""
    write("lib/mine.toml", heir("mine", "rv32", '[timings.lookup]\nunits = ["lsu"]\nlatency = 2\nsource = "test"\n'))
    instruction = '[instructions]\nlook = { format = "unary", timing = "lookup", semantics = "rd = rs1 + 5" }\n'
    extension = f'[extension]\nname = "look"\ntitle = "look"\n{instruction}'
    assert "nothing refers to the timing `lookup`" in refused("show", "lib/mine.toml")
    write("look.toml", extension)
    assert cli("show", "lib/mine.toml", "--with", "look.toml").code == 0
    write("lib/look.toml", extension)
    assert cli("show", "lib/mine.toml").code == 0


def test_too_few_registers(refused, write):
    assert "1 registers of cluster 1 for values" in refused("run", "rc6", "--on", "c6201", "--set", "abi.registers=8")
    write("mine.toml", heir("mine", "rv32", '[abi]\nallocatable = ["a0"]\n'))
    assert "mine.toml:6:" in refused("run", "rc6", "--on", "mine.toml")


@pytest.mark.parametrize(
    ("machine", "registers"),
    [("rv32", ["a0", "a1"]), ("x86_64", ["eax", "ecx", "edx", "ebx"]), ("c6201", ["b4", "b0", "a0", "a2"])],
)
def test_the_fewest_registers_are_enough(cli, write, machine, registers):
    write("mine.toml", heir("mine", machine, f"[abi]\nallocatable = {json.dumps(registers)}\n"))
    answer = cli("run", "rc6", "--on", "mine.toml", "--bytes", "64", "--no-unroll")
    assert answer.code == 0 and "output and memory equal the reference interpreter's" in answer.out, answer


@pytest.mark.parametrize(
    "limits",
    [
        "{ min = -255, max = 4095 }",
        "{ min = -3, max = 20 }",
        "{ min = -2048, max = 2044, step = 4 }",
        "{ values = [0, 4, 8] }",
    ],
)
def test_displacements_that_lie_unevenly_about_zero(cli, write, limits):
    """As those of ARM Thumb-2: every load and store is found, near and far."""
    formats = "".join(f"[formats.{name}.operands]\nimm = {limits}\n" for name in ("load", "store"))
    write("mine.toml", heir("mine", "rv32", formats + '[sources]\nformats = "test"\n'))
    answer = cli("run", "rijndael", "--on", "mine.toml", "--bytes", "64")
    assert answer.code == 0 and "output and memory equal the reference interpreter's" in answer.out, answer


def test_values_that_are_used_twice_are_no_trees(cli, write):
    """Written out, the last of these has 2^26 operations."""
    squares = "".join(f" let q{i} = q{i - 1} * q{i - 1};" for i in range(1, 26))
    semantics = f"let q0 = rs1 * rs2;{squares} rd = q25"
    line = f'sq = {{ format = "r", timing = "alu", bytes = 4, semantics = "{semantics}" }}'
    write(
        "sq.toml", f'[extension]\nname = "sq"\ntitle = "sq"\n[instructions]\n{line}\n[sources]\ninstructions = "test"\n'
    )
    assert cli("show", "rv32", "--with", "sq.toml").code == 0
    assert cli("run", "rc6", "--on", "rv32", "--with", "sq.toml", "--bytes", "64").code == 0
    assert cli("explain", "rc6", "--on", "rv32", "--with", "sq.toml").code == 0


def test_a_graph_is_found_in_a_program(write):
    """An instruction that squares 24 times, which as a tree is 2^25 operations, in a cipher that squares 25 times."""
    body = "uint32_t q = (in[0] | in[1] << 8) * ctx->key[3];" + " q = q * q;" * 25
    store = " ".join(f"out[{i}] = q >> {8 * i & 31};" for i in range(16))
    old = "for (int i = 0; i < 16; i++) out[i] = in[i] ^ ctx->key[i];"
    assert old in XOR_CIPHER
    cipher = write("sq.c", XOR_CIPHER.replace(old, f"{body} {store}"))
    squares = "".join(f" let q{i} = q{i - 1} * q{i - 1};" for i in range(1, 25))
    line = f'sq = {{ format = "r", timing = "alu", bytes = 4, semantics = "let q0 = rs1 * rs2;{squares} rd = q24" }}'
    extension = f'[extension]\nname = "sq"\ntitle = "sq"\n[instructions]\n{line}\n[sources]\ninstructions = "test"\n'
    squared = str(write("sq.toml", extension))
    plain, short = (cm.run(cipher, on="rv32", bytes=64, with_=more) for more in ([], [squared]))
    assert plain.verified and short.verified and short.cycles_per_block < plain.cycles_per_block - 40


def test_a_reader_that_has_gone():
    command = [sys.executable, "-m", "ciphermill", "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as left:
        left.stdout.close()
        assert left.stderr.read() == b""
    assert left.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk():
    command = [sys.executable, "-m", "ciphermill", "schema"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "ciphermill: standard output: No space left on device\n")


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(pipe.read_bytes)
        paths.write_atomically(pipe, b"text")
        assert reader.result(10) == b"text"
    assert pipe.is_fifo()


def test_an_extension_for_another_machine(refused):
    message = refused("run", "rijndael", "--on", "leon2", "--with", "zbb")
    assert "extension `zbb` is for rv32, not for leon2" in message


def test_ones_own_extension_goes_before_one_of_that_name(cli, write):
    instruction = '[instructions]\nmine = { format = "unary", timing = "alu", semantics = "rd = rs1 + 5" }\n'
    write("zbb.toml", f'[extension]\nname = "zbb"\ntitle = "mine"\nfor = ["rv32"]\n\n{instruction}')
    shown = cli("show", "rv32", "--with", "zbb.toml", "--json")
    assert '"mine"' in shown.out and '"andn"' not in shown.out


def test_a_machine_file_with_a_fault_is_pointed_at(refused, write):
    text = (paths.MACHINES / "rv32.toml").read_text().replace('"alu"', '"alx"', 1)
    write("mine.toml", text)
    message = refused("run", "rijndael", "--on", "mine.toml")
    line = text[: text.index('"alx"')].count("\n") + 1
    assert f"mine.toml:{line}:" in message


def test_a_pipeline_that_no_code_is_generated_for(refused):
    message = refused("run", "rc6", "--on", "leon2", "--set", "issue.interlock=false")
    assert message == (
        "machine leon2: issue.interlock = false: register windows need a pipeline that waits for operands; set it to true"
    )


def test_a_setting_that_is_not_there(refused):
    assert "there is no `issue.widht` in this machine" in refused(
        "run", "rc6", "--on", "rv32", "--set", "issue.widht=4"
    )


# ------------------------------------------------------------------ modules


def test_not_a_module(refused, write):
    write("x.wasm", b"hello")
    assert refused("run", "x.wasm", "--on", "rv32").startswith("not a valid WebAssembly module: ")


@pytest.mark.parametrize("keep", [0, 4, 8, 9, 100, 1000])
def test_a_truncated_module(refused, write, keep):
    write("x.wasm", module(find("rijndael")).wasm[:keep])
    refused("run", "x.wasm", "--on", "rv32", "--direction", "encrypt")


def test_floating_point_names_the_function(refused, write):
    write("x.c", XOR_CIPHER.replace("out[i] = in[i] ^ ctx->key[i];", "out[i] = (uint8_t)((double)in[i] * 1.5);"))
    message = refused("run", "x.c", "--on", "rv32")
    assert re.match(r"x\.c:7: cm_encrypt: f64\.\w+ is a floating-point operator; ", message), message
    assert "ciphermill takes integer code only" in message


def test_a_module_that_is_no_cipher(refused, write):
    write("x.c", '__attribute__((export_name("f"))) int f(void) { return 1; }')
    message = refused("run", "x.c", "--on", "rv32")
    assert message.startswith("the module does not export cm_ctx_bytes (it exports f); include ciphermill.h")


def test_a_cipher_that_traps(refused, write):
    write("x.c", XOR_CIPHER.replace("out[i] = in[i]", "__builtin_trap(), out[i] = in[i]"))
    message = refused("run", "x.c", "--on", "rv32")
    assert message.startswith(
        "x.c:7: cm_encrypt: an unreachable place was reached (abort, a failed assertion, undefined behaviour), when "
    )


@pytest.mark.parametrize("blocks", ["single", "multi"])
@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (20, "cm_block_bytes() says that a block has 20 bytes, and cm_encrypt_blocks of one block writes 16 of them (byte 16 keeps what stood there)"),
        (12, "cm_encrypt_blocks writes outside of its buffers: behind the output, which has 12 bytes, byte 12 was changed"),
    ],
)  # fmt: skip
def test_a_block_of_another_size_than_the_cipher_says(refused, write, stated, message, blocks):
    write("x.c", XOR_CIPHER.replace("CIPHER(16)", f"CIPHER({stated})"))
    assert refused("run", "x.c", "--on", "rv32", "--blocks", blocks).startswith(message)


@pytest.mark.parametrize("flags", ["", "-Wall -Wextra -Werror"])
def test_headers_that_nothing_is_used_of(cli, write, flags):
    headers = (
        "math",
        "stdio",
        "string",
        "stdlib",
        "assert",
        "stdbool",
        "limits",
        "inttypes",
        "stddef",
        "stdint",
        "time",
        "ctype",
        "errno",
        "float",
        "stdarg",
    )
    write("x.c", "".join(f"#include <{name}.h>\n" for name in headers) + XOR_CIPHER)
    write(
        "cipher.toml", GOOD.split("[[vectors]]")[0].replace("mine.c", "x.c") + f"flags = {json.dumps(flags.split())}\n"
    )
    assert cli("run", "cipher.toml", "--on", "rv32", "--bytes", 64).code == 0


def test_what_is_used_of_a_header_without_a_library_is_named(refused, write):
    write("x.c", "#include <math.h>\n" + XOR_CIPHER.replace("out[i] = in[i]", "out[i] = (uint8_t)pow(in[i], 3)"))
    message = refused("run", "x.c", "--on", "rv32")
    assert "x.c uses pow, which no source defines" in message or "floating-point" in message


def test_a_helper_in_a_file_of_the_same_folder_is_found(refused, write):
    write("x.c", "uint8_t mixed(uint8_t x);\nextern const uint8_t table[256];\n".replace("uint8_t", "unsigned char")
          + XOR_CIPHER.replace("out[i] = in[i]", "out[i] = mixed(table[in[i]])"))  # fmt: skip
    write(
        "mix.c",
        "/* mixed() { */\n#include <stdint.h>\n#define mixed_twice(x) mixed(mixed(x))\nuint8_t mixed(uint8_t x)\n{\n    return x;\n}\n",
    )
    write("tab.c", "const unsigned char table[256] = {1, 2, 3};\n")
    write(
        "user.c",
        "unsigned char mixed(unsigned char);\nextern const unsigned char table[256];\nint f(void) { return mixed(table[1]); }\n",
    )
    write("own.c", "static int mixed(int x) { return x; }\nint g(void) { return mixed(1); }\n")
    message = refused("run", "x.c", "--on", "rv32")
    assert "x.c uses mixed, which no source defines" in message
    assert "\nmixed is defined in mix.c\n" in message and "\ntable is defined in tab.c\n" in message, message


def test_a_wrong_alignment_is_told_and_measured(cli, write):
    words = "const uint32_t *key = (const uint32_t *)(const void *)(ctx->key + 1); for (int i = 0; i < 16; i += 4) " \
            "cm_store32_le(out + i, cm_load32_le(in + i) ^ key[i / 4]);"  # fmt: skip
    write(
        "x.c",
        XOR_CIPHER.replace("for (int i = 0; i < 16; i++) out[i] = in[i] ^ ctx->key[i];", words).replace(
            "key[16]", "key[20]"
        ),
    )
    told = cli("run", "x.c", "--on", "leon2", "--bytes", 64)
    assert (
        told.code == 0
        and "  4 accesses are less aligned than the module states (the first in cm_encrypt_blocks at offset 0x"
        in told.out
    ), told
    assert "alignment" not in cli("run", "x.c", "--on", "core2", "--bytes", 64).out


def test_an_import_is_named(refused, write):
    write("x.c", "int puts(const char *); " + XOR_CIPHER.replace("out[i] = in[i]", 'puts("x"), out[i] = in[i]'))
    assert "puts" in refused("run", "x.c", "--on", "rv32")


def test_the_compiler_is_quoted(refused, write):
    write("x.c", XOR_CIPHER.replace("ctx->key[i];", "ctx->kex[i];", 1))
    message = refused("run", "x.c", "--on", "rv32")
    assert message.startswith("the C compiler refused x.c:\n")
    assert "error: no member named 'kex' in 'struct cm_ctx'" in message and "x.c:" in message


# ---------------------------------------------------------------- manifests

GOOD = """\
name = "mine"
kind = "block"
block_bytes = 16
key_bits = [128]
[variants.plain]
sources = ["mine.c"]
[[vectors]]
file = "v.json"
source = "me"
"""


@pytest.fixture
def folder(write):
    def make(manifest: str):
        write("mine/mine.c", XOR_CIPHER)
        write("mine/v.json", VECTORS)
        return write("mine/cipher.toml", manifest)

    return make


VECTORS = json.dumps({
    "kind": "block",
    "vectors": [{"id": "1", "key": "01" * 16, "plaintext": "00" * 16, "ciphertext": "01" * 16}],
})  # fmt: skip


def test_a_good_manifest_runs(cli, folder):
    answer = cli("run", folder(GOOD), "--on", "rv32")
    assert answer.code == 0 and "; 1 official vector\n" in answer.out


def test_a_manifest_and_c_that_state_different_blocks(refused, folder):
    path = folder(GOOD.replace("block_bytes = 16", "block_bytes = 8"))
    assert refused("run", path, "--on", "rv32").startswith(
        "mine: the manifest has block_bytes = 8, and cm_block_bytes() returns 16; make the two the same"
    )


def test_a_wrong_vector_is_not_verified(cli, folder, write):
    path = folder(GOOD)
    write("mine/v.json", VECTORS.replace("01" * 16 + '"}', "02" * 16 + '"}'))
    answer = cli("run", path, "--on", "rv32")
    assert answer.code == 1
    assert "vector 1: the module's output differs" in answer.err
    assert "NO: " in answer.out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', "", ": name: missing; add it (a string)"),
        ('name = "mine"', "name = 1", ":1: name: is 1, must be a string"),
        ('kind = "block"', 'kind = "blok"', ":2: kind: is 'blok' (did you mean 'block'?); it is block or stream"),
        ("block_bytes = 16", "block_bytes = true", ":3: block_bytes: is true, must be a whole number"),
        ("block_bytes = 16", "block_bytes = 0", ":3: block_bytes: is 0; it is a number of bytes from 1 to 65536"),
        ("key_bits = [128]", "key_bits = [100]", ":4: key_bits[0]: is 100; a size in bits is a multiple of 8 from 8"),
        ("key_bits = [128]", "", ": key_bits: missing; add it (a list); it lists the key sizes in bits, for instance [128, 256]"),
        ("key_bits", "key_bit", ":4: key_bit: unknown key (did you mean 'key_bits'?)"),
        ('name = "mine"', 'name = "mine"\nnmae = 1', ":2: nmae: unknown key (did you mean 'name'?)"),
        ('"mine.c"', '"yours.c"', ":6: variants.plain.sources[0]: yours.c: no such file beside the manifest"),
        ('["mine.c"]', "[]", ":6: variants.plain.sources: is an empty list; name at least one C file"),
        ('["mine.c"]', '"mine.c"', ":6: variants.plain.sources: is 'mine.c', must be a list"),
        ("[variants.plain]", "[variants]", ":6: variants.sources: is a list, must be a table; a variant is a table such as [variants.plain]"),
        ('sources = ["mine.c"]', 'sources = ["mine.c"]\nflag = []', ":7: variants.plain.flag: unknown key (did you mean 'flags'?)"),
        ('"v.json"', '"w.json"', ":8: vectors[0].file: w.json: no such file beside the manifest"),
        ('name = "mine"', "name = ", ": not TOML: "),
        ('kind = "block"', 'kind = "block"\ndefault_variant = "best"', ":3: default_variant: is 'best'; the variants are plain"),
        ('name = "mine"', 'name = "mi\\nne"', ":1: name: is 'mi\\nne'; a name has letters, digits and signs"),
        ("[variants.plain]", '[variants.""]', ":5: variants.'': is ''; a name has letters, digits and signs"),
        ("[128]", "[65544]", ":4: key_bits[0]: is 65544; a size in bits is a multiple of 8 from 8 to 65536"),
        ("[128]", "[[[128]]]", ":4: key_bits[0]: is a list, must be a whole number; a size in bits is"),
        ("= 16", "= 0x1" + "0" * 9000, ":3: block_bytes: is a number of 36001 bits; it is a number of bytes"),
        ("= 16", "= 1" + "0" * 5000, ": a number of thousands of digits; shorten it"),
        ("[128]", "[" * 9000 + "]" * 9000, ": lists or tables nested too deep; "),
        ('name = "mine"', 'name = "mine"\nyear = 98000', ":2: year: is 98000; it is a year such as 1998"),
        ('"mine.c"', '"' + "m" * 5000 + '"', ":6: variants.plain.sources[0]: mmm"),
        ('"mine.c"', '"mine.c\\u0000"', ":6: variants.plain.sources[0]: is 'mine.c\\x00'; no path and no flag holds a NUL character"),
        ('["mine.c"]', '["mine.c"]\nflags = ["-D\\u0000"]', ":7: variants.plain.flags[0]: is '-D\\x00'; no path and no flag holds a NUL"),
        ('"v.json"', '"\\u001b[2J"', ":8: vectors[0].file: \\x1b[2J: no such file beside the manifest"),
        ('"v.json"', '""', ":8: vectors[0].file: '': no such file beside the manifest"),
    ],
)  # fmt: skip
def test_broken_manifests(refused, folder, old, new, message):
    path = folder(GOOD.replace(old, new, 1))
    assert refused("run", path, "--on", "rv32").startswith(f"mine/cipher.toml{message}")


def test_a_vector_file_with_a_fault(refused, folder, write):
    path = folder(GOOD)
    write("mine/v.json", "{")
    message = refused("run", path, "--on", "rv32")
    assert "v.json: not a vector file: " in message and "`ciphermill new` writes one" in message
    write("mine/v.json", VECTORS.replace("01" * 16, "0x" * 16, 1))
    assert "v.json: vector 1: key is not hexadecimal" in refused("run", path, "--on", "rv32")
    write("mine/v.json", VECTORS.replace('"block"', '"Block"', 1))
    assert "v.json: kind `Block`: it is block, stream, permutation, hash, mac, aead, kernel or mct" in refused(
        "run", path, "--on", "rv32"
    )
    write("mine/v.json", VECTORS.replace('"block"', '"stream"', 1))
    assert "v.json: kind `stream` is for a stream cipher, and this is a block cipher" in refused(
        "run", path, "--on", "rv32"
    )


@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_vector_that_the_c_does_not_meet(cli, folder, write, command):
    """It ran, so the exit code is 1; but that is no error of ours, and is not called one."""
    path = folder(GOOD)
    assert cli(command, path, "--on", "rv32").code == 0
    write("mine/v.json", VECTORS.replace("01" * 16, "02" * 16, 1))
    answer = cli(command, path, "--on", "rv32")
    assert answer.code == 1 and "v.json: vector 1: the module's output differs\n" in answer.err
    assert "The C and the vector disagree" in answer.err and "error in ciphermill" not in answer.err


def test_files_that_begin_with_a_byte_order_mark(cli, folder, write):
    """As editors of Windows save them."""
    path = folder("\ufeff" + GOOD)
    write("mine/v.json", "\ufeff" + VECTORS)
    machine = write("m.toml", '\ufeff[machine]\nname = "m"\ntitle = "mine"\ninherits = "rv32"\n')
    answer = cli("run", path, "--on", machine)
    assert answer.code == 0 and "1 official vector" in answer.out


def test_bytes_that_are_no_text(refused, write):
    write("cipher.toml", b"\xff\xfe")
    assert refused("run", "cipher.toml").startswith("cipher.toml: not a text file; ")


def test_base_flags_are_shown_in_provenance():
    assert module(find("rc6")).origin["flags"][: len(compile.BASE_FLAGS)] == list(compile.BASE_FLAGS)


def test_the_setting_that_the_help_names_is_one(cli):
    (example,) = set(re.findall(r"for\s+instance\s+([a-z_.]+=\d+)\.", cli("run", "--help").out))
    assert cli("show", "leon2", "--set", example).code == 0
