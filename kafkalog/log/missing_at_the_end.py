"""Whether something knows offsets past the last batch: recovery point, high watermark, cleaner
checkpoint, leader epochs, a producer snapshot, entries of indexes.

None of them is above the log's end on a disk that is whole: a broker lowers them when it cuts the
log. After a crash the log may have been cut to less than what they say; those offsets are not here
either. A file that contradicts the rest (see `disk_traces`) needs a second one that agrees. One
file alone is believed, but where the lines of checkpoints know no such offsets the range says so.

Source: Kafka LogManager, LogLoader, ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkalog.format.checkpoints import HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE
from kafkalog.log.disk_traces import DiskTraces, Witness
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.missing_range import (
    MissingCause,
    MissingPlace,
    MissingRange,
    agreed_end,
    behind_bad_batches,
)
from kafkalog.log.segment_span import SpanOf


def missing_at_the_end(
    partition: PartitionInventory, traces: DiskTraces, span_of: SpanOf
) -> Iterator[MissingRange]:
    """What is missing behind the last batch: one range, or none."""
    end = max(partition.log_end_offset, partition.log_start_offset)
    beyond = [witness for witness in traces.ends if witness.end_offset > end]
    # Only now is anything read: on a disk that is whole no witness lies beyond, and this ends here.
    span = span_of(partition.segments[-1]) if beyond and partition.segments else None
    if span is not None:
        # The inventory's end is where a broker's is; past damage there may be more.
        end = max(end, span.next_offset)
        beyond = [witness for witness in beyond if witness.end_offset > end]
    # A strong witness counts alone. Of the others, which may be damaged or of another time, two are
    # needed.
    agreed = agreed_end(beyond)
    if agreed is None and all(witness.is_entry for witness in beyond):
        return  # nothing, or one entry of an index that does not fit its log
    if span is not None and span.is_damaged:
        ends_at = agreed or max(witness.end_offset for witness in beyond)
        yield behind_bad_batches(span, ends_at, MissingPlace.END, partition)
        return
    ends = "there is no segment" if span is None else f"the log ends at {end}"
    said = ", ".join(dict.fromkeys(str(witness) for witness in beyond))
    doubt = "; not proven: nothing else knows of them" if agreed is None else ""
    others = _others(traces, beyond, end)
    if others and not doubt:
        said += f"; {', '.join(map(str, others))}"
    yield MissingRange(
        MissingPlace.END, end, agreed or max(w.end_offset for w in beyond),
        MissingCause.DOUBTFUL if agreed is None else MissingCause.LOST,
        f"{ends}, {said}{doubt}",
        partition.path if span is None else partition.segments[-1].path,
        None if span is None else span.end_position, is_contradicted=bool(others),
    )  # fmt: skip


def _others(traces: DiskTraces, beyond: Sequence[Witness], end: int) -> list[Witness]:
    """The lines of a log dir's checkpoints that end with the log, where one file alone goes on. A
    stop in order writes the recovery point last: nothing contradicts that.
    """
    names = {witness.name for witness in beyond}
    if len(names) > 1 or (traces.is_clean_stop and RECOVERY_POINT_FILE in names):
        return []
    lines = (RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE)
    return [w for w in traces.ends if w.name in lines and w.end_offset <= end]
