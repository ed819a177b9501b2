"""Logs that nothing is wrong with are judged by numbers as they are judged by all rules."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkalog.auditing.audit_run import AuditRun, audit_run, open_audit
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.document import audit_document
from kafkalog.auditing.kept_scans import KeptScans, read_scans
from kafkalog.auditing.partition_audit import audit_partition
from kafkalog.auditing.request import AuditScope, audit_request
from kafkalog.auditing.scenarios import parse_scenarios
from kafkalog.auditing.sound_logs import SoundLogs
from kafkalog.auditing.sound_partitions import SoundPartition
from kafkalog.cli.json_text import json_pieces
from kafkalog.cli.main import main
from kafkalog.format import checkpoints
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log import small_logs
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.metadata_builder import MetadataBuilder, config, partition, topic

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = START_MS + 100 * DAY_MS
# A time whose nanoseconds 64 bits do not hold: what is left of it looks like yesterday.
FAR_NS = (1 << 64) + (NOW_MS - DAY_MS) * 1_000_000
_ODD = (
    "plain", "plain", "plain", "plain", "producer", "transaction", "gap", "start", "behind",
    "cleaner", "epoch", "remote", "future", "seconds", "timeless", "codecs", "torn", "leftover",
)  # fmt: skip
SETTINGS = (
    ("cleanup.policy=delete",),
    ("cleanup.policy=delete", f"retention.ms={3 * DAY_MS}"),
    ("cleanup.policy=delete", f"retention.ms={20 * DAY_MS}", f"max.compaction.lag.ms={DAY_MS}"),
    ("cleanup.policy=delete", "retention.ms=-1"),
    ("cleanup.policy=delete", "retention.ms=9223372036854775807"),
    ("cleanup.policy=delete", "retention.bytes=500"),
    ("cleanup.policy=compact",),
    ("cleanup.policy=compact,delete", "min.compaction.lag.ms=1"),
    ("cleanup.policy=delete", "min.compaction.lag.ms=7"),
    (),
)


def write_log(log_dir: Path, number: int, rnd: random.Random, *, is_clean: bool) -> None:
    """A log, mostly of no particular kind."""
    kind, log = rnd.choice(_ODD), LogBuilder(log_dir, f"t{number}-0", topic_id=topic_id(number))
    if kind == "start":
        log.segment(base_offset=rnd.choice((40, 7))).log_start_offset(rnd.choice((3, 40, 41)))
    age_ms = rnd.randint(0, 15) * DAY_MS
    for _ in range(rnd.randint(1, 4)):
        log.segment(modified_ms=NOW_MS - rnd.randint(0, 12) * DAY_MS)
        for _ in range(rnd.randint(0 if log.next_offset else 1, 2)):
            age_ms = max(age_ms - rnd.randint(-DAY_MS // 2, 3 * DAY_MS), 0)
            header = _header(kind, rnd)
            time_ms = {
                "future": NOW_MS + rnd.randint(-1, 9) * DAY_MS,
                "seconds": NOW_MS // 1000,
                "timeless": -1,
            }.get(kind, NOW_MS - age_ms)
            log.batch(("k", "v" * rnd.randint(0, 90)), timestamp=time_ms, **header)
    if kind == "transaction" and rnd.random() < 0.7:
        log.marker(rnd.choice(list(ControlRecordType)[:2]), 6, timestamp=NOW_MS)
    _finish(log, kind, rnd)
    path = log.write(clean_shutdown=is_clean)
    if kind == "leftover":
        (path / "00000000000000000001.log.cleaned").write_bytes(b"x")


def _header(kind: str, rnd: random.Random) -> dict[str, Any]:
    if kind == "producer":
        return {"producer_id": rnd.randint(1, 3)}
    if kind == "transaction":
        return {"producer_id": 6, "is_transactional": True}
    if kind == "codecs":
        return {"codec": rnd.choice((0, 1, 3))}
    return {}


def _finish(log: LogBuilder, kind: str, rnd: random.Random) -> None:
    end = log.next_offset
    if kind == "gap":
        log.segment(base_offset=end + rnd.randint(0, 2)).batch(("k", "v"), timestamp=NOW_MS)
    elif kind == "behind":
        rnd.choice((log.high_watermark, log.recovery_point))(rnd.randint(0, end + 2))
    elif kind == "cleaner":
        log.cleaner_offset(rnd.randint(0, end))
    elif kind == "epoch":
        log.epoch(3).batch(("k", "v"), timestamp=NOW_MS)
    elif kind == "remote":
        log.log_start_offset(0)
    elif kind == "torn":
        log.torn(9)


def topic_id(number: int) -> str:
    return f"4L6g3nShT-eMCtK--X{number:02}sw"


def write_metadata(log_dir: Path, rnd: random.Random, logs: int) -> None:
    """The cluster's, by which some topics delete, some compact, and one is not known."""
    builder = MetadataBuilder(log_dir)
    for number in range(logs - 1):
        name, policy = f"t{number}", rnd.choice(("delete", "delete", "delete", "compact"))
        builder.batch(
            topic(name, topic_id(number)),
            partition([1], topic_id(number), leader_epoch=rnd.randint(0, 4)),
            config(name, "cleanup.policy", policy),
            config(name, "retention.ms", str(rnd.choice((1, 6, 30)) * DAY_MS)),
        )
    builder.write()


def write_disk(log_dir: Path, rnd: random.Random, logs: int) -> None:
    """Many logs, and what their broker says of all of them."""
    log_dir.mkdir()
    is_clean = rnd.random() < 0.5
    lines: dict[str, dict[tuple[str, int], int]] = {}
    names = (
        checkpoints.HIGH_WATERMARK_FILE, checkpoints.LOG_START_OFFSET_FILE,
        checkpoints.CLEANER_OFFSET_FILE, checkpoints.RECOVERY_POINT_FILE,
    )  # fmt: skip
    has_metadata = rnd.random() < 0.5
    for number in range(-1, logs):
        if number >= 0:
            write_log(log_dir, number, rnd, is_clean=is_clean)
        elif has_metadata:
            write_metadata(log_dir, rnd, logs)
        for name in names:  # each log's own, of which one file a log dir is made
            if (path := log_dir / name).exists():
                lines.setdefault(name, {}).update(
                    checkpoints.parse_offset_checkpoint(path.read_bytes())
                )
                path.unlink()
    for name, own in lines.items():
        (log_dir / name).write_bytes(checkpoints.pack_offset_checkpoint(own))
    for path in log_dir.glob("*checkpoint*"):
        os.utime(path, ns=((NOW_MS - DAY_MS) * 1_000_000,) * 2)


def kept_of(log_dir: Path, run_dir: Path, settings: tuple[str, ...], now_ms: int) -> KeptScans:
    """What a first audit keeps."""
    request = audit_request([str(log_dir)], {"config": settings, "now_ms": now_ms})
    run = audit_run(request, lambda tasks: map(audit_partition, tasks), KeptScans())
    run_dir.mkdir(exist_ok=True)
    assert run.scans is not None
    run.scans.write(run_dir)
    found = read_scans(run_dir)
    assert found is not None
    return found


def later_audits(rnd: random.Random) -> Iterator[tuple[tuple[str, ...], int]]:
    """Settings and times of them."""
    for settings in SETTINGS:
        yield settings, NOW_MS + rnd.choice((-DAY_MS, -1, 0, DAY_MS, 9 * DAY_MS, 400 * DAY_MS))
    for time_ms in (NOW_MS, NOW_MS + 9 * DAY_MS):
        yield from ((own, time_ms) for own in (SETTINGS[0], SETTINGS[3], SETTINGS[-1]))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 60))]
)
def test_numbers_tell_of_a_log_what_all_rules_do(log_dir: Path, tmp_path: Path, seed: int) -> None:
    rnd = random.Random(seed)
    disk = tmp_path / "disk"
    write_disk(disk, rnd, logs=30)
    kept = kept_of(disk, tmp_path / "run", ("cleanup.policy=delete",), NOW_MS - DAY_MS)
    told: Counter[str] = Counter()
    for settings, now_ms in later_audits(rnd):
        request = audit_request([str(disk)], {"config": settings, "now_ms": now_ms})
        tasks = open_audit(request, kept).tasks
        for task, audited in zip(tasks, SoundLogs(kept).judge(tasks), strict=True):
            if audited is not None:
                assert audited.whole == audit_partition(task)
                told[audited.retention.status] += 1
                told.update(finding.kind for finding in audited.findings)
    assert told
    assert told["retention-due"] + told["retention-overdue"] == told["due"]


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 60))]
)
def test_a_document_of_columns_is_the_one_of_objects(
    log_dir: Path, tmp_path: Path, seed: int
) -> None:
    """Some logs have changed, come or gone since their numbers were kept."""
    rnd = random.Random(seed)
    disk = tmp_path / "disk"
    write_disk(disk, rnd, logs=24)
    kept = kept_of(disk, tmp_path / "run", ("cleanup.policy=delete",), NOW_MS - DAY_MS)
    change(disk, rnd)
    told = 0
    for settings, now_ms in later_audits(rnd):
        own = f"retention.ms={rnd.choice((-1, 0, 2 * DAY_MS, 9 * DAY_MS, 30 * DAY_MS))}"
        by_size = f"retention.bytes={rnd.choice((-1, 9))}"
        more = rnd.choice(("cleanup.policy=compact", "segment.bytes=1048576", "segment.ms=9"))
        scope = AuditScope(
            scenarios=parse_scenarios([own, by_size, own, more]),
            times=((True, DAY_MS), (True, 9 * DAY_MS), (True, 500 * DAY_MS)),
            price=rnd.choice((None, 0.5)),
        )
        options = {"config": settings, "now_ms": now_ms}
        request = audit_request([str(disk)], options, scope)
        columns, objects = (
            audit_run(request, lambda tasks: map(audit_partition, tasks), known)
            for known in (kept, None)
        )
        document = audit_document(columns, 0.0, makes_rows_anew=True)
        plain = audit_document(objects, 0.0)
        assert "".join(json_pieces(document)) == json.dumps(plain, indent=2, ensure_ascii=False)
        assert audit_document(columns, 0.0) == plain
        told += sum(isinstance(each, SoundPartition) for each in columns.partitions)
    assert told or seed  # of some disks all logs are odd


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 60))]
)
def test_a_first_audit_by_columns_is_the_one_of_objects(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Small logs are read many at once; of odd ones, whatever is odd, nothing is said by that."""
    monkeypatch.setattr(small_logs, "LEAST_LOGS", 1)
    rnd = random.Random(seed)
    disk = tmp_path / "disk"
    write_disk(disk, rnd, logs=40)
    hurt(disk, rnd)
    read = 0
    for settings, now_ms in later_audits(rnd):
        request = audit_request([str(disk)], {"config": settings, "now_ms": now_ms})
        kept = KeptScans()
        columns, objects = (
            audit_run(request, lambda tasks: map(audit_partition, tasks), known)
            for known in (kept, None)
        )
        assert audit_document(columns, 0.0) == audit_document(objects, 0.0)
        assert said(columns) == said(objects)
        read += len(kept.read_now)
        assert not any(each.is_carried for each in columns.partitions)
    assert read


def said(run: AuditRun) -> list[AuditedPartition]:
    """All of each partition, without what is kept of it."""
    return [replace(p.whole, scan=b"", sound=None) for p in run.partitions]


ODD_NAMES = (
    "5.log", "00000000000000000900.index", "x", "7.snapshot", "00000000000000000000.txnindex",
    "99999999999999999999.log",
)  # fmt: skip


def hurt(disk: Path, rnd: random.Random) -> None:
    """Something happens to a file of each second log: its bytes, its length, its name, its time."""
    for path in sorted(path.parent for path in disk.glob("t*-0/partition.metadata")):
        file = rnd.choice(sorted(path.iterdir()))
        data = file.read_bytes()
        match rnd.choice(["none"] * 7 + ["flip", "cut", "zeros", "gone", "odd", "far", "link"]):
            case "flip" if data:
                place = rnd.randrange(len(data))
                damaged = bytearray(data)
                damaged[place] ^= 1 << rnd.randrange(8)
                file.write_bytes(damaged)
            case "cut":
                file.write_bytes(data[: rnd.randint(0, len(data))])
            case "zeros":
                file.write_bytes(data + b"\0" * rnd.choice((1, 8, 12, 24, 96)))
            case "gone":
                file.unlink()
            case "odd":
                name = rnd.choice(ODD_NAMES)
                (path / name).write_bytes(data)
            case "far":
                os.utime(file, ns=(FAR_NS, FAR_NS))
            case "link":
                (path / "other").symlink_to(file)


def change(disk: Path, rnd: random.Random) -> None:
    """What happens to a disk: a segment touched, grown, gone, come; a whole log gone."""
    logs = sorted(path.parent for path in disk.glob("t*-0/partition.metadata"))
    touched, grown, shorter, gone = rnd.sample(logs, 4)
    os.utime(rnd.choice(sorted(touched.glob("*.log"))), ns=((NOW_MS - 1) * 1_000_000,) * 2)
    with sorted(grown.glob("*.log"))[-1].open("ab") as file:
        file.write(b"\0" * rnd.randint(1, 9))
    rnd.choice(sorted(shorter.iterdir())).unlink()
    shutil.rmtree(gone)
    write_log(disk, 77, rnd, is_clean=False)


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**63 - 1])
def test_a_damaged_offset_ends_no_audit(log_dir: Path, tmp_path: Path, offset: int) -> None:
    """Nor does a file with the name of the highest offset, which breaks off."""
    disk = tmp_path / "disk"
    for number in range(3):
        log = LogBuilder(disk, f"t{number}-0").segment()
        log.batch(("k", "v"), timestamp=NOW_MS).write()
    (segment,) = (disk / "t1-0").glob("*.log")
    data = segment.read_bytes()
    segment.write_bytes(struct.pack(">q", offset) + data[8:])
    (disk / "t2-0" / "09223372036854775807.log").write_bytes(data[:40])
    request = audit_request([str(disk)], {"config": SETTINGS[6], "now_ms": NOW_MS})
    run = audit_run(request, lambda tasks: map(audit_partition, tasks), KeptScans())
    assert [each.whole.name for each in run.partitions] == ["t0-0", "t1-0", "t2-0"]
    assert not run.partitions[0].whole.problems
    kinds = {finding.kind for finding in run.partitions[1].findings}
    assert ("audit-incomplete" in kinds) == (offset < 0)


def test_the_page_of_an_unchanged_disk_is_the_one_of_the_first_audit(tmp_path: Path) -> None:
    disk, pages = tmp_path / "disk", [tmp_path / "first.html", tmp_path / "again.html"]
    write_disk(disk, random.Random(0), logs=24)
    words = ["audit", "--log-dir", str(disk), "--run-dir", str(tmp_path / "runs")]
    words += ["--now", str(NOW_MS), "--config", "cleanup.policy=delete", "--workers", "1"]
    for page in pages:
        assert main([*words, "--report", str(page)]) in (0, 1)
    first, again = (page.read_text("utf-8") for page in pages)
    assert len(first) > 100_000
    assert again == first
