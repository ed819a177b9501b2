"""Which side is right, by what evidence: from what the rows say to differences with a name.

* A leader with a later epoch is what Kafka's history goes by.
* A marker ends the transaction of its producer, on whatever copy it is.
* A cleaner never passes an open transaction: where one came past it, it had ended.
* Of the latest values of keys: see `key_verdicts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kafkalog.comparing.difference import Difference
from kafkalog.comparing.evidence import MOST_LISTED, Evidence
from kafkalog.comparing.key_verdicts import KeyJudge, joined
from kafkalog.comparing.missing_runs import MissingRun
from kafkalog.comparing.transactions import ABORTED, COMMITTED, OPEN, WrongEnd
from kafkalog.replicas.corrupt_range import CorruptRange
from kafkalog.replicas.replica import ReplicaFacts

_KIND_OF_END = {
    COMMITTED: "aborted-served-as-committed",
    ABORTED: "committed-hidden",
    OPEN: "open-transaction-forgotten",
}


class Judge:
    """Turns the evidence about one partition into differences."""

    def __init__(
        self,
        facts: Sequence[ReplicaFacts],
        corrupt: Sequence[Sequence[CorruptRange]],
        found: Evidence,
    ) -> None:
        """`corrupt`: the unreadable ranges of each copy."""
        self._facts, self._corrupt, self._found = facts, corrupt, found
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
            *self._unreadable(),
            *self._wrong_ends(),
            *self._of_keys(),
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

    def _unreadable(self) -> Iterator[Difference]:
        for number, ranges in enumerate(self._corrupt):
            own = self._facts[number]
            for each in ranges:
                others = [
                    f.name
                    for n, f in enumerate(self._facts)
                    if n != number
                    and f.log_start_offset < each.end_offset
                    and self._found.limits[n] > each.start_offset
                    and not any(_covers(other, each) for other in self._corrupt[n])
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

    def _of_keys(self) -> Iterator[Difference]:
        self.counts["resurrected-key"] += self._found.more_candidates
        return KeyJudge(self._facts, self._corrupt, self._found).differences()

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
                text=f"the record of {joined(one)} is another one than that of "
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
                    f"{own.log_end_offset} and lacks {_offsets(run)}; no copy was cleaned that far",
                    last_offset=run.last_offset,
                    records=run.records,
                    size_in_bytes=run.size_in_bytes,
                )


def _offsets(run: MissingRun) -> str:
    first, last = run.first_offset, run.last_offset
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def _covers(one: CorruptRange, other: CorruptRange) -> bool:
    return one.start_offset <= other.start_offset and other.end_offset <= one.end_offset


def _text_of_end(each: WrongEnd, wrong: tuple[str, ...], right: tuple[str, ...]) -> str:
    if each.truth is None:
        return (
            f"the transaction of producer {each.producer_id} is open on {joined(wrong)}, without a "
            f"marker behind it; {joined(right)} was cleaned past it, and no cleaner passes an open "
            "transaction: the last stable offset stays here"
        )
    ended = "aborted" if each.truth == ABORTED else "committed"
    what = {COMMITTED: "serves them", ABORTED: "hides them", OPEN: "holds it open"}[each.served]
    return (
        f"the transaction of producer {each.producer_id} was {ended} by the marker at "
        f"{each.marker_offset}, which {joined(right)} has; {joined(wrong)} {what}"
    )
