"""Audit one partition directory: its files are looked at once, everything else is decided from
that.

Whatever cannot be read becomes a finding, and the numbers are those of what could be.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from kafkalog.auditing.audited_partition import BYTE_KINDS, AuditedPartition
from kafkalog.auditing.compaction_verdict import judge_compaction
from kafkalog.auditing.core_findings import find_core
from kafkalog.auditing.directory_bytes import DirectoryBytes, measure_directory
from kafkalog.auditing.finding_context import FindingContext
from kafkalog.auditing.header_contents import HeaderContentsScan
from kafkalog.auditing.known_scan import KnownScan, recall_scan, scan_key
from kafkalog.auditing.partition_contents import scan_for, with_contents
from kafkalog.auditing.request import AuditTask
from kafkalog.auditing.segment_statistics import SegmentStatistics, StatisticsBuilder
from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import PartitionFacts, PartitionInventory, SegmentFacts, SegmentInfo
from kafkalog.log.retention_facts import repaired_segments
from kafkalog.log.segment_facts import scan_partition_facts, scan_segment_facts
from kafkalog.log.segment_file import HeaderScan, iterate_headers
from kafkalog.planning.high_watermark import effective_high_watermark
from kafkalog.planning.retention_forecast import forecast_retention


def audit_partition(task: AuditTask) -> AuditedPartition:
    """What there is to say about one partition directory; what is on disk raises nothing."""
    return audit_closely(task)[0]


def audit_closely(task: AuditTask) -> tuple[AuditedPartition, PartitionFacts]:
    """The same, with the facts it was made from."""
    partition = loaded(task)
    problems = list(partition.problems)
    sizes = _sizes(partition, problems)
    known = _known(partition, task)
    scan = known or _scanned(partition, task, sizes, problems)
    audited = _judged(task, scan.facts, scan.statistics, problems, sizes)
    if scan.headers is not None:
        audited = with_contents(audited, task, partition, scan.headers)
    if known is not None:
        audited = replace(audited, scan=task.known, is_carried=True)
    elif task.keeps_scan and scan.key:
        audited = replace(audited, scan=scan.to_text())
    return audited, scan.facts


def _known(partition: PartitionInventory, task: AuditTask) -> KnownScan | None:
    """An earlier run's scan, if nothing has changed since."""
    if not task.known:
        return None
    expiration_ms = task.resolved.in_force.producer_id_expiration_ms
    key = scan_key(partition, expiration_ms)
    return recall_scan(task.known, key, now_ms=task.now_ms, expiration_ms=expiration_ms)


def _scanned(
    partition: PartitionInventory, task: AuditTask, sizes: DirectoryBytes, problems: list[str]
) -> KnownScan:
    """A scan of its own; without a key, never to be kept, if not all could be read."""
    before = len(problems)
    facts, statistics, headers = _scan(partition, task, sizes, problems)
    key = ""
    if task.keeps_scan and len(problems) == before:
        key = scan_key(partition, task.resolved.in_force.producer_id_expiration_ms)
    contents = None if headers is None else headers.finish()
    return KnownScan(key, task.now_ms, facts, statistics, contents)


def loaded(task: AuditTask) -> PartitionInventory:
    """The partition as a broker loads it."""
    return task.partition.as_local_log() if task.resolved.is_local else task.partition


def _judged(
    task: AuditTask,
    facts: PartitionFacts,
    statistics: tuple[SegmentStatistics, ...],
    problems: list[str],
    sizes: DirectoryBytes,
) -> AuditedPartition:
    partition = loaded(task)
    config = task.resolved.in_force
    watermark = effective_high_watermark(partition, task.assumed_high_watermark)
    high_watermark = partition.log_end_offset if watermark is None else watermark
    unstable = facts.first_unstable_offset(high_watermark, partition.log_start_offset)
    audited = AuditedPartition(
        log_dir=partition.log_dir,
        topic=partition.topic_partition.topic,
        partition=partition.topic_partition.partition,
        kind=partition.kind,
        path=partition.path,
        token=partition.token,
        config=config,
        log_start_offset=partition.log_start_offset,
        log_end_offset=partition.log_end_offset,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark if unstable is None else unstable,
        segments=statistics,
        bytes_by_kind=sizes.by_kind,
        leftovers=sizes.leftovers,
        retention=forecast_retention(
            partition,
            config,
            _repaired(partition, facts),
            now_ms=task.now_ms,
            high_watermark=high_watermark,
            uploaded_offset=-1 if task.uploaded_offset is None else task.uploaded_offset,
        ),
        compaction=judge_compaction(
            partition,
            config,
            facts,
            now_ms=task.now_ms,
            high_watermark=high_watermark,
            kafka_version=task.kafka_version,
        ),
        kafka_version=task.kafka_version,
        problems=tuple(problems),
    )
    context = FindingContext(
        audited, task, partition, facts, is_high_watermark_known=watermark is not None
    )
    return replace(audited, findings=tuple(find_core(context)))


def _sizes(partition: PartitionInventory, problems: list[str]) -> DirectoryBytes:
    try:
        return measure_directory(partition.path, partition.kind)
    except OSError as error:
        problems.append(f"cannot be listed: {error}")
        none = dict.fromkeys(BYTE_KINDS, 0)
        return DirectoryBytes({**none, "log": partition.size_in_bytes})


def _scan(
    partition: PartitionInventory, task: AuditTask, sizes: DirectoryBytes, problems: list[str]
) -> tuple[PartitionFacts, tuple[SegmentStatistics, ...], HeaderContentsScan | None]:
    """The facts and statistics of the segments that can be read, and what else headers said."""
    builders: dict[int, StatisticsBuilder] = {}
    headers = scan_for(partition, problems)

    def see(segment: SegmentInfo, scan: HeaderScan) -> None:
        builders.setdefault(segment.base_offset, StatisticsBuilder()).add(scan)
        if headers is not None:
            headers.add(scan.rows, is_active=segment.is_active)

    try:
        facts = scan_partition_facts(
            partition,
            now_ms=task.now_ms,
            expiration_ms=task.resolved.in_force.producer_id_expiration_ms,
            see=see,
        )
    except (KafkaLogError, OSError) as error:
        problems.append(f"cannot be read: {error}")
        facts = _each_alone(partition, str(error))
        builders.clear()
        headers = headers and scan_for(partition, problems)
        for segment in partition.segments:
            with contextlib.suppress(KafkaLogError, OSError):
                for scan in iterate_headers(segment.path):
                    see(segment, scan)
    known = {each.base_offset: each for each in facts.segments}
    statistics = tuple(
        builders[segment.base_offset].build(
            segment, known[segment.base_offset], sizes.beside(segment.base_offset)
        )
        for segment in partition.segments
        if segment.base_offset in known
    )
    return facts, statistics, headers


def _each_alone(partition: PartitionInventory, problem: str) -> PartitionFacts:
    """The facts of those segments that can be read."""
    found = []
    for segment in partition.segments:
        with contextlib.suppress(KafkaLogError, OSError):
            found.append(scan_segment_facts(segment))
    return PartitionFacts(tuple(found), problems=(problem,))


def _repaired(partition: PartitionInventory, facts: PartitionFacts) -> PartitionFacts:
    """Of the facts those of segments that a broker repairs on load, by which retention goes."""
    known: dict[int, SegmentFacts] = {each.base_offset: each for each in facts.segments}
    repaired = (known.get(segment.base_offset) for segment in repaired_segments(partition))
    return PartitionFacts(tuple(each for each in repaired if each is not None))


def partition_died(task: AuditTask) -> AuditedPartition:
    """What there is to say where the process died that read the partition: what its directory and
    its indexes tell.
    """
    lost = replace(task.partition, problems=("the process that read it died",))
    empty = PartitionFacts((), problems=lost.problems)
    problems = list(lost.problems)
    return _judged(replace(task, partition=lost), empty, (), problems, _sizes(lost, problems))
