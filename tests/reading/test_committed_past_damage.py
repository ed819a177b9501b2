"""read_committed where a batch behind the newest usable producer snapshot cannot be walked over:
all that is known to be committed, nothing else, and a word for the rest.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafkalog import read_records
from kafkalog.errors import CorruptRecordError
from kafkalog.format.control_record import ControlRecordType
from tests.reading.test_past_damage import with_wrong_length
from tests.support.log_builder import LogBuilder

OFFSETS = ["offset", "transactionState"]


def read(path: Path, mode: str, **options: Any) -> list[dict[str, Any]]:
    columns = [*OFFSETS, "error"] if mode == "PERMISSIVE" else OFFSETS
    found: list[dict[str, Any]] = (
        read_records(path, columns=columns, mode=mode, read_committed=True, **options)
        .read_all()
        .to_pylist()
    )
    return found


@dataclass
class History:
    """A log of transactions, one batch an entry: (producer, offset, what). states: of data offsets,
    what became of them."""

    log: LogBuilder
    entries: list[tuple[int, int, str]] = field(default_factory=list)
    states: dict[int, str] = field(default_factory=dict)
    open: dict[int, list[int]] = field(default_factory=dict)

    def data(self, producer: int) -> None:
        offset = len(self.entries)
        if producer < 0:
            self.log.batch(("k", "v" * 30))
            self.states[offset] = "none"
        else:
            self.log.batch(("k", "v" * 30), producer_id=producer, is_transactional=True)
            self.open.setdefault(producer, []).append(offset)
            self.states[offset] = "open"
        self.entries.append((producer, offset, "data"))

    def end(self, producer: int, kind: ControlRecordType) -> None:
        self.log.marker(kind, producer)
        state = "committed" if kind is ControlRecordType.COMMIT else "aborted"
        for offset in self.open.pop(producer, ()):
            self.states[offset] = state
        self.entries.append((producer, len(self.entries), "marker"))

    def unknown(self, bad: int) -> set[int]:
        """Offsets of transactional data whose end only the bad batch told, or may have told."""
        return {offset for own in self._without_marker(bad) if own[0] < bad for offset in own}

    def last_stable(self, bad: int) -> int:
        """The first data of a transaction that is open for sure."""
        firsts = [own[0] for own in self._without_marker(bad) if own[0] > bad]
        return min(firsts, default=len(self.entries))

    def _without_marker(self, bad: int) -> list[list[int]]:
        """Of each producer the data that has no marker behind it, the bad batch not being there."""
        found = []
        for producer in {p for p, _, _ in self.entries if p >= 0}:
            own = [(o, what) for p, o, what in self.entries if p == producer and o != bad]
            ended = max((o for o, what in own if what == "marker"), default=-1)
            found.append([o for o, what in own if what == "data" and o > ended])
        return [own for own in found if own]


def without_snapshots(path: Path) -> Path:
    for snapshot in path.glob("*.snapshot"):
        snapshot.unlink()
    return path


@pytest.mark.parametrize("kind", [ControlRecordType.COMMIT, ControlRecordType.ABORT])
def test_a_transaction_that_may_have_ended_in_damage_is_left_out(
    log_dir: Path, kind: ControlRecordType, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(LogBuilder(log_dir, "orders-0"))
    for producer, its_kind in (
        (7, ControlRecordType.COMMIT),
        (8, kind),
        (9, ControlRecordType.COMMIT),
    ):
        history.data(producer)
        history.end(producer, its_kind)
    history.data(-1)
    path = without_snapshots(with_wrong_length(history.log, 3, 2**24))  # the end of 8
    with pytest.raises(CorruptRecordError):
        read(path, "FAILFAST")
    with caplog.at_level(logging.WARNING):
        found = read(path, "PERMISSIVE")
    assert [(row["offset"], row["transactionState"]) for row in found if not row["error"]] == [
        (0, "committed"), (4, "committed"), (6, None),
    ]  # fmt: skip
    assert len([row for row in found if row["error"]]) == 1
    told = [text for text in caplog.messages if "whether it was committed is not known" in text]
    assert len(told) == 1
    assert "producer 8 that began at offset 2" in told[0]
    assert [row["offset"] for row in read(path, "DROPMALFORMED")] == [0, 4, 6]


@pytest.mark.parametrize("seed", range(12))
def test_committed_records_behind_damage_are_all_there_and_no_others(
    log_dir: Path, seed: int
) -> None:
    rng = random.Random(seed)
    history = History(LogBuilder(log_dir, "orders-0"))
    for _ in range(30):
        producer = rng.choice([-1, 7, 8, 9])
        if producer in history.open and rng.random() < 0.4:
            kinds = [ControlRecordType.COMMIT, ControlRecordType.ABORT]
            history.end(producer, rng.choice(kinds))
        else:
            history.data(producer)
    bad = rng.randrange(2, 28)
    path = without_snapshots(with_wrong_length(history.log, bad, rng.choice([2**24, 0, -3])))
    found = read(path, "PERMISSIVE")
    stable, unknown = history.last_stable(bad), history.unknown(bad)
    expected = {
        offset
        for offset, state in history.states.items()
        if state in ("none", "committed")
        and offset != bad
        and offset not in unknown
        and offset < stable
    }
    assert {row["offset"] for row in found if not row["error"]} == expected
    assert len([row for row in found if row["error"]]) == (bad < stable)
