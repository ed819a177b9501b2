"""What DROPMALFORMED leaves out is said with the files that it is of, and with no other."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import kafkalog
from tests.support.log_builder import LogBuilder


def test_the_warning_names_the_damaged_files_and_a_few_of_many(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = []
    for number in range(6):
        directory = LogBuilder(tmp_path, f"a-{number}").batch(("k", "v")).batch(("k", "w")).write()
        files.append(directory / f"{0:020d}.log")
    for path in files[1:]:
        data = bytearray(path.read_bytes())
        data[len(data) // 2 - 1] ^= 1
        path.write_bytes(data)
    with caplog.at_level(logging.WARNING, "kafkalog.reading.scan"):
        found = kafkalog.read_records(tmp_path, columns=["offset"], mode="DROPMALFORMED").read_all()
    assert len(found) == 12 - 5
    (told,) = [r.getMessage() for r in caplog.records if r.name == "kafkalog.reading.scan"]
    named = ", ".join(str(path) for path in files[1:4])
    assert told == f"left out 5 malformed batches of {named} and 2 more files"
