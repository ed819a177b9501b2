"""What a run says of partitions it did nothing to: no undo of nothing, no made-up counts."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from kafkalog.operations.run_frame import NOTHING_REPLACED
from kafkalog.swap import segment_deletion
from tests.support.log_builder import START_MS, LogBuilder

DAY_MS = 86_400_000
COMPACT = (
    "compact",
    "--config",
    "cleanup.policy=compact",
    "--config",
    "min.cleanable.dirty.ratio=0",
)
RETAIN = ("retain", "--config", "cleanup.policy=delete", "--config", "retention.ms=1000")


@pytest.fixture
def said(log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """A run with --apply over topic t: (exit code, its document, what people are told)."""

    def run(*words: str) -> tuple[int, dict[str, Any], str]:
        rest = ["--log-dir", str(log_dir), "--topic", "t", "--run-dir", str(tmp_path / "runs")]
        if words[0] != "recover":
            rest += ["--now", str(START_MS + 30 * DAY_MS)]
        capsys.readouterr()
        assert main([*words, *rest, "--json"]) in (0, 1, 3)
        document = json.loads(capsys.readouterr().out)
        code = main([*words, *rest, "--apply"])
        out, err = capsys.readouterr()
        return code, document, out + err

    return run


def write(log_dir: Path, *segments: tuple[str, ...]) -> Path:
    log = LogBuilder(log_dir, "t-0")
    for keys in segments:
        log.segment().batch(*((key or None, "v") for key in keys))
    return log.write()


@pytest.mark.parametrize(
    ("words", "segments", "status"),
    [
        (COMPACT, (("a",),), "skip"),  # the active segment alone
        (COMPACT, (("a", ""), ("a",)), "refused"),  # a record without a key
        ((*RETAIN[:-1], "retention.ms=-1"), (("a",),), "skip"),
        (("recover",), (("a",), ("a",)), "sound"),
    ],
)
def test_where_nothing_was_replaced_no_undo_is_offered(
    log_dir: Path, said: Any, words: tuple[str, ...], segments: Any, status: str
) -> None:
    write(log_dir, *segments)
    _, _, told = said(*words)
    assert f" {status} " in told or status in ("skip",)
    assert NOTHING_REPLACED in told
    assert "puts them back" not in told
    assert "0 bytes to 0" not in told


def test_where_something_was_replaced_it_is_offered(log_dir: Path, said: Any) -> None:
    write(log_dir, ("a", "a"), ("a", "b"), ("c",))
    _, _, told = said(*COMPACT)
    assert "puts them back" in told
    assert NOTHING_REPLACED not in told


def test_the_command_that_is_offered_finds_the_run(log_dir: Path, said: Any) -> None:
    """Which is not kept where runs are by default."""
    path = write(log_dir, ("a", "a"), ("a", "b"), ("c",)) / f"{0:020d}.log"
    before = path.read_bytes()
    _, _, told = said(*COMPACT)
    assert path.read_bytes() != before
    offered = told.partition("kept: kafkalog ")[2].partition(" puts them back")[0]
    assert main(shlex.split(offered)) == 0
    assert path.read_bytes() == before


def test_a_partition_that_failed_midway_can_be_undone(
    log_dir: Path, said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(log_dir, ("a", "a"), ("a", "b"), ("c",))
    kept = log_dir / "t-0"

    def fail(plan: object, journal: Any, scratch: Any, files: object) -> None:
        (kept / scratch.undo("x")).touch()
        raise OSError("in the middle")

    monkeypatch.setattr(segment_deletion, "_retain", fail)
    monkeypatch.setattr(segment_deletion, "clear_run", lambda scratch, files: [])
    _, _, told = said(*RETAIN)
    assert "failed" in told
    assert "puts them back" in told
    row = next(line for line in told.splitlines() if line.startswith("t-0"))
    assert row.split()[2:7] == ["-"] * 5  # what was deleted nobody counted


@pytest.mark.parametrize("words", [COMPACT, RETAIN, ("recover",)])
def test_of_what_is_refused_unread_no_count_is_told(
    log_dir: Path, said: Any, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    path = write(log_dir, ("a",), ("a",))
    path.rename(log_dir / f"t-0.{'a' * 32}-delete")
    _, document, told = said(*words)
    (row,) = document["partitions"]
    assert row["status"] == "refused"
    counts = {
        "compact": ("bytesAfter", "recordsRead", "removed"),
        "retain": ("deletedBytes",),
        "recover": ("segmentsCount", "batchesCount", "bytesRead"),
    }
    assert [row[name] for name in counts[words[0]]] == [None] * len(counts[words[0]])
    line = next(line for line in told.splitlines() if line.startswith("t-0"))
    assert words[0] == "compact" or line.split()[2:4] == ["-", "-"]
