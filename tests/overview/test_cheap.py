"""`info` is there in a second: it loads no kernel and no Arrow, and opens few files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkalog.overview.document import overview_document
from kafkalog.overview.groups import MOST_BYTES
from kafkalog.overview.heads import MOST_PARTITIONS
from kafkalog.overview.overview import read_overview
from tests.support.log_builder import LogBuilder
from tests.test_sample_findings import NOW_MS

SAMPLE = Path(__file__).parents[2] / "data" / "samples" / "broker"
HEAVY = ("numba", "pyarrow", "pandas", "pyspark", "duckdb", "tqdm")


def test_nothing_that_takes_long_is_loaded() -> None:
    code = (
        "import sys\nfrom kafkalog.cli.main import main\n"
        f"main(['info', {str(SAMPLE)!r}])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_of_many_partitions_few_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kafkalog.cli.main import main

    builder = LogBuilder(tmp_path, "a-0").batch(("k", "v")).write()
    log = next(builder.glob("*.log")).read_bytes()
    for number in range(1, MOST_PARTITIONS + 200):
        directory = tmp_path / f"a-{number}"
        directory.mkdir()
        (directory / f"{0:020d}.log").write_bytes(log)
    opened: list[Any] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(path) or real(path, *rest))
    found = read_overview([tmp_path], NOW_MS)
    assert len(found.partitions) == MOST_PARTITIONS + 200
    assert sum(str(path).endswith(".log") for path in opened) <= MOST_PARTITIONS
    assert len(opened) <= 2 * MOST_PARTITIONS + 20
    # What was not looked at may be older or newer, and it is said.
    document = overview_document(found, 0.0)
    assert document["partitionsLookedInto"] == MOST_PARTITIONS
    assert document["partitionsWithData"] == MOST_PARTITIONS + 200
    assert main(["info", str(tmp_path)]) == 1
    seen = f"at the ends of {MOST_PARTITIONS} of {MOST_PARTITIONS + 200} partitions"
    assert seen in " ".join(capsys.readouterr().out.split())


def test_of_a_large_offsets_topic_the_end_is_read_and_lag_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kafkalog.cli.main import main

    builder = LogBuilder(tmp_path, "__consumer_offsets-0")
    for number in range(300):
        builder.batch((commit_key(f"group-{number}"), commit_value(number) + bytes(8000)))
    builder.write()
    found = read_overview([tmp_path], NOW_MS).groups
    assert found.total_bytes > MOST_BYTES
    assert 0 < found.read_bytes <= MOST_BYTES
    assert not found.is_whole
    assert 0 < len(found.groups) < 300
    assert "group-299" in {group.group for group in found.groups}
    main(["info", str(tmp_path)])
    assert "kafkalog lag" in capsys.readouterr().out


def commit_key(group: str) -> bytes:
    def text(value: str) -> bytes:
        return len(value).to_bytes(2, "big") + value.encode()

    return b"\x00\x01" + text(group) + text("orders") + bytes(4)


def commit_value(offset: int) -> bytes:
    return b"\x00\x03" + offset.to_bytes(8, "big") + b"\xff" * 4 + bytes(2) + bytes(8)
