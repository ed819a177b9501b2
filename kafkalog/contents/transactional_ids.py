"""Whose a producer's open transaction is, as `__transaction_state` on these disks tells: the
transactional id, and how its coordinator has it.

Read only where a transaction hangs. Of each id the last record counts.

Source: Kafka TransactionStateManager; KIP-98, KIP-664 (find-hanging).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafkalog.errors import KafkaLogError
from kafkalog.format.redaction import redacted_name
from kafkalog.messages.coordinator_record import CoordinatorRecord, decode_coordinator_record
from kafkalog.messages.transaction_records import TRANSACTION_TYPES, TransactionState
from kafkalog.texts import format_timestamp

# A value begins with its version, two bytes, and the producer id.
_ID = slice(2, 10)


@dataclass(frozen=True, slots=True)
class TransactionalId:
    """A producer's transactional id and its transaction: `updated_ms` of its state, `partitions`
    that it has written to (topic, number), none of one that is complete.
    """

    name: str
    state: str
    updated_ms: int
    timeout_ms: int
    partitions: frozenset[tuple[str, int]]

    def has_written(self, topic: str, partition: int) -> bool:
        """Whether its coordinator has this partition in the transaction."""
        return (topic, partition) in self.partitions

    def shown(self, *, redact: bool) -> str:
        """Its name, or a digest in place of what a client chose."""
        return f"transactional id {redacted_name(self.name) if redact else self.name}"

    def text(self, *, redact: bool) -> str:
        """What its coordinator says of it."""
        return (
            f"{self.shown(redact=redact)}, which its coordinator has as {self.state} since "
            f"{format_timestamp(self.updated_ms)}, transaction.timeout.ms {self.timeout_ms}"
        )


def transactional_ids(
    directories: Sequence[str], producer_ids: Collection[int], max_batch_bytes: int
) -> dict[int, TransactionalId]:
    """By producer id, of those asked for. What cannot be read tells nothing."""
    # Only where a transaction hangs: with all that it needs the import takes an audit 20 ms.
    from kafkalog.reading.tables import read_records

    wanted = {number.to_bytes(8, "big", signed=True): number for number in producer_ids}
    found: dict[int, TransactionalId] = {}
    for path in directories:
        try:
            batches = read_records(
                path,
                columns=["key", "value"],
                mode="DROPMALFORMED",
                max_batch_bytes=max_batch_bytes,
            )
            for batch in batches:
                for key, value in zip(*(column.to_pylist() for column in batch), strict=True):
                    producer_id = wanted.get(value[_ID]) if value else None
                    if producer_id is not None:
                        _note(key, value, producer_id, found)
        except (KafkaLogError, OSError):
            continue
    return found


def _note(
    key: bytes | None, value: bytes, producer_id: int, found: dict[int, TransactionalId]
) -> None:
    try:
        record = decode_coordinator_record(TRANSACTION_TYPES, key, value)
    except KafkaLogError:
        return
    if not isinstance(record, CoordinatorRecord) or record.value is None:
        return
    fields = record.value
    number = int(fields["transactionStatus"])
    names = {int(state): state.name.title().replace("_", "") for state in TransactionState}
    found[producer_id] = TransactionalId(
        str(record.key["transactionalId"]),
        names.get(number, str(number)),
        int(fields["transactionLastUpdateTimestampMs"]),
        int(fields["transactionTimeoutMs"]),
        frozenset(
            (str(each["topic"]), int(partition))
            for each in fields["transactionPartitions"] or ()
            for partition in each["partitionIds"]
        ),
    )
