"""What `segments` takes of the last audit is what it reads itself, also where something changed."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import copy_sample
from kafkalog.auditing import kept_directories
from kafkalog.cli import main as cli
from kafkalog.cli import segments
from kafkalog.format import checkpoints
from kafkalog.log.kept_logs import LOGS_FILE
from kafkalog.reading.log_views import SegmentTask, segment_row
from tests.auditing.test_sound_logs import NOW_MS, write_disk
from tests.support.log_builder import LogBuilder

_DAY_MS = 86_400_000
SEEDS = [0, 1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 40))]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the segments whose headers `segments` reads."""
    seen: list[str] = []

    def spy(task: SegmentTask) -> dict[str, object]:
        seen.append(task.path)
        return segment_row(task)

    monkeypatch.setattr(segments, "segment_row", spy)
    return seen


class Verbs:
    """The verbs on one disk."""

    def __init__(self, disk: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.disk, self.runs, self._capsys = disk, runs, capsys
        self._day = 0

    def audit(self, *words: str) -> None:
        self._day += 1
        now = str(NOW_MS + self._day * _DAY_MS)
        self._run("audit", "--now", now, "--config", "cleanup.policy=delete", *words)

    def segments(self, *words: str) -> tuple[int, Any]:
        code, text = self._run("segments", "--json", *words)
        return code, json.loads(text)

    def anew(self, *words: str) -> tuple[int, Any]:
        """Without anything kept."""
        own, self.runs = self.runs, self.runs / "none"
        try:
            return self.segments(*words)
        finally:
            self.runs = own

    def _run(self, verb: str, *words: str) -> tuple[int, str]:
        more = ("--workers", "1") if verb == "audit" else ()
        where = ("--log-dir", str(self.disk), "--run-dir", str(self.runs))
        code = cli.main([verb, *where, *more, *words])
        assert code in (0, 1)
        return code, self._capsys.readouterr().out


def odd_indexes(disk: Path, rnd: random.Random) -> None:
    """Some indexes as crashes, copies and bad disks leave them."""
    paths = sorted((*disk.glob("t*-0/*.index"), *disk.glob("t*-0/*.timeindex")))
    for path in rnd.sample(paths, len(paths) // 2):
        data, is_time = path.read_bytes(), path.suffix == ".timeindex"
        entry = 12 if is_time else 8
        ends: dict[str, bytes | None] = {
            "zeros": data + bytes(entry * rnd.randint(1, 9)),
            "part": data + b"\0" * rnd.randint(1, entry - 1),
            "never": bytes(entry * 4),
            "corrupt": data + b"\xff" * entry,
            "far": rnd.randint(1, 2**40).to_bytes(8, "big") * 3,
            "near": rnd.randint(0, 4).to_bytes(entry - 4, "big")
            + rnd.randint(1, 400).to_bytes(4, "big"),
            "none": None,
        }
        content = ends[rnd.choice(sorted(ends))]
        path.unlink() if content is None else path.write_bytes(content)


def changes(disk: Path, rnd: random.Random) -> Iterator[str]:
    """What happens one after the other; the path of a directory that it happened to."""
    logs = sorted(path.parent for path in disk.glob("t*-0/partition.metadata"))
    for kind in ("touched", "index", "removed", "added", "cut"):
        left = [each for each in logs if list(each.glob("*.log"))]
        if not left:
            return
        log = rnd.choice(left)
        files = sorted(log.glob("*.log"))
        one = rnd.choice(files)
        if kind == "touched":
            os.utime(one, ns=((NOW_MS - rnd.randint(1, 99)) * 1_000_000,) * 2)
        elif kind == "index":
            one.with_suffix(".index").write_bytes(rnd.randbytes(8))
        elif kind == "removed":
            for path in log.glob(f"{one.stem}.*"):
                path.unlink()
        elif kind == "added":
            shutil.copy(one, log / f"{int(files[-1].stem) + 1000:020}.log")
        else:
            os.truncate(one, max(one.stat().st_size - rnd.randint(1, 40), 0))
        yield str(log)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_kept_facts_are_those_that_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], read: list[str], seed: int
) -> None:
    rnd = random.Random(seed)
    verbs = Verbs(tmp_path / "disk", tmp_path / "runs", capsys)
    write_disk(verbs.disk, rnd, logs=12)
    odd_indexes(verbs.disk, rnd)
    verbs.audit()
    expected = verbs.anew()
    whole = len(read)
    read.clear()
    assert verbs.segments() == expected
    assert len(read) < whole
    for _ in range(2):
        for path in changes(verbs.disk, rnd):
            expected = verbs.anew()
            read.clear()
            assert verbs.segments() == expected
            paths = [row["path"] for row in expected[1]["segments"]]
            assert {own for own in paths if own.startswith(f"{path}/")} <= {*read}
        verbs.audit()
        expected = verbs.anew()
        assert verbs.segments() == expected


def sound_disk(tmp_path: Path) -> Path:
    disk = tmp_path / "disk"
    for number in range(3):
        log = LogBuilder(disk, f"t{number}-0", index_interval_bytes=1)
        for _ in range(3):
            log.segment(modified_ms=NOW_MS - _DAY_MS)
            for _ in range(4):
                log.batch(("k", "v" * 50), timestamp=NOW_MS - _DAY_MS)
        log.write()
    lines = {(f"t{number}", 0): 12 for number in range(3)}
    for name in (checkpoints.HIGH_WATERMARK_FILE, checkpoints.RECOVERY_POINT_FILE):
        (disk / name).write_bytes(checkpoints.pack_offset_checkpoint(lines))
    return disk


def test_nothing_is_read_of_what_is_as_it_was(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], read: list[str]
) -> None:
    verbs = Verbs(sound_disk(tmp_path), tmp_path / "runs", capsys)
    expected = verbs.anew()
    assert {row["indexState"] for row in expected[1]["segments"]} == {"whole"}
    verbs.audit()
    read.clear()
    assert verbs.segments() == expected
    assert verbs.segments("--topic", "t1")[1]["segments"] == [
        row for row in expected[1]["segments"] if row["topic"] == "t1"
    ]
    assert read == []
    # Where a file was touched its directory is read, and no other.
    log = verbs.disk / "t1-0"
    os.utime(log / f"{0:020}.index", ns=(NOW_MS, NOW_MS))
    expected = verbs.anew()
    read.clear()
    assert verbs.segments() == expected
    assert read == [str(path) for path in sorted(log.glob("*.log"))]


def test_of_segments_that_an_audit_did_not_walk_over_the_logs_are_read(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], read: list[str]
) -> None:
    verbs = Verbs(sound_disk(tmp_path), tmp_path / "runs", capsys)
    verbs.audit()
    log = verbs.disk / "t1-0"
    index = log / f"{4:020}.index"
    index.write_bytes(index.read_bytes()[:-1] + b"\x07")
    os.utime(log / f"{0:020}.log", ns=(NOW_MS, NOW_MS))
    verbs.audit()
    expected = verbs.anew()
    states = [row["indexState"] for row in expected[1]["segments"] if row["topic"] == "t1"]
    assert states == ["whole", "stale", "whole"]
    read.clear()
    assert verbs.segments() == expected
    assert read == [str(log / f"{base:020}.log") for base in (4, 8)]


def test_facts_of_other_code_or_another_audit_do_not_count(
    log_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    read: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verbs = Verbs(sound_disk(tmp_path), tmp_path / "runs", capsys)
    verbs.audit("--topic", "t1")
    assert verbs.segments() == verbs.anew()
    read.clear()
    verbs.segments()
    assert len(read) == 9
    read.clear()
    verbs.segments("--topic", "t1")
    assert read == []
    with monkeypatch.context() as patch:
        patch.setattr(kept_directories, "code_digest", lambda: "other")
        verbs.segments("--topic", "t1")
    assert len(read) == 3


def test_a_kept_file_that_is_no_good_is_said_and_not_taken(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], read: list[str]
) -> None:
    verbs = Verbs(sound_disk(tmp_path), tmp_path / "runs", capsys)
    verbs.audit()
    (kept,) = verbs.runs.glob(f"*/{LOGS_FILE}")
    kept.write_bytes(kept.read_bytes()[:-9])
    read.clear()
    where = ("--log-dir", str(verbs.disk), "--run-dir", str(verbs.runs))
    assert cli.main(["segments", "--json", *where]) == 0
    out, err = capsys.readouterr()
    assert (0, json.loads(out)) == verbs.anew()
    assert str(kept) in err
    assert len(read) == 18


@pytest.mark.parametrize("name", ["broker", "replicas/node1", "tiered/data"])
def test_rows_of_the_samples_are_those_that_are_read(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], read: list[str], name: str
) -> None:
    verbs = Verbs(copy_sample(name, tmp_path / "disk"), tmp_path / "runs", capsys)
    verbs.audit()
    expected = verbs.anew()
    whole = len(read)
    read.clear()
    assert verbs.segments() == expected
    assert len(read) < whole or name != "broker"  # none of the others is of the plain kind
