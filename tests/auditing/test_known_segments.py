"""Of a log that has changed, only the segments that are new or changed are read again, and what is
said of it is what a first audit would say.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog.auditing.known_scan import recall_segments
from kafkalog.auditing.packed_text import pack_text
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log import segment_facts
from kafkalog.log.segment_headers import iterate_headers
from tests.auditing.test_history import comparable, run
from tests.support.log_builder import LogBuilder

_opened: list[str] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None:
        _opened.append(str(arguments[0]))


sys.addaudithook(_hook)


@pytest.fixture
def read_logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the `.log` files whose headers a scan of a partition walked over."""
    seen: list[str] = []

    def spy(path: str, *arguments: Any, **options: Any) -> Any:
        seen.append(Path(path).name.lstrip("0"))
        return iterate_headers(path, *arguments, **options)

    monkeypatch.setattr(segment_facts, "iterate_headers", spy)
    return seen


def sync(source: Path, target: Path) -> None:
    """Make target as source is; files with the same bytes are left alone."""
    target.mkdir(parents=True, exist_ok=True)
    for path in target.iterdir():
        if not (source / path.name).exists():
            path.unlink()
    for path in sorted(source.iterdir()):
        if path.is_dir():
            sync(path, target / path.name)
        elif not (target / path.name).exists() or (
            (target / path.name).read_bytes() != path.read_bytes()
        ):
            (target / path.name).write_bytes(path.read_bytes())
            os.utime(target / path.name, ns=(path.stat().st_mtime_ns,) * 2)


def steps(rnd: random.Random, *, transactional: bool) -> list[tuple[Any, ...]]:
    """What happens to a log: producers write, transactions end, segments roll."""
    found: list[tuple[Any, ...]] = []
    for _ in range(rnd.randint(12, 50)):
        kind = rnd.random()
        producer = rnd.randint(1, 3)
        if kind < 0.2:
            found.append(("roll",))
        elif kind < 0.45 and transactional:
            found.append(("end", producer, rnd.choice(list(ControlRecordType)[:2])))
        else:
            found.append(
                ("write", producer if transactional or kind < 0.7 else -1, rnd.randint(1, 3))
            )
    return found


def build(log_dir: Path, done: list[tuple[Any, ...]], *, transactional: bool) -> LogBuilder:
    log = LogBuilder(log_dir, "orders-0").segment()
    for step in done:
        if step[0] == "roll" and log.segments[-1].log:
            log.segment()
        elif step[0] == "end":
            log.marker(step[2], step[1])
        elif step[0] == "write":
            header: dict[str, Any] = {} if step[1] < 0 else {"producer_id": step[1]}
            records = [("k", "v" * 20)] * step[2]
            log.batch(*records, **header, is_transactional=transactional)
    return log


@pytest.mark.parametrize(
    "seed",
    [
        0,
        *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, 6)),
        *(pytest.param(n, marks=pytest.mark.soak) for n in range(6, 200)),
    ],
)
def test_a_log_that_goes_on_is_told_as_if_it_were_new(
    log_dir: Path, tmp_path: Path, seed: int
) -> None:
    rnd = random.Random(seed)
    transactional = seed % 4 != 3
    done = steps(rnd, transactional=transactional)
    carried = 0
    end = rnd.randint(1, len(done))
    for number in range(4):
        log = build(tmp_path / f"stage{number}", done[:end], transactional=transactional)
        if is_cleaned := rnd.random() < 0.4:
            log.cleaner_offset(rnd.randint(0, log.next_offset))
        if rnd.random() < 0.3:
            log.high_watermark(rnd.randint(0, log.next_offset))
        if rnd.random() < 0.3:
            log.log_start_offset(rnd.randint(0, log.next_offset))
        log.write(clean_shutdown=rnd.random() < 0.5)
        if rnd.random() < 0.3:
            for snapshot in log.path.glob("*.snapshot"):
                if rnd.random() < 0.5:
                    snapshot.unlink()
        while len(log.segments) > 1 and rnd.random() < 0.2:
            first = log.segments.pop(0)
            for path in log.path.glob(f"{first.base_offset:020}.*"):
                path.unlink()
        sync(tmp_path / f"stage{number}", log_dir)
        day = number * rnd.choice((0, 1, 2)) - 100
        again = run(log_dir, tmp_path / "runs", max(day, number - 100))
        fresh = run(log_dir, tmp_path / f"fresh{number}", max(day, number - 100))
        told, as_new = comparable(again), comparable(fresh)
        if is_cleaned:  # a compacted topic grows as earlier audits saw it grow
            del told["whatIf"], as_new["whatIf"]
        assert told == as_new, f"stage {number}"
        carried += again.run.partitions[0].carried_segments
        end = min(len(done), end + rnd.randint(0, 12))
    assert carried or len(log.segments) < 3


def test_only_new_and_changed_segments_are_read(
    log_dir: Path, tmp_path: Path, read_logs: list[str]
) -> None:
    log = LogBuilder(log_dir / "old", "orders-0")
    for _ in range(3):
        log.segment().batch(("k", "v")).batch(("k", "w"), producer_id=3)
    log.write()
    run(log_dir / "old", tmp_path, 0)
    assert read_logs == [".log", "2.log", "4.log"]
    more = LogBuilder(log_dir / "new", "orders-0")
    for number in range(4):
        more.segment().batch(("k", "v")).batch(("k", "w"), producer_id=3)
        if number == 2:
            more.batch(("k", "grown"))
    more.write()
    sync(log_dir / "new", log_dir / "old")
    read_logs.clear()
    later = run(log_dir / "old", tmp_path, 1)
    assert read_logs == ["4.log", "7.log"]
    assert later.run.partitions[0].carried_segments == 2
    os.utime(log_dir / "old/orders-0/00000000000000000002.log", ns=(1, 1))
    read_logs.clear()
    run(log_dir / "old", tmp_path, 2)
    assert read_logs == ["2.log", "7.log"]  # the last one: what producers did behind the snapshot


def test_without_a_snapshot_segments_with_producers_are_read_again(
    log_dir: Path, tmp_path: Path, read_logs: list[str]
) -> None:
    log = LogBuilder(log_dir, "orders-0").segment().batch(("k", "v"), producer_id=3)
    log.segment().batch(("k", "v")).segment().batch(("k", "v")).write()
    for snapshot in log.path.glob("*.snapshot"):
        snapshot.unlink()
    run(log_dir, tmp_path, 0)
    os.utime(log.path / "00000000000000000001.log", ns=(1, 1))
    read_logs.clear()
    run(log_dir, tmp_path, 1)
    assert read_logs == [".log", "1.log"]


def test_of_what_is_unchanged_no_header_is_scanned(
    log_dir: Path, tmp_path: Path, read_logs: list[str]
) -> None:
    """The leader epochs are looked at again, and one batch of a log that is compacted."""
    global _opened
    for number in range(3):
        log = LogBuilder(log_dir, f"orders-{number}")
        for _ in range(3):
            log.segment().batch(("k", "v"), producer_id=3)
        log.write()
    run(log_dir, tmp_path, 0)
    read_logs.clear()
    _opened = []
    try:
        later = run(log_dir, tmp_path, 1)
        opened = [Path(path).name for path in _opened if "/orders-" in path]
        in_all = len(_opened)
    finally:
        _opened = None
    assert all(partition.is_carried for partition in later.run.partitions)
    assert read_logs == []
    assert {*opened} <= {"leader-epoch-checkpoint", *(f"{n:020d}.log" for n in range(3))}
    assert len(opened) <= 3 * 4
    assert in_all  # the log dir's own files, and the runs


def test_a_segment_with_another_abort_is_read_again(
    log_dir: Path, tmp_path: Path, read_logs: list[str]
) -> None:
    """Whose data it is depends on the transaction index, which is another file."""
    log = LogBuilder(log_dir, "orders-0").segment()
    log.batch(("k", "v"), producer_id=3, is_transactional=True)
    log.marker(ControlRecordType.ABORT, 3)
    log.segment().batch(("k", "v")).write()
    before = run(log_dir, tmp_path, 0).document["contents"]
    (index,) = log.path.glob("*.txnindex")
    index.unlink()
    read_logs.clear()
    after = run(log_dir, tmp_path, 1).document["contents"]
    assert ".log" in read_logs
    assert (before[0]["abortedBytes"] > 0, after[0]["abortedBytes"]) == (True, 0)


@pytest.mark.parametrize("text", ["", "{}", "[", "[" * 100_000, '{"version":"0","segments":[]}'])
def test_segments_that_cannot_be_understood_are_not_known(text: str) -> None:
    assert recall_segments(pack_text(text)) == {}


def test_times_are_those_of_the_log(log_dir: Path, tmp_path: Path) -> None:
    """The active segment that rolled meanwhile counts as a closed one, though its file is the
    same.
    """
    log = LogBuilder(log_dir / "old", "orders-0").segment().batch(("k", "v"))
    log.write()
    run(log_dir / "old", tmp_path, 0)
    more = LogBuilder(log_dir / "new", "orders-0").segment().batch(("k", "v"))
    more.segment().batch(("k", "w")).write()
    sync(log_dir / "new", log_dir / "old")
    later = run(log_dir / "old", tmp_path, 1)
    assert later.run.partitions[0].carried_segments == 1
    (row,) = later.document["ageHistogram"]
    sizes = [path.stat().st_size for path in sorted(log.path.glob("*.log"))]
    assert (row["closedBytes"], row["activeBytes"]) == tuple(sizes)
