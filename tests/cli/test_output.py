"""Tables and JSON."""

from __future__ import annotations

import json

import pytest

from kafkalog.cli.output import write_json, write_table


def test_a_table_aligns_numbers_to_the_right_and_text_to_the_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        {"name": "a", "n": 1, "is": True, "at": None},
        {"name": "longer", "n": 12345, "is": False, "at": 7},
    ]
    write_table(["name", "n", "is", "at"], rows)
    assert capsys.readouterr().out.splitlines() == [
        "name        n  is   at",
        "a           1  yes   -",
        "longer  12345  no    7",
    ]


def test_json_is_one_document_that_keeps_large_numbers_and_all_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = {"offset": 2**63 - 1, "topic": "größe", "none": None, "list": [True, 0.5]}
    write_json(document)
    out = capsys.readouterr().out
    assert json.loads(out) == document
    assert out.endswith("}\n")
