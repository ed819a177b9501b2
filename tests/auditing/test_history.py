"""Runs that know of earlier ones: what has not changed is not read again, growth, since when."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkalog.auditing.history import slope
from kafkalog.auditing.log_dir_rows import days_until_full
from kafkalog.auditing.packed_text import pack_text, unpack_text
from kafkalog.auditing.partition_audit import audit_partition
from kafkalog.auditing.request import audit_request
from kafkalog.auditing.whole import AuditOptions, WholeAudit, whole_audit
from kafkalog.errors import InvalidConfigError
from tests.auditing.documents import validate
from tests.support.log_builder import START_MS, LogBuilder

DAY_MS = 86_400_000
NOW_MS = START_MS + 100 * DAY_MS
POLICY = "version: 1\nrules:\n  - {name: zstd, topics: ['*'], settings: {compression.type: zstd}}\n"


def run(
    log_dir: Path, run_dir: Path, day: int, read: list[str] | None = None, **extras: Any
) -> WholeAudit:
    def execute(tasks: Sequence[Any]) -> Any:
        for task in tasks:
            audited = audit_partition(task)
            if read is not None and not audited.is_carried:
                read.append(audited.name)
            yield audited

    request = audit_request(
        [str(log_dir)],
        {
            "now_ms": NOW_MS + day * DAY_MS,
            "run_dir": str(run_dir),
            "config": ["cleanup.policy=delete"],
        },
    )
    whole = whole_audit(request, AuditOptions(**extras), execute, lambda: NOW_MS + day * DAY_MS)
    validate(json.loads(json.dumps(whole.document)))
    return whole


def write_log(log_dir: Path, name: str, batches: int = 3) -> LogBuilder:
    log = LogBuilder(log_dir, name).segment()
    for _ in range(batches):
        log.batch(("k", "v" * 100), ("l", "w" * 100))
    log.segment().batch(("k", "last")).write()
    return log


def comparable(whole: WholeAudit) -> dict[str, Any]:
    left_out = ("seconds", "history", "logDirs")
    return {name: value for name, value in whole.document.items() if name not in left_out}


@pytest.mark.parametrize("change", ["grown", "touched", "replaced", "removed"])
def test_only_what_changed_is_read_again(log_dir: Path, tmp_path: Path, change: str) -> None:
    for number in range(4):
        write_log(log_dir, f"many-{number}")
    read: list[str] = []
    run(log_dir, tmp_path, 0, read)
    assert len(read) == 4
    log = next((log_dir / "many-2").glob("*[1-9].log"))
    if change == "grown":
        log.write_bytes(log.read_bytes() + next((log_dir / "many-2").glob("*0.log")).read_bytes())
    elif change == "touched":
        os.utime(log, ns=(1, 1))
    elif change == "replaced":
        data, stat = log.read_bytes(), log.stat()
        log.rename(log_dir / "old")
        log.write_bytes(data)
        (log_dir / "old").unlink()
        os.utime(log, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    else:
        log.unlink()
    read.clear()
    later = run(log_dir, tmp_path, 1, read)
    assert read == ["many-2"]
    told = "not read again, for unchanged since an earlier run: 3 partitions, and 1 segment of"
    assert told in "\n".join(later.notes)
    fresh = run(log_dir, tmp_path / "other", 1)
    assert comparable(later) == comparable(fresh)


def test_an_unchanged_log_is_judged_by_the_time_of_the_later_run(
    log_dir: Path, tmp_path: Path
) -> None:
    """With producers and a transaction: what expires meanwhile is as a broker would see it."""
    log = LogBuilder(log_dir, "orders-0").segment()
    log.batch(("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0)
    log.segment().batch(("b", "2"), producer_id=8, producer_epoch=0, base_sequence=0)
    log.batch(("c", "3"), producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.write()
    for day in (-100, -99, 0, 30):
        read: list[str] = []
        carried = run(log_dir, tmp_path / "kept", day, read)
        assert (read == []) == (day == 30)  # before, there was always one more to expire
        assert comparable(carried) == comparable(run(log_dir, tmp_path / str(day), day))


def damaged(text: str, damage: str) -> str:
    """A kept scan, whose key still fits but for another version."""
    if damage == "text":
        return text[:200] + "[" * 9000
    if damage == "cut":
        return text[: len(text) // 2]
    if damage == "row":
        return text.replace("[", "[5,", 3).replace("[5,", "[", 1)
    return text.replace('"key":"', '"key":"0').replace('["', '["0', 1)


def write_other_numbers(run_path: Path, damage: str) -> None:
    """Those of a sound log, too few, of no codec, or by other code."""
    with np.load(run_path / "logs.npz") as file:
        arrays = dict(file)
    if damage == "version":
        arrays["code"] = np.frombuffer(b"other", np.uint8)
    elif damage == "text":
        arrays["segment.codec"] = arrays["segment.codec"] + 9
    elif damage == "row":
        arrays["counts.slice"] = arrays["counts.slice"] - 1
    else:
        arrays["segment.base_offset"] = arrays["segment.base_offset"][1:]
    np.savez(run_path / "logs.npz", **arrays)


@pytest.mark.parametrize("damage", ["text", "cut", "file", "version", "row"])
def test_a_history_that_cannot_be_read_is_told_and_not_used(
    log_dir: Path, tmp_path: Path, damage: str
) -> None:
    write_log(log_dir, "orders-0")
    run(log_dir, tmp_path, 0)
    (kept,) = tmp_path.iterdir()
    path = kept / "scans.parquet"
    if damage == "file":
        path.write_bytes(b"PAR1 no parquet PAR1")
    else:
        table = pq.read_table(path)
        assert table.column_names[:4] == ["path", "digest", "directory", "scan"]
        packed = pack_text(damaged(unpack_text(table["scan"][0].as_py()), damage))
        table = table.set_column(3, "scan", pa.array([packed], pa.large_binary()))
        pq.write_table(table, path)
        write_other_numbers(kept, damage)
    read: list[str] = []
    later = run(log_dir, tmp_path, 1, read)
    assert read == ["orders-0"]
    assert ("left out of the history" in "\n".join(later.notes)) == (
        damage in ("file", "cut", "row")
    )


def test_growth_and_days_until_full(log_dir: Path, tmp_path: Path) -> None:
    sizes = []
    for day in range(4):
        write_log(log_dir, f"orders-{day}", batches=20)
        whole = run(log_dir, tmp_path, day, capacity={"": 1_000_000})
        sizes.append(whole.document["totals"]["bytes"])
    (row,) = whole.document["logDirs"]
    assert (row["brokerId"], row["bytes"], row["capacityBytes"]) == (1, sizes[-1], 1_000_000)
    assert row["growthBytesPerDay"] == pytest.approx(sizes[1] - sizes[0], rel=0.05)
    assert row["daysUntilFull"] == pytest.approx(
        (1_000_000 - sizes[-1]) / row["growthBytesPerDay"], abs=0.06
    )
    assert whole.document["history"]["runs"] == 3
    (growth,) = whole.document["history"]["growth"]
    assert growth == {"topic": "orders", "bytesPerDay": row["growthBytesPerDay"]}
    assert sum((path / "scans.parquet").exists() for path in tmp_path.iterdir()) == 1


def test_a_first_run_knows_no_growth(log_dir: Path, tmp_path: Path) -> None:
    write_log(log_dir, "orders-0")
    document = run(log_dir, tmp_path, 0).document
    assert document["history"] is None
    assert document["logDirs"][0]["growthBytesPerDay"] is None
    with pytest.raises(InvalidConfigError, match="not audited"):
        run(log_dir, tmp_path, 1, capacity={"/elsewhere": 5})


def test_a_violation_is_dated_by_the_first_run_that_saw_it(log_dir: Path, tmp_path: Path) -> None:
    write_log(log_dir, "orders-0")
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    for day in range(3):
        whole = run(log_dir, tmp_path / "runs", day, policy=str(policy))
    (found,) = [f for f in whole.document["findings"] if f["id"] == "policy-setting"]
    assert found["text"].endswith("since 2024-02-22T22:13:20.000Z")
    assert whole.document["policy"]["violations"] == 1


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], None), ([(0, 5)], None), ([(0, 5), (0, 9)], None), ([(0, 0), (DAY_MS, 10)], 10),
        ([(0, 100), (DAY_MS, 50), (2 * DAY_MS, 0)], -50), ([(0, 7), (DAY_MS // 2, 7)], 0),
    ],
)  # fmt: skip
def test_growth_is_the_slope_of_all_runs(
    points: list[tuple[int, int]], expected: int | None
) -> None:
    assert slope(points) == expected


@pytest.mark.parametrize(
    ("size", "capacity", "growth", "days"),
    [(50, 100, 5, 10.0), (100, 100, None, 0.0), (50, 100, 0, None), (50, 100, -5, None),
     (50, None, 5, None), (50, 100, None, None), (150, 100, -5, 0.0)],
)  # fmt: skip
def test_days_until_full(
    size: int, capacity: int | None, growth: int | None, days: float | None
) -> None:
    assert days_until_full(size, capacity, growth) == days
