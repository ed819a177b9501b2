"""Which side is right, by what evidence: from what the rows say to differences with a name.

* A leader with a later epoch is what Kafka's history goes by.
* A marker ends the transaction of its producer, on whatever copy it is.
* A cleaner takes a record only if a later one of its key, a tombstone or an ABORT stood behind it,
  and never passes an open transaction: an offset that is absent from a range that was cleaned there
  was superseded, deleted or aborted.
* A tombstone goes with all older records of its key. So where an older value stayed, the missing
  one was aborted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kafkalog.comparing.difference import Difference
from kafkalog.comparing.evidence import MOST_LISTED, Evidence, RowSource
from kafkalog.comparing.transactions import ABORTED, COMMITTED, OPEN, WrongEnd
from kafkalog.kernels.record_facts import TRANSACTIONAL
from kafkalog.replicas.corrupt_range import CorruptRange
from kafkalog.replicas.replica import ReplicaFacts

_MARKER_FIELDS = 4
_MARKER_BLOCK = _MARKER_FIELDS * 64 * 1024
_KIND_OF_END = {
    COMMITTED: "aborted-served-as-committed",
    ABORTED: "committed-hidden",
    OPEN: "open-transaction-forgotten",
}


class _Marker(NamedTuple):
    offset: int
    is_abort: bool


class Judge:
    """Turns the evidence about one partition into differences."""

    def __init__(
        self, facts: Sequence[ReplicaFacts], sources: Sequence[RowSource], found: Evidence
    ) -> None:
        self._facts, self._sources, self._found = facts, sources, found
        self._name = facts[0].topic_partition
        self.counts: Counter[str] = Counter()
        """How many of each kind there are."""
        self.wrong = [0] * len(facts)
        """In how many each copy is wrong, those that are not listed too."""

    def differences(self) -> list[Difference]:
        """All that are listed, in the order of offsets; the last one of a kind says how many more
        there are."""
        listed: list[Difference] = []
        for each in (
            *self._diverged(),
            *self._corrupt(),
            *self._wrong_ends(),
            *self._candidates(),
            *self._differing(),
            *self._missing(),
        ):
            self.counts[each.kind] += 1
            for number, own in enumerate(self._facts):
                self.wrong[number] += own.name in each.wrong
            if self.counts[each.kind] <= MOST_LISTED:
                listed.append(each)
        listed.sort(key=lambda each: each.order)
        for kind, count in self.counts.items():
            if count > (shown := sum(each.kind == kind for each in listed)):
                last = max(n for n, each in enumerate(listed) if each.kind == kind)
                listed[last] = replace(listed[last], more=count - shown)
        return listed

    def _names(self, mask: int) -> tuple[str, ...]:
        return tuple(each.name for n, each in enumerate(self._facts) if mask >> n & 1)

    # -- histories and damage ---------------------------------------------------------------------

    def _diverged(self) -> Iterator[Difference]:
        leads = self._facts[self._found.leading]
        for number, own in enumerate(self._facts):
            limit, tail = self._found.limits[number], self._found.tails[number]
            if limit < own.log_end_offset:
                yield Difference(
                    "diverged-epoch",
                    self._name,
                    limit,
                    (own.name,),
                    (leads.name,),
                    is_proven=True,
                    text=f"{own.name} ends at {own.log_end_offset} with epoch {own.last_epoch}, "
                    f"{leads.name} goes on from {limit} with epoch {leads.last_epoch}: as a "
                    f"follower {own.name} cuts offsets {limit} to {own.log_end_offset - 1}",
                    last_offset=own.log_end_offset - 1,
                    records=tail.records,
                    size_in_bytes=tail.size_in_bytes,
                )

    def _corrupt(self) -> Iterator[Difference]:
        for number, source in enumerate(self._sources):
            own = self._facts[number]
            for each in source.corrupt:
                others = [
                    f.name
                    for n, f in enumerate(self._facts)
                    if n != number
                    and f.log_start_offset < each.end_offset
                    and self._found.limits[n] > each.start_offset
                    and not any(_overlap(each, other) for other in self._sources[n].corrupt)
                ]
                if others:
                    yield Difference(
                        "corrupt-copy",
                        self._name,
                        each.start_offset,
                        (own.name,),
                        tuple(others),
                        is_proven=True,
                        text=each.reason,
                        last_offset=each.end_offset - 1,
                        path=each.path,
                        position=each.position,
                    )

    # -- transactions -----------------------------------------------------------------------------

    def _wrong_ends(self) -> Iterator[Difference]:
        for each in self._found.wrong_ends:
            yield Difference(
                _KIND_OF_END[each.served],
                self._name,
                each.first_offset,
                self._names(each.wrong),
                self._names(each.right),
                is_proven=True,
                text=_text_of_end(each, self._names(each.wrong), self._names(each.right)),
                producer_id=each.producer_id,
            )
        for served, count in self._found.more_wrong_ends.items():
            self.counts[_KIND_OF_END[served]] += count

    # -- keys -------------------------------------------------------------------------------------

    def _candidates(self) -> Iterator[Difference]:
        merged = self._found.candidates
        self.counts["resurrected-key"] += self._found.more_candidates
        for at in range(merged.offsets.size):
            offset, wrong, right = (
                int(merged.offsets[at]), int(merged.wrong[at]), int(merged.right[at])
            )  # fmt: skip
            if merged.is_deleted[at]:
                yield self._deleted(offset, wrong, right)
                continue
            cleaned = sum(1 << n for n, end in enumerate(self._found.cleaned) if end > offset)
            if not right & cleaned:
                yield self._lost(offset, wrong, right)
                continue
            producer_id = int(merged.producer_ids[at])
            if int(merged.flags[at]) & TRANSACTIONAL:
                marker = self._marker_behind(offset, producer_id, wrong)
                if marker is None:
                    continue  # open there: told of the transaction
                if marker.is_abort:
                    yield self._unlisted(offset, wrong, right, producer_id, marker.offset)
                    continue
                proof = self._ended_before(offset, marker.offset, producer_id, right)
                older = int(merged.older[at]) & cleaned
                if older and proof is None:
                    proof = (
                        f"{_and(self._names(older))} kept an older value of the key, which a "
                        "tombstone would have taken"
                    )
                if proof is not None:
                    yield self._aborted(offset, wrong, right, producer_id, proof)
                    continue
            yield self._resurrected(offset, wrong, right & cleaned)

    def _resurrected(self, offset: int, wrong: int, right: int) -> Difference:
        ends = ", ".join(
            f"{each.name} up to {self._found.cleaned[n]}"
            for n, each in enumerate(self._facts)
            if right >> n & 1
        )
        text = (
            f"the latest value of its key on {_and(self._names(wrong))}; cleaned on {ends}, where "
            "no later record of the key is: it was deleted there"
        )
        return self._of_key("resurrected-key", offset, wrong, right, text)

    def _deleted(self, offset: int, wrong: int, right: int) -> Difference:
        text = (
            f"the latest value of its key on {_and(self._names(wrong))}, which lacks the tombstone "
            f"behind it that {_and(self._names(right))} has"
        )
        return self._of_key("resurrected-key", offset, wrong, right, text)

    def _lost(self, offset: int, holders: int, lacking: int) -> Difference:
        text = (
            f"the latest value of its key on {_and(self._names(holders))}; "
            f"{_and(self._names(lacking))} lacks it, and shows no sign of cleaning there"
        )
        found = self._of_key("missing-range", offset, lacking, holders, text)
        return replace(found, is_proven=False, last_offset=offset, records=1)

    def _aborted(
        self, offset: int, wrong: int, right: int, producer_id: int, proof: str
    ) -> Difference:
        text = (
            f"{_and(self._names(wrong))} never got the marker behind it: {proof}; "
            f"read_committed consumers get it there, as if a later COMMIT were its own"
        )
        found = self._of_key("aborted-served-as-committed", offset, wrong, right, text)
        return replace(found, producer_id=producer_id)

    def _unlisted(
        self, offset: int, wrong: int, right: int, producer_id: int, marker: int
    ) -> Difference:
        names = _and(self._names(wrong))
        text = (
            f"aborted by the marker at {marker}, which {names} has, and no transaction index there "
            f"lists it: read_committed consumers get it from {names}"
        )
        found = self._of_key("aborted-served-as-committed", offset, wrong, right, text)
        return replace(found, producer_id=producer_id)

    def _of_key(self, kind: str, offset: int, wrong: int, right: int, text: str) -> Difference:
        return Difference(
            kind, self._name, offset, self._names(wrong), self._names(right), True, text
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

    # -- records ----------------------------------------------------------------------------------

    def _differing(self) -> Iterator[Difference]:
        for offset, differs, present in self._found.differing:
            one, other = self._names(present & ~differs), self._names(differs)
            yield Difference(
                "record-differs",
                self._name,
                offset,
                self._names(present),
                (),
                is_proven=False,
                text=f"the record of {_and(one)} is another one than that of "
                f"{' or '.join(other)}: not provable which is right",
            )
        self.counts["record-differs"] += self._found.differing_count - len(self._found.differing)

    def _missing(self) -> Iterator[Difference]:
        told = {
            (each.marker_offset, n)
            for each in self._found.wrong_ends
            for n in range(len(self._facts))
            if each.wrong >> n & 1
        }
        for number, runs in enumerate(self._found.missing):
            own = self._facts[number]
            for run in runs.runs(self._found.cleaned_end_offset):
                # A marker whose transaction is told of already.
                if run.records == 0 and run.markers == 1 and (run.first_offset, number) in told:
                    continue
                yield Difference(
                    "missing-range",
                    self._name,
                    run.first_offset,
                    (own.name,),
                    self._names(run.holders),
                    is_proven=True,
                    text=f"{own.name} goes from {own.log_start_offset} to "
                    f"{own.log_end_offset} and has none of offsets {run.first_offset} to "
                    f"{run.last_offset}; no copy was cleaned that far",
                    last_offset=run.last_offset,
                    records=run.records,
                    size_in_bytes=run.size_in_bytes,
                )


def _overlap(one: CorruptRange, other: CorruptRange) -> bool:
    return one.start_offset < other.end_offset and other.start_offset < one.end_offset


def _text_of_end(each: WrongEnd, wrong: tuple[str, ...], right: tuple[str, ...]) -> str:
    if each.truth is None:
        return (
            f"the transaction of producer {each.producer_id} is open on {_and(wrong)}, without a "
            f"marker behind it; {_and(right)} was cleaned past it, and no cleaner passes an open "
            "transaction: the last stable offset stays here"
        )
    ended = "aborted" if each.truth == ABORTED else "committed"
    what = {COMMITTED: "serves them", ABORTED: "hides them", OPEN: "holds it open"}[each.served]
    return (
        f"the transaction of producer {each.producer_id} was {ended} by the marker at "
        f"{each.marker_offset}, which {_and(right)} has; {_and(wrong)} {what}"
    )


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)
