"""Offsets that a log once had and that are not here, where that is proven: what `verify` finds of
them too (`log.missing_ranges`), from the headers that an audit has read anyway.

Of a tiered topic the older segments are in remote storage; that is no finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkalog.auditing.finding_context import FindingContext
from kafkalog.checking.finding import Finding
from kafkalog.checking.missing_checks import MISSING_KINDS
from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import EpochEntry
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.missing_range import MissingCause, MissingRange
from kafkalog.log.missing_ranges import missing_ranges
from kafkalog.log.segment_span import SegmentSpan, segment_span, span_of_facts
from kafkalog.planning.log_config import LogConfig


def find_missing(context: FindingContext) -> Iterator[Finding]:
    """A finding for each range of a live partition of which all segments could be read."""
    audited = context.audited
    if len(context.facts.segments) < len(context.inventory.segments):
        return
    try:
        lost = lost_ranges(
            context.inventory,
            context.facts,
            audited.config,
            reads_indexes=not context.indexes_end_in_log,
            epochs=context.files.epochs,
        )
    except (KafkaLogError, OSError) as error:
        yield context.say("audit-incomplete", f"{audited.name}: {error}")
        return
    for missing in lost:
        yield context.say(
            MISSING_KINDS[missing.place],
            f"{audited.name}: {missing}",
            path=missing.path,
            offset=missing.start_offset,
            position=missing.position,
        )


def lost_ranges(
    partition: PartitionInventory,
    facts: PartitionFacts,
    config: LogConfig,
    *,
    reads_indexes: bool = True,
    epochs: Sequence[EpochEntry] | None = None,
) -> list[MissingRange]:
    """What is proven to be lost of a partition, in order. OSError or LogChangedError if a segment
    cannot be read that the facts do not have. `reads_indexes`, `epochs`: as `missing_ranges` has
    them.
    """
    known = {each.base_offset: each for each in facts.segments}

    def span_of(segment: SegmentInfo) -> SegmentSpan:
        own = known.get(segment.base_offset)
        return (own and span_of_facts(own)) or segment_span(segment)

    ranges = missing_ranges(partition, span_of=span_of, reads_indexes=reads_indexes, epochs=epochs)
    start = partition.segments[0].base_offset if partition.segments else 0
    return [
        missing
        for missing in ranges
        if missing.cause is MissingCause.LOST
        and not (config.remote_storage_enable and missing.end_offset <= start)
    ]
