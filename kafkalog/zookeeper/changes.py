"""One change of one node, as a log or the difference of two snapshots tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kafkalog.format.zookeeper_log import Transaction, TxnType


class ChangeKind(StrEnum):
    """What happened to a node; only the data of a created or set one is new."""

    CREATED = "created"
    SET = "set"
    ACL = "acl"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A change: the node's data and version after it, of a deleted one the last.

    time_ms: None where a deletion is only known from a later snapshot. owner: the session of an
    ephemeral node. transaction: None if no log tells it, but a snapshot. path: file it is from.
    """

    kind: ChangeKind
    path: str
    data: bytes | None
    zxid: int
    time_ms: int | None
    version: int
    owner: int | None = None
    transaction: Transaction | None = field(default=None, repr=False)
    file: str = ""

    @property
    def is_from_log(self) -> bool:
        return self.transaction is not None

    @property
    def is_closing(self) -> bool:
        """The node went with the session that owned it."""
        return self.transaction is not None and self.transaction.type == TxnType.CLOSE_SESSION

    @property
    def is_expiry(self) -> bool:
        """The session was ended by the server, not by its client."""
        return self.transaction is not None and self.is_closing and self.transaction.cxid == 0
