"""Of a value that some copies serve as the latest of its key, and others have not: which side is
right, by what evidence.

* A cleaner takes a record only if a later one of its key, a tombstone or an ABORT stood behind it:
  an offset that is absent from a range that was cleaned there was superseded, deleted or aborted.
  That it was deleted is proven only if all that stood behind it there is known.
* A tombstone goes with all older records of its key. So where an older value stayed, a missing one
  of a transaction was aborted, and any other was lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kafkalog.comparing.difference import Difference
from kafkalog.comparing.evidence import Evidence
from kafkalog.kernels.record_facts import TRANSACTIONAL
from kafkalog.replicas.corrupt_range import CorruptRange
from kafkalog.replicas.replica import ReplicaFacts

_MARKER_FIELDS = 4
_MARKER_BLOCK = _MARKER_FIELDS * 64 * 1024


class _Marker(NamedTuple):
    offset: int
    is_abort: bool


class KeyJudge:
    """Turns candidates of the evidence about one partition into differences."""

    def __init__(
        self,
        facts: Sequence[ReplicaFacts],
        corrupt: Sequence[Sequence[CorruptRange]],
        found: Evidence,
    ) -> None:
        """`corrupt`: the unreadable ranges of each copy."""
        self._facts, self._found = facts, found
        # Below these offsets a later record of a key may be, or have been, that nobody knows of.
        self._unsure_below = [
            _unsure_below(ranges, found.limits[n], found.cleaned[n])
            for n, ranges in enumerate(corrupt)
        ]

    def differences(self) -> Iterator[Difference]:
        """One a candidate that is one."""
        merged = self._found.candidates
        for at in range(merged.offsets.size):
            offset, wrong, right = (
                int(merged.offsets[at]), int(merged.wrong[at]), int(merged.right[at])
            )  # fmt: skip
            if merged.is_deleted[at]:
                yield self._deleted(offset, wrong, right)
                continue
            cleaned = sum(1 << n for n, end in enumerate(self._found.cleaned) if end > offset)
            if not right & cleaned:
                yield self._lost(offset, wrong, right, "shows no sign of cleaning there")
                continue
            older = int(merged.older[at]) & cleaned
            producer_id = int(merged.producer_ids[at])
            if int(merged.flags[at]) & TRANSACTIONAL:
                marker = self._marker_behind(offset, producer_id, wrong)
                if marker is None:
                    continue  # open there: told of the transaction
                if marker.is_abort:
                    yield self._unlisted(offset, wrong, right, producer_id, marker.offset)
                    continue
                proof = self._ended_before(offset, marker.offset, producer_id, right)
                if older and proof is None:
                    proof = (
                        f"{self._joined(older)} kept an older value of the key, which a "
                        "tombstone would have taken"
                    )
                if proof is not None:
                    yield self._aborted(offset, wrong, right, producer_id, proof)
                    continue
            yield self._cleaned_away(offset, wrong, right & cleaned, older)

    def _cleaned_away(self, offset: int, wrong: int, right: int, older: int) -> Difference:
        if right == older:
            # Neither a tombstone nor a later value leaves an older one.
            why = "kept an older value of the key, which its deletion would have taken"
            return self._lost(offset, wrong, right, why)
        unsure = sum(1 << n for n, end in enumerate(self._unsure_below) if end > offset)
        if not right & ~older & ~unsure:
            return self._unsure(offset, wrong, right)
        return self._resurrected(offset, wrong, right & ~older & ~unsure)

    def _unsure(self, offset: int, wrong: int, right: int) -> Difference:
        text = (
            f"the latest value of its key on {self._joined(wrong)}; cleaned on "
            f"{self._joined(right)}, of which a part behind it cannot be read, or will be cut, "
            "and may have a later record of the key: not provable that it was deleted"
        )
        found = self._of_key("resurrected-key", offset, wrong, 0, text)
        return replace(found, is_proven=False)

    def _resurrected(self, offset: int, wrong: int, right: int) -> Difference:
        ends = ", ".join(
            f"{each.name} up to {self._found.cleaned[n]}"
            for n, each in enumerate(self._facts)
            if right >> n & 1
        )
        text = (
            f"the latest value of its key on {self._joined(wrong)}; cleaned on {ends}, where "
            "no later record of the key is: it was deleted there"
        )
        return self._of_key("resurrected-key", offset, wrong, right, text)

    def _deleted(self, offset: int, wrong: int, right: int) -> Difference:
        text = (
            f"the latest value of its key on {self._joined(wrong)}, which lacks the tombstone "
            f"behind it that {self._joined(right)} has"
        )
        return self._of_key("resurrected-key", offset, wrong, right, text)

    def _lost(self, offset: int, holders: int, lacking: int, why: str) -> Difference:
        text = (
            f"the latest value of its key on {self._joined(holders)}; "
            f"{self._joined(lacking)} lacks it, and {why}"
        )
        found = self._of_key("missing-range", offset, lacking, holders, text)
        return replace(found, is_proven=False, last_offset=offset, records=1)

    def _aborted(
        self, offset: int, wrong: int, right: int, producer_id: int, proof: str
    ) -> Difference:
        text = (
            f"{self._joined(wrong)} never got the marker behind it: {proof}; "
            f"read_committed consumers get it there, as if a later COMMIT were its own"
        )
        found = self._of_key("aborted-served-as-committed", offset, wrong, right, text)
        return replace(found, producer_id=producer_id)

    def _unlisted(
        self, offset: int, wrong: int, right: int, producer_id: int, marker: int
    ) -> Difference:
        names = self._joined(wrong)
        text = (
            f"aborted by the marker at {marker}, which {names} has, and no transaction index there "
            f"lists it: read_committed consumers get it from {names}"
        )
        found = self._of_key("aborted-served-as-committed", offset, wrong, right, text)
        return replace(found, producer_id=producer_id)

    def _of_key(self, kind: str, offset: int, wrong: int, right: int, text: str) -> Difference:
        return Difference(
            kind,
            self._facts[0].topic_partition,
            offset,
            self._names(wrong),
            self._names(right),
            True,
            text,
        )

    def _marker_behind(self, offset: int, producer_id: int, copies: int) -> _Marker | None:
        """The producer's first marker behind an offset on any of these copies."""
        for start in range(0, self._found.markers.size, _MARKER_BLOCK):
            end = min(start + _MARKER_BLOCK, self._found.markers.size)
            block = self._found.markers.read(start, end).reshape(-1, _MARKER_FIELDS)
            fits = (block[:, 0] > offset) & (block[:, 1] == producer_id)
            fits &= (block[:, 2] & copies) != 0
            if fits.any():
                first = block[np.argmax(fits)]
                return _Marker(int(first[0]), bool(first[3]))
        return None

    def _ended_before(self, offset: int, marker: int, producer_id: int, copies: int) -> str | None:
        """What proves that the transaction of a record had ended before the marker that ends it
        where the record is."""
        for number, own in enumerate(self._facts):
            if copies >> number & 1:
                for snapshot in own.snapshots:
                    if offset < snapshot.offset <= marker and not snapshot.has_open(producer_id):
                        return (
                            f"by the producer snapshot of {own.name} at {snapshot.offset} its "
                            f"transaction had ended"
                        )
        return None

    def _joined(self, mask: int) -> str:
        return joined(self._names(mask))

    def _names(self, mask: int) -> tuple[str, ...]:
        return tuple(each.name for n, each in enumerate(self._facts) if mask >> n & 1)


def joined(names: Sequence[str]) -> str:
    """Names of copies in a sentence."""
    return " and ".join(names)


def _unsure_below(corrupt: Sequence[CorruptRange], limit: int, cleaned: int) -> int:
    """Up to where a copy was cleaned by records that are unreadable, or that will be cut."""
    unread = [
        each.end_offset for each in corrupt if each.unread_from < min(each.end_offset, cleaned)
    ]
    return cleaned if limit < cleaned else max(unread, default=0)
