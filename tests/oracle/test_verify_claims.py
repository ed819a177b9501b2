"""What the table of findings says a broker does: Kafka's own loader on the same damage, after a
clean stop.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import copy_sample
from tests.checking.damages import (
    DAMAGES,
    DELETED,
    ORDERS,
    TRANSACTIONS,
    batch_bytes,
    rewrite_keeping_time,
    segments,
)
from tests.oracle.kafka import Kafka, KafkaFailedError

pytestmark = pytest.mark.oracle

NOW_MS = 1_764_300_000_000
# transactions and producers of the samples stay known
EXPIRY_MS = 2**31 - 1
CONFIG = {"segment.bytes": "12288", "index.interval.bytes": "1024"}

Answer = dict[str, Any]


@dataclass(frozen=True)
class Damaged:
    """A sample, and a copy of it with damage; each question is asked of a fresh copy, as an open
    log changes."""

    kafka: Kafka
    sound: Path
    damaged: Path

    def load(self, log_dir: Path, partition: str) -> Answer:
        return self._ask(
            log_dir,
            lambda copy: self.kafka.call(
                *("recover", "--log-dir", str(copy), "--topic-partition", partition),
                *("--now", str(NOW_MS), "--clean-shutdown"),
                *("--producer-expiry-ms", str(EXPIRY_MS)),
                *(word for k, v in CONFIG.items() for word in ("--config", f"{k}={v}")),
            ),
        )

    def fetch(self, log_dir: Path, partition: str, offset: int, max_bytes: int = 1) -> Answer:
        return self._ask(
            log_dir,
            lambda copy: self.kafka.fetch(
                copy, partition, now_ms=NOW_MS, config=CONFIG, offset=offset, max_bytes=max_bytes
            ),
        )

    def _ask(self, log_dir: Path, question: Callable[[Path], Answer]) -> Answer:
        copy = log_dir.with_name("copy")
        shutil.copytree(log_dir, copy)
        try:
            return question(copy)
        finally:
            shutil.rmtree(copy)


@pytest.fixture
def damaged(kafka: Kafka, log_dir: Path, request: pytest.FixtureRequest) -> Damaged:
    """Both copies; the damage is the parameter."""
    sound, broken = copy_sample("broker", log_dir / "sound"), copy_sample("broker", log_dir / "bad")
    next(each for each in DAMAGES if each.name == request.param).do(broken)
    return Damaged(kafka, sound, broken)


def with_damage(name: str) -> pytest.MarkDecorator:
    assert name in {damage.name for damage in DAMAGES}
    return pytest.mark.parametrize("damaged", [name], indirect=True)


def largest_timestamps(answer: Answer) -> list[int]:
    return [segment["largestTimestamp"] for segment in answer["segments"]]


@with_damage("index_of_a_longer_log")
def test_a_stale_index_makes_fetches_skip_records(damaged: Damaged) -> None:
    log = segments(damaged.damaged / ORDERS)[1]
    bases = [int.from_bytes(batch[:8]) for batch in batch_bytes(log)]
    got = {base: damaged.fetch(damaged.damaged, ORDERS, base)["batches"][0][0] for base in bases}
    assert any(first > base for base, first in got.items()), "no fetch skips anything"
    log.with_suffix(".index").unlink()
    for base in bases:
        assert damaged.fetch(damaged.damaged, ORDERS, base)["batches"][0][0] == base


@with_damage("time_index_without_its_end")
def test_a_short_time_index_makes_a_segment_look_older(damaged: Damaged) -> None:
    sound = largest_timestamps(damaged.load(damaged.sound, ORDERS))
    found = largest_timestamps(damaged.load(damaged.damaged, ORDERS))
    assert found[1] < sound[1]
    assert found[2:] == sound[2:]


@with_damage("zeros_behind_the_time_index")
def test_a_padded_time_index_makes_a_segment_one_of_1970(damaged: Damaged) -> None:
    assert largest_timestamps(damaged.load(damaged.damaged, ORDERS))[1] == 0


@with_damage("no_time_index")
def test_without_time_index_the_modification_time_counts(damaged: Damaged) -> None:
    segment = damaged.load(damaged.damaged, ORDERS)["segments"][1]
    assert segment["largestTimestamp"] == segment["mtime"]


@with_damage("zeros_behind_the_offset_index")
def test_a_padded_offset_index_only_makes_reads_slow(damaged: Damaged) -> None:
    for batch in batch_bytes(segments(damaged.damaged / ORDERS)[1]):
        base = int.from_bytes(batch[:8])
        assert damaged.fetch(damaged.damaged, ORDERS, base)["batches"][0][0] == base


@with_damage("no_transaction_index")
def test_without_transaction_index_aborted_records_are_handed_out(damaged: Damaged) -> None:
    sound = damaged.fetch(damaged.sound, TRANSACTIONS, 0, 1 << 20)["aborted"]
    found = damaged.fetch(damaged.damaged, TRANSACTIONS, 0, 1 << 20)["aborted"]
    assert sound == [[10, 24], [9, 56], [10, 192]]
    assert found == [[10, 192]]  # that one's marker is in the next segment


@with_damage("transaction_index_of_another_log")
def test_a_stale_transaction_index_hides_committed_records(damaged: Damaged) -> None:
    """And ends the search for aborted ones early, by its last stable offset."""
    found = damaged.fetch(damaged.damaged, TRANSACTIONS, 0, 1 << 20)["aborted"]
    assert found == [[10, 24], [9, 56], [9, 211]]


@with_damage("no_snapshots")
def test_without_snapshots_an_open_transaction_is_forgotten(damaged: Damaged) -> None:
    sound = damaged.load(damaged.sound, TRANSACTIONS)
    found = damaged.load(damaged.damaged, TRANSACTIONS)
    assert sound["lastStableOffset"] < sound["logEndOffset"]
    assert found["lastStableOffset"] == found["logEndOffset"] == sound["logEndOffset"]
    assert found["producers"] == {}


@with_damage("snapshot_of_another_time")
def test_a_stale_snapshot_is_believed(damaged: Damaged) -> None:
    sound = damaged.load(damaged.sound, TRANSACTIONS)
    found = damaged.load(damaged.damaged, TRANSACTIONS)
    assert found["producers"] != sound["producers"]


@with_damage("no_middle_segment")
def test_a_missing_segment_is_skipped_silently(damaged: Damaged) -> None:
    lost = int(segments(damaged.sound / ORDERS)[1].stem)
    following = int(segments(damaged.sound / ORDERS)[2].stem)
    assert damaged.fetch(damaged.damaged, ORDERS, lost)["batches"][0][0] == following
    sound, found = (damaged.load(d, ORDERS) for d in (damaged.sound, damaged.damaged))
    assert found["logEndOffset"] == sound["logEndOffset"]


@with_damage("no_last_segment")
def test_without_the_last_segment_the_log_ends_early(damaged: Damaged) -> None:
    last = int(segments(damaged.sound / ORDERS)[-1].stem)
    assert damaged.load(damaged.damaged, ORDERS)["logEndOffset"] == last


@with_damage("no_log_start")
def test_without_log_start_deleted_records_are_back(damaged: Damaged) -> None:
    first = int(segments(damaged.sound / DELETED)[0].stem)
    sound, found = (damaged.load(d, DELETED) for d in (damaged.sound, damaged.damaged))
    assert found["logStartOffset"] == first < sound["logStartOffset"]


@with_damage("log_start_beyond_the_end")
def test_a_log_start_beyond_the_end_deletes_everything(damaged: Damaged) -> None:
    found = damaged.load(damaged.damaged, DELETED)
    assert found["logStartOffset"] == found["logEndOffset"] == 99_999
    assert found["numberOfSegments"] == 1


@with_damage("one_wrong_bit")
def test_a_wrong_bit_is_served_after_a_clean_stop(damaged: Damaged) -> None:
    """And cut off, with all that follows, where the log is recovered."""
    bad = int.from_bytes(batch_bytes(segments(damaged.sound / ORDERS)[1])[-1][:8])
    assert damaged.fetch(damaged.damaged, ORDERS, bad)["batches"][0][0] == bad
    after_crash = damaged.kafka.recover(damaged.damaged, ORDERS, now_ms=NOW_MS, config=CONFIG)
    assert after_crash["logEndOffset"] == bad


@with_damage("torn_tail")
def test_a_torn_tail_hides_what_is_appended_behind_it(damaged: Damaged) -> None:
    end = damaged.load(damaged.damaged, ORDERS)["logEndOffset"]
    batch = {"baseOffset": end, "records": [{"offset": end, "ts": NOW_MS, "value": "bmV3"}]}
    log = segments(damaged.damaged / ORDERS)[-1]
    before = log.stat().st_size
    damaged.kafka.write(
        damaged.damaged / ORDERS, [batch], now_ms=NOW_MS,
        config={"segment.bytes": "1048576", "index.interval.bytes": "1024"},
    )  # fmt: skip
    assert log.stat().st_size > before
    # the record is in the file and nobody reads it: its offset is given out again
    assert damaged.fetch(damaged.damaged, ORDERS, end)["batches"] == []
    assert damaged.load(damaged.damaged, ORDERS)["logEndOffset"] == end


@with_damage("no_leader_epochs")
def test_without_leader_epochs_an_empty_file_is_made(damaged: Damaged) -> None:
    damaged.kafka.open_once(damaged.damaged, ORDERS, now_ms=NOW_MS, config=CONFIG)
    text = (damaged.damaged / ORDERS / "leader-epoch-checkpoint").read_text()
    assert text in ("", "0\n0\n")


@with_damage("interrupted_swap")
def test_a_swap_is_finished_with_an_empty_full_index(damaged: Damaged) -> None:
    first, second = segments(damaged.sound / ORDERS)[:2]
    merged = first.read_bytes() + second.read_bytes()
    damaged.kafka.open_once(damaged.damaged, ORDERS, now_ms=NOW_MS, config=CONFIG)
    left = segments(damaged.damaged / ORDERS)
    assert left[0].read_bytes() == merged
    assert second.name not in {path.name for path in left}
    index = left[0].with_suffix(".index").read_bytes()
    assert len(index) > 1_000_000
    assert not any(index)


@with_damage("unfinished_cleaning")
def test_an_unfinished_cleaning_is_dropped(damaged: Damaged) -> None:
    damaged.kafka.open_once(damaged.damaged, ORDERS, now_ms=NOW_MS, config=CONFIG)
    assert list((damaged.damaged / ORDERS).glob("*.cleaned")) == []


@with_damage("index_without_its_log")
def test_an_index_without_its_log_is_deleted(damaged: Damaged) -> None:
    damaged.kafka.open_once(damaged.damaged, ORDERS, now_ms=NOW_MS, config=CONFIG)
    assert not (damaged.damaged / ORDERS / "00000000000000000007.index").exists()


@with_damage("file_without_a_number")
def test_a_file_without_a_number_stops_the_load(damaged: Damaged) -> None:
    with pytest.raises(Exception, match="NumberFormat"):
        damaged.kafka.open_once(damaged.damaged, ORDERS, now_ms=NOW_MS, config=CONFIG)


@with_damage("other_leader_epochs")
def test_other_leader_epochs_are_believed(damaged: Damaged) -> None:
    damaged.kafka.open_once(damaged.damaged, ORDERS, now_ms=NOW_MS, config=CONFIG)
    text = (damaged.damaged / ORDERS / "leader-epoch-checkpoint").read_text()
    assert "7 450" in text


# -- offset-order: what is noticed depends on which batches get an index entry ---------------------


def reorder(log_dir: Path, number: int, batches: slice | tuple[int, int]) -> Path:
    """Segment `number` of orders-0 with its batches in another order: turned round, or two of them
    in each other's place.
    """
    log = segments(log_dir / ORDERS)[number]
    found = batch_bytes(log)
    if isinstance(batches, slice):
        found[batches] = found[batches][::-1]
    else:
        one, other = batches
        found[one], found[other] = found[other], found[one]
    rewrite_keeping_time(log, b"".join(found))
    return log


def sizes(log_dir: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in segments(log_dir / ORDERS)}


@pytest.fixture
def broken(log_dir: Path) -> Path:
    return copy_sample("broker", log_dir / "bad")


@pytest.mark.parametrize("load", ["open_once", "recover"])
@pytest.mark.parametrize("number", [0, -1])
def test_two_batches_out_of_order_are_not_noticed(
    kafka: Kafka, broken: Path, number: int, load: str
) -> None:
    reorder(broken, number, (0, -1))
    before = sizes(broken)
    answer = getattr(kafka, load)(broken, ORDERS, now_ms=NOW_MS, config=CONFIG)
    assert sizes(broken) == before
    # the log ends where the batch that is last says: offsets are given out again
    assert answer["logEndOffset"] == (900 if number == 0 else 736)


def test_an_order_that_the_index_shows_empties_the_segment_and_takes_those_behind_it(
    kafka: Kafka, broken: Path
) -> None:
    reorder(broken, 1, slice(None))
    first = sizes(broken)[f"{0:020d}.log"]
    kafka.recover(broken, ORDERS, now_ms=NOW_MS, config=CONFIG)
    assert sizes(broken) == {f"{0:020d}.log": first, f"{368:020d}.log": 0}


def test_an_order_that_the_index_shows_stops_the_load_where_the_index_is_gone(
    kafka: Kafka, broken: Path
) -> None:
    reorder(broken, 1, slice(None)).with_suffix(".index").unlink()
    with pytest.raises(KafkaFailedError, match="InvalidOffsetException"):
        kafka.open_once(broken, ORDERS, now_ms=NOW_MS, config=CONFIG)


def test_a_batch_below_its_segment_stops_the_load_after_a_crash(kafka: Kafka, broken: Path) -> None:
    before, log = segments(broken / ORDERS)[:2]
    rewrite_keeping_time(log, batch_bytes(before)[-1] + log.read_bytes())
    kafka.open_once(broken, ORDERS, now_ms=NOW_MS, config=CONFIG)
    with pytest.raises(KafkaFailedError, match="Split operation is only permitted"):
        kafka.recover(broken, ORDERS, now_ms=NOW_MS, config=CONFIG)
