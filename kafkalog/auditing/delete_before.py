"""Up to which offset `kafka-delete-records` may go so that nothing of a time or later is lost: what
no topic setting does (KIP-47 was never adopted).

Of each live partition it is the offset of the first record at or above the time, as a broker looks
it up, or the high watermark where there is none. Older records behind it stay, as they would with
retention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.errors import KafkaLogError
from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC, PartitionKind
from kafkalog.reading.lookups import list_offsets


def delete_before_rows(
    partitions: Sequence[AuditedPartition], before_ms: int
) -> Iterator[dict[str, Any]]:
    """A row a partition of which something may go; `bytes`: of segments that then lie wholly below
    the log start, all that is freed.
    """
    for audited in partitions:
        if audited.kind is not PartitionKind.LIVE or audited.topic == CLUSTER_METADATA_TOPIC:
            continue
        try:
            found = list_offsets(audited.path, before_ms)
        except (KafkaLogError, OSError):
            continue  # what cannot be read is a finding already
        offset = audited.high_watermark if found is None else found.offset
        if offset > audited.log_start_offset:
            yield {
                "topic": audited.topic,
                "partition": audited.partition,
                "logDir": audited.log_dir,
                "beforeMs": before_ms,
                "offset": offset,
                "bytes": sum(
                    segment.size_in_bytes
                    for segment in audited.segments
                    if not segment.is_active and segment.next_offset <= offset
                ),
            }
