"""The C declarations of a program's functions, as `ciphers/ciphermill.h` has them."""

from __future__ import annotations

import re

from .._core import InputError
from ..engine import Module

CTX, KEY, IN, OUT = "{prefix}ctx *ctx", "const uint8_t *key", "const uint8_t *in", "uint8_t *out"
HELD = f"const {CTX}"

#: Result, parameters, and what it does, by the name in `ciphermill.h`.
DECLARED: dict[str, tuple[str, tuple[str, ...], str]] = {
    "cm_keysetup": ("void", (CTX, KEY, "uint32_t key_bytes"), "Expands a key; of a block cipher, to encrypt with."),
    "cm_keysetup_decrypt": ("void", (CTX, KEY, "uint32_t key_bytes"), "Expands a key to decrypt with."),
    "cm_encrypt": ("void", (HELD, IN, OUT), "One block."),
    "cm_decrypt": ("void", (HELD, IN, OUT), "One block."),
    "cm_encrypt_blocks": ("void", (HELD, IN, OUT, "uint32_t blocks"), "Blocks one after another, each on its own (ECB)."),
    "cm_decrypt_blocks": ("void", (HELD, IN, OUT, "uint32_t blocks"), "Blocks one after another, each on its own (ECB)."),
    "cm_encrypt_feedback": ("void", (HELD, IN, OUT, "uint32_t times"), "One block, `times` times, each from the one before."),
    "cm_decrypt_feedback": ("void", (HELD, IN, OUT, "uint32_t times"), "One block, `times` times, each from the one before."),
    "cm_ivsetup": ("void", (CTX, "const uint8_t *iv", "uint32_t iv_bytes"), "Starts a new stream under the key set up before."),
    "cm_keystream": ("void", (CTX, IN, OUT, "uint32_t bytes"), "out = in xor keystream, from where the last call stopped."),
    "cm_permute": ("void", (IN, OUT), "One state."),
    "cm_permute_blocks": ("void", (IN, OUT, "uint32_t blocks"), "States one after another, each on its own."),
    "cm_permute_feedback": ("void", (IN, OUT, "uint32_t times"), "One state, `times` times."),
    "cm_init": ("void", (CTX,), "Begins a message."),
    "cm_absorb": ("void", (CTX, IN, "uint32_t blocks"), "Whole blocks of the message; never its last."),
    "cm_final": ("void", (CTX, IN, OUT, "uint32_t bytes", "uint32_t out_bytes"),
                 "The message's last 1 to BLOCK_BYTES bytes, or none of an empty one; writes what it comes to."),
    "cm_hash": ("void", (CTX, IN, OUT, "uint32_t bytes", "uint32_t out_bytes"), "A whole message."),
    "cm_mac": ("void", (CTX, IN, OUT, "uint32_t bytes"), "A whole message under the key set up before."),
    "cm_aead_encrypt": ("void", (CTX, IN, OUT, "const uint8_t *nonce", "const uint8_t *ad", "uint32_t bytes", "uint32_t ad_bytes"),
                        "Writes `bytes` of ciphertext, and the tag behind them."),
    "cm_aead_decrypt": ("uint32_t",
                        (CTX, IN, OUT, "const uint8_t *nonce", "const uint8_t *ad", "uint32_t bytes", "uint32_t ad_bytes"),
                        "Reads `bytes` of ciphertext and the tag; 0 if the tag is right. Else discard what it has written."),
    "cm_ctx_bytes": ("uint32_t", ("void",), "CTX_BYTES"),
    "cm_block_bytes": ("uint32_t", ("void",), "BLOCK_BYTES"),
    "cm_tag_bytes": ("uint32_t", ("void",), "TAG_BYTES"),
    "cm_nonce_bytes": ("uint32_t", ("void",), "NONCE_BYTES"),
}  # fmt: skip


def text(prefix: str, functions: tuple[str, ...], module: Module) -> str:
    """A header with the sizes of the context, key, IV and block, and a prototype for each function.

    Raises InputError for a kernel: what its parameters are stands in its own source.
    """
    if odd := [name for name in functions if name not in DECLARED]:
        raise InputError(
            f"--header: {odd[0]} is not of the interface in ciphermill.h, so its parameters stand in its own source only; "
            "leave --header out and declare it"
        )
    guard = f"{re.sub(r'[^A-Z0-9]', '_', prefix.upper())}H"
    title = f"{module.cipher.name}, variant {module.variant.name}"
    parts = [
        f"/* {title}: made by ciphermill. Buffers of bytes may lie at any address; `in` and `out` are the same buffer or\n"
        "   do not overlap. Functions keep everything in the context and on the stack, and may be interrupted. */",
        f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        sizes(prefix, module),
    ]
    if size := module.interface["ctx_bytes"]:
        what = f"typedef union {{ uint8_t bytes[{size}]; uint64_t aligned[{-(-size // 8)}]; }} {prefix}ctx;"
        parts.append(f"/* All that is kept between calls; secret. */\n{what}")
    # Sizes are macros already.
    parts += [prototype(prefix, name) for name in functions if DECLARED[name][1] != ("void",)]
    parts += ["#ifdef __cplusplus\n}\n#endif", "#endif"]
    return "\n\n".join(parts) + "\n"


def sizes(prefix: str, module: Module) -> str:
    """The sizes that there are, as macros, in bytes."""
    said, cipher = module.interface, module.cipher
    found = [(name, [said[f"{name.lower()}_bytes"]]) for name in ("CTX", "BLOCK", "TAG", "NONCE")]
    found += [("KEY", [n // 8 for n in cipher.key_bits or ()]), ("IV", [n // 8 for n in cipher.iv_bits or () if n])]
    lines = ["/* Sizes in bytes. */"]
    for name, values in found:
        if not values or not max(values):
            continue
        other = f" /* or {', '.join(map(str, sorted(values)[:-1]))} */" if len(values) > 1 else ""
        lines.append(f"#define {prefix.upper()}{name}_BYTES {max(values)}{other}")
    return "\n".join(lines)


def prototype(prefix: str, name: str) -> str:
    result, parameters, what = DECLARED[name]
    listed = ", ".join(parameters).format(prefix=prefix)
    return f"/* {what} */\n{result} {prefix}{name.removeprefix('cm_')}({listed});"
