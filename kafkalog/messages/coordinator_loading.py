"""What a coordinator makes of a record of its topic when it loads the partition: the one
interpreter for checks and audits.

 of                                            groups and share groups   transactions
 an unknown type of key                        skipped, a warning        skipped, a warning
 an unknown version of a value                 the load fails            skipped, a warning
 bytes that are no such message, no key        the load fails            what follows is not loaded
 bytes behind a message                        read past                 read past

When a load fails nothing that hashes to the partition has a coordinator. A transaction coordinator
goes on with what it has read so far, and has forgotten all ids behind the record.

Source: Kafka CoordinatorLoaderImpl, CoordinatorRecordSerde, TransactionStateManager,
TransactionLog; seen with 4.3.1 (tests/oracle).
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.errors import KafkaLogError
from kafkalog.format.topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kafkalog.messages.coordinator_record import (
    CoordinatorRecord,
    RecordTypes,
    decode_coordinator_record,
)
from kafkalog.messages.offsets_topic import OFFSETS_TYPES
from kafkalog.messages.schema import UnknownRecord
from kafkalog.messages.share_state_records import SHARE_STATE_TYPES
from kafkalog.messages.transaction_records import TRANSACTION_TYPES, TransactionState

COORDINATOR_TOPICS: dict[str, RecordTypes] = {
    OFFSETS_TOPIC: OFFSETS_TYPES,
    TRANSACTION_TOPIC: TRANSACTION_TYPES,
    SHARE_STATE_TOPIC: SHARE_STATE_TYPES,
}
_STATES = frozenset(int(state) for state in TransactionState)


@dataclass(frozen=True, slots=True)
class LoadingProblem:
    """is_skipped: a coordinator warns and goes on; else it does not load what it should."""

    reason: str
    is_skipped: bool = False


def loading_problem(topic: str, key: bytes | None, value: bytes | None) -> LoadingProblem | None:
    """What is wrong with a data record of one of COORDINATOR_TOPICS; None if it is loaded."""
    loaded = load_record(topic, key, value)
    return loaded if isinstance(loaded, LoadingProblem) else None


def load_record(
    topic: str, key: bytes | None, value: bytes | None
) -> CoordinatorRecord | LoadingProblem:
    """A data record of one of COORDINATOR_TOPICS, or what is wrong with it."""
    types = COORDINATOR_TOPICS[topic]
    try:
        record = decode_coordinator_record(types, key, value)
    except KafkaLogError as error:
        where = "" if error.position is None else f" (byte {error.position})"
        return LoadingProblem(f"{error.reason}{where}")
    if isinstance(record, UnknownRecord):
        if record.version is None:
            return LoadingProblem(f"type {record.number} is not known", is_skipped=True)
        return LoadingProblem(
            f"{types[record.number].name}: version {record.version} of the value is not known",
            is_skipped=topic == TRANSACTION_TOPIC,
        )
    problem = _transaction_problem(record) if topic == TRANSACTION_TOPIC else None
    return problem or record


def _transaction_problem(record: CoordinatorRecord) -> LoadingProblem | None:
    if record.value is None:
        return None
    status = record.value["transactionStatus"]
    if status not in _STATES:
        return LoadingProblem(f"{record.type.name}: status {status} is not known")
    if status != TransactionState.EMPTY and record.value["transactionPartitions"] is None:
        name = TransactionState(status).name
        return LoadingProblem(f"{record.type.name}: status {name} without partitions")
    return None
