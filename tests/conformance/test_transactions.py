"""Aborted data, markers and transaction indexes over their rounds (spec items 51, 63, 64, 68-86,
98).

A round here starts at the log's beginning, as those of Kafka's own tests do; producers never
expire.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_facts import scan_partition_facts
from kafkalog.operations.clean_result import COMPACTED
from kafkalog.planning.compaction import SKIP
from tests.conformance.rounds import (
    DAY_MS,
    NOW_MS,
    Batch,
    aborted,
    bases,
    batches,
    compact,
    continued,
    last_offsets,
    offsets,
)
from tests.support.log_builder import START_MS, LogBuilder, RecordSpec

COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT
NEVER_EXPIRE = f"producer.id.expiration.ms={2**31 - 1}"
SOON_EXPIRED = "producer.id.expiration.ms=1"
# A round that stamps a horizon does so at NOW_MS; the first one past it.
PAST_HORIZON_MS = NOW_MS + DAY_MS + 1


def wrote(log: LogBuilder, producer_id: int, *keys: object, epoch: int | None = None) -> LogBuilder:
    """Append a batch of a transaction: a record for each key, a value telling nothing."""
    specs: list[RecordSpec] = [(str(key), "v") for key in keys]
    header = {} if epoch is None else {"producer_epoch": epoch}
    return log.batch(*specs, producer_id=producer_id, is_transactional=True, **header)


def clean(
    log_dir: Path, *settings: str, now_ms: int = NOW_MS, dedupe_buffer_size: int | None = None
) -> CleanerStats:
    """A round from the beginning: the checkpoint is forgotten."""
    (log_dir / CLEANER_OFFSET_FILE).unlink(missing_ok=True)
    run = compact(
        log_dir,
        NEVER_EXPIRE,
        *settings,
        now_ms=now_ms,
        dedupe_buffer_size=dedupe_buffer_size,
    )
    (result,) = run.results
    assert result.status == COMPACTED, result.reason
    return result.stats


def keys(path: Path) -> list[str]:
    return [
        (record.key or b"").decode()
        for header, part in batches(path)
        for record in part
        if not header.is_control
    ]


def marker(path: Path, offset: int) -> Batch:
    (found,) = (batch for batch in batches(path) if batch[0].last_offset == offset)
    assert found[0].is_control
    return found


def test_aborted_data_goes_and_markers_and_committed_data_stay(log_dir: Path) -> None:  # item 68
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, 1, 2)  # 0-1
    wrote(log, 2, 2, 3)  # 2-3
    wrote(log, 1, 3, 4)  # 4-5
    log.marker(ABORT, 1).marker(COMMIT, 2)  # 6, 7
    wrote(log, 1, 2).marker(COMMIT, 1)  # 8, 9
    path = log.segment().write()
    before = aborted(path)
    stats = clean(log_dir)
    assert keys(path) == ["3", "2"]
    assert offsets(path) == [3, 6, 7, 8, 9]
    assert aborted(path) == before == [AbortedTxn(1, 0, 6, 2)]
    assert (stats.aborted, stats.superseded, stats.marker) == (4, 1, 0)


def test_a_round_with_a_full_map_takes_aborted_data_past_its_end(log_dir: Path) -> None:  # items
    log = LogBuilder(log_dir).segment()  # 69-71
    wrote(log, 1, "a", "b", "c").marker(COMMIT, 1)  # 0-2, 3
    log.batch(("d", "v"))  # 4: the fourth key of a map for three
    wrote(log, 2, "a", "e").marker(ABORT, 2)  # 5-6, 7
    wrote(log, 3, "b").marker(ABORT, 3)  # 8, 9
    wrote(log, 2, "d").marker(COMMIT, 2)  # 10, 11
    wrote(log, 3, "f").marker(COMMIT, 3)  # 12, 13
    path = log.segment().write()
    entries = aborted(path)
    three_keys = 4 * 24
    settings = (NEVER_EXPIRE,)
    first = compact(log_dir, *settings, dedupe_buffer_size=three_keys).results[0]
    assert first.next_dirty_offset == 4
    assert offsets(path) == [0, 1, 2, 3, 4, 7, 9, 10, 11, 12, 13]
    assert aborted(path) == entries
    assert len(entries) == 2
    second = compact(log_dir, *settings, dedupe_buffer_size=three_keys).results[0]
    assert second.next_dirty_offset == 14
    assert offsets(path) == [0, 1, 2, 3, 7, 9, 10, 11, 12, 13]
    assert aborted(path) == []
    assert not list(path.glob("*.txnindex"))
    path = continued(path).batch(("g", "v")).segment().write()
    third = compact(log_dir, *settings, now_ms=PAST_HORIZON_MS, dedupe_buffer_size=three_keys)
    assert third.results[0].stats.marker == 2
    assert offsets(path) == [0, 1, 2, 3, 10, 11, 12, 13, 14]


def test_aborted_data_fills_no_bounded_map(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, "x", "y", "z").marker(ABORT, 1)  # 0-2, 3
    log.batch(("a", "v"), ("b", "v"), ("c", "v"), ("d", "v"))  # 4-7: the map has room for three
    path = log.segment().write()
    (result,) = compact(log_dir, NEVER_EXPIRE, dedupe_buffer_size=4 * 24).results
    assert result.next_dirty_offset == 7
    assert offsets(path) == [3, 4, 5, 6, 7]


def test_later_segments_decide_on_transactions_that_reach_into_them(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()  # item 72
    wrote(log, 1, 1)  # 0, aborted
    wrote(log, 2, 2)  # 1, aborted
    wrote(log, 3, 2, 3)  # 2-3, committed
    log.segment()
    young = NOW_MS - 1
    for pid, key in ((1, 4), (2, 5), (3, 6)):  # 4, 5, 6
        log.batch((str(key), "v"), producer_id=pid, is_transactional=True, timestamp=young)
    log.marker(ABORT, 1).marker(ABORT, 2).marker(COMMIT, 3)  # 7, 8, 9
    log.batch(("11", "v"), producer_id=1).batch(("12", "v"), producer_id=2)  # 10, 11
    path = log.segment().write()
    untouched = (path / f"{4:020d}.log").read_bytes()
    clean(log_dir, "min.compaction.lag.ms=1000")
    assert (path / f"{4:020d}.log").read_bytes() == untouched
    assert offsets(path) == [2, 3, *range(4, 12)]
    assert keys(path) == ["2", "3", "4", "5", "6", "11", "12"]
    clean(log_dir)
    assert keys(path) == ["2", "3", "6", "11", "12"]
    assert offsets(path) == [2, 3, 6, 7, 8, 9, 10, 11]
    assert [entry.producer_id for entry in aborted(path)] == [1, 2]


def test_a_commit_marker_goes_in_three_steps_after_its_data(log_dir: Path) -> None:  # item 73
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, 1)
    wrote(log, 1, 2, 3).marker(COMMIT, 1)  # 0, 1-2, 3
    wrote(log, 1, 2).marker(COMMIT, 1)  # 4, 5
    path = log.segment().write()
    clean(log_dir)
    assert offsets(path) == [0, 2, 3, 4, 5]
    log = continued(path)
    wrote(log, 1, 1, 3).marker(COMMIT, 1)  # 6-7, 8
    path = log.segment().write()
    clean(log_dir)  # the last records of the first transaction go: the marker still marked them
    assert offsets(path) == [3, 4, 5, 6, 7, 8]
    header, _ = marker(path, 3)
    assert not header.has_delete_horizon
    clean(log_dir)
    header, records = marker(path, 3)
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW_MS + DAY_MS
    assert [record.timestamp for record in records] == [START_MS + 3]
    clean(log_dir, now_ms=NOW_MS + DAY_MS - 1)
    assert offsets(path) == [3, 4, 5, 6, 7, 8]
    stats = clean(log_dir, now_ms=NOW_MS + DAY_MS)  # at its very time
    assert offsets(path) == [4, 5, 6, 7, 8]
    assert stats.marker == 1


def test_a_marker_with_data_left_is_never_stamped(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    path = wrote(log, 1, 1).marker(COMMIT, 1).segment().write()
    for rounds in range(4):
        clean(log_dir, now_ms=NOW_MS + rounds * DAY_MS)
        assert offsets(path) == [0, 1]
    assert not any(header.has_delete_horizon for header, _ in batches(path))


def test_an_abort_marker_goes_after_its_data(log_dir: Path) -> None:  # item 80
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, 1, 2).marker(ABORT, 1)  # 0-1, 2
    wrote(log, 1, 3).marker(COMMIT, 1)  # 3, 4
    path = log.segment().write()
    clean(log_dir)
    assert offsets(path) == [2, 3, 4]
    assert len(aborted(path)) == 1
    clean(log_dir)
    assert offsets(path) == [2, 3, 4]
    assert aborted(path) == []
    clean(log_dir, now_ms=PAST_HORIZON_MS)
    assert offsets(path) == [3, 4]


def test_an_abort_marker_goes_where_a_batch_leaves_nothing_to_read(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()  # item 74: runs of batches of which nothing stays
    log.batch(("k", "v" * 50))
    for _ in range(40):
        wrote(log, 1, *range(10))
    log.marker(ABORT, 1)
    wrote(log, 1, "x").marker(COMMIT, 1)
    path = log.segment().write()
    end = log.next_offset
    clean(log_dir, "max.message.bytes=100")
    assert offsets(path) == [0, 401, 402, 403]
    clean(log_dir)
    clean(log_dir, now_ms=PAST_HORIZON_MS)
    assert offsets(path) == [0, 402, 403]
    assert open_log_dir(path).partitions[0].log_end_offset == end


def test_the_last_batch_of_an_aborted_transaction_stays_empty(log_dir: Path) -> None:  # item 63
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, 1, 2, 3).marker(ABORT, 1)  # 0-2, 3
    path = log.segment().write()
    clean(log_dir)
    header, records = batches(path)[0]
    assert (records, header.last_sequence, header.size_in_bytes) == ([], 2, 61)
    assert header.is_transactional
    assert offsets(path) == [3]
    log = continued(path)
    path = wrote(log, 1, 4).marker(COMMIT, 1).segment().write()
    clean(log_dir)
    assert last_offsets(path) == [3, 4, 5]


def test_an_abort_marker_and_its_entry_stay_with_an_empty_batch(log_dir: Path) -> None:  # item 81
    log = LogBuilder(log_dir).segment()
    path = wrote(log, 1, 2, 3).marker(ABORT, 1).segment().write()  # 0-1, 2
    entries = aborted(path)
    for rounds in range(3):
        clean(log_dir, now_ms=NOW_MS + rounds * (DAY_MS + 1))
        assert last_offsets(path) == [1, 2]
        assert offsets(path) == [2]
        assert aborted(path) == entries == [AbortedTxn(1, 0, 2, 3)]
    log = continued(path)
    path = wrote(log, 1, 1).marker(COMMIT, 1).segment().write()  # 3, 4
    later = NOW_MS + 3 * DAY_MS
    clean(log_dir, now_ms=later)  # the empty batch goes, and still held its marker in this round
    assert last_offsets(path) == [2, 3, 4]
    assert aborted(path) == entries
    clean(log_dir, now_ms=later)
    clean(log_dir, now_ms=later + DAY_MS)
    assert last_offsets(path) == [3, 4]
    assert aborted(path) == []


def test_a_commit_marker_stays_with_its_empty_batch_and_goes_after_it(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()  # items 75 and 76
    wrote(log, 1, 1, 2).marker(COMMIT, 1)  # 0-1, 2
    wrote(log, 2, 1, 2).marker(COMMIT, 2)  # 3-4, 5
    path = log.segment().write()
    for rounds in range(3):
        clean(log_dir, now_ms=NOW_MS + rounds * (DAY_MS + 1))
        assert last_offsets(path) == [1, 2, 4, 5]
        assert offsets(path) == [2, 3, 4, 5]
    assert not any(header.has_delete_horizon for header, _ in batches(path))
    log = continued(path)
    path = wrote(log, 1, 3).marker(COMMIT, 1).segment().write()  # 6, 7
    later = NOW_MS + 3 * DAY_MS
    clean(log_dir, now_ms=later)
    assert last_offsets(path) == [2, 4, 5, 6, 7]
    assert not marker(path, 2)[0].has_delete_horizon
    clean(log_dir, now_ms=later)
    assert marker(path, 2)[0].has_delete_horizon
    clean(log_dir, now_ms=later + DAY_MS)
    assert last_offsets(path) == [4, 5, 6, 7]


def test_a_marker_without_data_becomes_an_empty_control_batch(log_dir: Path) -> None:  # item 77
    log = LogBuilder(log_dir).segment().marker(COMMIT, 1, producer_epoch=3)
    path = log.batch(("k", "v")).segment().write()
    clean(log_dir)
    assert marker(path, 0)[0].has_delete_horizon
    for rounds in range(1, 4):
        clean(log_dir, now_ms=NOW_MS + rounds * (DAY_MS + 1))
        header, records = marker(path, 0)
        assert (records, header.size_in_bytes, header.producer_epoch) == ([], 61, 3)
        assert (header.is_control, header.is_transactional) == (True, True)
        assert not header.has_delete_horizon


def test_a_marker_of_a_forgotten_producer_goes(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().marker(COMMIT, 1, producer_epoch=3)
    path = log.batch(("k", "v")).segment().write()
    clean(log_dir, SOON_EXPIRED)
    clean(log_dir, SOON_EXPIRED, now_ms=PAST_HORIZON_MS)
    assert last_offsets(path) == [1]


@pytest.mark.parametrize("kind", [COMMIT, ABORT])
def test_data_and_its_marker_may_be_in_different_groups(
    log_dir: Path, kind: ControlRecordType
) -> None:  # items 78 and 79
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, 1, 2).segment()  # 0-1
    path = log.marker(kind, 1).segment().write()  # 2
    groups = "internal.segment.bytes=1"
    for now_ms in (NOW_MS, PAST_HORIZON_MS, NOW_MS + 20 * DAY_MS):
        clean(log_dir, groups, now_ms=now_ms)
        assert bases(path) == [0, 2, 3]
        assert last_offsets(path) == [1, 2]
        assert offsets(path) == ([0, 1, 2] if kind is COMMIT else [2])
        assert len(aborted(path)) == (kind is ABORT)
        assert (path / f"{2:020d}.txnindex").exists() == (kind is ABORT)


def test_markers_never_meet_a_users_key_of_the_same_bytes(log_dir: Path) -> None:  # item 51
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, 1).marker(COMMIT, 1)  # 0, 1
    key = b"\0\0\0\1"  # version 0, COMMIT
    log.batch((key, "a user's"), producer_id=1, is_transactional=True).marker(COMMIT, 1)  # 2, 3
    path = log.segment().write()
    clean(log_dir)
    assert offsets(path) == [0, 1, 2, 3]


def test_sequences_used_again_keep_only_the_later_empty_batch(log_dir: Path) -> None:  # item 64
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, 1).marker(COMMIT, 1)  # 0, 1: sequence 0
    wrote(log, 1, 2, epoch=1).marker(COMMIT, 1)  # 2, 3: sequence 0 again
    log.batch(("1", "v"), ("2", "v"))  # 4-5
    path = log.segment().write()
    clean(log_dir)
    assert last_offsets(path) == [1, 2, 3, 5]
    assert [header.base_sequence for header, part in batches(path) if not part] == [0]
    clean(log_dir)
    clean(log_dir, now_ms=PAST_HORIZON_MS)
    assert last_offsets(path) == [2, 3, 5]


def test_an_aborted_batch_goes_whatever_its_records(log_dir: Path) -> None:  # item 98
    log = LogBuilder(log_dir).segment()
    log.batch(("a", "v"))
    log.batch(("a", None), ("new", "v"), (None, "v"), producer_id=1, is_transactional=True)
    log.marker(ABORT, 1)
    wrote(log, 1, "z").marker(COMMIT, 1)
    path = log.segment().write()
    stats = clean(log_dir)
    assert offsets(path) == [0, 4, 5, 6]
    assert keys(path) == ["a", "z"]
    assert (stats.aborted, stats.no_key, stats.tombstone) == (3, 0, 0)


@pytest.mark.parametrize("codec", range(5))
def test_a_committed_tombstone_has_its_horizon_and_its_marker_stays(
    log_dir: Path, codec: int
) -> None:
    log = LogBuilder(log_dir).segment()
    log.batch(("a", "1"), ("b", "1"), codec=codec)
    log.batch(("a", None), producer_id=1, is_transactional=True, codec=codec).marker(COMMIT, 1)
    log.batch(("c", "1"), producer_id=1)
    path = log.segment().write()
    clean(log_dir)
    assert offsets(path) == [1, 2, 3, 4]
    clean(log_dir, now_ms=PAST_HORIZON_MS)
    assert offsets(path) == [1, 3, 4]


def test_an_open_transaction_holds_the_range_until_its_end(log_dir: Path) -> None:  # item 15
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, 1)
    wrote(log, 1, 2, 1)  # 0, 1-2
    path = log.segment().write()
    run = compact(log_dir, NEVER_EXPIRE)
    assert run.results == ()
    assert run.plans[0].status == SKIP
    assert run.plans[0].first_uncleanable_offset == 0
    assert "transaction open since offset 0" in run.plans[0].reason
    path = continued(path).marker(ABORT, 1).segment().write()  # 3
    (result,) = compact(log_dir, NEVER_EXPIRE).results
    assert (result.status, result.next_dirty_offset) == (COMPACTED, 4)
    assert offsets(path) == [3]


def test_markers_without_data_open_and_end_nothing(log_dir: Path) -> None:  # item 86
    log = LogBuilder(log_dir).segment()
    log.marker(COMMIT, 1).marker(ABORT, 2).batch(("k", "1")).batch(("k", "2"))
    path = log.segment().write()
    (partition,) = open_log_dir(path).partitions
    facts = scan_partition_facts(partition, now_ms=NOW_MS, expiration_ms=2**31 - 1)
    assert facts.first_unstable_offset(0) is None
    assert facts.completed_transactions == ()
    assert aborted(path) == []
    clean(log_dir)
    assert offsets(path) == [0, 1, 3]
    assert aborted(path) == []


@pytest.mark.parametrize(
    ("high_watermark", "unstable"), [(0, 0), (5, 0), (6, 1), (7, None), (99, None), (None, None)]
)
def test_first_unstable_follows_the_markers_below_the_high_watermark(
    log_dir: Path, high_watermark: int | None, unstable: int | None
) -> None:  # item 85: interleaved, pid 1 ends at 5, pid 2 at 6
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, "a")
    wrote(log, 2, "b")
    wrote(log, 1, "c", "d")
    wrote(log, 2, "e")
    path = log.marker(COMMIT, 1).marker(ABORT, 2).write(clean_shutdown=False)
    (partition,) = open_log_dir(path).partitions
    facts = scan_partition_facts(partition, now_ms=NOW_MS, expiration_ms=2**31 - 1)
    assert facts.first_unstable_offset(high_watermark) == unstable


def test_a_fenced_producers_transaction_ends_with_the_marker_of_its_next_epoch(
    log_dir: Path,
) -> None:
    log = LogBuilder(log_dir).segment()
    wrote(log, 1, 1, 2).marker(ABORT, 1, producer_epoch=1, coordinator_epoch=4)  # 0-1, 2
    path = log.batch(("k", "v")).segment().write()
    clean(log_dir)
    assert last_offsets(path) == [2, 3]  # the epoch is all that is known: the marker carries it
    for rounds in range(1, 4):
        clean(log_dir, now_ms=NOW_MS + rounds * (DAY_MS + 1))
    header, records = marker(path, 2)
    assert (records, header.producer_epoch) == ([], 1)
    assert aborted(path) == []
