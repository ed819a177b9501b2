"""Directories listed by compiled code against what os.scandir and lstat say of them."""

from __future__ import annotations

import os
import random
import socket
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkalog.native import directory_entries
from kafkalog.native.directory_entries import DIRECTORY, LINK, REGULAR, can_list, list_directories

YEAR_NS = 365 * 86_400 * 1_000_000_000


def listed(paths: Sequence[Path]) -> list[dict[bytes, list[int]] | None]:
    """Of each directory the numbers of its entries by name, None of one that is not listed."""
    assert can_list()
    found = list_directories([os.fsencode(path) for path in paths])
    ends = found.name_ends.tolist()
    names = [found.names[a:b].tobytes() for a, b in zip([0, *ends], ends, strict=False)]
    rows = list(zip(names, found.numbers.tolist(), strict=True))
    parts = zip([0, *found.ends.tolist()], found.ends.tolist(), found.is_listed, strict=False)
    result: list[dict[bytes, list[int]] | None] = []
    for first, end, is_listed in parts:
        assert is_listed or first == end
        result.append(dict(rows[first:end]) if is_listed else None)
        assert len(result[-1] or ()) == end - first
    return result


def by_python(path: Path) -> dict[bytes, list[int]]:
    with os.scandir(os.fsencode(path)) as entries:
        seen = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    return {
        name: [
            s.st_mode >> 12, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino,
            s.st_mtime_ns // 1_000_000_000,
        ]
        for name, s in seen
    }  # fmt: skip


def odd_directory(path: Path) -> Path:
    """All that may lie in a directory."""
    path.mkdir()
    (path / "00000000000000000000.log").write_bytes(b"x" * 70)
    (path / "sparse").touch()
    os.truncate(path / "sparse", 5 << 32)
    for number, time_ns in enumerate((0, 1, -1, -YEAR_NS - 7, 200 * YEAR_NS + 999_999_999)):
        (path / f"time{number}").touch()
        os.utime(path / f"time{number}", ns=(time_ns, time_ns))
    (path / ("n" * 255)).touch()
    for name in (b"\xff\xfe.log", b" ", b"...", b"..x", b".x", b"a\nb"):
        Path(os.fsdecode(os.fsencode(path) + b"/" + name)).touch()
    (path / "within").mkdir()
    (path / "link").symlink_to("00000000000000000000.log")
    (path / "nowhere").symlink_to("gone")
    os.mkfifo(path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path / "socket"))
    return path


def test_entries_are_what_python_says_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    odd, empty = odd_directory(tmp_path / "odd"), tmp_path / "empty"
    empty.mkdir()
    found = listed([odd, empty, odd / "within", odd])
    assert found == [by_python(odd), {}, {}, by_python(odd)]
    kinds = {name: row[0] for name, row in (found[0] or {}).items()}
    assert (kinds[b"sparse"], kinds[b"within"], kinds[b"link"]) == (REGULAR, DIRECTORY, LINK)
    assert kinds[b"pipe"] == stat.S_IFIFO >> 12


def test_what_cannot_be_listed_is_said_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    (tmp_path / "link").symlink_to("there")
    os.mkfifo(tmp_path / "pipe")
    bad = [tmp_path / "gone", tmp_path / "link", tmp_path / "pipe", tmp_path / "there" / "file"]
    there = by_python(tmp_path / "there")
    paths = [bad[0], tmp_path / "there", *bad[1:], tmp_path / "there", tmp_path / ("n" * 300)]
    assert listed(paths) == [None, there, None, None, None, there, None]
    assert listed([]) == []


def test_directories_that_do_not_fit_at_once_are_there_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rnd, paths = random.Random(3), []
    for number in range(12):
        paths.append(tmp_path / f"orders-{number}")
        paths[-1].mkdir()
        for name in range(rnd.choice((0, 1, 3, 40))):
            (paths[-1] / f"{name:0{rnd.randint(1, 90)}}").write_bytes(b"x" * rnd.randint(0, 9))
    monkeypatch.setattr(directory_entries, "_BLOCK_BYTES", 1024)
    for room in (1, 5, 64):
        monkeypatch.setattr(directory_entries, "_FIRST_ENTRIES", room)
        assert listed(paths) == [by_python(path) for path in paths]


def test_no_descriptor_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_entries, "_FIRST_ENTRIES", 1)
    for name in "abc":
        (tmp_path / name).touch()
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(40):
        listed([tmp_path, tmp_path / "gone", tmp_path / "a"])
    # One left open by each look would be 40 at least.
    assert len([*Path("/proc/self/fd").iterdir()]) < before + 40


def test_a_path_with_a_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="no path"):
        list_directories([b"/tmp\0/x"])
