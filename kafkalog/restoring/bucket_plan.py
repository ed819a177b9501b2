"""What a fresh cluster has to have so that it goes on with the topics of a bucket: decided from the
copies there, without input and output.

Of each partition the copy that goes furthest counts: of the latest leader epoch the longest. Its
leader epochs are the log's; what other copies have outside of them was cut off by a leader, and no
broker serves it. Where the log begins the old cluster's checkpoint tells, else the first offset
from which on nothing is missing.

A transaction whose marker was not copied would be open for ever. It is refused, aborted by a marker
behind the end, in the local segment, or cut off where a segment begins with it: a broker reads
whole segments, so that an end within one cannot be said.

Source: Kafka RemoteLogMetadataCache, RemoteLogLeaderEpochState, ProducerStateManager; KIP-405.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kafkalog.format.producer_snapshot import ProducerEntry
from kafkalog.log.json_facts import JsonFacts
from kafkalog.restoring.attach_plan import EPOCH_MARGIN, PRODUCER_BLOCK, PRODUCER_ID_MARGIN
from kafkalog.restoring.bucket_copies import BucketCopies, Copy, Place
from kafkalog.restoring.cut import OpenTransaction
from kafkalog.restoring.request import ABORT, CUT

Epochs = Sequence[tuple[int, int]]
_NO_TRANSACTION = -1
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class AttachedLog(JsonFacts):
    """One partition. end_offset: behind its last copied record, where the local segment begins;
    open: transactions that are aborted there; leader_epochs, producers: of the log up to there;
    left_out: segment ids behind a cut.
    """

    topic: str
    topic_id: str
    partition: int
    start_offset: int
    end_offset: int
    segments: int
    size_in_bytes: int
    leader_epochs: tuple[tuple[int, int], ...]
    largest_timestamp_ms: int
    producers: tuple[ProducerEntry, ...]
    open: tuple[OpenTransaction, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        return self.topic_id, self.partition

    @property
    def next_offset(self) -> int:
        """Where the next record goes."""
        return self.end_offset + len(self.open)


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """logs in the order of topic and partition; refusals: why it must not be carried out."""

    logs: tuple[AttachedLog, ...]
    leader_epoch: int
    next_producer_id: int
    refusals: tuple[str, ...]


def plan_bucket(
    found: BucketCopies,
    epochs_of: Callable[[Copy], Epochs],
    end_transactions: str | None,
    known_ids: Collection[str] = (),
) -> BucketPlan:
    """The plan. epochs_of: the leader epochs of a log up to the end of a copy; known_ids: of the
    topics that the old cluster had at its end, where something tells.
    """
    refusals = [*found.refusals]
    logs: list[AttachedLog] = []
    for place, copies in found.copies.items():
        if known_ids and place[0] not in known_ids:
            continue
        log = _log(copies, epochs_of, found.log_starts.get(place), end_transactions, refusals)
        if log is not None:
            logs.append(log)
    _check_names(logs, refusals)
    every = [copy for copies in found.copies.values() for copy in copies]
    epochs = [epoch for copy in every for epoch, _ in copy.leader_epochs]
    epochs += [epoch for log in logs for epoch, _ in log.leader_epochs]
    entries = [entry for copy in every for entry in copy.producers]
    epochs += [entry.coordinator_epoch for entry in entries]
    highest = max((entry.producer_id for entry in entries), default=-1)
    block = PRODUCER_BLOCK
    return BucketPlan(
        tuple(logs),
        max([0, *epochs]) + EPOCH_MARGIN,
        -(-(highest + 1) // block) * block + PRODUCER_ID_MARGIN,
        tuple(refusals),
    )


def _check_names(logs: Sequence[AttachedLog], refusals: list[str]) -> None:
    """A topic has one id, and no gaps between its partitions."""
    ids: dict[str, dict[str, list[int]]] = {}
    for log in logs:
        ids.setdefault(log.topic, {}).setdefault(log.topic_id, []).append(log.partition)
    for topic, own in ids.items():
        if len(own) > 1:
            refusals.append(
                f"{topic}: segments of {len(own)} topics of that name, {', '.join(sorted(own))}: "
                "--topic ID chooses one"
            )


def _log(
    copies: Sequence[Copy],
    epochs_of: Callable[[Copy], Epochs],
    known_start: int | None,
    end_transactions: str | None,
    refusals: list[str],
) -> AttachedLog | None:
    last = max(copies, key=lambda copy: (_last_epoch(copy), copy.end_offset))
    name = f"{last.topic}-{last.partition}"
    left_out: list[Copy] = []
    while open_ := _open_transactions(last):
        stable = open_[0].first_offset
        if end_transactions == ABORT:
            break
        in_front = [copy for copy in copies if copy.end_offset <= stable]
        if end_transactions != CUT or not any(copy.end_offset == stable for copy in in_front):
            refusals.append(_said_open(name, open_, last, is_cut=end_transactions == CUT))
            return None
        left_out += [copy for copy in copies if copy not in in_front and copy not in left_out]
        copies = in_front
        last = max(copies, key=lambda copy: (_last_epoch(copy), copy.end_offset))
    lineage = [(e, start) for e, start in epochs_of(last) if start < last.end_offset]
    gaps, start = _gaps(copies, lineage, last.end_offset, known_start)
    if gaps:
        listed = ", ".join(f"{first} to {end - 1}" for first, end in gaps[:_SHOWN])
        refusals.append(
            f"{name}: offsets {listed} are in no finished copy: consumers could not read over them"
        )
        return None
    return AttachedLog(
        last.topic, last.topic_id, last.partition, start, last.end_offset, len(copies),
        sum(copy.size_in_bytes for copy in copies), tuple(lineage),
        max(copy.max_timestamp_ms for copy in copies), last.producers, tuple(open_),
        tuple(copy.segment_id for copy in left_out),
    )  # fmt: skip


def _last_epoch(copy: Copy) -> int:
    return max((epoch for epoch, _ in copy.leader_epochs), default=-1)


def _open_transactions(copy: Copy) -> list[OpenTransaction]:
    """In the order in which they began; how many records they have a snapshot does not tell."""
    found = [
        OpenTransaction(
            each.producer_id, each.producer_epoch, max(each.coordinator_epoch, 0),
            each.current_txn_first_offset, 0,
        )
        for each in copy.producers
        if each.current_txn_first_offset != _NO_TRANSACTION
    ]  # fmt: skip
    return sorted(found, key=lambda each: each.first_offset)


def _said_open(name: str, open_: Sequence[OpenTransaction], last: Copy, *, is_cut: bool) -> str:
    named = ", ".join(
        f"producer {e.producer_id} from offset {e.first_offset} on" for e in open_[:3]
    )
    more = f" and {len(open_) - 3} more" if len(open_) > 3 else ""
    what = f"{name}: transactions are open at its end, offset {last.end_offset}: {named}{more}"
    if is_cut:
        return (
            f"{what}; no segment ends at offset {open_[0].first_offset}, and a broker serves whole "
            "segments: --end-transactions abort ends them"
        )
    return (
        f"{what}; --end-transactions abort ends them, cut leaves out all from offset "
        f"{open_[0].first_offset} on where a segment begins there"
    )


def _gaps(
    copies: Sequence[Copy], lineage: Epochs, end: int, known_start: int | None
) -> tuple[list[tuple[int, int]], int]:
    """Offsets between the log's start and its end that no copy has, as a broker looks for them: by
    the leader epoch of each; and that start.
    """
    ranges = sorted(
        (max(first, own_first), min(after, own_after))
        for copy in copies
        for epoch, own_first, own_after in _by_epoch(copy.leader_epochs, copy.end_offset)
        for known, first, after in _by_epoch(lineage, end)
        if known == epoch
    )
    ranges = [(first, after) for first, after in ranges if first < after]
    if not ranges:
        return [(min(copy.start_offset for copy in copies), end)], 0
    # A checkpoint may be older than what retention has deleted since.
    start = min(max(ranges[0][0], known_start or 0), end)
    gaps, covered = [], start
    for first, after in ranges:
        if first > covered:
            gaps.append((covered, first))
        covered = max(covered, after)
    if covered < end:
        gaps.append((covered, end))
    return gaps, start


def _by_epoch(epochs: Epochs, end: int) -> list[tuple[int, int, int]]:
    """(epoch, first offset, the one behind the last) of each."""
    closed = [*epochs, (-1, end)]
    return [(epoch, first, after) for (epoch, first), (_, after) in pairwise(closed)]
