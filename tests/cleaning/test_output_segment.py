from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.cleaning.new_files import owner_of
from kafkalog.cleaning.output_segment import OutputSegment
from kafkalog.errors import LogCleaningRefusedError
from kafkalog.format.checksum import crc32c
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch, parse_header
from kafkalog.planning.log_config import LogConfig
from kafkalog.swap.local_files import LocalFiles
from tests.batches.logs import rows_of
from tests.support.log_builder import BuiltSegment

KINDS = (".log", ".index", ".timeindex")
ALL_KINDS = (*KINDS, ".txnindex")


def open_output(directory: Path, *overrides: str) -> OutputSegment:
    config = LogConfig.from_overrides(["index.interval.bytes=0", *overrides])
    names = [f"{7:020d}{kind}" for kind in ALL_KINDS]
    return OutputSegment(7, config, LocalFiles(), {n: str(directory / f"x-{n}") for n in names})


def append(output: OutputSegment, batches: list[bytes]) -> None:
    data = b"".join(batches)
    output.append([memoryview(data)], rows_of(data, output.position))


def batches_of(count: int) -> list[bytes]:
    return [pack_batch([Record(7 + i, 100 + i, b"k", b"v")]) for i in range(count)]


def test_files_are_written_with_the_indexes_of_one_pass(log_dir: Path) -> None:
    output = open_output(log_dir)
    batches = batches_of(7)
    append(output, batches[:3])
    append(output, batches[3:])
    (log_dir / "source").write_bytes(b"")
    (log_dir / "source").chmod(0o640)
    files = output.close(owner_of(str(log_dir / "source")), 1_234_567)
    built = BuiltSegment(7)
    for batch in batches:
        built.batches.append((len(built.log), parse_header(batch)))
        built.log += batch
    contents = [bytes(built.log), *built.packed_indexes(0)]
    assert [file.name for file in files] == [f"{7:020d}{kind}" for kind in KINDS]
    for file, content in zip(files, contents, strict=True):
        path = Path(file.path)
        assert path.read_bytes() == content
        assert file.size_in_bytes == len(content)
        assert path.stat().st_mtime_ns == 1_234_567_000_000
        assert path.stat().st_mode & 0o7777 == 0o640
    assert [file.checksum for file in files] == [*map(crc32c, contents)]
    written = output.written_rows.read(0, output.written_rows.size)
    assert written.tolist() == rows_of(contents[0]).tolist()


@pytest.mark.parametrize(
    ("index_bytes", "batches", "refused"),
    # offset entries: one for each batch but the first; time entries too, and one slot is kept free
    [
        (48, 4, None),
        (48, 5, "time index .* needs room for 5 entries, .* has it for 4"),
        (240, 20, None),
    ],
)
def test_an_index_past_its_capacity_is_refused(
    log_dir: Path, index_bytes: int, batches: int, refused: str | None
) -> None:
    output = open_output(log_dir, f"segment.index.bytes={index_bytes}")
    append(output, batches_of(batches))
    (log_dir / "source").write_bytes(b"")
    owner = owner_of(str(log_dir / "source"))
    if refused is None:
        assert len(output.close(owner, 0)) == 3
    else:
        with pytest.raises(LogCleaningRefusedError, match=refused):
            output.close(owner, 0)


@pytest.mark.parametrize(("batches", "refused"), [(2, False), (3, True)])
def test_a_full_time_index_is_refused_even_where_no_timestamp_grows(
    log_dir: Path, batches: int, refused: bool
) -> None:
    """Kafka asks for room at each entry of the offset index, before it looks at the timestamp."""
    output = open_output(log_dir, "segment.index.bytes=24")
    append(output, [pack_batch([Record(7 + i, 100, b"k", b"v")]) for i in range(batches)])
    owner = owner_of(str(log_dir))
    if not refused:
        assert len(output.close(owner, 0)) == 3
        return
    with pytest.raises(LogCleaningRefusedError, match=r"time index .* room for 3 entries, .* 2:"):
        output.close(owner, 0)


def test_an_offset_index_past_its_capacity_is_refused(log_dir: Path) -> None:
    output = open_output(log_dir, "segment.index.bytes=48")
    batches = [pack_batch([Record(7 + i, -1, b"k", b"v")]) for i in range(8)]
    append(output, batches)
    with pytest.raises(
        LogCleaningRefusedError, match=r"offset index .* room for 7 entries, .* for 6"
    ):
        output.close(owner_of(str(log_dir)), 0)


def test_a_segment_past_what_an_index_can_address_is_refused(log_dir: Path) -> None:
    output = open_output(log_dir)
    output.position = 2**31 - 70
    with pytest.raises(LogCleaningRefusedError, match="would pass 2147483647 bytes"):
        append(output, batches_of(1))


def test_an_output_that_exists_is_not_overwritten(log_dir: Path) -> None:
    open_output(log_dir).abandon()
    with pytest.raises(FileExistsError):
        open_output(log_dir)
