"""Which side is right about the latest value of a key, on logs that are built."""

from __future__ import annotations

from pathlib import Path

from kafkalog.format.control_record import ControlRecordType
from tests.comparing.comparing import compare, told
from tests.comparing.test_differences import at, data, nodes
from tests.support.log_builder import LogBuilder

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def test_a_value_without_its_tombstone_is_resurrected(log_dir: Path) -> None:
    def with_it(log: LogBuilder) -> LogBuilder:
        at(at(log.segment(), 0, "a", "1"), 4, "b", "2")
        return log.segment().batch(("c", "1")).cleaner_offset(5)

    def without(log: LogBuilder) -> LogBuilder:
        at(log.segment(), 4, "b", "2")
        return log.segment().batch(("c", "1")).cleaner_offset(5)

    def tombstone(log: LogBuilder) -> LogBuilder:
        at(at(log.segment(), 2, "a", None), 4, "b", "2")
        return log.segment().batch(("c", "1")).cleaner_offset(5)

    dirs = nodes(log_dir, with_it, without, tombstone)
    # Whoever has the tombstone is right, and whoever has taken both.
    assert told(*dirs) == [("resurrected-key", 0, "1", "2 3")]
    assert told(*dirs[1:]) == []
    assert compare(*dirs).differences[0].key == "YQ=="


def test_an_abort_that_the_transaction_index_lacks_is_found_beside_a_cleaned_copy(
    log_dir: Path,
) -> None:
    def whole(log: LogBuilder) -> LogBuilder:
        return data(log.segment().batch(("a", "1"))).marker(ABORT, 7).batch(("z", "1"))

    def cleaned(log: LogBuilder) -> LogBuilder:
        at(log.segment(), 0, "a", "1").segment(3)
        return log.batch(("z", "1")).segment().cleaner_offset(4)

    dirs = nodes(log_dir, cleaned, whole)
    assert told(*dirs) == []
    (dirs[1] / "orders-0" / "00000000000000000000.txnindex").unlink()
    assert told(*dirs) == [("aborted-served-as-committed", 1, "2", "1")]
    assert "no transaction index there lists it" in compare(*dirs).differences[0].text


def behind_a_cleaner(log: LogBuilder) -> LogBuilder:
    return at(at(log.segment(), 0, "a", "1"), 2, "k", "old")


def over_it(log: LogBuilder) -> LogBuilder:
    """Cleaned over the old value of k, which the new one superseded."""
    at(at(log.segment(), 0, "a", "1").segment(6), 6, "k", "new")
    return at(log.segment(8), 8, "z", "1").cleaner_offset(8)


def test_a_cleaned_copy_with_an_unreadable_batch_proves_no_deletion(log_dir: Path) -> None:
    def all_of_it(log: LogBuilder) -> LogBuilder:
        return at(at(behind_a_cleaner(log), 6, "k", "new"), 8, "z", "1")

    behind, cleaned, whole = nodes(log_dir, behind_a_cleaner, over_it, all_of_it)
    assert told(behind, cleaned, whole) == []
    log = cleaned / "orders-0" / "00000000000000000006.log"
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    assert told(behind, cleaned) == [("resurrected-key", 2, "1", "")]
    (found,) = compare(behind, cleaned).differences
    assert not found.is_proven
    # Who has all of it shows that there was a later record.
    assert told(behind, cleaned, whole) == [("corrupt-copy", 6, "2", "3")]


def test_a_cleaned_copy_that_will_be_cut_proves_no_deletion(log_dir: Path) -> None:
    def elected(log: LogBuilder) -> LogBuilder:
        return at(behind_a_cleaner(log).epoch(2), 5, "b", "1")

    dirs = nodes(log_dir, over_it, elected)
    assert told(*dirs) == [("resurrected-key", 2, "2", ""), ("diverged-epoch", 5, "1", "2")]
    assert not compare(*dirs).differences[0].is_proven


def test_a_value_that_is_missing_behind_an_older_one_was_not_deleted(log_dir: Path) -> None:
    def built(log: LogBuilder, *, has_it: bool) -> LogBuilder:
        at(log.segment(), 0, "k", "0")
        if has_it:
            at(log, 2, "k", "2")
        return at(log, 5, "b", "1").segment().batch(("c", "1")).cleaner_offset(6)

    dirs = nodes(log_dir, lambda log: built(log, has_it=True), lambda log: built(log, has_it=False))
    assert told(*dirs) == [("missing-range", 2, "2", "1")]
    (found,) = compare(*dirs).differences
    assert not found.is_proven
    assert "kept an older value" in found.text


def test_an_older_value_that_stayed_says_that_the_later_one_was_aborted(log_dir: Path) -> None:
    def built(log: LogBuilder, *, has_it: bool) -> LogBuilder:
        at(log.segment(), 0, "t", "0")
        if has_it:
            data(log)
        at(log, 5, "b", "1").segment()
        log.batch(("u", "1"), producer_id=7, is_transactional=True).marker(COMMIT, 7)
        return log.cleaner_offset(6)

    dirs = nodes(log_dir, lambda log: built(log, has_it=True), lambda log: built(log, has_it=False))
    for snapshot in dirs[1].glob("*/*.snapshot"):
        snapshot.unlink()  # which would tell as well
    assert told(*dirs) == [("aborted-served-as-committed", 1, "1", "2")]
    assert "an older value" in compare(*dirs).differences[0].text
