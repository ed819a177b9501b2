"""A read by key with kept filters gives what one without them gives, and reads less."""

from __future__ import annotations

import logging
import os
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkalog import read_records
from kafkalog.duckdb.session import SqlSession
from kafkalog.duckdb.tables import LogTables
from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.format.checksum import crc32c
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.log.log_dir import open_log_dir
from kafkalog.reading import key_filter, key_filter_files, key_search
from kafkalog.reading.conditions import Condition, RowFilter
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_plan import plan_reading
from kafkalog.reading.splits import SplitNeeds, SplitSizes
from kafkalog.reading.views import select_columns
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries

Row = tuple[int, bytes | None, bytes | None]

KEYS = [b"", b"a", b"bb", *(b"key-%d" % n for n in range(12))]


@pytest.fixture
def filters(tmp_path: Path) -> Path:
    return tmp_path / "filters"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block for nearly each batch, each read by itself; small records are kept as well."""
    monkeypatch.setattr(key_filter, "BLOCK_BYTES", 64)
    monkeypatch.setattr(key_search, "_NEAR_BYTES", 0)


def read(
    path: Path,
    row_filter: RowFilter,
    filters: Path | None,
    sizes: SplitSizes | None = None,
    **asked: Any,
) -> tuple[list[Row], ReadCounts]:
    selection = PartitionSelection(
        read_committed=asked.pop("read_committed", False), fail_on_data_loss=False
    )
    request = ReadRequest.of(
        select_columns("records", ["offset", "key", "value"]),
        row_filter=row_filter,
        key_filter_dir=None if filters is None else str(filters),
        **asked,
    )
    needs = SplitNeeds(row_filter=row_filter)
    plan = plan_reading(open_log_dir(path), selection, sizes or SplitSizes(), needs)
    counts = ReadCounts()
    rows: list[Row] = []
    for batch in read_record_splits(plan.splits, request, counts):
        rows += zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)
    return rows, counts


def by_key(*keys: bytes) -> RowFilter:
    return RowFilter(keys=frozenset(keys))


def random_log(log_dir: Path, rnd: random.Random) -> LogBuilder:
    """Closed segments and an active one: codecs, transactions of both ends, legacy messages, gaps,
    null keys and empty ones."""
    log = LogBuilder(log_dir)
    for number in range(rnd.randint(2, 4)):
        log.segment()
        for _ in range(rnd.randint(1, 12)):
            records = [
                Record(log.next_offset + i, START_MS + i, rnd.choice([None, *KEYS]), b"v%d" % i)
                for i in range(rnd.randint(1, 4))
            ]
            kind = rnd.randrange(8)
            if kind == 0 and number == 0:
                magic, codec = rnd.randrange(2), rnd.choice((0, 1))
                log.raw(pack_legacy_entries(records, magic, codec=codec))
                log.next_offset += len(records)
            elif kind == 1:
                log.batch(*records, producer_id=9, is_transactional=True)
                log.marker(rnd.choice(list(ControlRecordType)[:2]), 9)
            else:
                log.batch(*records, codec=rnd.choice((0, 0, 3, 4)))
            log.next_offset += rnd.choice((0, 0, 0, 3))
    return log


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_no_key_is_missed(
    seed: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are asked for in any order, by splits of any size, some with other conditions: the first
    read makes filters, later ones use, and complete, what they find."""
    rnd = random.Random(seed)
    monkeypatch.setattr(key_filter, "BLOCK_BYTES", rnd.choice((1, 64, 300, 4096)))
    monkeypatch.setattr(key_search, "_NEAR_BYTES", rnd.choice((0, 100, 10_000)))
    monkeypatch.setattr(key_filter, "MOST_PART", most := rnd.choice((1, 8, 1000)))
    monkeypatch.setattr(key_filter_files, "MOST_PART", most)
    root = tmp_path_factory.mktemp("log")
    path = random_log(root / "logs", rnd).write()
    filters = root / "filters"
    for key in rnd.sample([*KEYS, b"absent"], 8):
        row_filter = by_key(key, *rnd.sample(KEYS, rnd.choice((0, 0, 2))))
        if rnd.random() < 0.2:
            low, high = sorted(rnd.randrange(60) for _ in range(2))
            row_filter = row_filter.with_number("offset", Condition(low, high))
        if rnd.random() < 0.1:
            row_filter = row_filter.with_number("producerId", Condition.one_of(frozenset({9})))
        asked: dict[str, Any] = {
            "read_committed": rnd.random() < 0.3,
            "include_control": rnd.random() < 0.1,
            "mode": rnd.choice((ReadMode.FAILFAST, ReadMode.FAILFAST, ReadMode.DROPMALFORMED)),
        }
        sizes = SplitSizes(rnd.choice((100, 500, 1 << 26)))
        expected, _ = read(path, row_filter, None, sizes, **asked)
        found, _ = read(path, row_filter, filters, sizes, **asked)
        assert found == expected


def test_every_key_of_a_segment_is_found(log_dir: Path, filters: Path) -> None:
    log, noise = LogBuilder(log_dir), random.Random(1)
    for first in range(0, 400, 10):
        log.batch(
            *((b"key-%d" % n, noise.randbytes(30)) for n in range(first, first + 10)), codec=4
        )
    log.segment().batch(("k", "v"))
    path = log.write()
    read(path, by_key(b"absent"), filters)
    (kept,) = filters.rglob("*.keys")
    for offset in range(400):
        found, counts = read(path, by_key(b"key-%d" % offset), filters)
        assert [row[0] for row in found] == [offset]
        assert 11 <= counts.records <= 50  # with the active segment's
    assert list(filters.rglob("*.keys")) == [kept]


def twenty_batches(log_dir: Path) -> Path:
    """A closed segment, each batch with a key of its own, and an active one."""
    log = LogBuilder(log_dir)
    for number in range(20):
        log.batch((b"key-%d" % number, b"v" * 3000), (b"common", b"v"), codec=number % 2 * 4)
    log.segment().batch(("key-7", "active"))
    return log.write()


def test_what_cannot_hold_the_key_is_neither_read_nor_decoded(log_dir: Path, filters: Path) -> None:
    path = twenty_batches(log_dir)
    size = next(path.glob("*0.log")).stat().st_size
    for asked, most in ((b"key-7", 3), (b"key-4", 3), (b"absent", 2), (b"common", 100)):
        expected, _ = read(path, by_key(asked), None)
        _, first = read(path, by_key(asked), filters)
        found, again = read(path, by_key(asked), filters)
        assert found == expected
        # Sixteen bits of two keys may be the same: of so few keys they are not.
        assert again.records <= 2 * most
        if most < 100:
            assert again.keyless_bytes > 0.8 * size
        assert first.keyless_bytes == (0 if asked == b"key-7" else again.keyless_bytes)


def test_two_bytes_a_record_and_little_more(log_dir: Path, filters: Path) -> None:
    log = LogBuilder(log_dir)
    for _ in range(40):
        log.batch(*((b"key", b"value" * 20) for _ in range(50)))
    log.segment().batch(("k", "v"))
    path = log.write()
    read(path, by_key(b"key"), filters)
    (kept,) = filters.rglob("*.keys")
    assert kept.stat().st_size <= 2 * 2000 + 25 * 41 + 200


def test_of_small_records_no_more_is_kept_than_a_part_of_their_bytes(
    log_dir: Path, filters: Path
) -> None:
    log = LogBuilder(log_dir)
    for _ in range(10):
        log.batch(*(("k", "v") for _ in range(400)), codec=4)
    log.segment().batch(("k", "v"))
    path = log.write()
    for _ in range(2):
        assert read(path, by_key(b"k"), filters)[0] == read(path, by_key(b"k"), None)[0]
    kept, (segment, _) = next(filters.rglob("*.keys")), sorted(path.glob("*.log"))
    assert kept.stat().st_size < segment.stat().st_size / 2


def changes(data: bytes) -> list[bytes]:
    """What may become of a file: cut, longer, empty, another kind, a byte changed."""
    flipped = [
        data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :] for at in range(0, len(data), 7)
    ]
    cuts = [data[:at] for at in (0, 1, 50, len(data) // 2, len(data) - 1)]
    return [*flipped, *cuts, data + b"\0", b"\0" * len(data), b"x" * 5000]


def test_damaged_filters_do_not_count_and_are_made_anew(log_dir: Path, filters: Path) -> None:
    path = twenty_batches(log_dir)
    expected, _ = read(path, by_key(b"key-7"), filters)
    (kept,) = filters.rglob("*.keys")
    data = kept.read_bytes()
    for damaged in changes(data):
        kept.write_bytes(damaged)
        found, counts = read(path, by_key(b"key-7"), filters)
        assert (found, counts.keyless_bytes) == (expected, 0)
        assert kept.read_bytes() == data


def test_a_damaged_filter_is_said(
    log_dir: Path, filters: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = twenty_batches(log_dir)
    read(path, by_key(b"key-7"), filters)
    (kept,) = filters.rglob("*.keys")
    kept.write_bytes(kept.read_bytes()[:-3])
    read(path, by_key(b"key-7"), filters)
    assert f"key filter {kept} does not count: it is cut off" in caplog.text


def test_a_segment_that_changed_is_read_anew_and_its_old_filters_go(
    log_dir: Path, filters: Path
) -> None:
    path = twenty_batches(log_dir)
    read(path, by_key(b"key-7"), filters)
    (old,) = filters.rglob("*.keys")
    segment = min(path.glob("*.log"))
    stat = segment.stat()
    # Another log of the same size, written into the same file, with the same modification time.
    other = LogBuilder(log_dir / "other")
    for number in range(20):
        key = b"key-%d" % {0: 7, 7: 0}.get(number, number)
        other.batch((key, b"v" * 3000), (b"common", b"v"), codec=number % 2 * 4)
    data = bytes(other.segments[0].log)
    assert len(data) == stat.st_size
    with segment.open("r+b") as file:
        file.write(data)
    os.utime(segment, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    found, counts = read(path, by_key(b"key-7"), filters)
    assert [row[0] for row in found] == [0, 40]
    assert counts.keyless_bytes == 0
    assert not old.exists()
    assert len(list(filters.rglob("*.keys"))) == 1


def test_headers_are_compared_where_times_say_nothing(
    log_dir: Path, filters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = twenty_batches(log_dir)
    same = key_filter_files.SegmentFile(1, 2, 3, 4, 5)
    monkeypatch.setattr(key_filter_files.SegmentFile, "of", lambda path: same)
    read(path, by_key(b"key-7"), filters)
    segment = min(path.glob("*.log"))
    other = LogBuilder(log_dir / "other")
    for number in range(20):
        key = b"key-%d" % ((number + 1) % 20)
        other.batch((key, b"v" * 3000), (b"common", b"v"), codec=number % 2 * 4)
    with segment.open("r+b") as file:
        file.write(other.segments[0].log)
    assert [row[0] for row in read(path, by_key(b"key-7"), filters)[0]] == [12, 40]


def test_a_read_that_is_not_finished_or_finds_damage_keeps_nothing(
    log_dir: Path, filters: Path
) -> None:
    path = twenty_batches(log_dir)
    reader = read_records(path, keys=b"key-0", columns=["offset"], key_filter_dir=filters)
    reader.read_next_batch()
    del reader
    assert not list(filters.rglob("*.keys"))
    segment = min(path.glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with pytest.raises(CorruptRecordError):
        read(path, by_key(b"absent"), filters)
    for asked in ({"mode": ReadMode.DROPMALFORMED}, {"mode": ReadMode.PERMISSIVE}):
        read(path, by_key(b"absent"), filters, **asked)
    assert not list(filters.rglob("*.keys"))


def test_nothing_is_kept_without_checksums_or_of_an_active_segment(
    log_dir: Path, filters: Path
) -> None:
    path = twenty_batches(log_dir)
    read(path, by_key(b"key-7"), filters, verify_checksums=False)
    read(path, RowFilter(), filters)
    assert not list(filters.rglob("*.keys"))
    read(path, by_key(b"key-7"), filters)
    assert len(list(filters.rglob("*.keys"))) == 1


@pytest.mark.parametrize("inside", ["", "below", "orders-0", "orders-0/below"])
def test_filters_in_a_log_dir_are_refused(log_dir: Path, inside: str) -> None:
    path = twenty_batches(log_dir)
    with pytest.raises(InvalidConfigError, match="which has logs"):
        read(path, by_key(b"key-7"), log_dir / inside)
    assert not list(log_dir.rglob("*.keys"))


def test_filters_in_a_log_dir_of_another_broker_are_refused(log_dir: Path, tmp_path: Path) -> None:
    path, other = twenty_batches(log_dir), twenty_batches(tmp_path / "other")
    for inside in (other.parent, other.parent / "below" / "filters", other / "filters"):
        with pytest.raises(InvalidConfigError, match="which has logs"):
            read(path, by_key(b"key-7"), inside)
    assert not list((tmp_path / "other").rglob("*.keys"))


@pytest.mark.parametrize("place", ["loop", "a" * 300, "loop/below"])
def test_a_directory_that_cannot_be_looked_into_is_said_once(
    log_dir: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    path = twenty_batches(log_dir)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    expected, _ = read(path, by_key(b"key-7"), None)
    caplog.set_level(logging.WARNING)
    assert read(path, by_key(b"key-7"), tmp_path / place, SplitSizes(500))[0] == expected
    assert caplog.text.count("no key filter of") == 1


def test_a_filter_that_says_more_than_the_segment_has_does_not_count(
    log_dir: Path, filters: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its checksum is right: no number in it decides what is allocated."""
    path = twenty_batches(log_dir)
    expected, _ = read(path, by_key(b"key-7"), filters)
    (kept,) = filters.rglob("*.keys")
    data = bytearray(kept.read_bytes()[:-4])
    size, end = struct.unpack_from("<q", data, 8)[0], 10 * 1024**3
    struct.pack_into("<q", data, 8 + 6 * 8, end)
    kept.unlink()
    other = kept.with_name(f"0-{end}.keys")
    other.write_bytes(bytes(data) + struct.pack("<I", crc32c(bytes(data))))
    assert size == min(path.glob("*.log")).stat().st_size
    found, counts = read(path, by_key(b"key-7"), filters)
    assert (found, counts.keyless_bytes) == (expected, 0)
    assert f"key filter {other} does not count: it is of bytes 0 to {end}" in caplog.text


def test_filters_that_cannot_be_written_are_said_once(
    log_dir: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = twenty_batches(log_dir)
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    expected, _ = read(path, by_key(b"key-7"), None)
    caplog.set_level(logging.WARNING)
    assert read(path, by_key(b"key-7"), blocked, SplitSizes(500))[0] == expected
    assert caplog.text.count("no key filter of") == 1


def test_sql_goes_by_them(log_dir: Path, filters: Path) -> None:
    path = twenty_batches(log_dir)
    query = "SELECT offset FROM records WHERE key = X'6B65792D37'"
    for _ in range(2):
        tables = LogTables((str(path),), {"keyFilterDir": str(filters)})
        with SqlSession(tables) as session:
            found = session.run(query)
            assert found is not None
            assert found.read_all()["offset"].to_pylist() == [14, 40]
    assert len(list(filters.rglob("*.keys"))) == 1
