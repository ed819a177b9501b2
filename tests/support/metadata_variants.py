"""Records behind a metadata log, and whether Kafka 4.3.1 starts with them
(`tests/oracle/test_metadata_starts.py` asks it again for some).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.log.metadata_records import METADATA_DIR, metadata_files, metadata_log_end
from tests.support.log_builder import START_MS
from tests.support.metadata_builder import (
    NO_TAGS,
    begin,
    change_replicas,
    config,
    end,
    frame,
    no_op,
    partition,
    remove_topic,
    topic,
)

NEW_ID = "AAAAAAAAAAAAAAAAAAAAZw"
OTHER_NEW_ID = "AAAAAAAAAAAAAAAAAAAAaA"

# Name → the records' values, the number of the one at which it ends itself (None: it starts).
VARIANTS: dict[str, tuple[list[bytes | None], int | None]] = {
    "nothing": ([no_op()], None),
    "a partition of an unknown topic": ([partition([1], NEW_ID)], 0),
    "a change of an unknown topic": ([change_replicas([1], NEW_ID)], 0),
    "a change of an unknown partition": (
        [topic("new", NEW_ID), change_replicas([1], NEW_ID, 7)],
        1,
    ),
    "the end of an unknown topic": ([remove_topic(NEW_ID)], 0),
    "a topic twice": ([topic("new", NEW_ID), topic("new", NEW_ID)], 1),
    "a name twice": ([topic("new", NEW_ID), topic("new", OTHER_NEW_ID)], 1),
    "an unknown broker": (
        [frame(8, 0, (77).to_bytes(4, "big") + (5).to_bytes(8, "big") + NO_TAGS)],
        0,
    ),
    "cut": ([topic("new", NEW_ID)[:-3]], 0),
    "and more": ([topic("new", NEW_ID) + b"zz"], 0),
    "no value": ([None], 0),
    "empty": ([b""], 0),
    "frame version 0": ([frame(20, 0, NO_TAGS, frame_version=0)], 0),
    "frame version 2": ([frame(20, 0, NO_TAGS, frame_version=2)], 0),
    "a transaction within another": ([begin(), begin()], 1),
    "the end of no transaction": ([end()], 0),
    "an open transaction": ([begin()], None),
    "a setting of an unknown kind": ([config("new", "a", "b", kind=99)], None),
    "no setting of an unknown topic": ([config("new", "retention.ms", None)], None),
}


def append_records(log_dir: Path, values: Sequence[bytes | None]) -> int:
    """Records behind the metadata log of a log dir, in one batch; the offset of the first."""
    segments, _ = metadata_files(log_dir / METADATA_DIR)
    end_offset, epoch = metadata_log_end(segments)
    records = [Record(end_offset + n, START_MS, None, value) for n, value in enumerate(values)]
    with segments[-1][1].open("ab") as log:
        log.write(pack_batch(records, partition_leader_epoch=epoch))
    return end_offset
