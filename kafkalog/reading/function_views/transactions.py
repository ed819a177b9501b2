"""Transactional ids, and the transactions that are open: what their coordinator knows beside what
lies in the partitions.

Source: Kafka TransactionStateManager, TransactionsCommand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns import coordinator_schemas
from kafkalog.columns.column import arrow_schema
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.producer_state import active_producers
from kafkalog.messages.transaction_records import TransactionState
from kafkalog.reading.selection import furthest_replicas

TRANSACTIONAL_IDS = arrow_schema(coordinator_schemas.TRANSACTIONAL_IDS, all_nullable=True)
OPEN_TRANSACTIONS = arrow_schema(coordinator_schemas.OPEN_TRANSACTIONS, all_nullable=True)

# Columns of view `messages` that are looked at.
STATE_COLUMNS = ("partition", "offset", "messageType", "key", "value", "valueBytes")
# Columns of view `offset_commits` that are looked at, and what of them is told.
BLOCKED_COLUMNS = ("group", "offsetsPartition", "transactionState")
BLOCKED = pa.schema([("partition", pa.int32()), ("group", pa.string())])

_STATES = {state.value: state.name for state in TransactionState}
# States in which the coordinator still has partitions to write markers to, or waits for the client.
_UNDER_WAY = ("ONGOING", "PREPARE_COMMIT", "PREPARE_ABORT", "PREPARE_EPOCH_FENCE")
_NEVER_EXPIRES = 2**62  # an open transaction is never forgotten
_COMMAND = (
    "kafka-transactions.sh --bootstrap-server SERVER abort --topic {} --partition {} "
    "--start-offset {}"
)


def transactional_ids(messages: Iterable[pa.RecordBatch]) -> pa.Table:
    """TRANSACTIONAL_IDS of rows with STATE_COLUMNS, of any parts of the topic in any order: of the
    last record of each key, unless it is a tombstone. Memory is that of the ids, as in their
    coordinators.
    """
    last: dict[tuple[int, str, str], tuple[int, str | None, bool]] = {}
    for batch in messages:
        for row in batch.to_pylist():
            if row["key"] is None:
                continue
            name = row["partition"], row["messageType"], row["key"]
            if name not in last or row["offset"] > last[name][0]:
                last[name] = row["offset"], row["value"], row["valueBytes"] is not None
    rows = [
        _transactional_id(partition, key, value)
        for (partition, _, key), (_, value, is_there) in last.items()
        if is_there
    ]
    return pa.Table.from_pylist(rows, TRANSACTIONAL_IDS)


def _transactional_id(partition: int, key: str, text: str | None) -> dict[str, Any]:
    value = {} if text is None else json.loads(text)
    started = value.get("transactionStartTimestampMs")
    return {
        "transactionalId": json.loads(key).get("transactionalId"),
        "producerId": value.get("producerId"),
        "producerEpoch": value.get("producerEpoch"),
        "state": _STATES.get(value.get("transactionStatus", -1)),
        "timeoutMs": value.get("transactionTimeoutMs"),
        "startMs": None if started == -1 else started,
        "lastUpdateMs": value.get("transactionLastUpdateTimestampMs"),
        "partitions": value.get("transactionPartitions"),
        "clientVersion": value.get("clientTransactionVersion") or 0,
        "coordinatorPartition": partition,
    }


def blocked_groups(commits: Iterable[pa.RecordBatch]) -> pa.Table:
    """BLOCKED of rows with BLOCKED_COLUMNS: each partition of `__consumer_offsets` and group once
    that has commits in an open transaction there."""
    found = {
        (row["offsetsPartition"], row["group"]): None
        for batch in commits
        for row in batch.filter(_is_open(batch)).to_pylist()
    }
    columns = list(zip(*found, strict=True)) or [(), ()]
    return pa.table([list(column) for column in columns], schema=BLOCKED)


def _is_open(batch: pa.RecordBatch) -> pa.Array:
    return pc.fill_null(pc.equal(batch["transactionState"], "open"), fill_value=False)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A producer's open transaction in a partition, as far as the partition tells."""

    topic: str
    partition: int
    producer_id: int
    epoch: int
    first_offset: int
    last_offset: int | None
    last_timestamp_ms: int

    def columns(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "producerId": self.producer_id,
            "producerEpoch": self.epoch,
            "firstOffset": self.first_offset,
            "lastOffset": self.last_offset,
            "lastTimestampMs": self.last_timestamp_ms,
        }


def find_open_transactions(inventory: LogInventory, now_ms: int) -> list[OpenTransaction]:
    """By the producers' state of each live partition: its newest snapshot and the headers behind
    it. Of several replicas the one that goes furthest is asked.
    """
    live = [p for p in inventory.partitions if p.kind == PartitionKind.LIVE]
    return [found for partition in furthest_replicas(live) for found in _open_in(partition, now_ms)]


def _open_in(partition: PartitionInventory, now_ms: int) -> list[OpenTransaction]:
    name = partition.topic_partition
    return [
        OpenTransaction(
            name.topic, name.partition, producer.producer_id, producer.epoch,
            producer.current_txn_first_offset, producer.last_data_offset,
            producer.last_timestamp_ms,
        )
        for producer in active_producers(partition, now_ms, _NEVER_EXPIRES).values()
        if producer.current_txn_first_offset is not None
    ]  # fmt: skip


def open_transactions(
    found: Iterable[OpenTransaction], ids: pa.Table, blocked: pa.Table, now_ms: int
) -> pa.Table:
    """OPEN_TRANSACTIONS, the oldest first, with what TRANSACTIONAL_IDS and BLOCKED say of them.

    It hangs if its coordinator knows nothing of it there, or should have ended it by its timeout.
    """
    known: dict[int | None, list[dict[str, Any]]] = {}
    for row in ids.to_pylist():
        known.setdefault(row["producerId"], []).append(row)
    waiting: dict[int, list[str]] = {}
    for row in blocked.to_pylist():
        waiting.setdefault(row["partition"], []).append(row["group"])
    rows = []
    for transaction in found:
        its_ids = known.get(transaction.producer_id, [])
        is_there = any(_takes_part(row, transaction) for row in its_ids)
        is_of_groups = transaction.topic == OFFSETS_TOPIC
        groups = waiting.get(transaction.partition) if is_of_groups else None
        for its_id in its_ids or [{}]:
            row = _judged(transaction, its_id, now_ms, is_there=is_there)
            rows.append(row | {"blockedGroups": None if groups is None else sorted(set(groups))})
    rows.sort(key=lambda row: (-row["ageMs"], row["topic"], row["partition"]))
    return pa.Table.from_pylist(rows, OPEN_TRANSACTIONS)


def _takes_part(row: Mapping[str, Any], transaction: OpenTransaction) -> bool:
    return any(
        its["topic"] == transaction.topic and transaction.partition in its["partitionIds"]
        for its in row["partitions"] or ()
    )


def _judged(
    transaction: OpenTransaction, its_id: Mapping[str, Any], now_ms: int, *, is_there: bool
) -> dict[str, Any]:
    age_ms = now_ms - transaction.last_timestamp_ms
    is_kept = its_id.get("state") in _UNDER_WAY and is_there
    epoch, timeout_ms = its_id.get("producerEpoch"), its_id.get("timeoutMs")
    is_current = epoch is not None and transaction.epoch <= epoch
    is_in_time = timeout_ms is not None and age_ms <= timeout_ms
    place = transaction.topic, transaction.partition, transaction.first_offset
    return transaction.columns() | {
        "transactionalId": its_id.get("transactionalId"),
        "ageMs": age_ms,
        "timeoutMs": timeout_ms,
        "coordinatorState": its_id.get("state"),
        "isHanging": not (is_kept and is_current and is_in_time),
        "command": _COMMAND.format(*place),
    }
