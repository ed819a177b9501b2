"""An audit of many partitions: settings are read once, partitions in any process.

`execute` hands tasks to worker processes or to Spark; what comes back is put into the order of the
inventory. What lies beside the partitions (a log dir that cannot be read) is a finding as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.auditing.absence_findings import find_absences
from kafkalog.auditing.audit_kinds import ALL_KINDS
from kafkalog.auditing.audit_tasks import AuditTasks
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.findings_across import find_across
from kafkalog.auditing.kept_scans import KeptScans, NextScans
from kafkalog.auditing.log_dir_findings import find_signs, reported_once
from kafkalog.auditing.open_files import find_open_files
from kafkalog.auditing.request import AuditRequest, AuditTask
from kafkalog.auditing.scenarios import Scenario, times_from
from kafkalog.auditing.signs_of_life import SignsOfLife
from kafkalog.auditing.sound_logs import SoundLogs
from kafkalog.auditing.sound_partitions import SoundPartition
from kafkalog.checking.finding import Finding
from kafkalog.contents.header_contents import MOST_SLICES
from kafkalog.log.group_files import Moment
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.log_dir import NO_PARTITION

Executor = Callable[[Sequence[AuditTask]], Iterable[AuditedPartition]]


@dataclass(frozen=True, slots=True)
class AuditRun:
    """What was audited, in the order of topic, partition and path; `other_findings` are those that
    no partition tells alone; `notes`: where settings come from; `scans`: what the next run may take
    up, if it was asked for; `scenarios` are to be simulated, for `times_ms` in ascending order;
    `price`: of a GiB in remote storage a month.
    """

    now_ms: int
    partitions: tuple[AuditedPartition, ...]
    other_findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    scans: NextScans | None = None
    scenarios: tuple[Scenario, ...] = (Scenario(),)
    times_ms: tuple[int, ...] = ()
    price: float | None = None

    @property
    def findings(self) -> list[Finding]:
        """All of them, by partition, worst first."""
        return sorted(self._unordered(), key=lambda each: each.order)

    @property
    def findings_count(self) -> int:
        """How many there are."""
        return len(self.other_findings) + sum(len(each.findings) for each in self.partitions)

    @property
    def has_failures(self) -> bool:
        """Whether anything was found that is more than information."""
        return any(each.severity.is_failure for each in self._unordered())

    def _unordered(self) -> Iterator[Finding]:
        yield from self.other_findings
        for partition in self.partitions:
            yield from partition.findings


def audit_run(
    request: AuditRequest,
    execute: Executor,
    kept: KeptScans | None = None,
) -> AuditRun:
    """Audit what is asked for. `kept`: what an earlier run read of the same, in place of reading
    what has not changed; given, results have scans for the next run.

    InvalidConfigError for paths that do not exist, partitions that are named but not there, and
    settings that Kafka would refuse.
    """
    opened = open_audit(request, kept)
    tasks, everything = opened.tasks, opened.everything
    asked = dict.fromkeys(task.partition.log_dir for task in tasks)
    times_ms = times_from(request.now_ms, request.scope.times)
    inventories = {task.partition.path: task.partition for task in tasks}
    scans = None if kept is None else NextScans(kept)
    done, rest = _judged_by_numbers(tasks, kept)
    if scans is not None:
        for each in done.values():
            scans.add(each, inventories[each.path])
    for each in execute(rest) if rest else ():
        done[each.path] = each if scans is None else scans.add(each, inventories[each.path])
    audited = [done[path] for path in inventories]
    partitions, once = reported_once(audited, everything.problems)
    return AuditRun(
        now_ms=request.now_ms,
        partitions=partitions,
        other_findings=(
            *_problems(everything),
            *once,
            *find_signs({path: opened.signs[path] for path in asked}),
            *find_open_files(opened.log_dirs),
            *find_across(partitions),
            *find_absences(partitions, opened.replicated, everything, request.now_ms),
        ),
        notes=opened.notes,
        scans=scans,
        scenarios=request.scope.scenarios,
        times_ms=times_ms,
        price=request.scope.price,
    )


def _judged_by_numbers(
    tasks: Sequence[AuditTask], kept: KeptScans | None
) -> tuple[dict[str, AuditedPartition], list[AuditTask]]:
    """The partitions of which numbers tell all, by path, and the tasks of the others."""
    if kept is None:
        return {}, list(tasks)
    done: dict[str, AuditedPartition] = {}
    rest = []
    for task, audited in zip(tasks, SoundLogs(kept).judge(tasks), strict=True):
        if audited is None:
            rest.append(task)
        else:
            done[audited.path] = audited
            if isinstance(audited, SoundPartition) and audited.path in kept.read_now:
                audited.note_reading()
    return done, rest


@dataclass(frozen=True, slots=True)
class OpenedAudit:
    """The partitions asked for, as tasks, and those of them that the cluster has several replicas
    of; all there are, and where settings come from.
    """

    tasks: list[AuditTask]
    everything: LogInventory
    log_dirs: list[str]
    notes: tuple[str, ...]
    signs: Mapping[str, SignsOfLife]
    replicated: list[PartitionInventory]


def open_audit(request: AuditRequest, kept: KeptScans | None = None) -> OpenedAudit:
    """Look at all directories, read the settings, and see what is asked for; arguments and errors
    as above.
    """
    small = None if kept is None else kept.small_logs(_moment(request))
    everything = request.open_all(kept, small)
    found = request.select(everything)
    settings = request.read_settings(everything)
    tasks = AuditTasks(request, everything, settings, kept)
    return OpenedAudit(
        [tasks.task(partition) for partition in found],
        everything,
        tasks.log_dirs,
        settings.notes,
        tasks.signs,
        [each for each in found if len(settings.replicas(each) or ()) > 1],
    )


def _moment(request: AuditRequest) -> Moment:
    """Numbers hold for logs of these settings, and of others the logs are read by themselves."""
    return Moment(request.now_ms, request.config.producer_id_expiration_ms, MOST_SLICES)


def _problems(everything: LogInventory) -> Iterator[Finding]:
    for problem in dict.fromkeys(everything.problems):
        path, _, text = problem.partition(": ")
        kind = "foreign-directory" if text.startswith(NO_PARTITION) else "unreadable"
        yield Finding(
            kind, ALL_KINDS[kind].severity, text or path, path, log_dir=str(Path(path).parent)
        )
