"""A run over many partitions: which segments are new, check those, then judge each partition.

The command line and Spark do the same and differ in one thing, how tasks become reports: by
processes here, by Spark tasks there (`Executor`). Nothing below a log dir is changed and no lock is
taken, so it may run beside a broker; what that changes meanwhile is reported as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.checking.directory_checks import Owner, check_directory
from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.finding_kind import Severity
from kafkalog.checking.log_checks import check_log
from kafkalog.checking.log_dir_checks import check_log_dir
from kafkalog.checking.metadata_checks import check_metadata_files
from kafkalog.checking.metadata_replay import check_replay, check_topic_settings
from kafkalog.checking.node_checks import check_log_dirs
from kafkalog.checking.opened import Opened, open_for_checks, placed
from kafkalog.checking.partition_view import PartitionView
from kafkalog.checking.producer_checks import check_producers
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.run_records import read_known_reports, write_run
from kafkalog.checking.segment_report import SegmentReport, SegmentTask
from kafkalog.clock import now_ms
from kafkalog.errors import InvalidConfigError
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.listing import path_text
from kafkalog.log.log_dir import NO_PARTITION
from kafkalog.log.log_dir_files import is_clean_stop
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_settings import RunSettings
from kafkalog.runs.run_dir import new_run_id

Executor = Callable[[Sequence[SegmentTask]], Iterable[SegmentReport]]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CheckedPartition:
    """A partition directory that was checked."""

    partition: PartitionInventory
    segments_read: int
    segments_carried: int
    bytes_read: int


@dataclass(frozen=True, slots=True)
class VerifyRun:
    """What a run found. is_kept: its records are in the run dir."""

    run_id: str
    since: str | None
    partitions: tuple[CheckedPartition, ...]
    findings: tuple[Finding, ...]
    is_kept: bool

    @property
    def has_failures(self) -> bool:
        """Whether anything was found that is more than information."""
        return any(finding.severity.is_failure for finding in self.findings)


def verify_run(request: VerifyRequest, execute: Executor, tell: Tell) -> VerifyRun:
    """Check what is asked for.

    InvalidConfigError for paths, partitions and runs that do not exist.
    """
    started_ms = now_ms()
    opened = open_for_checks(request)
    known = _known(request, tell)
    every = [task for tasks in opened.tasks.values() for task in tasks]
    # A task equals an earlier one if its files have the same sizes, times and inodes: its report
    # holds. Partitions are judged anew from all reports, for neighbours may have changed.
    carried = {task: known[task] for task in every if task in known}
    fresh = {r.task: r for r in execute([task for task in every if task not in carried])}
    reports = carried | fresh
    findings = [*opened.findings, *_log_dir_findings(request, opened)]
    for partition in opened.partitions:
        own = tuple(reports[task] for task in opened.tasks[partition.path])
        findings += _partition_findings(partition, own, opened)
    run_id = new_run_id()
    run = VerifyRun(
        run_id,
        request.since,
        tuple(_checked(p, opened.tasks[p.path], carried) for p in opened.partitions),
        tuple(sorted(findings, key=lambda finding: finding.order)),
        is_kept=False,
    )
    try:
        write_run(
            request.run_path, run_id, [reports[task] for task in every],
            started_ms=started_ms, finished_ms=now_ms(), options=_options(request),
            facts={"segments": len(every), "findings": len(findings)},
        )  # fmt: skip
    except OSError as error:
        tell(f"the run is not kept, --since cannot name it: {error}")
        return run
    return replace(run, is_kept=True)


def _known(request: VerifyRequest, tell: Tell) -> dict[SegmentTask, SegmentReport]:
    if request.since is None:
        return {}
    known = read_known_reports(request.run_path, request.since)
    if not known:
        tell(f"run {request.since} has nothing that can be carried over: all is read")
    return known


def _log_dir_findings(request: VerifyRequest, opened: Opened) -> Iterator[Finding]:
    """Of the log dirs that were asked for as a whole, and whatever else could not be read."""
    found: list[Finding] = []
    for log_dir in opened.whole:
        found += (
            replace(f, log_dir=path_text(log_dir.path))
            for f in check_log_dir(log_dir, opened.whole)
        )
    covered = {finding.path for finding in found}
    for problem in opened.inventory.problems:
        path, _, text = problem.partition(": ")
        if path not in covered and not text.startswith(NO_PARTITION):
            other = FindingList(path)
            # A broker passes a link to nowhere by; the cluster's own is missed there.
            is_broken_link = Path(path).is_symlink() and not Path(path).exists()
            other.add("unreadable", text, severity=Severity.WARNING if is_broken_link else None)
            found += (replace(f, log_dir=path_text(Path(path).parent)) for f in other.findings())
    across = check_log_dirs(opened.whole)
    found += (replace(f, log_dir=path_text(Path(f.path).parent)) for f in across)
    yield from found


def _partition_findings(
    partition: PartitionInventory, reports: tuple[SegmentReport, ...], opened: Opened
) -> Iterator[Finding]:
    settings = opened.settings
    owner = _owner(partition, opened)
    view = PartitionView(
        partition,
        reports,
        is_broker_dir=owner.meta is not None,
        is_clean_stop=is_clean_stop(partition.log_dir),
        config=_config(partition, settings),
    )
    found = [*check_log(view), *check_producers(view)]
    if not partition.is_remote_alone:
        found += check_directory(view, owner)
    if partition.topic_partition.topic == CLUSTER_METADATA_TOPIC:
        found += [*check_replay(partition.path), *check_metadata_files(partition.path)]
        if owner.cluster is not None:
            found += check_topic_settings(owner.cluster)
    return placed(partition, found)


def _owner(partition: PartitionInventory, opened: Opened) -> Owner:
    meta = opened.settings.meta(partition)
    of_node = [
        given.meta.directory_id
        for given in opened.whole
        if meta is not None
        and given.meta is not None
        and (given.meta.cluster_id, given.meta.node_id) == (meta.cluster_id, meta.node_id)
    ]
    own = None if meta is None else meta.directory_id
    ids = frozenset(each for each in (*of_node, own) if each is not None)
    return Owner(meta, opened.settings.cluster(partition), ids)


def _config(partition: PartitionInventory, settings: RunSettings) -> LogConfig | None:
    if partition.topic_partition.topic == CLUSTER_METADATA_TOPIC:
        return LogConfig()  # never compacted
    try:
        resolved = settings.resolve(partition)
    except InvalidConfigError:
        return None
    return resolved.config if resolved.refusal is None else None


def _checked(
    partition: PartitionInventory,
    tasks: Sequence[SegmentTask],
    carried: dict[SegmentTask, SegmentReport],
) -> CheckedPartition:
    read = [task for task in tasks if task not in carried]
    return CheckedPartition(
        partition,
        segments_read=len(read),
        segments_carried=len(tasks) - len(read),
        bytes_read=sum(task.size_in_bytes for task in read),
    )


def _options(request: VerifyRequest) -> dict[str, object]:
    return {
        "logDirs": list(request.log_dirs),
        "topics": list(request.topics),
        "topicPartitions": [str(name) for name in request.topic_partitions],
        "since": request.since,
    }
