"""What an audit made of a partition is taken over while it is what would be made of it again."""

from __future__ import annotations

import operator
import os
import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkalog.auditing import known_scan, partition_audit, partition_scan
from kafkalog.auditing.audit_run import AuditRun, open_audit
from kafkalog.auditing.document import audit_document
from kafkalog.auditing.kept_scans import read_scans
from kafkalog.auditing.known_judgement import judgement_key
from kafkalog.auditing.moment import Moment, Term
from kafkalog.auditing.partition_audit import audit_partition
from kafkalog.auditing.request import AuditScope, audit_request
from kafkalog.auditing.whole import Extras, whole_audit
from kafkalog.cleaner.settings import KnownEpoch
from kafkalog.format import checkpoints
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.texts import format_timestamp
from tests.support.log_builder import START_MS, LogBuilder

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = START_MS + 100 * DAY_MS

Ask = Callable[[int, int], object]
COMPARISONS: dict[str, Ask] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
    "ne": operator.ne, "other way round": lambda now, limit: limit < now,
    "shifted": lambda now, limit: now - 3 > limit - 7, "added": lambda now, limit: 2 + now >= limit,
    "of numpy": lambda now, limit: bool(np.int64(limit) <= now),
    "chained": lambda now, limit: 3 < limit <= now,
    "largest": lambda now, limit: max(limit, now) == limit,
    "among": lambda now, limit: now in (limit, limit + 4),
    "sorted": lambda now, limit: sorted([limit, now])[0] == limit,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_answers_of_a_moment_hold_as_long_as_it_says_and_no_shorter(name: str) -> None:
    ask = COMPARISONS[name]
    for limit in range(-10, 30):
        term = Term()
        answer = ask(Moment(10, term), limit)
        assert answer == ask(10, limit)
        held = min(term.lasts_ms, 50)
        assert all(ask(10 + later, limit) == answer for later in range(held))
        if name in ("lt", "le", "gt", "ge", "eq", "other way round", "shifted", "added"):
            assert held == 50 or ask(10 + held, limit) != answer


@pytest.mark.parametrize(
    "use",
    [
        str, format, hash, float, bool, format_timestamp, pickle.dumps, lambda now: f"{now:>20}",
        lambda now: now / 2, lambda now: 7 // now, lambda now: 100 - now, lambda now: now * 2,
        lambda now: -now, lambda now: {now}, lambda now: now < 3.5, lambda now: now - now,
        lambda now: now < Moment(99, Term()),
    ],
)  # fmt: skip
def test_what_is_made_of_the_number_itself_holds_now_alone(use: Callable[[int], object]) -> None:
    term = Term()
    use(Moment(10, term))
    assert term.lasts_ms == 1


def test_a_moment_travels_as_a_number() -> None:
    assert type(pickle.loads(pickle.dumps(Moment(10, Term())))) is int
    assert type(Moment(10, Term()).plain) is int
    term = Term()
    assert isinstance(Moment(10, term) + 5, Moment)
    assert term.lasts_ms == MAX_INT64


TOPICS = {
    "deleted": {"cleanup.policy": "delete", "retention.ms": str(5 * DAY_MS)},
    "sized": {"cleanup.policy": "delete", "retention.bytes": "900", "segment.ms": str(DAY_MS)},
    "compacted": {
        "cleanup.policy": "compact", "min.compaction.lag.ms": str(2 * DAY_MS),
        "max.compaction.lag.ms": str(4 * DAY_MS), "min.cleanable.dirty.ratio": "0.6",
    },
    "both": {"cleanup.policy": "compact,delete", "retention.ms": str(9 * DAY_MS)},
    "tiered": {
        "cleanup.policy": "delete", "remote.storage.enable": "true",
        "local.retention.ms": str(DAY_MS),
    },
}  # fmt: skip
CHANGED_SETTINGS = [
    ("retention.ms", (DAY_MS, 3 * DAY_MS, 30 * DAY_MS)), ("retention.bytes", (0, 400, 4000)),
    ("segment.ms", (HOUR_MS, 9 * DAY_MS)), ("delete.retention.ms", (0, DAY_MS)),
    ("message.timestamp.after.max.ms", (0, 9 * DAY_MS)),
]  # fmt: skip
NUMBERED_FILES = (
    checkpoints.HIGH_WATERMARK_FILE, checkpoints.LOG_START_OFFSET_FILE,
    checkpoints.CLEANER_OFFSET_FILE, checkpoints.RECOVERY_POINT_FILE,
)  # fmt: skip


@dataclass
class LivingDisk:
    """A log dir of a partition a topic, to which things happen at random."""

    log_dir: Path
    rnd: random.Random
    now_ms: int = NOW_MS
    settings: dict[str, dict[str, str]] = field(
        default_factory=lambda: {topic: dict(own) for topic, own in TOPICS.items()}
    )
    options: dict[str, Any] = field(default_factory=dict)
    logs: dict[str, LogBuilder] = field(default_factory=dict)

    def write(self) -> None:
        """All partitions, as they begin."""
        for topic in TOPICS:
            self.logs[topic] = log = LogBuilder(self.log_dir, f"{topic}-0")
            age_ms = self.rnd.randint(8, 20) * DAY_MS
            for _ in range(self.rnd.randint(1, 5)):
                log.segment()
                for _ in range(self.rnd.randint(0, 3)):
                    age_ms -= self.rnd.randint(0, 2 * DAY_MS)
                    self.append(log, age_ms)
            log.write(clean_shutdown=self.rnd.random() < 0.7)
        for path in self.log_dir.rglob("*"):
            self.date(path, NOW_MS - self.rnd.randint(0, 12) * DAY_MS)

    def append(self, log: LogBuilder, age_ms: int) -> None:
        """A batch, by a producer or not, or the end of a transaction."""
        timestamp, kind = NOW_MS - age_ms, self.rnd.random()
        if kind < 0.5:
            log.batch(("k", "v" * 90), timestamp=timestamp)
        elif kind < 0.75:
            log.batch(("k", None), ("l", "w"), timestamp=timestamp, producer_id=5)
        else:
            log.batch(("k", "v"), timestamp=timestamp, producer_id=6, is_transactional=True)
            if kind < 0.95:
                end = self.rnd.choice(list(ControlRecordType)[:2])
                log.marker(end, 6, timestamp=timestamp)

    @staticmethod
    def date(path: Path, time_ms: int) -> None:
        os.utime(path, ns=(time_ms * 1_000_000,) * 2)

    def happen(self, document: dict[str, Any]) -> None:
        """Something, or nothing; and time goes on."""
        rnd, topic = self.rnd, self.rnd.choice(list(TOPICS))
        path = self.log_dir / f"{topic}-0"
        match rnd.choice(["nothing", "nothing", "settings", "line", "alive", "touch", "grow",
                          "remove", "leftover", "owner", "options", "rewritten"]):  # fmt: skip
            case "settings":
                key, values = rnd.choice(CHANGED_SETTINGS)
                self.settings[topic][key] = str(rnd.choice(values))
            case "line":
                file = self.log_dir / rnd.choice(NUMBERED_FILES)
                stat = file.stat() if file.exists() else None
                lines = checkpoints.parse_offset_checkpoint(file.read_bytes()) if stat else {}
                lines[topic, 0] = rnd.randint(0, self.logs[topic].next_offset + 1)
                file.write_bytes(checkpoints.pack_offset_checkpoint(lines))
                if stat is not None:  # a line alone may be all that differs
                    os.utime(file, ns=(stat.st_mtime_ns,) * 2)
            case "alive":
                self.date(self.log_dir / checkpoints.RECOVERY_POINT_FILE, self.now_ms)
            case "touch":
                self.date(rnd.choice(sorted(path.iterdir())), self.now_ms - rnd.randint(0, DAY_MS))
            case "grow":
                for log in sorted(path.glob("*.log"))[-1:]:
                    log.write_bytes(log.read_bytes() + b"\0" * rnd.randint(1, 90))
            case "remove":
                rnd.choice(sorted(path.iterdir())).unlink()
            case "leftover":
                (path / f"{rnd.randint(0, 9):020}.log.deleted").write_bytes(b"x" * 70)
            case "owner":
                file = self.log_dir / "meta.properties"
                text = file.read_text().replace("5L6g3nShT", "6L6g3nShT")
                file.write_text(text)
            case "options":
                self.options = rnd.choice(
                    [{}, {"high_watermark": 3}, {"kafka_version": "4.1"}, {"topics": ["*ed"]}]
                )
            case "rewritten":
                for log in sorted(path.glob("*.log"))[:1]:
                    stat, data = log.stat(), log.read_bytes()
                    log.unlink()
                    log.write_bytes(data[::-1])
                    os.utime(log, ns=(stat.st_mtime_ns,) * 2)
        changes = [s["dueMs"] for s in document["segments"]]
        changes += [p["compaction"]["cleanableAtMs"] for p in document["partitions"]]
        changes += [
            s["largestTimestampMs"] + int(self.settings[s["topic"]].get("retention.ms", DAY_MS))
            for s in document["segments"]
        ]
        later = [ms for ms in changes if ms > self.now_ms]
        steps = [1, rnd.randint(1, HOUR_MS), DAY_MS]
        if later:
            steps += [max(rnd.choice(later) - self.now_ms + rnd.randint(-1, 1), 1)] * 2
        self.now_ms += rnd.choice(steps)

    def audit(
        self, run_dir: Path, scope: AuditScope | None = None, *, keeps: bool = True
    ) -> tuple[AuditRun, int]:
        """The run, and how many partitions were looked at by it."""
        file = run_dir.parent / "config.toml"
        tables = (
            f'["{topic}"]\n' + "".join(f'"{key}" = "{text}"\n' for key, text in own.items())
            for topic, own in self.settings.items()
        )
        file.write_text("\n".join(tables))
        looked_at: list[Any] = []

        def execute(tasks: Sequence[Any]) -> Any:
            looked_at.extend(tasks)
            return [pickle.loads(pickle.dumps(audit_partition(task))) for task in tasks]

        request = audit_request(
            [str(self.log_dir)],
            {"now_ms": self.now_ms, "run_dir": str(run_dir), "config_file": str(file)}
            | self.options,
            scope,
        )  # fmt: skip
        whole = whole_audit(request, Extras(keeps=keeps), execute, lambda: self.now_ms)
        return whole.run, len(looked_at)


def told(run: AuditRun) -> dict[str, Any]:
    """All that a run says, without what its history tells of growth."""
    plain = [
        replace(p, scan="", judgement="", is_carried=False, carried_segments=0)
        for p in run.partitions
    ]
    return {"partitions": plain, **audit_document(run, 0.0)}


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(n, marks=pytest.mark.soak) for n in range(5, 250))]
)
def test_a_run_with_a_history_says_what_one_without_says(
    log_dir: Path, tmp_path: Path, seed: int
) -> None:
    disk = LivingDisk(log_dir / "data", random.Random(seed))
    disk.log_dir.mkdir()
    disk.write()
    run, looked_at = disk.audit(tmp_path / "runs")
    assert looked_at == len(run.partitions)
    taken_over = 0
    for _ in range(8):
        disk.happen(audit_document(run, 0.0))
        run, looked_at = disk.audit(tmp_path / "runs")
        taken_over += len(run.partitions) - looked_at
        fresh, _ = disk.audit(tmp_path / "none", keeps=False)
        assert told(run) == told(fresh)
    assert taken_over


@pytest.fixture
def known_disk(log_dir: Path, tmp_path: Path) -> LivingDisk:
    """A disk that was audited once; at the next moment everything would be taken over."""
    disk = LivingDisk(log_dir / "data", random.Random(3))
    disk.log_dir.mkdir()
    disk.write()
    disk.audit(tmp_path / "runs")
    disk.now_ms += 1
    return disk


def test_of_what_is_the_same_nothing_is_decided_again(
    known_disk: LivingDisk, tmp_path: Path
) -> None:
    run, looked_at = known_disk.audit(tmp_path / "runs")
    assert looked_at == 0
    assert all(partition.is_carried for partition in run.partitions)
    rows = pq.read_table(next(tmp_path.glob("runs/*/scans.parquet"))).to_pylist()
    assert {Path(row["path"]).name for row in rows} == {f"{topic}-0" for topic in TOPICS}


def test_another_version_takes_nothing_over(
    known_disk: LivingDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_scan, "code_digest", lambda: "another")
    run, looked_at = known_disk.audit(tmp_path / "runs")
    assert looked_at == len(run.partitions) == len(TOPICS)
    assert not any(partition.carried_segments for partition in run.partitions)


def test_a_broker_that_lives_on_changes_only_what_was_held_against_it(
    known_disk: LivingDisk, tmp_path: Path
) -> None:
    """Its checkpoints are written every minute."""
    known_disk.now_ms += 60_000
    known_disk.date(known_disk.log_dir / checkpoints.RECOVERY_POINT_FILE, known_disk.now_ms)
    run, looked_at = known_disk.audit(tmp_path / "runs")
    fresh, _ = known_disk.audit(tmp_path / "none", keeps=False)
    assert told(run) == told(fresh)
    assert 0 < looked_at < len(TOPICS)
    assert looked_at == sum("alive" in f.text for f in fresh.findings)


def test_records_are_read_whatever_is_known(known_disk: LivingDisk, tmp_path: Path) -> None:
    run, looked_at = known_disk.audit(tmp_path / "runs", AuditScope(reads_records=True))
    assert looked_at == len(TOPICS)
    assert all(p.contents is None or p.contents.records for p in run.partitions)
    known_disk.now_ms += 1
    _, looked_at = known_disk.audit(tmp_path / "runs")
    assert looked_at == 0  # what was known before still holds


def test_the_key_has_all_of_a_task_that_is_not_time(known_disk: LivingDisk) -> None:
    """Also what a later version adds."""
    request = audit_request([str(known_disk.log_dir)], {"now_ms": known_disk.now_ms})
    opened = open_audit(request, {})
    task = replace(opened.tasks[0], assumed_high_watermark=1, uploaded_offset=1)
    known = judgement_key(task)
    assert known
    apart = {"partition", "resolved", "now_ms", "alive_ms", "known", "keeps_scan", "is_unchanged"}
    apart |= {"reads_records", "reads_keys"}  # more than is kept
    apart |= {"known_epoch"}  # counts without what it was read from
    keys = [
        judgement_key(replace(task, known_epoch=KnownEpoch(*each)))
        for each in ((4, "here"), (4, "there"), (5, "there"))
    ]
    assert keys[0] == keys[1] != keys[2] != known
    others = {item.name for item in fields(task)} - apart
    assert len(others) == 14
    for name in others:
        value = getattr(task, name)
        other = not value if isinstance(value, bool) else value + type(value)("1")
        assert judgement_key(replace(task, **{name: other})) != known, name
    assert judgement_key(replace(task, reads_records=True)) == ""


def test_what_was_there_only_while_a_partition_was_read_is_not_kept(
    known_disk: LivingDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cleaner gives up, and takes what it wrote with it."""
    whole = partition_scan.scan_partition

    def scan_meanwhile(partition: PartitionInventory, *others: Any) -> Any:
        written = Path(partition.path, "00000000000000000007.log.cleaned")
        written.write_bytes(b"x" * 700)
        scanned = whole(partition, *others)
        written.unlink()
        return scanned

    with monkeypatch.context() as patched:
        patched.setattr(partition_audit, "scan_partition", scan_meanwhile)
        run, _ = known_disk.audit(tmp_path / "others")
        assert all(partition.leftovers for partition in run.partitions)
    known_disk.now_ms += 1
    run, _ = known_disk.audit(tmp_path / "others")
    fresh, _ = known_disk.audit(tmp_path / "none", keeps=False)
    assert told(run) == told(fresh)


def test_a_kept_file_with_a_flipped_bit_is_not_believed(
    known_disk: LivingDisk, tmp_path: Path
) -> None:
    file = next(tmp_path.glob("runs/*/scans.parquet"))
    data, known = file.read_bytes(), pq.read_table(file)
    rnd, refused = random.Random(1), 0
    for place in rnd.sample(range(len(data)), 400):
        damaged = bytearray(data)
        damaged[place] ^= 1 << rnd.randrange(8)
        file.write_bytes(damaged)
        try:
            scans = read_scans(file.parent)
        except (OSError, pa.ArrowException):
            refused += 1
            continue
        assert scans is not None
        for row in known.to_pylist():  # at most it has lost something
            assert scans.judgement(row["path"]) in ("", row["judgement"])
            assert scans.scan(row["path"]) in ("", row["scan"])
    assert refused > 50
    file.write_bytes(data[: len(data) // 2])
    run, looked_at = known_disk.audit(tmp_path / "runs")
    assert looked_at == len(run.partitions)


def test_a_log_dir_whose_path_is_no_text_is_audited(tmp_path: Path, log_dir: Path) -> None:
    """Its history cannot be kept."""
    disk = LivingDisk(Path(os.fsdecode(os.fsencode(log_dir) + b"/\xff")), random.Random(3))
    disk.log_dir.mkdir()
    disk.write()
    run, looked_at = disk.audit(tmp_path / "runs")
    assert looked_at == len(run.partitions) == len(TOPICS)
