"""What the checks of a whole partition look at: its facts, the reports of its segments, and how the
broker stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.checking.segment_report import SegmentReport
from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC, PartitionInventory, PartitionKind
from kafkalog.planning.log_config import LogConfig


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition directory.

    reports: of the live segments, in offset order. is_broker_dir: the log dir has a
    meta.properties; what lies elsewhere is a copy, and judged as a cleanly stopped broker would
    load it. is_clean_stop: `.kafka_cleanshutdown` is there. config: the topic's settings, None if
    they are not known.
    """

    partition: PartitionInventory
    reports: tuple[SegmentReport, ...]
    is_broker_dir: bool
    is_clean_stop: bool
    config: LogConfig | None

    @property
    def is_replica(self) -> bool:
        """Whether a broker loads it as one of its replicas: not a renamed directory, nor what is in
        remote storage alone."""
        return self.partition.kind is PartitionKind.LIVE and not self.partition.is_remote_alone

    @property
    def is_metadata_log(self) -> bool:
        """Whether it is the cluster's metadata log, of which a start recovers every segment."""
        return self.partition.topic_partition.topic == CLUSTER_METADATA_TOPIC

    @property
    def is_loaded_as_left(self) -> bool:
        """Whether the next start trusts indexes and tails: never those of the metadata log."""
        if self.is_metadata_log:
            return False
        return self.is_clean_stop or not self.is_broker_dir

    def is_rebuilt(self, number: int) -> bool:
        """Whether the next start makes the indexes of segment `number` anew: it has no offset
        index, or the broker did not stop cleanly and it is the last one or reaches past the
        recovery point (LogLoader.recoverLog).
        """
        report = self.reports[number]
        if (
            self.is_metadata_log
            or report.offset_index_count < 0
            or not report.is_transaction_index_readable
        ):
            return True
        recovery_point = self.partition.checkpoints.recovery_point or 0
        is_last = number + 1 == len(self.reports)
        return not self.is_loaded_as_left and (is_last or self.end_of(number) > recovery_point)

    def end_of(self, number: int) -> int:
        """Where the offsets of a segment end: at the next one's base, or at the log's end."""
        if number + 1 < len(self.reports):
            return self.reports[number + 1].task.base_offset
        return self.reports[number].next_offset

    @property
    def log_end_offset(self) -> int:
        """One past the last batch."""
        return self.reports[-1].next_offset if self.reports else self.partition.log_start_offset

    @property
    def is_thinned(self) -> bool:
        """Whether compaction has been at work, as far as the batches tell."""
        return any(report.is_thinned or report.holes_count for report in self.reports)

    @property
    def first_dense_offset(self) -> int | None:
        """From where on every offset has its batch: compaction never came so far. None if nobody
        can tell.
        """
        start = self.partition.log_start_offset
        cleaned_to = self.partition.checkpoints.cleaner
        if cleaned_to is not None:
            return max(cleaned_to, start)
        may_be_compacted = self.is_thinned if self.config is None else self.config.is_compacted
        return None if may_be_compacted else start
