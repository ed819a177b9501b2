"""What is a difference and what is not, one by one, on logs that are built."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.format.constants import CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from tests.comparing.comparing import as_node, compare, only, told
from tests.support.log_builder import START_MS, LogBuilder

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
Build = Callable[[LogBuilder], LogBuilder]


def record(offset: int, key: str | None, value: str | None) -> Record:
    return Record(
        offset,
        START_MS + offset,
        None if key is None else key.encode(),
        None if value is None else value.encode(),
    )


def at(
    log: LogBuilder, offset: int, key: str | None, value: str | None, **header: int
) -> LogBuilder:
    """A batch of one record at this offset."""
    return log.batch(record(offset, key, value), base_offset=offset, **header)


def node(root: Path, number: int, build: Build) -> Path:
    log_dir = root / f"node-{number}"
    log_dir.mkdir()
    build(LogBuilder(log_dir, "orders-0")).write()
    return as_node(log_dir, number)


def nodes(root: Path, *builds: Build) -> list[Path]:
    return [node(root, number, build) for number, build in enumerate(builds, 1)]


def plain(log: LogBuilder) -> LogBuilder:
    return log.segment().batch(("a", "1"), ("b", "2")).batch(("c", "3"))


def data(log: LogBuilder, count: int = 1) -> LogBuilder:
    for _ in range(count):
        log.batch(("t", f"{log.next_offset}"), producer_id=7, is_transactional=True)
    return log


def test_batches_segments_and_codecs_are_no_difference(log_dir: Path) -> None:
    def other(log: LogBuilder) -> LogBuilder:
        log.segment().batch(("a", "1"), codec=CompressionType.ZSTD)
        return log.segment().batch(("b", "2"), ("c", "3"))

    dirs = nodes(log_dir, plain, other)
    assert told(*dirs) == []
    assert [each.lost_records for each in only(*dirs).replicas] == [0, 0]


def test_retention_and_lag_are_no_difference_but_told(log_dir: Path) -> None:
    def shorter(log: LogBuilder) -> LogBuilder:
        return log.segment().batch(("a", "1"), ("b", "2"))

    def later(log: LogBuilder) -> LogBuilder:
        return plain(log).log_start_offset(1)

    dirs = nodes(log_dir, plain, shorter, later)
    assert told(*dirs) == []
    found = only(*dirs)
    assert [each.behind_records for each in found.replicas] == [0, 1, 0]
    assert [each.lost_records for each in found.replicas] == [0, 1, 0]
    assert found.best in ("node 1", "node 3")


def test_superseded_values_tombstones_and_keyless_records_may_be_gone(log_dir: Path) -> None:
    def whole(log: LogBuilder) -> LogBuilder:
        log.segment().batch(("a", "1"), (None, "x"), ("b", "1"), ("b", None))
        return log.batch(("a", "2")).segment().batch(("c", "1"))

    def cleaned(log: LogBuilder) -> LogBuilder:
        at(log.segment(), 4, "a", "2")
        return log.segment().batch(("c", "1")).cleaner_offset(5)

    assert told(*nodes(log_dir, whole, cleaned)) == []


def test_a_changed_record_and_a_lost_one_are_found(log_dir: Path) -> None:
    def changed(log: LogBuilder) -> LogBuilder:
        return log.segment().batch(("a", "1"), ("b", "other")).batch(("c", "3"))

    def lost(log: LogBuilder) -> LogBuilder:
        log.segment().batch(("a", "1"))
        return at(log, 2, "c", "3")

    (log_dir / "one").mkdir()
    assert told(*nodes(log_dir / "one", plain, changed)) == [("record-differs", 1, "1 2", "")]
    (log_dir / "two").mkdir()
    assert told(*nodes(log_dir / "two", plain, lost)) == [("missing-range", 1, "2", "1")]


def test_of_copies_with_different_records_none_is_preferred(log_dir: Path) -> None:
    def changed(log: LogBuilder) -> LogBuilder:
        return log.segment().batch(("a", "1"), ("b", "other")).batch(("c", "3"))

    dirs = nodes(log_dir, plain, changed, changed)
    (found,) = compare(*dirs).differences
    assert (found.kind, found.offset, found.right) == ("record-differs", 1, ())
    assert found.wrong == ("node 1", "node 2", "node 3")
    assert "of node 1 is another one than that of node 2 or node 3" in found.text
    assert [each.wrong for each in only(*dirs).replicas] == [1, 1, 1]


def test_of_markers_that_differ_none_is_believed(log_dir: Path) -> None:
    def ended(log: LogBuilder, type_: ControlRecordType) -> LogBuilder:
        return data(log.segment()).marker(type_, 7).batch(("z", "1"))

    dirs = nodes(log_dir, lambda log: ended(log, ABORT), lambda log: ended(log, COMMIT))
    assert told(*dirs) == [("record-differs", 1, "1 2", "")]


def test_a_copy_without_a_segment_has_no_record(log_dir: Path) -> None:
    dirs = nodes(log_dir, plain, plain)
    for path in (dirs[1] / "orders-0").glob("0*"):
        path.unlink()
    assert told(*dirs) == []
    assert [each.lost_records for each in only(*dirs).replicas] == [0, 3]


def test_a_changed_record_without_a_key_is_told_without_one(log_dir: Path) -> None:
    dirs = nodes(
        log_dir, lambda log: log.segment().batch((None, "1")),
        lambda log: log.segment().batch((None, "2")),
    )  # fmt: skip
    (found,) = compare(*dirs).differences
    assert (found.kind, found.key, found.key_hash) == ("record-differs", None, None)


def test_an_unreadable_batch_is_found_where_another_copy_has_it(log_dir: Path) -> None:
    dirs = nodes(log_dir, plain, plain, plain)
    log = dirs[1] / "orders-0" / "00000000000000000000.log"
    bytes_ = bytearray(log.read_bytes())
    bytes_[70] ^= 1
    log.write_bytes(bytes_)
    assert told(*dirs) == [("corrupt-copy", 0, "2", "1 3")]
    assert [each.lost_records for each in only(*dirs).replicas] == [0, 2, 0]
    shutil.copyfile(log, dirs[0] / "orders-0" / log.name)
    shutil.copyfile(log, dirs[2] / "orders-0" / log.name)
    assert told(*dirs) == []  # of all copies: no difference between them


def test_of_two_damaged_copies_the_one_that_lost_more_is_found(log_dir: Path) -> None:
    dirs = nodes(log_dir, plain, plain)
    name = "00000000000000000000.log"
    whole = (dirs[0] / "orders-0" / name).read_bytes()
    for copy, position in zip(dirs, (16, 70), strict=True):  # the magic, and a value
        content = bytearray(whole)
        content[position] ^= 8
        (copy / "orders-0" / name).write_bytes(content)
    (found,) = compare(*dirs).differences
    # From the first batch on nothing of node 1 can be read; node 2 has the one behind it.
    assert (found.kind, found.offset, found.last_offset) == ("corrupt-copy", 0, 2)
    assert (found.wrong, found.right) == (("node 1",), ("node 2",))


@pytest.mark.parametrize(
    ("type_", "later", "expected"),
    [
        (ABORT, COMMIT, [("aborted-served-as-committed", 1, "2", "1")]),
        (COMMIT, ABORT, [("committed-hidden", 1, "2", "1")]),
        (ABORT, None, [("open-transaction-forgotten", 1, "2", "1")]),
        (COMMIT, None, [("open-transaction-forgotten", 1, "2", "1")]),
    ],
)
def test_a_lost_marker_is_found_by_what_consumers_get(
    log_dir: Path,
    type_: ControlRecordType,
    later: ControlRecordType | None,
    expected: list[tuple[str, int, str, str]],
) -> None:
    def ended(log: LogBuilder, *, has_marker: bool) -> LogBuilder:
        data(log.segment().batch(("a", "1")))
        if has_marker:
            log.marker(type_, 7)
        else:
            log.next_offset += 1
        log.batch(("b", "1"))
        return data(log).marker(later, 7) if later is not None else log

    dirs = nodes(
        log_dir, lambda log: ended(log, has_marker=True), lambda log: ended(log, has_marker=False)
    )
    assert told(*dirs) == expected


def test_a_marker_that_is_due_is_no_difference(log_dir: Path) -> None:
    def whole(log: LogBuilder) -> LogBuilder:
        data(log.segment().batch(("a", "1"))).marker(ABORT, 7)
        return data(log).marker(COMMIT, 7).batch(("b", "1")).segment().batch(("b", "2"))

    def cleaned(log: LogBuilder) -> LogBuilder:
        log.segment().batch(("a", "1"))
        log.next_offset = 3
        data(log).marker(COMMIT, 7).batch(("b", "1"))
        return log.segment().batch(("b", "2")).cleaner_offset(6)

    assert told(*nodes(log_dir, whole, cleaned)) == []


def test_an_open_transaction_that_another_copy_cleaned_past_is_found(log_dir: Path) -> None:
    def held(log: LogBuilder) -> LogBuilder:
        return at(data(log.segment()), 2, "x", "0").batch(("t", "9"))

    def cleaned(log: LogBuilder) -> LogBuilder:
        at(log.segment(), 2, "x", "0")
        return log.batch(("t", "9")).segment(4).cleaner_offset(4)

    assert told(*nodes(log_dir, held, cleaned)) == [("open-transaction-forgotten", 0, "1", "2")]


def test_an_open_transaction_that_all_have_is_no_difference(log_dir: Path) -> None:
    def shorter(log: LogBuilder) -> LogBuilder:
        return data(log.segment().batch(("a", "1")))

    def ended(log: LogBuilder) -> LogBuilder:
        return shorter(log).marker(ABORT, 7)

    (log_dir / "one").mkdir()
    assert told(*nodes(log_dir / "one", shorter, shorter)) == []
    (log_dir / "two").mkdir()
    assert told(*nodes(log_dir / "two", shorter, ended)) == []  # it is only behind


def test_diverged_histories_name_what_is_cut(log_dir: Path) -> None:
    def old(log: LogBuilder) -> LogBuilder:
        return plain(log).batch(("d", "old"), ("e", "old"))

    def new(log: LogBuilder) -> LogBuilder:
        return plain(log).epoch(2).batch(("d", "new"))

    dirs = nodes(log_dir, old, new)
    (found,) = compare(*dirs).differences
    assert (found.kind, found.offset, found.last_offset, found.records) == (
        "diverged-epoch",
        3,
        4,
        2,
    )
    assert (found.wrong, found.right) == (("node 1",), ("node 2",))
    lost = {each.name: each.lost_records for each in only(*dirs).replicas}
    assert lost == {"node 1": 1, "node 2": 2}


def test_topics_of_the_same_name_and_clusters_are_not_mixed_up(log_dir: Path) -> None:
    dirs = nodes(log_dir, plain, plain)
    metadata = dirs[1] / "orders-0" / "partition.metadata"
    metadata.write_text(metadata.read_text().replace("4L6g3n", "5L6g3n"))
    (found,) = compare(*dirs).partitions
    assert found.status == "failed"
    assert "of another topic: id 5L6g3n" in found.reason
    # A copy that does not say of which topic it is hides nothing.
    third = node(log_dir, 3, plain)
    (third / "orders-0" / "partition.metadata").unlink()
    for given in ((third, *dirs), (*dirs, third)):
        assert [each.status for each in compare(*given).partitions] == ["failed"]


def test_a_log_whose_index_leads_astray_ends_where_its_batches_do(log_dir: Path) -> None:
    def long(log: LogBuilder) -> LogBuilder:
        log.segment()
        for _ in range(30):
            log.batch(("a", "x" * 600))
        return log

    dirs = nodes(log_dir, long, long)
    index = dirs[0] / "orders-0" / "00000000000000000000.index"
    assert index.stat().st_size
    entries = bytearray(index.read_bytes())
    entries[-1] += 7  # into the middle of a batch
    index.write_bytes(entries)
    assert told(*dirs) == []
    assert [each.log_end_offset for each in only(*dirs).replicas] == [30, 30]


def test_a_segment_that_cannot_be_walked_over_is_found(log_dir: Path) -> None:
    dirs = nodes(log_dir, plain, plain)
    log = dirs[0] / "orders-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[16] = 9  # the first batch's magic
    log.write_bytes(content)
    assert told(*dirs) == [("corrupt-copy", 0, "1", "2")]


def test_a_copy_whose_directory_cannot_be_read_is_not_passed_over(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dirs = nodes(log_dir, plain, plain)
    LogBuilder(dirs[1], "other-0").batch(("a", "1")).write()
    shutil.rmtree(dirs[1] / "orders-0")
    (dirs[1] / "orders-0").symlink_to("nowhere")
    assert main(["compare", *map(str, dirs), "--workers", "1"]) == 1
    why = f"{dirs[1]}/orders-0 cannot be read: a link to nowhere"
    assert f"orders-0: not compared: the copy in {why}" in capsys.readouterr().err
    key = log_dir / "key"
    key.write_bytes(b"a key of tests, for all hosts")
    words = ["digest", str(dirs[1]), "--output", str(log_dir / "digest"), "--hash-key", str(key)]
    assert main([*words, "--workers", "1"]) == 1
    assert "orders-0: not in the digest: a link to nowhere" in capsys.readouterr().err
