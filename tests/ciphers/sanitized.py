"""Runs one variant's vectors and shape checks on a library built with sanitizers.

Started by test_sanitizers.py in a process of its own, because the sanitizers' run-time has to be
loaded before Python: `python sanitized.py CIPHER VARIANT`. Of each Monte Carlo chain only the
first steps are taken.
"""

import random
import sys

import checks
import kinds
from harness import Native, Variant, vector_sets

FLAGS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         "-fno-omit-frame-pointer")  # fmt: skip
MCT_STEPS = 2


def main(cipher: str, name: str) -> None:
    variant = Variant(cipher, name)
    if variant.manifest["kind"] not in ("block", "stream"):
        primitive = kinds.Primitive(variant, FLAGS)
        count = sum(primitive.check(data) for data in vector_sets(variant))
        primitive.check_shapes(random.Random(f"sanitized {variant}"))
        print(f"{count} vectors")
        return
    native = Native(variant, FLAGS)
    count = 0
    for data in vector_sets(native.variant):
        if data["kind"] == "mct":
            data["vectors"] = data["vectors"][:MCT_STEPS]
        count += checks.check_set(native, data)
    checks.check_shapes(native, random.Random(f"sanitized {native.variant}"))
    print(f"{count} vectors")


if __name__ == "__main__":
    main(*sys.argv[1:])
