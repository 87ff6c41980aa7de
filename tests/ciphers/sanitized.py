"""Runs one variant's vectors and shape checks on a library built with sanitizers.

Started by test_sanitizers.py in a process of its own, because the sanitizers' run-time has to be
loaded before Python: `python sanitized.py CIPHER VARIANT`. Of each Monte Carlo chain only the
first steps are taken.
"""

import random
import sys

import checks
from harness import Native, Variant, vector_sets

FLAGS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         "-fno-omit-frame-pointer")  # fmt: skip
MCT_STEPS = 2


def main(cipher: str, name: str) -> None:
    native = Native(Variant(cipher, name), FLAGS)
    count = 0
    for data in vector_sets(native.variant):
        if data["kind"] == "mct":
            data["vectors"] = data["vectors"][:MCT_STEPS]
        count += checks.check_set(native, data)
    checks.check_shapes(native, random.Random(f"sanitized {native.variant}"))
    print(f"{count} vectors")


if __name__ == "__main__":
    main(*sys.argv[1:])
