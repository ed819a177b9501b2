"""What the rules of an audit look at: one partition, what is known of its broker, and a way to say
what was found.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.auditing.audit_kinds import ALL_KINDS
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.known_files import KnownFiles
from kafkalog.auditing.request import AuditTask
from kafkalog.checking.finding import Finding
from kafkalog.contents.segment_statistics import SegmentStatistics
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory, SegmentInfo


@dataclass(frozen=True, slots=True)
class FindingContext:
    """`inventory`: as a broker would load it; `facts`: of every segment that could be read;
    `repaired`: of these those of segments that a broker repairs on load, by which retention goes;
    `files`: what lies beside them; `indexes_end_in_log`: no index of the last segment knows more of
    the log.
    """

    audited: AuditedPartition
    task: AuditTask
    inventory: PartitionInventory
    facts: PartitionFacts
    repaired: PartitionFacts
    repaired_bases: frozenset[int]
    files: KnownFiles
    is_high_watermark_known: bool
    indexes_end_in_log: bool = False

    @property
    def now_ms(self) -> int:
        """The time of the audit."""
        return self.task.now_ms

    @property
    def alive_ms(self) -> int:
        """The broker's last sign of life on this log dir, never later than the audit."""
        return self.task.alive_ms

    def segment(self, base_offset: int) -> SegmentStatistics | None:
        """The statistics of a segment, None if it could not be read."""
        found = (s for s in self.audited.segments if s.base_offset == base_offset)
        return next(found, None)

    def info(self, base_offset: int) -> SegmentInfo:
        """The segment's files."""
        return next(s for s in self.inventory.segments if s.base_offset == base_offset)

    def say(
        self,
        kind: str,
        text: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        position: int | None = None,
        segment: int | None = None,
        fix: str = "",
    ) -> Finding:
        """A finding of this partition, with the severity of its kind."""
        audited = self.audited
        return Finding(
            kind,
            ALL_KINDS[kind].severity,
            text,
            path or audited.path,
            position=position,
            offset=offset,
            log_dir=audited.log_dir,
            topic=audited.topic,
            partition=audited.partition,
            segment_base_offset=segment,
            fix=fix,
        )
