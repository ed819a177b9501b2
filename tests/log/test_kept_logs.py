"""Facts of logs that were kept are those that are read again; nothing else is believed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptKeptLogsError
from kafkalog.log.kept_logs import LOGS_FILE, KeptLogs, read_kept_logs, write_kept_logs
from kafkalog.log.log_numbers import LogColumns, LogNumbers, NamedLogs, SegmentNumbers, SliceNumbers

WIDTHS = (len(LogNumbers._fields), len(SegmentNumbers._fields), len(SliceNumbers._fields), 1, 1)
NUMBERS = st.one_of(
    st.integers(-1, 300), st.integers(-(2**63), 2**63 - 1), st.sampled_from((2**31, -(2**31) - 1))
)


@st.composite
def named_logs(draw: st.DrawFn) -> NamedLogs:
    """Some logs of any numbers."""
    count = draw(st.integers(0, 4))
    counts = [[1] * count]
    for least in (1, 0, 0, 0):  # a log without a segment is not kept
        some = st.lists(st.integers(least, 3), min_size=count, max_size=count)
        counts.append(draw(some))
    tables = []
    for own, width in zip(counts, WIDTHS, strict=True):
        some = st.lists(NUMBERS, min_size=sum(own) * width, max_size=sum(own) * width)
        tables.append(np.array(draw(some), np.int64).reshape(-1, width))
    return NamedLogs(
        [f"/logs/{draw(st.text('aä', max_size=3))}-{number}" for number in range(count)],
        [draw(st.sampled_from(("", "4L6g3nShT-eMCtK--X01sw"))) for _ in range(count)],
        [draw(st.binary(min_size=32, max_size=32)).hex() for _ in range(count)],
        LogColumns(*tables, *(np.array(own, np.int64) for own in counts[1:])),
    )


def same(one: LogColumns, other: LogColumns) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@given(parts=st.lists(named_logs(), max_size=3))
def test_what_is_read_is_what_was_kept(
    parts: list[NamedLogs], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = tmp_path_factory.mktemp("run")
    write_kept_logs(run, "code", parts)
    found = read_kept_logs(run, "code")
    assert found is not None
    assert list(found.paths) == [path for part in parts for path in part.paths]
    first = 0
    for part in parts:
        places = list(range(first, first + len(part.paths)))
        again = found.named(places)
        assert (again.topic_ids, again.digests) == (part.topic_ids, part.digests)
        assert same(again.columns, part.columns)
        each = [segment for place in places for segment in found.segments(place)]
        assert [list(segment) for segment in each] == part.columns.segments.tolist()
        for place in places:
            segments = found.segments(place)
            numbers = range(-len(segments), len(segments))
            rows = [list(segment) for segment in segments]
            assert [found.segment(place, n) for n in numbers] == rows * 2
            assert found.segment(place, -1, 4) == rows[-1][:4]
            newest = max(segment.mtime_ns for segment in segments)
            assert found.newest_mtimes_ns[place] == newest
            with pytest.raises(IndexError):
                found.segment(place, len(segments))
        sizes = found.values("segment", "size_in_bytes", found.rows("segment", places))
        assert sizes.tolist() == [segment.size_in_bytes for segment in each]
        assert found.counts("segment", places).tolist() == part.columns.segment_counts.tolist()
        starts = found.values("log", "log_start_offset", found.rows("log", places))
        assert starts.tolist() == [
            LogNumbers._make(found.of_log("log", place)[0]).log_start_offset for place in places
        ]
        slices = [row for place in places for row in found.of_log("slice", place)]
        assert slices == [tuple(row) for row in part.columns.slices.tolist()]
        first += len(part.paths)
    assert read_kept_logs(run, "other code") is None


def one_log() -> NamedLogs:
    tables = [np.arange(width, dtype=np.int64).reshape(1, -1) for width in WIDTHS]
    return NamedLogs(["/logs/t-0"], [""], ["ab" * 32], LogColumns(*tables, *[np.array([1])] * 4))


@pytest.mark.parametrize("name", ["segment.inode", "counts.slice", "paths.ends", "digests", "code"])
@pytest.mark.parametrize("damage", ["gone", "longer", "floats", "objects", "negative"])
def test_columns_that_do_not_fit_are_refused(tmp_path: Path, name: str, damage: str) -> None:
    write_kept_logs(tmp_path, "c", [one_log()])
    with np.load(tmp_path / LOGS_FILE) as file:
        arrays = dict(file)
    column = arrays.pop(name)
    if damage == "longer":
        arrays[name] = np.append(column, 9)
    elif damage == "floats":
        arrays[name] = column.astype(np.float64)
    elif damage == "objects":
        arrays[name] = column.astype(object)
    elif damage == "negative":
        arrays[name] = -1 - np.zeros(len(column), np.int64)
    np.savez(tmp_path / LOGS_FILE, **arrays)
    if name == "code" and damage in ("longer", "negative"):
        assert read_kept_logs(tmp_path, "c") is None
    elif name == "segment.inode" and damage == "negative":
        assert read_kept_logs(tmp_path, "c") is not None  # a number as good as any other
    else:
        with pytest.raises(CorruptKeptLogsError, match=LOGS_FILE):
            read_kept_logs(tmp_path, "c")


def test_a_size_in_a_header_allocates_nothing(tmp_path: Path) -> None:
    """A column that says it has more numbers than the file has bytes."""
    write_kept_logs(tmp_path, "c", [one_log()])
    path = tmp_path / LOGS_FILE
    with zipfile.ZipFile(path) as file:
        members = {info.filename: file.read(info) for info in file.infolist()}
    name = "segment.inode.npy"
    members[name] = (
        members[name].replace(b"(1,), }", b"(1" + b"0" * 12 + b",), }").replace(b" " * 12, b"", 1)
    )
    with zipfile.ZipFile(path, "w") as file:
        for other, data in members.items():
            file.writestr(other, data)
    with pytest.raises(CorruptKeptLogsError, match="buffer"):
        read_kept_logs(tmp_path, "c")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for other, data in members.items():
            file.writestr(other, data)
    with pytest.raises(CorruptKeptLogsError, match="compressed"):
        read_kept_logs(tmp_path, "c")


def test_a_run_without_such_logs_has_none(tmp_path: Path) -> None:
    assert read_kept_logs(tmp_path, "c") is None
    assert len(KeptLogs()) == 0
