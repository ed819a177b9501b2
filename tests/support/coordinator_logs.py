"""A log dir with random logs of the internal topics: groups, commits, transactions, remote
segments, share states, over few names, so that records of a key follow each other; tombstones among
them, and transactions that end, abort or stay open.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from kafkalog.format.control_record import ControlRecordType
from kafkalog.messages.coordinator_record import RecordType
from kafkalog.messages.group_records import GROUP_METADATA, OFFSET_COMMIT
from kafkalog.messages.remote_log_records import LAYOUTS
from kafkalog.messages.share_state_records import SHARE_SNAPSHOT, SHARE_UPDATE
from kafkalog.messages.transaction_records import TRANSACTION_LOG
from tests.support.log_builder import START_MS, TOPIC_ID, LogBuilder, RecordSpec
from tests.support.message_encoder import encode_key, encode_message, encode_value

_HOUR_MS = 3_600_000


def write_coordinator_logs(log_dir: Path, seed: int, records: int = 60) -> None:
    """Two partitions of each topic with about so many records, and one of `orders`."""
    rng = random.Random(seed)
    orders = LogBuilder(log_dir, "orders-0")
    for _ in range(20):
        orders.batch(("k", "v"))
    orders.batch(("k", "v"), producer_id=1, is_transactional=True)
    orders.write()
    for number in (0, 1):
        _write_offsets(LogBuilder(log_dir, f"__consumer_offsets-{number}"), rng, records)
        for topic, record in (
            ("__transaction_state", _transaction),
            ("__share_group_state", _share_state),
            ("__remote_log_metadata", _remote_segment),
        ):
            log = LogBuilder(log_dir, f"{topic}-{number}")
            for at in range(records):
                _maybe_roll(log, rng)
                log.batch(record(rng, number), timestamp=START_MS + at)
            log.write()


def _maybe_roll(log: LogBuilder, rng: random.Random) -> None:
    if rng.random() < 0.05:
        log.segment()


def _put(
    kind: RecordType, key: dict[str, Any], version: int, value: dict[str, Any] | None
) -> RecordSpec:
    encoded = None if value is None else encode_value(kind.value, version, value)
    return encode_key(kind.key, key), encoded


# -- groups ----------------------------------------------------------------------------------------


def _write_offsets(log: LogBuilder, rng: random.Random, records: int) -> None:
    open_producers: set[int] = set()
    for at in range(records):
        _maybe_roll(log, rng)
        timestamp = START_MS + at * _HOUR_MS // 3
        producer = rng.choice((1, 2, 3))
        if rng.random() < 0.3:
            log.batch(_commit(rng, timestamp), producer_id=producer, is_transactional=True,
                      timestamp=timestamp)  # fmt: skip
            open_producers.add(producer)
        elif open_producers and rng.random() < 0.2:
            ended = open_producers.pop()
            kind = rng.choice((ControlRecordType.COMMIT, ControlRecordType.ABORT))
            log.marker(kind, ended)
        else:
            made = _commit(rng, timestamp) if rng.random() < 0.6 else _group(rng)
            log.batch(made, timestamp=timestamp)
    log.write()


def _commit(rng: random.Random, timestamp: int) -> RecordSpec:
    key = {
        "group": f"g{rng.randrange(4)}", "topic": rng.choice(("orders", "gone")),
        "partition": rng.randrange(2),
    }  # fmt: skip
    value = {
        "offset": rng.randrange(30), "metadata": rng.choice(("", "m")),
        "commitTimestamp": timestamp, "expireTimestamp": -1,
    }  # fmt: skip
    return _put(OFFSET_COMMIT, key, rng.choice((1, 3)), None if rng.random() < 0.1 else value)


def _group(rng: random.Random) -> RecordSpec:
    value = {
        "protocolType": "consumer", "generation": rng.randrange(9), "protocol": "range",
        "leader": None, "currentStateTimestamp": START_MS, "members": [],
    }  # fmt: skip
    key = {"group": f"g{rng.randrange(4)}"}
    return _put(GROUP_METADATA, key, 3, None if rng.random() < 0.1 else value)


# -- the others ------------------------------------------------------------------------------------


def _transaction(rng: random.Random, number: int) -> RecordSpec:
    key = {"transactionalId": f"t{number}-{rng.randrange(5)}"}
    value = {
        "producerId": rng.randrange(4), "producerEpoch": rng.randrange(3),
        "transactionTimeoutMs": 60_000, "transactionStatus": rng.randrange(8),
        "transactionLastUpdateTimestampMs": START_MS,
        "transactionStartTimestampMs": rng.choice((-1, START_MS)),
        "transactionPartitions": rng.choice(
            (None, [{"topic": "orders", "partitionIds": [0]}],
             [{"topic": "__consumer_offsets", "partitionIds": [0, 1]}])
        ),
    }  # fmt: skip
    return _put(TRANSACTION_LOG, key, 0, None if rng.random() < 0.1 else value)


def _share_state(rng: random.Random, number: int) -> RecordSpec:
    key = {"groupId": f"s{number}-{rng.randrange(2)}", "topicId": TOPIC_ID, "partition": 0}
    batch = {
        "firstOffset": rng.randrange(9), "lastOffset": 9, "deliveryState": 2, "deliveryCount": 1
    }  # fmt: skip
    changed = {
        "snapshotEpoch": rng.randrange(3), "leaderEpoch": rng.randrange(4),
        "startOffset": rng.randrange(-1, 9), "stateBatches": [batch] * rng.randrange(3),
    }  # fmt: skip
    if rng.random() < 0.6:
        return _put(SHARE_UPDATE, key, 0, changed)
    times = {"stateEpoch": 1, "createTimestamp": START_MS, "writeTimestamp": START_MS + 1}
    return _put(SHARE_SNAPSHOT, key, 0, None if rng.random() < 0.1 else changed | times)


def _remote_segment(rng: random.Random, number: int) -> RecordSpec:
    which = rng.randrange(8)
    place = {"name": "orders", "id": TOPIC_ID, "partition": number}
    name = {"topicIdPartition": place, "id": f"{which:021d}A"}
    common = {
        "remoteLogSegmentId": name, "brokerId": 1, "eventTimestampMs": START_MS + which,
        "customMetadata": None, "remoteLogSegmentState": rng.randrange(5),
    }  # fmt: skip
    if rng.random() < 0.5:
        return None, bytes([1, 1, 0]) + encode_message(LAYOUTS[1][0], 0, common)
    start = 10 * which + rng.randrange(-2, 3)
    whole = common | {
        "startOffset": max(start, 0), "endOffset": 10 * which + 9, "maxTimestampMs": 5,
        "segmentLeaderEpochs": [], "segmentSizeInBytes": 1000,
    }  # fmt: skip
    return None, bytes([1, 0, 0]) + encode_message(LAYOUTS[0][0], 0, whole)
