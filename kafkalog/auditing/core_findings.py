"""Why a partition keeps what it should not, or is about to lose what it should keep: the findings
that its facts, its forecast and its verdict tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.auditing.audit_kinds import ALL_KINDS
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.request import AuditTask
from kafkalog.checking.finding import Finding
from kafkalog.log.inventory import PartitionFacts


def find_core(
    audited: AuditedPartition,
    task: AuditTask,
    *,
    is_high_watermark_known: bool,
    facts: PartitionFacts,
) -> Iterator[Finding]:
    """The findings, without their partition's name."""
    yield from _settings(audited, task)
    for problem in audited.problems:
        yield finding("audit-incomplete", problem, audited.path)


def finding(kind: str, text: str, path: str, **place: int | None) -> Finding:
    """A finding of a kind, with the severity of its kind; `place` as in Finding."""
    return Finding(kind, ALL_KINDS[kind].severity, text, path, **place)  # type: ignore[arg-type]


def _settings(audited: AuditedPartition, task: AuditTask) -> Iterator[Finding]:
    for difference in task.resolved.differences:
        yield finding("policy-drift", f"{audited.topic}: {difference}", audited.path)
    if task.resolved.unreliable is not None:
        yield finding("settings-unknown", task.resolved.unreliable, audited.path)
