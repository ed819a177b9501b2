"""Producer state by snapshot and replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import NO_PRODUCER_ID
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.file_names import producer_snapshot_file_name
from kafkalog.format.record_batch import pack_batch
from kafkalog.log.header_facts import ActiveProducer
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.producer_state import active_producers
from tests.support.log_builder import START_MS, LogBuilder

COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT
DAY_MS = 86_400_000


def _known(
    log: LogBuilder, *, now_ms: int = START_MS + 1000, expiration_ms: int = DAY_MS
) -> dict[int, ActiveProducer]:
    (partition,) = open_log_dir(log.path)
    return dict(active_producers(partition, now_ms, expiration_ms))


def _snapshots(log: LogBuilder) -> Iterator[Path]:
    return log.path.glob("*.snapshot")


def _expected(log: LogBuilder) -> dict[int, ActiveProducer]:
    """By the log builder's own rules, a dict after Kafka's ProducerStateManager."""
    return {
        entry.producer_id: ActiveProducer(
            producer_id=entry.producer_id,
            epoch=entry.producer_epoch,
            last_data_offset=entry.last_offset if entry.last_offset >= 0 else None,
            last_timestamp_ms=entry.timestamp,
            current_txn_first_offset=(
                entry.current_txn_first_offset if entry.current_txn_first_offset >= 0 else None
            ),
        )
        for entry in log.producers.entries()
    }


def _everything(log_dir: Path) -> LogBuilder:
    log = LogBuilder(log_dir)
    log.batch(("a", "1"), ("b", "1"), producer_id=1).batch(("k", "no producer"))
    log.batch(("c", "1"), producer_id=2, is_transactional=True).segment()
    log.marker(COMMIT, 2).batch(("d", "1"), producer_id=3, is_transactional=True)
    log.marker(ABORT, 3, producer_epoch=1).segment()
    log.batch(("e", "1"), producer_id=4, is_transactional=True)
    log.batch(("f", "1"), producer_id=1, producer_epoch=5)
    return log


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_snapshot_and_replay_agree(log_dir: Path, clean_shutdown: bool) -> None:
    log = _everything(log_dir)
    log.write(clean_shutdown=clean_shutdown)
    assert _known(log) == _expected(log)


def test_without_a_snapshot_the_whole_log_is_replayed(log_dir: Path) -> None:
    log = _everything(log_dir)
    log.write()
    for path in _snapshots(log):
        path.unlink()
    assert _known(log) == _expected(log)


def test_a_marker_of_the_same_epoch_keeps_the_last_data_offset(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7, is_transactional=True)
    log.marker(COMMIT, 7, timestamp=START_MS + 50).write(clean_shutdown=False)
    assert _known(log) == {7: ActiveProducer(7, 0, 0, START_MS + 50)}


def test_a_marker_of_a_new_epoch_forgets_the_last_data_offset(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7, is_transactional=True)
    log.marker(COMMIT, 7, timestamp=START_MS + 50, producer_epoch=1).write(clean_shutdown=False)
    assert _known(log) == {7: ActiveProducer(7, 1, None, START_MS + 50)}


def test_an_open_transaction_is_known_by_its_first_offset(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("a", "v"))
    for _ in range(2):
        log.batch(("k", "v"), producer_id=7, is_transactional=True)
    log.write(clean_shutdown=False)
    assert _known(log)[7].current_txn_first_offset == 1


def test_an_empty_control_batch_changes_nothing(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7)
    log.append(
        pack_batch(
            [],
            base_offset=1,
            producer_id=7,
            producer_epoch=9,
            is_transactional=True,
            is_control=True,
        )
    )
    log.write(clean_shutdown=False)
    assert _known(log) == {7: ActiveProducer(7, 0, 0, START_MS)}


def test_an_empty_data_batch_tells_its_producer(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.append(
        pack_batch(
            [],
            base_offset=0,
            last_offset=4,
            producer_id=7,
            producer_epoch=2,
            base_sequence=0,
            max_timestamp=START_MS,
        )
    )
    log.write(clean_shutdown=False)
    assert _known(log) == {7: ActiveProducer(7, 2, 4, START_MS)}


@pytest.mark.parametrize(("idle_ms", "is_known"), [(999, True), (1000, False)])
def test_a_snapshots_producer_expires_when_idle_for_exactly_so_long(
    log_dir: Path, idle_ms: int, is_known: bool
) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7)
    log.write()
    known = _known(log, now_ms=START_MS + idle_ms, expiration_ms=1000)
    assert (7 in known) is is_known


def test_a_producer_with_an_open_transaction_never_expires(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7, is_transactional=True)
    log.write()
    assert 7 in _known(log, now_ms=START_MS + DAY_MS, expiration_ms=1)


def test_replayed_producers_are_not_expired(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7)
    log.write(clean_shutdown=False)
    assert 7 in _known(log, now_ms=START_MS + DAY_MS, expiration_ms=1)


def test_a_corrupt_snapshot_is_passed_over_for_the_older_one(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("a", "v"), producer_id=7).segment()
    log.batch(("b", "v"), producer_id=8)
    log.write()
    path = log.path / producer_snapshot_file_name(2)
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    # Seen in the snapshot at 1 and the replay; the older snapshot's producer can expire.
    assert set(_known(log)) == {7, 8}
    assert set(_known(log, now_ms=START_MS + DAY_MS)) == {8}


def test_a_snapshot_that_a_broker_would_delete_is_not_used(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("a", "v"), producer_id=7).batch(("b", "v"), producer_id=8)
    log.segment().batch(("c", "v"))
    log.write(clean_shutdown=False)
    snapshot = (log.path / producer_snapshot_file_name(2)).read_bytes()
    empty = LogBuilder(log_dir / "x").batch(("a", "v"))
    empty.write()
    nobody = (empty.path / producer_snapshot_file_name(1)).read_bytes()
    assert nobody != snapshot
    (log.path / producer_snapshot_file_name(2)).unlink()
    # At no segment's base, and below the active one; and one past the log's end.
    (log.path / producer_snapshot_file_name(1)).write_bytes(nobody)
    (log.path / producer_snapshot_file_name(9)).write_bytes(nobody)
    assert set(_known(log)) == {7, 8}


@pytest.mark.parametrize(("log_start", "known"), [(0, {7, 8}), (1, {8})])
def test_a_snapshot_at_the_log_start_is_not_used(
    log_dir: Path, log_start: int, known: set[int]
) -> None:
    log = LogBuilder(log_dir).batch(("a", "v"), producer_id=7).segment()
    log.batch(("b", "v"), producer_id=8).log_start_offset(log_start)
    log.write(clean_shutdown=False)
    assert [path.name for path in _snapshots(log)] == [producer_snapshot_file_name(1)]
    assert set(_known(log)) == known


def test_the_newest_snapshot_past_all_bases_is_used(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("a", "v"), producer_id=7)
    log.write()
    # Only the snapshot can make it expire: a replay would not.
    assert _known(log, now_ms=START_MS + DAY_MS) == {}


def test_a_broken_batch_on_the_way_is_an_error(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("a", "v"), producer_id=7).raw(bytes(100) + b"\x01")
    log.write(clean_shutdown=False)
    with pytest.raises(CorruptRecordError):
        _known(log)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["data", "txn", "commit", "abort", "roll"]),
        st.sampled_from([NO_PRODUCER_ID, 1, 2, 3]),
        st.integers(0, 1),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(steps=_STEPS, clean_shutdown=st.booleans())
def test_any_history_gives_the_state_a_broker_has(
    steps: list[tuple[str, int, int]],
    clean_shutdown: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    log = LogBuilder(tmp_path_factory.mktemp("log"))
    in_transaction: set[int] = set()
    for step, producer_id, bump in steps:
        if step == "roll":
            log.segment()
        elif step in ("commit", "abort"):
            if producer_id >= 0:
                epoch = log.producers.epoch(producer_id) + bump
                log.marker(COMMIT if step == "commit" else ABORT, producer_id, producer_epoch=epoch)
                in_transaction.discard(producer_id)
        elif producer_id < 0:
            log.batch(("k", "v"))
        else:
            if step == "txn":
                in_transaction.add(producer_id)
            log.batch(
                ("k", "v"),
                producer_id=producer_id,
                producer_epoch=log.producers.epoch(producer_id) + bump,
                is_transactional=producer_id in in_transaction,
            )
    log.write(clean_shutdown=clean_shutdown)
    assert _known(log) == _expected(log)
