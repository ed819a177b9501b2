"""Many files are read at once as Python reads each."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from kafkalog.native.directory_entries import SIZE, list_directories
from kafkalog.native.file_contents import WantedFiles, can_read, read_files


def read(directories: list[Path], most: int = 1 << 20, width: int = 0) -> dict[str, bytes | None]:
    """The first bytes of each file by name, None of one that cannot be read."""
    assert can_read()
    paths = [os.fsencode(path) for path in directories]
    listed = list_directories(paths)
    count = len(listed.name_ends)
    file_bytes = np.ascontiguousarray(listed.numbers[:, SIZE])
    order = np.random.default_rng(0).permutation(count)
    sizes = np.minimum(file_bytes, most)[order]
    wanted = WantedFiles(order, sizes, file_bytes[order], np.full(count, width))
    for path in directories:
        for name in ("gone", "shorter"):
            if (path / name).exists() and name == "gone":
                (path / name).unlink()
            elif (path / name).exists():
                os.truncate(path / name, 3)
    buf, is_read = read_files(paths, listed, wanted)
    ends = np.cumsum(sizes).tolist()
    names = np.split(listed.names, listed.name_ends[:-1])
    return {
        names[entry].tobytes().decode(): buf[end - size : end].tobytes() if is_one else None
        for entry, size, end, is_one in zip(
            order.tolist(), sizes.tolist(), ends, is_read.tolist(), strict=True
        )
    }


def test_files_are_read_whole_or_not_at_all(tmp_path: Path) -> None:
    rnd = np.random.default_rng(1)
    expected: dict[str, bytes | None] = {}
    directories = [tmp_path / name for name in ("one", "none", "é", "more")]
    for path in directories:
        path.mkdir()
    for number in range(60):
        name, data = f"{number:020}.log", rnd.bytes(int(rnd.integers(0, 9000)))
        (directories[number % 4 // 2 * 2] / name).write_bytes(data)
        expected[name] = data
    for name in ("gone", "shorter"):
        (directories[3] / name).write_bytes(b"x" * 50)
        expected[name] = None
    assert read(directories) == expected


@pytest.mark.parametrize("width", [8, 12])
def test_of_a_preallocated_index_the_beginning_is_read(tmp_path: Path, width: int) -> None:
    """And only where bisection comes upon zeros behind it."""
    file_bytes, most = 10 * 1024 * 1024 // width * width, 4080
    begin = b"\1" * 5 * width
    count = file_bytes // width
    middle = (1 + count) // 2
    # One behind the middle bisection never sees.
    places = {"zeros": None, "middle": middle, "next": (1 + middle) // 2, "unseen": middle + 1}
    for name, entry in places.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(file_bytes)
            file.write(begin)
            if entry is not None:
                file.seek(entry * width + width - 1)
                file.write(b"\1")
    (tmp_path / "small").write_bytes(begin)
    found = read([tmp_path], most, width)
    assert found["zeros"] == begin.ljust(most, b"\0")
    assert found["small"] == begin
    assert found["unseen"] == found["zeros"]
    assert found["middle"] is None
    assert found["next"] is None


def test_what_is_not_asked_for_rightly_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    listed = list_directories([os.fsencode(tmp_path)])
    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    for wanted in (
        WantedFiles(one, one, one, none),
        WantedFiles(none, -one, one, none),
        WantedFiles(none, np.ones(2, np.int64), one, none),
    ):
        with pytest.raises(ValueError, match="file"):
            read_files([os.fsencode(tmp_path)], listed, wanted)
    with pytest.raises(ValueError, match="no path"):
        read_files([b"a\0b"], listed, WantedFiles(none, one, one, none))
