"""A context whose address stands in the code."""

import re

import ciphermill as cm


def test_it_takes_no_register():
    passed, known = (
        cm.run("serpent", on="pentiumpro", bytes=64, unroll=True, static=static) for static in (False, True)
    )
    assert known.verified and known.to_dict()["static"] and not passed.to_dict()["static"]
    assert known.instructions < passed.instructions


def test_the_command_line_has_it_and_the_program_printed_is_the_one_measured(cli):
    text = cli("asm", "rc6", "--on", "pentiumpro", "--static").out
    body = text[text.index("\ncm_encrypt:") : text.index("\ncm_decrypt:")]
    # The round keys have addresses; no register leads to them.
    assert re.search(r"\tmovl \d+, %e", body) and re.search(r"\taddl \d+\(%e", body)


def test_it_is_refused_where_the_code_generator_places_the_context(refused):
    assert refused("run", "rc6", "--on", "c6201", "--static").startswith(
        "--static: on c6201 the code generator chooses"
    )
