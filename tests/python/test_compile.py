"""C to WebAssembly: the cache, and other compilers."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from samples import XOR_CIPHER

from ciphermill import InputError, compile, paths, processes


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """An empty cache, and how many processes were started."""
    monkeypatch.setenv("CIPHERMILL_CACHE", str(tmp_path / "cache"))
    started = []
    real = processes.run

    def counting(command, *options):
        started.append(command)
        return real(command, *options)

    monkeypatch.setattr(processes, "run", counting)
    return started


def unit(*sources, flags=()):
    return compile.Unit(tuple(sources), (paths.CIPHERS,), tuple(flags))


def test_the_second_time_nothing_is_compiled(calls, xor_cipher):
    first = compile.module(unit(xor_cipher))
    assert first.startswith(b"\0asm") and calls
    calls.clear()
    assert compile.module(unit(xor_cipher)) == first
    assert calls == []


def test_every_ingredient_counts(calls, write):
    source = write("a.c", '#include "a.h"\n' + XOR_CIPHER.replace("CM_BLOCK_CIPHER(16)", "CM_BLOCK_CIPHER(SIZE)"))
    header = write("a.h", "#define SIZE 16\n")
    seen = {compile.module(unit(source))}
    header.write_text("#define SIZE 32\n")
    seen.add(compile.module(unit(source)))
    source.write_text(source.read_text().replace("^", "+"))
    seen.add(compile.module(unit(source)))
    seen.add(compile.module(unit(source, flags=["-O0"])))
    assert len(seen) == 4
    header.write_text("#define SIZE 16\n")
    source.write_text(source.read_text().replace("+ ctx", "^ ctx"))
    assert compile.module(unit(source)) in seen


def test_a_damaged_cache_is_made_again(calls, xor_cipher):
    first = compile.module(unit(xor_cipher))
    for listing in (paths.cache() / "wasm").glob("*.json.kept"):
        listing.write_text("{")
    assert compile.module(unit(xor_cipher)) == first
    for wasm in (paths.cache() / "wasm").glob("*.wasm.kept"):
        wasm.unlink()
    assert compile.module(unit(xor_cipher)) == first


def test_where_a_file_lies_does_not_change_the_module(calls, write):
    a, b = write("one/x.c", XOR_CIPHER), write("another folder/x.c", XOR_CIPHER)
    assert compile.module(unit(a)) == compile.module(unit(b))


def test_many_at_once(calls, xor_cipher):
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: compile.module(unit(xor_cipher)), range(8)))) == 1


def test_several_sources(calls, write):
    head, tail = XOR_CIPHER.split("void cm_decrypt(")
    a = write("a.c", head.replace("CM_BLOCK_CIPHER(16)", "") + "CM_BLOCK_CIPHER(16)\n")
    b = write("b.c", head.split("void cm_keysetup(")[0] + "void cm_decrypt(" + tail.replace("CM_BLOCK_CIPHER(16)", ""))
    assert compile.module(unit(a, b)).startswith(b"\0asm")


def test_another_clang(calls, xor_cipher, write):
    """A clang of the user's own: here the one of ziglang, under another name."""
    script = write("myclang", f'#!/bin/sh\nexec "{sys.executable}" -m ziglang clang "$@"\n')
    script.chmod(0o755)
    try:
        wasm = compile.module(unit(xor_cipher), str(script))
    except InputError as error:
        # This clang may have no linker beside it; it was called all the same.
        assert "the C compiler refused" in str(error)
    else:
        assert wasm.startswith(b"\0asm")


def test_a_compiler_that_is_no_clang(calls, xor_cipher, write):
    script = write("mycc", "#!/bin/sh\necho 'tcc version 0.9'\n")
    script.chmod(0o755)
    with pytest.raises(InputError, match="is not clang, and only clang compiles C to WebAssembly"):
        compile.module(unit(xor_cipher), str(script))


def test_system_clang_that_is_missing(calls, xor_cipher, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InputError, match="--cc system: no program clang was found on the PATH"):
        compile.module(unit(xor_cipher), "system")
