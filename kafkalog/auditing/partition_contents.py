"""A partition's contents within its audit: which logs have any, what is read, what is found."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.contents_findings import find_in_contents
from kafkalog.auditing.request import AuditTask
from kafkalog.checking.finding import Finding
from kafkalog.contents.expired_tombstones import has_expired_tombstone
from kafkalog.contents.header_contents import HeaderContents, HeaderContentsScan
from kafkalog.contents.log_contents import header_scan, read_contents
from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import PartitionInventory, PartitionKind
from kafkalog.planning.cleanable_range import first_dirty_offset
from kafkalog.planning.retention_forecast import SECONDS


def scan_for(partition: PartitionInventory, problems: list[str]) -> HeaderContentsScan | None:
    """The scan that the headers of a log are to be shown; None of what no broker serves, and, with
    a problem, where transaction indexes cannot be read.
    """
    if partition.kind is not PartitionKind.LIVE or not partition.segments:
        return None
    try:
        return header_scan(partition, first_dirty_offset(partition)[0])
    except (KafkaLogError, OSError) as error:
        problems.append(f"contents not known: {error}")
        return None


def with_records(
    audited: AuditedPartition,
    task: AuditTask,
    partition: PartitionInventory,
    headers: HeaderContents,
) -> AuditedPartition:
    """The audited partition with what its records say as well."""
    verdict = audited.compaction
    contents = read_contents(
        partition,
        headers,
        first_dirty_offset=verdict.first_dirty_offset,
        first_uncleanable_offset=verdict.first_uncleanable_offset,
        with_keys=task.reads_keys,
        redact=task.redact,
        max_batch_bytes=task.max_batch_bytes,
    )
    return replace(audited, contents=contents)


def contents_findings(
    audited: AuditedPartition,
    core: Collection[Finding],
    task: AuditTask,
    partition: PartitionInventory,
) -> Iterator[Finding]:
    """What is found in the contents of a partition of which `core` was found already."""

    def has_tombstone(limit_ms: int) -> bool:
        closed = [segment for segment in partition.segments if not segment.is_active]
        return has_expired_tombstone(closed, limit_ms)

    are_times_right = all(finding.kind != SECONDS for finding in core)
    return find_in_contents(audited, task.alive_ms, has_tombstone, are_times_right=are_times_right)
