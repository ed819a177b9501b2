"""What audits keep for later ones, as Parquet in their run directory: how many bytes each topic had
in each log dir, and which rules of a policy were broken since when.

    topics.parquet      nowMs, logDir, topic, bytes             a row a topic and log dir
    violations.parquet  nowMs, sinceMs, kind, rule, logDir, topic, partition, detail
    scans.parquet, logs.npz  of the last run only: see kept_scans
    partitions.parquet, settings.parquet, findings.parquet: see audit_state

Any tool reads them; a glob over the run dir is the whole history. Growth is the slope of the
straight line that lies closest to all runs' bytes (least squares), so one day's peak does not
decide when a disk is full.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.auditing.audit_state import FINDINGS_FILE, read_findings
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.kept_directories import KIND
from kafkalog.auditing.kept_scans import SCANS_FILE, KeptScans, NextScans, read_scans
from kafkalog.auditing.policy_checks import Violation, ViolationKey
from kafkalog.auditing.row_tables import read_table_of, table_of
from kafkalog.auditing.sound_partitions import with_sums
from kafkalog.errors import KafkaLogError
from kafkalog.log.kept_logs import LOGS_FILE
from kafkalog.runs.run_dir import Run, list_runs

TOPICS_FILE = "topics.parquet"
VIOLATIONS_FILE = "violations.parquet"
# Of a longer history the last ones; a run a day is a year and more.
MOST_RUNS = 400
_DAY_MS = 86_400_000

_TOPICS = pa.schema(
    [("nowMs", pa.int64()), ("logDir", pa.string()), ("topic", pa.string()), ("bytes", pa.int64())]
)
_VIOLATIONS = pa.schema(
    [
        ("nowMs", pa.int64()), ("sinceMs", pa.int64()), ("kind", pa.string()),
        ("rule", pa.string()),
        ("logDir", pa.string()), ("topic", pa.string()), ("partition", pa.int64()),
        ("detail", pa.string()),
    ]
)  # fmt: skip

# By log dir and topic: (time of the run, bytes).
Sizes = Mapping[tuple[str, str], Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class History:
    """Earlier runs, the oldest first. `first_seen`: of each violation of the last run since when it
    is known; `scans`: the last ones kept; `last`: where the last run is. `problems`: runs that
    could not be read.
    """

    runs: int = 0
    sizes: Sizes = field(default_factory=dict)
    first_seen: Mapping[ViolationKey, int] = field(default_factory=dict)
    scans: KeptScans = field(default_factory=KeptScans)
    last: Path | None = None
    problems: tuple[str, ...] = ()

    def findings(self) -> Sequence[Mapping[str, Any]]:
        """Those of the last run; none of one of an older version. InvalidConfigError where they
        cannot be read. Not held: they take as much memory as all that an audit knows of sound logs.
        """
        is_there = self.last is not None and (self.last / FINDINGS_FILE).exists()
        return read_findings(self.last) if self.last is not None and is_there else ()

    def growth_of(self, log_dir: str, topics: Mapping[str, int], now_ms: int) -> int | None:
        """Bytes a day of a log dir, whose topics have so many bytes now; None without a run at
        another time that saw it.
        """
        sums: dict[int, int] = defaultdict(int)
        for (where, _), points in self.sizes.items():
            for at_ms, size in points if where == log_dir else ():
                sums[at_ms] += size
        return slope([*sums.items(), (now_ms, sum(topics.values()))])

    def topic_growth(self, now: Mapping[tuple[str, str], int], now_ms: int) -> list[dict[str, Any]]:
        """Bytes a day of each topic there is now, over all log dirs, by name."""
        sums: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for (_, topic), points in self.sizes.items():
            for at_ms, size in points:
                sums[topic][at_ms] += size
        current: dict[str, int] = defaultdict(int)
        for (_, topic), size in now.items():
            current[topic] += size
        rows = []
        for topic, size in sorted(current.items()):
            growth = slope([*sums[topic].items(), (now_ms, size)])
            if growth is not None:
                rows.append({"topic": topic, "bytesPerDay": growth})
        return rows


def slope(points: Sequence[tuple[int, int]]) -> int | None:
    """Bytes a day over (ms, bytes); None of fewer than two moments. Later ones at the same moment
    count alone.
    """
    known = dict(points)
    if len(known) < 2:
        return None
    first = min(known)
    days = [(at_ms - first) / _DAY_MS for at_ms in known]
    sizes = list(known.values())
    middle, mean = sum(days) / len(days), sum(sizes) / len(sizes)
    # The least-squares line through all of them: one audit at a bad moment, in the middle of a
    # compaction, moves it little. The days differ, so that `spread` is above 0.
    spread = sum((day - middle) ** 2 for day in days)
    together = sum((d - middle) * (s - mean) for d, s in zip(days, sizes, strict=True))
    return round(together / spread)


def sizes_now(partitions: Iterable[AuditedPartition]) -> dict[tuple[str, str], int]:
    """Bytes by log dir and topic."""
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for partition, own in with_sums(partitions):
        sums[partition.log_dir, partition.topic] += sum(own.bytes_by_kind)
    return dict(sums)


def read_history(run_dir: Path, scope: Mapping[str, Any], now_ms: int) -> History:
    """The finished audits of the same scope (log dirs, topics) before `now_ms`."""
    runs, _ = list_runs(run_dir)
    own = [
        run
        for run in runs
        if run.facts.get("kind") == KIND
        and "finished" in run.facts
        and run.facts.get("options") == scope
        and isinstance(run.facts.get("nowMs"), int)
        and run.facts["nowMs"] < now_ms
    ]
    own = sorted(own, key=lambda run: run.facts["nowMs"])[-MOST_RUNS:]
    sizes: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    problems = []
    first_seen: dict[ViolationKey, int] = {}
    for run in own:
        try:
            for row in _rows(run, TOPICS_FILE, _TOPICS):
                sizes[row["logDir"], row["topic"]].append((row["nowMs"], row["bytes"]))
            first_seen = {
                (r["kind"], r["rule"], r["logDir"], r["topic"], r["partition"], r["detail"]): r[
                    "sinceMs"
                ]
                for r in _rows(run, VIOLATIONS_FILE, _VIOLATIONS)
            }
        except (OSError, pa.ArrowException, KeyError) as error:
            problems.append(f"{run.path}: {error}")
    runs_read = len(own) - len(problems)
    scans = _scans(own, problems)
    last = own[-1].path if own else None
    return History(runs_read, dict(sizes), first_seen, scans, last, tuple(problems))


def _scans(runs: Sequence[Run], problems: list[str]) -> KeptScans:
    """Of the newest run that has them."""
    for run in reversed(runs):
        try:
            scans = read_scans(run.path)
        except (OSError, KafkaLogError, pa.ArrowException) as error:
            problems.append(f"{run.path}: {error}")
            break
        if scans is not None:
            return scans
    return KeptScans()


def _rows(run: Run, name: str, schema: pa.Schema) -> list[dict[str, Any]]:
    path = run.path / name
    table = read_table_of(path, schema)
    if table is None:
        table = pq.read_table(path, schema=schema)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def write_history(
    run: Run,
    now_ms: int,
    partitions: Sequence[AuditedPartition],
    violations: Iterable[Violation],
    scans: NextScans,
) -> None:
    """The files of one run; OSError if they cannot be written."""
    sizes = sizes_now(partitions)
    topics = [
        {"nowMs": now_ms, "logDir": log_dir, "topic": topic, "bytes": size}
        for (log_dir, topic), size in sorted(sizes.items())
    ]
    broken = []
    for violation in violations:
        kind, rule, log_dir, topic, partition, detail = violation.key
        broken.append(
            {
                "nowMs": now_ms, "sinceMs": violation.since_ms, "kind": kind, "rule": rule,
                "logDir": log_dir, "topic": topic, "partition": partition, "detail": detail,
            }
        )  # fmt: skip
    for name, rows, schema in (
        (TOPICS_FILE, topics, _TOPICS),
        (VIOLATIONS_FILE, broken, _VIOLATIONS),
    ):
        table = table_of(rows, schema)
        pq.write_table(table, run.path / name, compression="zstd")
    scans.write(run.path)


def drop_older_scans(run_dir: Path, kept: Run, scope: Mapping[str, Any]) -> None:
    """Only the last run's are of use. What cannot be removed stays."""
    for name in (SCANS_FILE, LOGS_FILE):
        for run in list_runs(run_dir, with_file=name)[0]:
            if run.path != kept.path and run.facts.get("options") == scope:
                with suppress(OSError):
                    (run.path / name).unlink(missing_ok=True)
