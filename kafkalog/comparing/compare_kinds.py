"""THE table of what can differ between the copies of a partition; see `checking.finding_kinds`."""

from __future__ import annotations

from kafkalog.checking.finding_kind import FindingKind, Severity

_ERROR = Severity.ERROR
_HEAL = (
    "let the node copy the partition anew from one that is right; `kafkalog compare --heal` says "
    "whether its files can be put right without that"
)

COMPARE_KINDS = (
    FindingKind(
        "resurrected-key",
        _ERROR,
        "a copy serves a value as the latest of its key that another copy has cleaned away, "
        "without a later record of the key: it was deleted, and this copy never got the tombstone",
        "never compares: consumers get the key again as soon as this copy leads",
        _HEAL,
    ),
    FindingKind(
        "aborted-served-as-committed",
        _ERROR,
        "records of an aborted transaction whose ABORT marker, or its entry in the transaction "
        "index, is not on this copy: read_committed consumers get them",
        "serves them as soon as this copy leads",
        _HEAL,
    ),
    FindingKind(
        "committed-hidden",
        _ERROR,
        "records of a committed transaction whose COMMIT marker is not on this copy, where a later "
        "ABORT of the producer hides them: read_committed consumers miss them",
        "leaves them out as soon as this copy leads",
        _HEAL,
    ),
    FindingKind(
        "open-transaction-forgotten",
        _ERROR,
        "a transaction is open on this copy that has ended on another, which took its marker away: "
        "the last stable offset stays, and nothing behind it is cleaned (of `verify` the same id "
        "says that a node forgets its open transaction, which `kafkalog recover` mends; not this)",
        "gives read_committed consumers nothing behind it as soon as this copy leads",
        _HEAL,
    ),
    FindingKind(
        "diverged-epoch",
        _ERROR,
        "the copies wrote different records under different leaders from this offset on",
        "cuts the copy with the older epoch there when it becomes a follower: what it has is lost",
        "if its records are wanted, read them out before that node starts",
    ),
    FindingKind(
        "record-differs",
        _ERROR,
        "the copies have different records at the same offset, each with a right checksum",
        "never compares: consumers get one or the other, depending on who leads",
        "find out which one the producer sent; let the other node copy the partition anew",
    ),
    FindingKind(
        "missing-range",
        _ERROR,
        "a copy lacks offsets that others have, and cleaning cannot have taken them",
        "skips them without a word as soon as this copy leads",
        _HEAL,
    ),
    FindingKind(
        "corrupt-copy",
        _ERROR,
        "a batch of this copy cannot be read, and another copy has its offsets",
        "fails consumers' fetches there as soon as this copy leads",
        _HEAL,
    ),
)
COMPARE_KIND = {kind.id: kind for kind in COMPARE_KINDS}
