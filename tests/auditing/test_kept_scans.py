"""An audit that takes up what an earlier one has read says what a first one says."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkalog.auditing import known_scan, partition_audit, partition_scan
from kafkalog.auditing.audit_run import AuditRun
from kafkalog.auditing.document import audit_document
from kafkalog.auditing.kept_scans import KeptScans, read_scans
from kafkalog.auditing.partition_audit import audit_partition
from kafkalog.auditing.request import AuditScope, audit_request
from kafkalog.auditing.whole import AuditOptions, whole_audit
from kafkalog.errors import CorruptKeptLogsError
from kafkalog.format import checkpoints
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.inventory import PartitionInventory
from tests.support.log_builder import START_MS, LogBuilder

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = START_MS + 100 * DAY_MS

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
        """The run, and how many partitions it read nothing of."""
        file = run_dir.parent / "config.toml"
        tables = (
            f'["{topic}"]\n' + "".join(f'"{key}" = "{text}"\n' for key, text in own.items())
            for topic, own in self.settings.items()
        )
        file.write_text("\n".join(tables))

        def execute(tasks: Sequence[Any]) -> Any:
            return [pickle.loads(pickle.dumps(audit_partition(task))) for task in tasks]

        request = audit_request(
            [str(self.log_dir)],
            {"now_ms": self.now_ms, "run_dir": str(run_dir), "config_file": str(file)}
            | self.options,
            scope,
        )  # fmt: skip
        whole = whole_audit(request, AuditOptions(keeps=keeps), execute, lambda: self.now_ms)
        return whole.run, sum(partition.is_carried for partition in whole.run.partitions)


def said_by(run: AuditRun) -> dict[str, Any]:
    """All that a run says, without what its history tells of growth."""
    plain = [
        replace(p.whole, scan=b"", is_carried=False, carried_segments=0) for p in run.partitions
    ]
    return {"partitions": plain, **audit_document(run, 0.0)}


@pytest.mark.parametrize(
    "seed",
    [
        0,
        *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, 5)),
        *(pytest.param(n, marks=pytest.mark.soak) for n in range(5, 250)),
    ],
)
def test_a_run_with_a_history_says_what_one_without_says(
    log_dir: Path, tmp_path: Path, seed: int
) -> None:
    disk = LivingDisk(log_dir / "data", random.Random(seed))
    disk.log_dir.mkdir()
    disk.write()
    run, carried = disk.audit(tmp_path / "runs")
    assert carried == 0
    taken_up = 0
    for _ in range(8):
        disk.happen(audit_document(run, 0.0))
        run, carried = disk.audit(tmp_path / "runs")
        taken_up += carried
        fresh, _ = disk.audit(tmp_path / "none", keeps=False)
        assert said_by(run) == said_by(fresh)
    assert taken_up


@pytest.fixture
def known_disk(log_dir: Path, tmp_path: Path) -> LivingDisk:
    """A disk that was audited once; a ms later everything would be taken up."""
    disk = LivingDisk(log_dir / "data", random.Random(3))
    disk.log_dir.mkdir()
    disk.write()
    disk.audit(tmp_path / "runs")
    disk.now_ms += 1
    return disk


def kept_files(runs: Path) -> dict[str, bytes]:
    """Of the last run, which alone has them."""
    files = (next(runs.glob(f"*/{name}")) for name in ("scans.parquet", "logs.npz"))
    return {path.name: path.read_bytes() for path in files}


def test_a_changed_log_is_kept_anew_and_the_others_as_they_were(
    known_disk: LivingDisk, tmp_path: Path
) -> None:
    runs, first = tmp_path / "runs", kept_files(tmp_path / "runs")
    run, carried = known_disk.audit(runs)
    assert (carried, kept_files(runs)) == (len(run.partitions), first)
    file = sorted((known_disk.log_dir / "deleted-0").glob("*.log"))[-1]
    for time_ms in (NOW_MS - 1, NOW_MS - 2):
        known_disk.date(file, time_ms)
        known_disk.now_ms += 1
        run, carried = known_disk.audit(runs)
        assert carried == len(run.partitions) - 1
        kept = kept_files(runs)
        assert kept != first
        known_disk.now_ms += 1
        run, carried = known_disk.audit(runs)
        assert (carried, kept_files(runs)) == (len(run.partitions), kept)
    file.parent.rename(known_disk.log_dir / "other-0")
    known_disk.now_ms += 1
    _, carried = known_disk.audit(runs)
    assert carried == len(TOPICS) - 1
    kept_again = read_scans(next(runs.glob("*/scans.parquet")).parent)
    assert kept_again is not None
    assert {Path(path).name for path in kept_again} == {
        "other-0", *(f"{topic}-0" for topic in TOPICS if topic != "deleted")
    }  # fmt: skip


def test_of_what_is_the_same_nothing_is_read_again(known_disk: LivingDisk, tmp_path: Path) -> None:
    run, carried = known_disk.audit(tmp_path / "runs")
    assert carried == len(run.partitions)
    rows = pq.read_table(next(tmp_path.glob("runs/*/scans.parquet"))).to_pylist()
    assert {Path(row["path"]).name for row in rows} == {f"{topic}-0" for topic in TOPICS}


def test_small_files_are_read_again_only_where_the_directory_differs(
    known_disk: LivingDisk, tmp_path: Path
) -> None:
    """Rewritten in place, with the times they had, what they say is what they said."""
    before, _ = known_disk.audit(tmp_path / "runs")
    known_disk.now_ms += 1
    small = [p for p in known_disk.log_dir.glob("*-0/*") if p.is_file() and p.suffix != ".log"]
    for file in small:
        stat = file.stat()
        file.write_bytes(b"\xff" * stat.st_size)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    run, carried = known_disk.audit(tmp_path / "runs")
    assert carried == len(run.partitions)
    assert [f.kind for f in run.findings] == [f.kind for f in before.findings]
    known_disk.now_ms += 1
    for file in small:
        known_disk.date(file, NOW_MS + 7)
    run, carried = known_disk.audit(tmp_path / "runs")
    assert carried == 0
    fresh, _ = known_disk.audit(tmp_path / "none", keeps=False)
    assert said_by(run) == said_by(fresh)
    assert [f.kind for f in run.findings] != [f.kind for f in before.findings]


def test_another_version_takes_nothing_up(
    known_disk: LivingDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_scan, "code_digest", lambda: "another")
    run, _ = known_disk.audit(tmp_path / "runs")
    assert len(run.partitions) == len(TOPICS)
    assert not any(partition.carried_segments for partition in run.partitions)


def test_records_are_read_whatever_is_known(known_disk: LivingDisk, tmp_path: Path) -> None:
    run, _ = known_disk.audit(tmp_path / "runs", AuditScope(reads_records=True))
    assert all(p.contents is None or p.contents.records for p in run.partitions)
    known_disk.now_ms += 1
    run, carried = known_disk.audit(tmp_path / "runs")
    assert carried == len(run.partitions)  # what was known before still holds


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
    assert said_by(run) == said_by(fresh)


def sound_numbers(scans: KeptScans, path: str) -> list[Any] | None:
    """What is kept of a sound log, None of any other."""
    place = scans.logs.place(path)
    if place is None:
        return None
    return [scans.logs.digest(place), *(e.tolist() for e in scans.logs.columns([place]))]


@pytest.mark.parametrize("name", ["scans.parquet", "logs.npz"])
def test_a_kept_file_with_a_flipped_bit_is_not_believed(
    known_disk: LivingDisk, tmp_path: Path, name: str
) -> None:
    file = next(tmp_path.glob(f"runs/*/{name}"))
    data, whole = file.read_bytes(), read_scans(file.parent)
    assert whole is not None
    assert len(whole.logs)
    rnd, refused = random.Random(1), 0
    for place in rnd.sample(range(len(data)), 400):
        damaged = bytearray(data)
        damaged[place] ^= 1 << rnd.randrange(8)
        file.write_bytes(damaged)
        try:
            scans = read_scans(file.parent)
        except (OSError, CorruptKeptLogsError, pa.ArrowException):
            refused += 1
            continue
        assert scans is not None
        for path in whole:  # at most it has lost something
            assert scans.scan(path) in (b"", whole.scan(path))
            assert sound_numbers(scans, path) in (None, sound_numbers(whole, path))
    assert refused > 50
    file.write_bytes(data[: len(data) // 2])
    _, carried = known_disk.audit(tmp_path / "runs")
    assert carried == 0


def test_a_log_dir_whose_path_is_no_text_is_audited(tmp_path: Path, log_dir: Path) -> None:
    """Its history cannot be kept."""
    disk = LivingDisk(Path(os.fsdecode(os.fsencode(log_dir) + b"/\xff")), random.Random(3))
    disk.log_dir.mkdir()
    disk.write()
    run, carried = disk.audit(tmp_path / "runs")
    assert (carried, len(run.partitions)) == (0, len(TOPICS))
