"""What producers may have left in a log, and what Kafka's loader makes of it (4.3.1;
`tests/oracle/test_producer_histories.py` asks it again): the table by which all that replay
producers and transactions are tested.

A history is a list of batches, one offset each:

    data, txn          one record outside of a transaction, or in one
    no_records         what compaction leaves of `txn`
    commit, abort      markers
    empty              what compaction leaves of a marker
    roll               not a batch: a segment begins
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.producer_snapshot import ProducerEntry
from kafkalog.format.record_batch import pack_batch
from kafkalog.format.transaction_index import AbortedTxn
from tests.support.log_builder import START_MS, LogBuilder

NOW_MS = START_MS + 1000


@dataclass(frozen=True)
class Step:
    """A batch of producer `of`; `coordinator` is the epoch in a marker."""

    kind: str
    of: int = 7
    epoch: int = 0
    coordinator: int = 0


@dataclass(frozen=True)
class Known:
    """What a loader knows of a producer at the log's end: epoch, last data offset, coordinator
    epoch, offset of the batch whose time was noted last, first offset of the open transaction; -1
    stands for none.
    """

    epoch: int
    last: int
    coordinator: int
    seen: int
    open: int = -1


@dataclass(frozen=True)
class History:
    """`known` and `aborted`: the snapshot at the log's end and the transaction indexes. `ended`:
    (producer id, first offset or -1, marker's offset, whether it aborts) in the order of the log;
    `outside`: offsets of data outside of the transaction that its producer has open, with which a
    loader fails; who goes on finds `ended`. Batch n is of START_MS + n, the loader's clock shows
    NOW_MS; whoever is idle for `expiration_ms` then and has no transaction open is forgotten
    wherever a snapshot is read back, which is at each roll.
    """

    steps: tuple[Step, ...]
    known: Mapping[int, Known] = field(default_factory=dict)
    aborted: tuple[AbortedTxn, ...] = ()
    ended: tuple[tuple[int, int, int, bool], ...] = ()
    outside: tuple[int, ...] = ()
    log_start: int = 0
    expiration_ms: int = 2**31 - 1

    def build(self, log_dir: Path) -> LogBuilder:
        """As after a crash: no snapshot is behind the last roll."""
        log = LogBuilder(log_dir)
        for step in self.steps:
            append(log, step)
        if self.log_start:
            log.log_start_offset(self.log_start)
        log.write(clean_shutdown=False)
        return log

    def ended_from_start(self) -> list[tuple[int, int, int, bool]]:
        """`ended` for who looks at nothing below the log start."""
        batches = [step for step in self.steps if step.kind != "roll"]
        found = []
        for producer_id, first, at, is_abort in self.ended:
            if 0 <= first < self.log_start:
                own = (n for n in range(self.log_start, at) if batches[n].of == producer_id)
                first = next(own, -1)
            found.append((producer_id, first, at, is_abort))
        return found

    def entries(self) -> list[ProducerEntry]:
        """The snapshot at the log's end, by producer id."""
        sequences: dict[tuple[int, int], int] = {}
        batches = [step for step in self.steps if step.kind != "roll"]
        for offset, step in enumerate(batches):
            if step.kind in ("data", "txn", "no_records"):
                sequences[step.of, offset] = offset
        return [
            ProducerEntry(
                producer_id,
                known.epoch,
                sequences.get((producer_id, known.last), -1),
                known.last,
                0,
                START_MS + known.seen if known.seen >= 0 else -1,
                known.coordinator,
                known.open,
            )
            for producer_id, known in sorted(self.known.items())
        ]


def append(log: LogBuilder, step: Step) -> None:
    """The next batch of a log, or its next segment."""
    if step.kind == "roll":
        log.segment()
        return
    offset = log.next_offset
    producer = {"producer_id": step.of, "producer_epoch": step.epoch}
    if step.kind in ("commit", "abort"):
        kind = ControlRecordType.COMMIT if step.kind == "commit" else ControlRecordType.ABORT
        log.marker(kind, step.of, producer_epoch=step.epoch, coordinator_epoch=step.coordinator)
    elif step.kind == "empty":
        control = {"is_control": True, "is_transactional": True}
        log.append(pack_batch([], base_offset=offset, **producer, **control))  # type: ignore[arg-type]
    elif step.kind == "no_records":
        place = {"base_offset": offset, "base_sequence": offset, "max_timestamp": START_MS + offset}
        log.append(pack_batch([], is_transactional=True, **place, **producer))  # type: ignore[arg-type]
    else:
        log.batch(
            (f"k{offset}", "v"),
            **producer,
            base_sequence=-1 if step.of < 0 else offset,
            is_transactional=step.kind == "txn",
        )


def data(of: int = 7, epoch: int = 0) -> Step:
    return Step("data", of, epoch)


def txn(of: int = 7, epoch: int = 0) -> Step:
    return Step("txn", of, epoch)


def no_records(of: int = 7, epoch: int = 0) -> Step:
    return Step("no_records", of, epoch)


def commit(of: int = 7, epoch: int = 0, coordinator: int = 0) -> Step:
    return Step("commit", of, epoch, coordinator)


def abort(of: int = 7, epoch: int = 0, coordinator: int = 0) -> Step:
    return Step("abort", of, epoch, coordinator)


def empty(of: int = 7, epoch: int = 0) -> Step:
    return Step("empty", of, epoch)


ROLL = Step("roll")

HISTORIES: dict[str, History] = {
    "data of an idempotent producer": History((data(), data(epoch=1)), {7: Known(1, 1, -1, 1)}),
    "data of an older epoch": History((data(epoch=5), data(epoch=4)), {7: Known(4, 1, -1, 1)}),
    "plain data inside an open transaction": History(
        (txn(), data(), abort()), ended=((7, 0, 2, True),), outside=(1,)
    ),
    "plain data of another segment inside an open transaction": History(
        (txn(), ROLL, data(), txn(), commit()), ended=((7, 0, 3, False),), outside=(1,)
    ),
    "plain data of a new epoch inside an open transaction": History(
        (txn(), data(epoch=1)), outside=(1,)
    ),
    "plain data before and behind a transaction": History(
        (data(), txn(), commit(), data()), {7: Known(0, 3, 0, 3)}, ended=((7, 1, 2, False),)
    ),
    "an empty control batch of an unknown producer": History(
        (empty(epoch=3), data(of=8)), {7: Known(-1, -1, -1, -1), 8: Known(0, 1, -1, 1)}
    ),
    "an empty control batch of a known producer": History(
        (data(), empty(epoch=3)), {7: Known(0, 0, -1, 0)}
    ),
    "an empty control batch inside an open transaction": History(
        (txn(), empty(), txn(), abort()),
        {7: Known(0, 2, 0, 3)},
        (AbortedTxn(7, 0, 3, 4),),
        ((7, 0, 3, True),),
    ),
    "an empty control batch, then plain data": History((txn(), empty(), data()), outside=(2,)),
    "a marker of a newer epoch": History(
        (txn(), abort(epoch=1)),
        {7: Known(1, -1, 0, 1)},
        (AbortedTxn(7, 0, 1, 2),),
        ((7, 0, 1, True),),
    ),
    "a marker of an older epoch": History(
        (txn(epoch=2), commit(epoch=1)), {7: Known(1, -1, 0, 1)}, ended=((7, 0, 1, False),)
    ),
    "a marker of a newer coordinator epoch": History(
        (txn(), commit(coordinator=4)), {7: Known(0, 0, 4, 1)}, ended=((7, 0, 1, False),)
    ),
    "a marker of an older coordinator epoch": History(
        (txn(), commit(coordinator=4), txn(), abort(coordinator=3)),
        {7: Known(0, 2, 3, 3)},
        (AbortedTxn(7, 2, 3, 4),),
        ((7, 0, 1, False), (7, 2, 3, True)),
    ),
    "markers without data": History(
        (abort(), commit(of=8, epoch=2), abort(of=8, epoch=2)),
        {7: Known(0, -1, 0, 0), 8: Known(2, -1, 0, 2)},
        ended=((7, -1, 0, True), (8, -1, 1, False), (8, -1, 2, True)),
    ),
    "a second marker": History(
        (txn(), commit(), abort()),
        {7: Known(0, 0, 0, 2)},
        ended=((7, 0, 1, False), (7, -1, 2, True)),
    ),
    "a transaction that begins below the log start": History(
        (txn(), txn(), data(of=8), ROLL, txn(), abort(), data(of=8)),
        {7: Known(0, 3, 0, 4), 8: Known(0, 5, -1, 5)},
        (AbortedTxn(7, 0, 4, 5),),
        ((7, 0, 4, True),),
        log_start=2,
    ),
    "a producer id again with a new epoch": History(
        (txn(), txn(epoch=1), abort(epoch=1), txn(epoch=1), commit(epoch=1)),
        {7: Known(1, 3, 0, 4)},
        (AbortedTxn(7, 0, 2, 3),),
        ((7, 0, 2, True), (7, 3, 4, False)),
    ),
    "an epoch a transaction (KIP-890)": History(
        (txn(), commit(epoch=1), txn(epoch=1), abort(epoch=2), txn(epoch=2)),
        {7: Known(2, 4, 0, 4, open=4)},
        (AbortedTxn(7, 2, 3, 4),),
        ((7, 0, 1, False), (7, 2, 3, True)),
    ),
    "two transactions at once": History(
        (txn(), txn(of=8), abort(), txn(), abort(of=8), abort()),
        {7: Known(0, 3, 0, 5), 8: Known(0, 1, 0, 4)},
        (AbortedTxn(7, 0, 2, 1), AbortedTxn(8, 1, 4, 3), AbortedTxn(7, 3, 5, 6)),
        ((7, 0, 2, True), (8, 1, 4, True), (7, 3, 5, True)),
    ),
    "a transaction over segments": History(
        (txn(), data(of=9), ROLL, txn(), data(of=9), ROLL, txn(), abort()),
        {7: Known(0, 4, 0, 5), 9: Known(0, 3, -1, 3)},
        (AbortedTxn(7, 0, 5, 6),),
        ((7, 0, 5, True),),
    ),
    "a transaction of batches without records": History(
        (no_records(), no_records(), abort()),
        {7: Known(0, 1, 0, 2)},
        (AbortedTxn(7, 0, 2, 3),),
        ((7, 0, 2, True),),
    ),
    "a transactional batch of no producer": History(
        (txn(of=-1, epoch=-1), data(of=-1, epoch=-1), txn(of=8)), {8: Known(0, 2, -1, 2, open=2)}
    ),
    "idle producers": History(
        (data(), txn(of=8), data(of=9), ROLL, data(of=10), txn(of=11), commit(of=11)),
        {
            8: Known(0, 1, -1, 1, open=1),
            9: Known(0, 2, -1, 2),
            10: Known(0, 3, -1, 3),
            11: Known(0, 4, 0, 5),
        },
        ended=((11, 4, 5, False),),
        expiration_ms=999,
    ),
    "an idle producer that comes again": History(
        (txn(epoch=4), commit(epoch=4, coordinator=2), ROLL, data(), empty(of=8), ROLL, data(of=9)),
        {9: Known(0, 4, -1, 4)},
        ended=((7, 0, 1, False),),
        expiration_ms=10,
    ),
    "an open transaction": History(
        (data(), txn(), txn(), data(of=8)),
        {7: Known(0, 2, -1, 2, open=1), 8: Known(0, 3, -1, 3)},
    ),
}
