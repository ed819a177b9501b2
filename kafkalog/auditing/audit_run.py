"""An audit of many partitions: settings are read once, partitions in any process.

`execute` hands tasks to worker processes or to Spark; what comes back is put into the order of the
inventory. What lies beside the partitions (a log dir that cannot be read) is a finding as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.core_findings import finding
from kafkalog.auditing.request import AuditRequest, AuditTask
from kafkalog.checking.finding import Finding
from kafkalog.cleaner.settings import RunSettings
from kafkalog.log.inventory import LogInventory, PartitionInventory

Executor = Callable[[Sequence[AuditTask]], Iterable[AuditedPartition]]


@dataclass(frozen=True, slots=True)
class AuditRun:
    """What was audited, in the order of topic, partition and path; `other_findings` are of no
    partition; `notes`: where settings come from.
    """

    now_ms: int
    partitions: tuple[AuditedPartition, ...]
    other_findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def findings(self) -> list[Finding]:
        """All of them, by partition, worst first."""
        own = [finding for partition in self.partitions for finding in partition.findings]
        return sorted([*self.other_findings, *own], key=lambda each: each.order)

    @property
    def has_failures(self) -> bool:
        """Whether anything was found that is more than information."""
        return any(each.is_failure for each in self.findings)


def audit_run(request: AuditRequest, execute: Executor) -> AuditRun:
    """Audit what is asked for.

    InvalidConfigError for paths that do not exist, partitions that are named but not there, and
    settings that Kafka would refuse.
    """
    everything = request.open_all()
    found = request.select(everything)
    settings = request.read_settings(everything)
    tasks = [audit_task(request, partition, settings) for partition in found]
    done = {audited.path: audited for audited in execute(tasks)}
    return AuditRun(
        now_ms=request.now_ms,
        partitions=tuple(done[task.partition.path] for task in tasks),
        other_findings=tuple(_problems(everything)),
        notes=settings.notes,
    )


def audit_task(
    request: AuditRequest, partition: PartitionInventory, settings: RunSettings
) -> AuditTask:
    """What a process needs to audit a partition."""
    return AuditTask(
        partition=partition,
        resolved=settings.resolve(partition, needs_policy=False),
        now_ms=request.now_ms,
        kafka_version=settings.kafka_version(partition),
        assumed_high_watermark=request.high_watermark,
    )


def _problems(everything: LogInventory) -> Iterator[Finding]:
    for problem in dict.fromkeys(everything.problems):
        path, _, text = problem.partition(": ")
        found = finding("unreadable", text or path, path)
        yield replace(found, log_dir=str(Path(path).parent))
