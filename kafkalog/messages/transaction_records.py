"""Records of `__transaction_state`: each transactional id, its producer, and how its transaction
stands.

Version 1, the first flexible one, is written where the feature transaction.version is 1 or higher.

Source: TransactionLogKey.json, TransactionLogValue.json; KIP-98, KIP-890.
"""

from __future__ import annotations

from enum import IntEnum

from kafkalog.messages.coordinator_record import RecordType, record_type
from kafkalog.messages.schema import ALL, Array, Field, Primitive, Struct, Versions

_INT8, _INT16, _INT32, _INT64 = Primitive.INT8, Primitive.INT16, Primitive.INT32, Primitive.INT64
_FROM_1 = Versions.parse("1+")


class TransactionState(IntEnum):
    """`transactionStatus`; Kafka's names."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


TRANSACTION_LOG = record_type(
    0, "TransactionLog", "a transactional id and its transaction",
    (Field("transactionalId", Primitive.STRING, "transactional.id"),),
    (
        Field("producerId", _INT64, "its producer id"),
        Field(
            "previousProducerId", _INT64, "the one of its last transaction", versions=_FROM_1,
            tag=0, default=-1, source="KIP-890",
        ),
        Field(
            "nextProducerId", _INT64, "the one it is to use next", versions=_FROM_1,
            tag=1, default=-1, source="KIP-890",
        ),
        Field("producerEpoch", _INT16, "its epoch"),
        Field(
            "nextProducerEpoch", _INT16, "the one it is to use next", versions=_FROM_1,
            tag=3, default=-1, source="KIP-939",
        ),
        Field("transactionTimeoutMs", _INT32, "after which the broker aborts it"),
        Field("transactionStatus", _INT8, "0 empty, 1 ongoing, 2 and 3 ending, 4 and 5 ended …"),
        Field(
            "transactionPartitions",
            Array(
                Struct(
                    (
                        Field("topic", Primitive.STRING, "topic"),
                        Field("partitionIds", Array(_INT32), "numbers"),
                    )
                )
            ),
            "where it has written; null when empty", nullable=ALL,
        ),
        Field("transactionLastUpdateTimestampMs", _INT64, "of this state"),
        Field("transactionStartTimestampMs", _INT64, "when it began, -1 not yet"),
        Field(
            "clientTransactionVersion", _INT16, "transaction.version of the client",
            versions=_FROM_1, tag=2, source="KIP-890",
        ),
    ),
    versions="0-1", flexible=_FROM_1,
)  # fmt: skip

TRANSACTION_TYPES: dict[int, RecordType] = {TRANSACTION_LOG.number: TRANSACTION_LOG}
