"""The digests of many directories made at once are those that are made one by one."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from kafkalog.log import directory_entries
from kafkalog.log.directory_entries import directory_digests
from kafkalog.log.known_directory import directory_digest, known_directory
from kafkalog.log.listing import entries_in
from kafkalog.log.log_dir import open_log_dir
from tests.support.log_builder import LogBuilder

FAR_NS = 5_000 * 365 * 86_400 * 1_000_000_000


def random_directories(root: Path, rnd: random.Random) -> list[Path]:
    paths = []
    for number in range(30):
        path = root / f"orders-{number}"
        path.mkdir()
        paths.append(path)
        for _ in range(rnd.choice((0, 1, 2, 17, 17, 200))):
            name = bytes(rnd.choice(b"0123.ab\xe9\xff") for _ in range(rnd.randint(1, 30)))
            if name.strip(b"."):
                file = Path(os.fsdecode(os.fsencode(path) + b"/x" + name))
                file.write_bytes(b"x" * rnd.randint(0, 5))
                time_ns = rnd.choice((0, -5, rnd.getrandbits(60), FAR_NS))
                os.utime(file, ns=(time_ns, time_ns))
        if rnd.random() < 0.2:
            rnd.choice((os.mkdir, os.mkfifo))(path / "odd")
        elif rnd.random() < 0.2:
            (path / "link").symlink_to("gone")
    return paths


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled", "Python"])
def test_digests_of_many_are_those_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compiled: bool
) -> None:
    if not is_compiled:
        monkeypatch.setattr(directory_entries, "can_list", lambda: False)
    monkeypatch.setattr(directory_entries, "DIRECTORIES_AT_ONCE", 7)
    paths = random_directories(tmp_path, random.Random(5))
    one_by_one = [directory_digest(entries_in(path)) for path in paths]
    assert len({*one_by_one}) > 15
    (tmp_path / "link").symlink_to(paths[3])
    asked = [*paths, tmp_path / "gone", tmp_path / "link", paths[0] / "gone"]
    assert [*directory_digests([*map(str, asked)])] == [*one_by_one, "", "", ""]


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled", "Python"])
def test_each_change_of_a_file_is_another_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compiled: bool
) -> None:
    if not is_compiled:
        monkeypatch.setattr(directory_entries, "can_list", lambda: False)
    one, other = tmp_path / "1.log", tmp_path / "10.log"
    for file in (one, other):
        file.write_bytes(b"x")
        os.utime(file, ns=(7, 7))

    def digest() -> str:
        return next(directory_digests([str(tmp_path)]))

    seen = [digest()]
    os.utime(one, ns=(7, 8))
    seen.append(digest())
    os.truncate(one, 0)
    os.utime(one, ns=(7, 7))
    seen.append(digest())
    other.rename(tmp_path / "11.log")
    seen.append(digest())
    (tmp_path / "new").write_bytes(b"")
    os.utime(tmp_path / "new", ns=(7, 7))
    (tmp_path / "new").replace(one)
    seen.append(digest())
    assert len({*seen}) == len(seen)
    assert digest() == seen[-1]


def test_a_directory_that_is_as_it_was_is_not_listed(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders-0", "orders-1"):
        LogBuilder(log_dir, name).segment().batch(("k", "v")).write()
    first = open_log_dir(log_dir, known={})
    known = {partition.path: known_directory(partition) for partition in first}
    assert all(known.values())
    (log_dir / "orders-1" / "leader-epoch-checkpoint").write_bytes(b"0\n0\n")
    listed = []

    def listing(path: Path) -> list[object]:
        listed.append(path.name)
        return [*entries_in(path)]

    monkeypatch.setattr("kafkalog.log.partition_dir.entries_in", listing)
    again = open_log_dir(log_dir, known=known)  # type: ignore[arg-type]
    assert listed == ["orders-1"]
    assert again.partitions[0] == first.partitions[0]
    assert again.partitions[1].digest != first.partitions[1].digest
