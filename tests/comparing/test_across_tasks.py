"""A partition compared by many tasks: what they find is what one task finds."""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.cli import compare as verb
from kafkalog.cli.main import main
from kafkalog.comparing.across_tasks import (
    IN_ONE_PIECE,
    CompareAcross,
    compare_across,
    execute_by_size,
)
from kafkalog.comparing.comparison import compare_partition
from kafkalog.comparing.range_rows import ENTRIES, FACTS, FAILED, JUDGED
from kafkalog.comparing.request import CompareRequest, CompareTask, compare_tasks
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from tests.comparing.comparing import as_node, in_stages
from tests.support.log_builder import START_MS, LogBuilder

KEYS = (*"abcdefghij", None)
PRODUCERS = (7, 8)
OFFSETS = 90


def write_copy(log_dir: Path, history: random.Random, own: random.Random) -> Path:
    """A copy of a history: segments cut anywhere, records and markers lost, values changed."""
    log = LogBuilder(log_dir, "orders-0", index_interval_bytes=60).segment()
    loses, changes, cuts = own.choice((0.0, 0.2)), own.choice((0.0, 0.05)), own.random() / 3
    end = OFFSETS - own.choice((0, 0, 7))
    is_open: set[int] = set()
    for offset in range(OFFSETS):
        kind, key, producer = history.random(), history.choice(KEYS), history.choice(PRODUCERS)
        value = None if history.random() < 0.2 else f"{offset}".encode()
        end_type = history.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
        if own.random() < cuts and offset > log.segments[-1].base_offset:
            log.segment(offset)
        if own.random() < loses or offset >= end:
            continue
        if own.random() < changes:
            value = b"changed"
        data = Record(offset, START_MS + offset, None if key is None else key.encode(), value)
        if kind < 0.5:
            log.batch(data, base_offset=offset)
        elif kind < 0.8:
            log.batch(data, base_offset=offset, producer_id=producer, is_transactional=True)
            is_open.add(producer)
        elif producer in is_open:
            log.next_offset = offset
            log.marker(end_type, producer)
            is_open.discard(producer)
    if own.random() < 0.5:
        log.cleaner_offset(own.randrange(OFFSETS // 2, OFFSETS))
    if own.random() < 0.2:
        log.log_start_offset(own.randrange(OFFSETS // 2))
    log.write()
    return log_dir


def task_of(root: Path, seed: int) -> CompareTask:
    own, copies = random.Random(seed), []
    for number in range(1, own.choice((3, 4))):
        log_dir = root / f"{seed}-node-{number}"
        log_dir.mkdir()
        write_copy(log_dir, random.Random(f"history {seed}"), own)
        copies.append(str(as_node(log_dir, number)))
    (task,) = compare_tasks(CompareRequest(tuple(copies)))
    return task


def stages_of(task: CompareTask) -> CompareAcross:
    stages = compare_across(task, range_bytes=1)
    assert stages is not None
    return stages


@pytest.mark.parametrize(
    "seeds", [range(30), pytest.param(range(30, 150), marks=pytest.mark.thorough)], ids=len
)
def test_ranges_put_together_say_what_one_task_says(tmp_path: Path, seeds: range) -> None:
    found: Counter[str] = Counter()
    ranges = inside = 0
    for seed in seeds:
        task = task_of(tmp_path, seed)
        stages = compare_across(task, range_bytes=1)
        if stages is None:
            continue  # the largest copy is one segment
        whole = compare_partition(task)
        assert in_stages(stages) == [whole], seed
        assert whole.status == "compared"
        found.update(each.kind for each in whole.differences)
        ranges += len(stages.ranges)
        inside += any(s.start for span in stages.ranges for own in span.slices for s in own)
    # They differ in many ways, in many ranges, some of which begin within a segment.
    assert {"resurrected-key", "record-differs", "missing-range"} <= found.keys(), found
    assert {"aborted-served-as-committed", "open-transaction-forgotten"} <= found.keys(), found
    assert ranges > 5 * len(seeds)
    assert inside > len(seeds) / 2


def plain_logs(root: Path) -> list[Path]:
    log_dirs = []
    for number in (1, 2):
        log = LogBuilder(root / f"node-{number}", "orders-0", index_interval_bytes=60)
        (root / f"node-{number}").mkdir()
        for offset in range(40):
            if offset % (5 if number == 1 else 13) == 0:
                log.segment()
            log.batch((f"k{offset % 7}", f"{offset}"))
        log.write()
        log_dirs.append(as_node(root / f"node-{number}", number))
    return log_dirs


def plain_task(root: Path) -> CompareTask:
    (task,) = compare_tasks(CompareRequest(tuple(map(str, plain_logs(root)))))
    return task


def test_each_byte_is_in_one_range(tmp_path: Path) -> None:
    task = plain_task(tmp_path)
    stages = stages_of(task)
    assert len(stages.ranges) == 8
    for number, copy in enumerate(stages.copies):
        read = [s for span in stages.ranges for s in span.slices[number]]
        size = 0
        for n, segment in enumerate(copy.partition.segments):
            ends = [(s.start, s.end or segment.size_in_bytes) for s in read if s.number == n]
            assert [start for start, _ in ends] == [0, *(end for _, end in ends[:-1])]
            size += ends[-1][1]
        assert size == copy.size_in_bytes


@pytest.mark.parametrize("damage", ["checksum", "length", "index", "order", "end", "torn"])
def test_a_range_that_does_not_stand_alone_is_left_to_one_task(tmp_path: Path, damage: str) -> None:
    log_dirs = plain_logs(tmp_path)
    path = log_dirs[1] / "orders-0" / f"{13:020d}.log"
    data = bytearray(path.read_bytes())
    size = len(data) // 13
    if damage == "checksum":
        data[3 * size - 1] ^= 1
    elif damage == "length":
        data[4 * size + 8] = 0x7F
    elif damage == "order":
        data[5 * size + 6] = 1  # the base offset, which no checksum covers: 256 more
    elif damage == "end":
        data[11 * size + 6] = 1  # of offset 24, the last one of a range
    elif damage == "torn":
        del data[-3:]
    path.write_bytes(data)
    if damage == "index":
        # Entries that lead to a sound batch with offsets behind the ones they are for.
        index = path.with_suffix(".index")
        pairs = list(struct.iter_unpack(">ii", index.read_bytes()))
        entries = b"".join(struct.pack(">ii", offset, 12 * size) for offset, _ in pairs)
        index.write_bytes(entries)
    request = CompareRequest(tuple(map(str, log_dirs)))
    (task,) = compare_tasks(request)
    stages = compare_across(task, range_bytes=1)
    (found,) = execute_by_size([task], in_stages, _whole, least_bytes=0, range_bytes=1)
    assert found == compare_partition(task)
    assert found.status == "compared"
    if damage == "index":
        assert found.differences == ()
    else:
        assert "corrupt-copy" in {each.kind for each in found.differences}
        assert stages is None or in_stages(stages)[0].reason.startswith(IN_ONE_PIECE)


def _whole(tasks: Iterable[CompareTask]) -> Iterable[object]:
    return map(compare_partition, tasks)


@pytest.mark.parametrize(("start", "end"), [(1, 0), (0, -1)])
def test_records_of_another_range_are_seen(tmp_path: Path, start: int, end: int) -> None:
    stages = stages_of(plain_task(tmp_path))
    span = stages.ranges[2]
    moved = replace(span, start=span.start + start, end=span.end + end)
    for spans, is_alone in (((moved,), False), ((span,), True)):
        rows = list(replace(stages, ranges=spans).read(0))
        reasons = [row.facts["reason"] for row in rows if row.kind == FAILED]
        assert [reason.startswith(IN_ONE_PIECE) for reason in reasons] == [True] * (not is_alone)


def test_what_a_worker_did_not_bring_fails_the_partition(tmp_path: Path) -> None:
    stages = stages_of(plain_task(tmp_path))
    rows = [row for number in range(len(stages.ranges)) for row in stages.read(number)]
    for lost in (FACTS, JUDGED):
        kept = [row for row in rows if (row.kind, row.number) != (lost, 2)]
        by_judge = [
            stages.judge(row for row in kept if row.target == judge)
            for judge in range(stages.judges)
        ]
        last = [row for own in by_judge for row in own if (row.kind, row.number) != (lost, 0)]
        (found,) = stages.conclude(last)
        assert found.status == "failed"
        assert "a worker process died" in found.reason


def test_rows_may_come_in_any_order_and_twice(tmp_path: Path) -> None:
    task = task_of(tmp_path, 3)
    stages = stages_of(task)
    rows = [row for number in range(len(stages.ranges)) for row in stages.read(number)]
    mixed = random.Random(1)
    mixed.shuffle(rows)
    assert any(row.kind == ENTRIES for row in rows)
    judged = [
        row
        for judge in range(stages.judges)
        for row in stages.judge(row for row in rows if row.target == judge)
    ]
    mixed.shuffle(judged)
    (found,) = stages.conclude([*judged, *judged])
    assert found == compare_partition(task)


def test_the_verb_compares_a_large_partition_with_all_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dirs = plain_logs(tmp_path)
    (log_dirs[1] / "orders-0" / f"{13:020d}.log").unlink()
    documents = []
    sizes: list[int] = []

    def by_size(tasks: list[CompareTask], across: object, within: object) -> Iterable[object]:
        def counted(stages: CompareAcross) -> Iterable[object]:
            sizes.append(len(stages.ranges))
            return across(stages)  # type: ignore[operator]

        return execute_by_size(tasks, counted, within, least_bytes=0, range_bytes=1)  # type: ignore[arg-type]

    monkeypatch.setattr(verb, "execute_by_size", by_size)
    for workers in ("1", "2"):
        code = main(["compare", *map(str, log_dirs), "--json", "--workers", workers])
        document = json.loads(capsys.readouterr().out)
        documents.append((code, {**document, "seconds": 0}))
    assert documents[0] == documents[1]
    assert documents[0][0] == 1
    assert sizes == [8]
