"""What index files are, by their end; the files are those a broker leaves in each case."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data.copy_samples import SAMPLES
from kafkalog.format.file_names import offset_index_file_name, time_index_file_name
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.time_index import pack_time_index
from kafkalog.log.index_condition import (
    IndexCondition,
    OffsetIndexEnd,
    offset_index_state,
    time_index_state,
)
from kafkalog.log.segment_headers import scan_headers

BASE = 100
POSITIONS = np.array([0, 300, 600, 900], np.int64)
LOG_BYTES = 1200
ENTRIES = pack_offset_index([110, 120], [300, 900], BASE)
TIMES = pack_time_index([1000, 2000], [110, 120], BASE)
PREALLOCATED = 10 * 1024 * 1024


@pytest.mark.parametrize(
    ("content", "condition", "count"),
    [
        (None, "missing", 0),
        (b"", "empty", 0),
        (ENTRIES, "whole", 2),
        (ENTRIES + b"abc", "partial-entry", 2),
        (bytes(8), "never-written", 0),
        (bytes(PREALLOCATED), "never-written", 0),
        (ENTRIES + bytes(PREALLOCATED - 16), "zero-tail", 2),
        (pack_offset_index([110, 130], [300, 1200], BASE), "stale", 2),
        (pack_offset_index([110, 130], [300, 899], BASE), "stale", 2),
        (b"\xff" * 16, "corrupt", 2),
    ],
)
def test_an_offset_index_is_what_its_end_says(
    tmp_path: Path, content: bytes | None, condition: str, count: int
) -> None:
    path = tmp_path / offset_index_file_name(BASE)
    if content is not None:
        path.write_bytes(content)
    state = offset_index_state(path, BASE, POSITIONS, LOG_BYTES)
    assert (state.condition, state.entries_count) == (condition, count)


@pytest.mark.parametrize("last", [1, 300, 599, 600, 900, 901, 1199, 1200, 2000])
@pytest.mark.parametrize("seen", [0, 1, 3, 4])
def test_a_log_seen_in_pieces_tells_what_it_does_in_one(
    tmp_path: Path, last: int, seen: int
) -> None:
    path = tmp_path / offset_index_file_name(BASE)
    path.write_bytes(pack_offset_index([110], [last], BASE))
    expected = offset_index_state(path, BASE, POSITIONS[:seen], LOG_BYTES)
    # The rule in plain words: in the log, and no place between batches that were seen.
    own = POSITIONS[:seen].tolist()
    is_good = last < LOG_BYTES and (last in own or last > max(own, default=-1))
    assert (expected.condition is IndexCondition.WHOLE) == is_good
    for first in range(seen + 1):
        end = OffsetIndexEnd(path, BASE)
        for piece in (POSITIONS[:first], POSITIONS[first:seen], POSITIONS[:0]):
            end.see(piece)
        assert end.state(LOG_BYTES) == expected


@pytest.mark.parametrize(
    ("content", "condition", "count"),
    [
        (None, "missing", 0),
        (b"", "empty", 0),
        (TIMES, "whole", 2),
        (bytes(12), "whole", 1),  # a record of 1970: alone, so genuine
        (bytes(24), "never-written", 0),
        (TIMES + bytes(12 * 5), "zero-tail", 2),
        (TIMES + b"\0" * 7, "partial-entry", 2),
        (pack_time_index([1000], [131], BASE), "stale", 1),
        (b"\xff" * 12, "corrupt", 1),
    ],
)
def test_a_time_index_is_what_its_end_says(
    tmp_path: Path, content: bytes | None, condition: str, count: int
) -> None:
    path = tmp_path / time_index_file_name(BASE)
    if content is not None:
        path.write_bytes(content)
    state = time_index_state(path, BASE, next_offset=131)
    assert (state.condition, state.entries_count) == (condition, count)


def test_a_preallocated_time_index_has_its_genuine_entries(tmp_path: Path) -> None:
    path = tmp_path / time_index_file_name(BASE)
    preallocated = PREALLOCATED // 12 * 12
    path.write_bytes(TIMES + bytes(preallocated - len(TIMES)))
    state = time_index_state(path, BASE, next_offset=131)
    assert state.condition is IndexCondition.ZERO_TAIL
    assert state.entries_count == 2


def test_the_index_of_a_log_that_was_shortened_is_stale(tmp_path: Path) -> None:
    """The case a broker does not notice: the log rewritten shorter, its old index kept."""
    source = max(
        (SAMPLES / "broker" / "orders-0").glob("*.index"), key=lambda path: path.stat().st_size
    )
    base_offset = int(source.stem)
    rows = scan_headers(str(source.with_suffix(".log"))).rows
    index = tmp_path / source.name
    index.write_bytes(source.read_bytes())
    whole = offset_index_state(
        index,
        base_offset,
        rows["position"].astype(np.int64),
        source.with_suffix(".log").stat().st_size,
    )
    assert whole.condition in (IndexCondition.WHOLE, IndexCondition.ZERO_TAIL)
    shorter = rows["position"][: len(rows) // 2].astype(np.int64)
    end = int(rows["position"][len(rows) // 2])
    assert offset_index_state(index, base_offset, shorter, end).condition is IndexCondition.STALE


# Not those of remote segments, whose names have an id behind the offset.
INDEXES = sorted(path for path in SAMPLES.rglob("*.index") if path.stem.isdigit())


@pytest.mark.parametrize("path", INDEXES, ids=lambda p: p.parent.name)
def test_indexes_of_a_broker_are_never_stale_or_corrupt(path: Path) -> None:
    base_offset = int(path.stem)
    log = path.with_suffix(".log")
    if not log.exists():
        pytest.skip("an index whose log is gone")
    rows = scan_headers(str(log)).rows
    bad = {IndexCondition.STALE, IndexCondition.CORRUPT}
    positions = rows["position"].astype(np.int64)
    assert offset_index_state(path, base_offset, positions, log.stat().st_size).condition not in bad
    next_offset = int(rows["last_offset"][-1]) + 1 if rows.size else base_offset
    if path.parent.name == "unclean-0" and path.parent.parent.name == "broker-2":
        return  # its log was cut after an unclean election, and the time index kept an entry
    times = time_index_state(path.with_suffix(".timeindex"), base_offset, next_offset)
    assert times.condition not in bad
