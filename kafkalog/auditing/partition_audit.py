"""Audit one partition directory: its files are looked at once, everything else is decided from
that.

Whatever cannot be read becomes a finding, and the numbers are those of what could be.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalog.auditing.advice import advise_compaction
from kafkalog.auditing.audited_partition import AuditedPartition, CompactionVerdict
from kafkalog.auditing.compaction_verdict import judge_compaction
from kafkalog.auditing.core_findings import find_core
from kafkalog.auditing.finding_context import FindingContext
from kafkalog.auditing.known_files import KnownFiles, look_at_files
from kafkalog.auditing.partition_contents import contents_findings, with_records
from kafkalog.auditing.partition_scan import ScannedPartition, directory_sizes, scan_partition
from kafkalog.auditing.remote_part import remote_log
from kafkalog.auditing.request import AuditTask
from kafkalog.contents.log_contents import Contents
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionKind
from kafkalog.log.retention_facts import repaired_segments
from kafkalog.planning.compaction_plan import CLEAN
from kafkalog.planning.high_watermark import effective_high_watermark
from kafkalog.planning.retention_forecast import forecast_retention


def audit_partition(task: AuditTask) -> AuditedPartition:
    """What there is to say about one partition directory; what is on disk raises nothing."""
    return _audited(task, with_texts=False)[0]


def audit_closely(task: AuditTask) -> tuple[AuditedPartition, PartitionFacts]:
    """The same, with why each segment stays, and the facts it was made from."""
    return _audited(task, with_texts=True)


def _audited(task: AuditTask, *, with_texts: bool) -> tuple[AuditedPartition, PartitionFacts]:
    problems = list(task.loaded.problems)
    scan = scan_partition(task.loaded, task, problems)
    return _judged(task, scan, problems, with_texts=with_texts), scan.facts


def _judged(
    task: AuditTask, scan: ScannedPartition, problems: list[str], *, with_texts: bool = False
) -> AuditedPartition:
    partition, facts = task.loaded, scan.facts
    config = task.resolved.in_force
    bases = frozenset(
        segment.base_offset for segment in repaired_segments(partition, scan.files.unusable_indexes)
    )
    repaired = PartitionFacts(tuple(each for each in facts.segments if each.base_offset in bases))
    watermark = effective_high_watermark(partition, task.assumed_high_watermark)
    high_watermark = partition.log_end_offset if watermark is None else watermark
    unstable = facts.first_unstable_offset(high_watermark, partition.log_start_offset)
    audited = AuditedPartition(
        **task.outline(),
        high_watermark=high_watermark,
        last_stable_offset=high_watermark if unstable is None else unstable,
        segments=scan.statistics,
        bytes_by_kind=scan.sizes.by_kind,
        leftovers=scan.sizes.leftovers,
        retention=forecast_retention(
            partition,
            config,
            repaired,
            now_ms=task.now_ms,
            high_watermark=high_watermark,
            uploaded_offset=-1 if task.uploaded_offset is None else task.uploaded_offset,
            with_texts=with_texts,
        ),
        compaction=_with_advice(
            judge_compaction(
                partition,
                config,
                facts,
                now_ms=task.now_ms,
                high_watermark=high_watermark,
                kafka_version=task.kafka_version,
            ),
            task,
            facts,
            scan.files,
        ),
        problems=tuple(problems),
        scan=scan.packed,
        sound=scan.sound,
        is_carried=scan.is_carried,
        carried_segments=scan.carried_segments,
        contents=None if scan.headers is None else Contents(scan.headers),
    )
    if scan.headers is not None and task.reads_records:
        audited = with_records(audited, task, partition, scan.headers)
    if task.uploads and partition.kind is PartitionKind.LIVE:
        audited = replace(audited, remote=remote_log(audited, partition, task.uploads))
    context = FindingContext(
        audited,
        task,
        partition,
        facts,
        repaired,
        bases,
        scan.files,
        is_high_watermark_known=watermark is not None,
        indexes_end_in_log=scan.indexes_end_in_log,
    )
    core = tuple(find_core(context))
    if audited.contents is not None:
        core = (*core, *contents_findings(audited, core, task, partition))
    return replace(audited, findings=core) if core else audited


def _with_advice(
    verdict: CompactionVerdict, task: AuditTask, facts: PartitionFacts, files: KnownFiles
) -> CompactionVerdict:
    """A log in which nothing is to be done costs no second plan."""
    again = verdict.can_clean_again
    if verdict.status == CLEAN or again:
        return replace(verdict, advice=advise_compaction(task, facts, files, cleans_again=again))
    return verdict


def partition_died(task: AuditTask) -> AuditedPartition:
    """What there is to say where the process died that read the partition: what its directory and
    its indexes tell.
    """
    lost = replace(task.partition, problems=("the process that read it died",))
    problems = list(lost.problems)
    facts = PartitionFacts((), problems=lost.problems)
    scan = ScannedPartition(facts, (), None, directory_sizes(lost, problems), look_at_files(lost))
    return _judged(replace(task, partition=lost), scan, problems)
