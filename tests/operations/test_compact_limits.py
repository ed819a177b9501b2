"""Runs with an end: `--max-bytes` and `--max-minutes`, in worker processes and without."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalog import clock
from kafkalog.cli.main import main
from kafkalog.operations.compact import apply_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.requests.run_request import CompactionRequest
from tests.cleaning.test_laws import CONFIG
from tests.operations.faults.logs import contents
from tests.operations.test_compact import NOW_MS, checkpoint
from tests.support.log_builder import START_MS, LogBuilder

# t-1 is dirty from the start, t-2 from its second segment on, t-0 in its last one only
DIRTY_FROM = {0: 4, 1: 0, 2: 2}
DIRTIEST_FIRST = [1, 2, 0]


@pytest.fixture
def three(log_dir: Path) -> Path:
    for partition, dirty_from in DIRTY_FROM.items():
        log = LogBuilder(log_dir, f"t-{partition}")
        for number in range(3):
            log.segment(modified_ms=START_MS).batch(("a", str(number)), ("b", str(number)))
        log.segment().batch(("a", "new"), ("c", "new")).cleaner_offset(dirty_from).write()
    return log_dir


def run(
    log_dir: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    where = ["compact", "--log-dir", str(log_dir), "--topic", "t", "--json", f"--now={NOW_MS}"]
    settings = ["--config=cleanup.policy=compact", "--config=min.cleanable.dirty.ratio=0"]
    code = main([*where, *settings, *words])
    return code, json.loads(capsys.readouterr().out)


def statuses(document: dict[str, Any]) -> list[str]:
    return [partition["status"] for partition in document["partitions"]]


def bytes_of_one(log_dir: Path) -> int:
    """What a round reads of any of the three: all but the active segment."""
    logs = sorted((log_dir / "t-0").glob("*.log"))[:-1]
    return sum(log.stat().st_size for log in logs)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_runs_of_so_many_bytes_come_to_everything_in_the_end(
    three: Path, workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = f"--max-bytes={2 * bytes_of_one(three) - 1}"
    before = contents(three)
    code, planned = run(three, capsys, limit)
    assert code == 0  # a plan: nothing is left undone
    assert statuses(planned) == ["left", "clean", "left"]
    assert "left for the next run: --max-bytes" in planned["partitions"][0]["reason"]
    assert contents(three) == before
    for done, partition in enumerate(DIRTIEST_FIRST, 1):
        code, document = run(three, capsys, limit, "--apply", "--workers", workers)
        by_number = dict(enumerate(statuses(document)))
        for number in DIRTIEST_FIRST[: done - 1]:
            assert by_number.pop(number) == "skip"  # clean since the run before
        assert by_number.pop(partition) == "compacted"
        assert set(by_number.values()) <= {"left"}
        assert code == (1 if by_number else 0)
        ends = dict.fromkeys(DIRTIEST_FIRST[:done], 6)
        assert checkpoint(three) == {("t", n): ends.get(n, DIRTY_FROM[n]) for n in DIRTY_FROM}
    code, document = run(three, capsys, limit, "--apply")
    assert (code, statuses(document)) == (0, ["skip"] * 3)


def test_the_limit_of_one_partition_is_not_its_dirty_part(
    three: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A round over t-2 reads its clean segment as well, and so does one over t-0."""
    _, document = run(three, capsys, f"--max-bytes={3 * bytes_of_one(three) - 1}")
    assert statuses(document) == ["left", "clean", "clean"]
    _, document = run(three, capsys, f"--max-bytes={3 * bytes_of_one(three)}")
    assert statuses(document) == ["clean"] * 3


def test_limited_runs_leave_what_an_unlimited_one_does(
    three: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(three, copy)
    for _ in DIRTY_FROM:
        run(three, capsys, "--max-bytes=1", "--apply")
    assert run(copy, capsys, "--apply")[0] == 0
    assert contents(three) == contents(copy)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_partition_is_begun_when_the_minutes_are_over(
    three: Path, workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(three)
    words = ["--max-minutes=0.000000001", "--apply", "--workers", workers]
    code, document = run(three, capsys, *words)
    assert (code, statuses(document)) == (1, ["left"] * 3)
    assert "--max-minutes had passed" in document["partitions"][0]["reason"]
    assert contents(three) == before
    code, document = run(three, capsys, "--max-minutes=10", "--apply", "--workers", workers)
    assert (code, statuses(document)) == (0, ["compacted"] * 3)


def test_the_dirtiest_is_done_before_the_minutes_are_over(
    three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter([0.0, 59.9, 60.0, 60.1])  # the run begins, then each partition's turn
    # Of the clock alone: any library asks the module `time` when it likes.
    fake = SimpleNamespace(time=lambda: next(moments), time_ns=time.time_ns)
    monkeypatch.setattr(clock, "time", fake)
    request = CompactionRequest((str(three),), NOW_MS, CONFIG, topics=("t",), max_minutes=1)
    run = apply_run(request, clean_pack)
    done = {result.partition: result.status for result in run.results}
    assert done == {1: "compacted", 2: "left", 0: "left"}
    assert checkpoint(three) == {("t", 0): 4, ("t", 1): 6, ("t", 2): 2}


def test_the_summary_says_what_is_left(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["compact", "--log-dir", str(three), "--topic", "t", "--max-bytes=1"]
    settings = ["--config=cleanup.policy=compact", "--config=min.cleanable.dirty.ratio=0"]
    assert main([*where, *settings]) == 0
    assert "3 partitions planned in" in (err := capsys.readouterr().err)
    assert "2 left for the next run" in err
    assert main([*where, *settings, "--apply"]) == 1
    out, err = capsys.readouterr()
    assert "1 of 3 partitions compacted in" in err
    assert "2 left for the next run" in err
    assert out.count("left for the next run: --max-bytes 1 ends this one after") == 2


@pytest.mark.parametrize("word", ["--max-bytes=0", "--max-minutes=0", "--max-minutes=-1"])
def test_a_limit_of_nothing_is_wrong_usage(three: Path, word: str) -> None:
    assert main(["compact", "--log-dir", str(three), word]) == 2


def test_time_is_read_from_the_clock() -> None:
    before_ms, now_ms, after_ms = time.time() * 1000, clock.now_ms(), time.time() * 1000
    assert before_ms - 1 <= now_ms <= after_ms + 1
    assert not clock.has_passed(None)
    assert not clock.has_passed(clock.seconds_in(1))
    assert clock.has_passed(clock.seconds_in(-1))
