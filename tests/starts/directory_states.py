"""States of the directories: what an interrupted cleaning or deletion left, foreign files and
directories, links, and partitions the cluster does not have there.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kafkalog.format.partition_metadata import pack_partition_metadata
from tests.starts.disk import (
    METADATA,
    OTHER_ID,
    Change,
    Disk,
    State,
    after_crash,
    gone,
    holds,
    together,
)

ORDERS = "orders-0"
TOPIC_ID = f"{ORDERS}/partition.metadata"


def segment_names(disk: Disk, partition: str = ORDERS) -> list[str]:
    """Its `.log` files without their suffix, in offset order."""
    return sorted(path.name[:-4] for path in disk.path(partition).glob("*.log"))


def _directory(name: str) -> Change:
    return lambda disk: disk.path(name).mkdir(parents=True)


def _copied(name: str, target: str, topic_id: str | None = None) -> Change:
    def change(disk: Disk) -> None:
        shutil.copytree(disk.path(name), disk.path(target))
        if topic_id is not None:
            path = disk.path(target) / "partition.metadata"
            path.write_bytes(pack_partition_metadata(topic_id))

    return change


def _renamed(name: str, target: str) -> Change:
    return lambda disk: _move(disk.path(name), disk.path(target))


def _move(path: Path, target: Path) -> None:
    path.rename(target)


def _without_partition(name: str) -> Change:
    return lambda disk: shutil.rmtree(disk.path(name))


def _emptied(name: str) -> Change:
    """The partition's directory is there, all of its files but `partition.metadata` are gone."""

    def change(disk: Disk) -> None:
        for path in disk.path(name).iterdir():
            if path.name != "partition.metadata":
                path.unlink()

    return change


def _linked(name: str, *, outside: bool) -> Change:
    """A directory or file is moved, and a symbolic link is in its place."""

    def change(disk: Disk) -> None:
        path = disk.path(name)
        parent = disk.root / "elsewhere" if outside else disk.log_dir
        parent.mkdir(exist_ok=True)
        target = parent / (path.name if outside else f".{path.name}")
        path.rename(target)
        path.symlink_to(target)

    return change


def _linked_file(suffix: str) -> Change:
    def change(disk: Disk) -> None:
        _linked(f"{ORDERS}/{segment_names(disk)[1]}{suffix}", outside=True)(disk)

    return change


def _broken_link(name: str) -> Change:
    return lambda disk: disk.path(name).symlink_to(disk.root / "not-there")


def _suffixed(number: int, suffix: str, *, copies: bool = True) -> Change:
    """The files of a segment once more, or renamed, under names that end with `suffix`."""

    def change(disk: Disk) -> None:
        base = segment_names(disk)[number]
        for path in list(disk.path(ORDERS).glob(f"{base}.*")):
            if path.suffix in (".log", ".index", ".timeindex"):
                target = path.with_name(path.name + suffix)
                shutil.copy2(path, target) if copies else path.rename(target)

    return change


def _in_orders(name: str, data: bytes = b"") -> Change:
    return holds(f"{ORDERS}/{name}", data)


def _future_in_second(disk: Disk) -> None:
    name = "orders-0.805de23a2f0e47fcbbd73e14e4c98aed-future"
    shutil.copytree(disk.path(ORDERS), disk.second() / name)


def _log_is_a_directory(disk: Disk) -> None:
    path = disk.path(ORDERS) / f"{segment_names(disk)[1]}.log"
    path.unlink()
    path.mkdir()


def _pipe(disk: Disk) -> None:
    os.mkfifo(disk.path(ORDERS) / "pipe")


_LEFT = (
    (".deleted: of an old segment", _suffixed(0, ".deleted")),
    (".deleted: of an old segment, after a crash", after_crash(_suffixed(0, ".deleted"))),
    (".deleted: instead of a segment", _suffixed(1, ".deleted", copies=False)),
    (".cleaned: of an old segment", _suffixed(0, ".cleaned")),
    (".cleaned: of an old segment, after a crash", after_crash(_suffixed(0, ".cleaned"))),
    (".cleaned: an empty .log.cleaned", _in_orders(f"{0:020d}.log.cleaned")),
    (".swap: of an old segment", _suffixed(0, ".swap")),
    (".swap: instead of a segment", _suffixed(0, ".swap", copies=False)),
    (
        ".swap: instead of a segment, after a crash",
        after_crash(_suffixed(0, ".swap", copies=False)),
    ),
    (".swap: beside a .cleaned", together(_suffixed(0, ".swap"), _suffixed(1, ".cleaned"))),
    (
        ".swap: instead of a segment, beside a .cleaned below",
        together(_suffixed(1, ".swap", copies=False), _suffixed(0, ".cleaned")),
    ),
    (".swap: an index alone", _in_orders(f"{0:020d}.index.swap")),
    ("sound: the sample as it is", lambda disk: None),
    (
        "-delete: of a topic that is there",
        _copied(ORDERS, "orders-0.805de23a2f0e47fcbbd73e14e4c98aed-delete"),
    ),
    (
        "-stray: of an earlier start",
        _copied(ORDERS, "orders-0.805de23a2f0e47fcbbd73e14e4c98aed-stray"),
    ),
    (
        "-future: beside the partition, in the same log dir",
        _copied(ORDERS, "orders-0.805de23a2f0e47fcbbd73e14e4c98aed-future"),
    ),
    ("-future: a replica on its way to a second log dir", _future_in_second),
    ("remote-log-index-cache: a directory", _directory("remote-log-index-cache")),
    ("kafkalog-….tmp: in a partition", _in_orders("kafkalog-1.tmp")),
    (".tmp: of a checkpoint", holds("recovery-point-offset-checkpoint.tmp", b"0\n0\n")),
    (".tmp: of partition.metadata", _in_orders("partition.metadata.tmp", b"version: 0\n")),
)
_FOREIGN = (
    ("foreign: lost+found in the log dir", _directory("lost+found")),
    ("foreign: .snapshot in the log dir", _directory(".snapshot")),
    ("foreign: .snapshot in a partition", _directory(f"{ORDERS}/.snapshot")),
    ("foreign: lost+found in a partition", _directory(f"{ORDERS}/lost+found")),
    ("foreign: a directory ending in .log in a partition", _directory(f"{ORDERS}/old.log")),
    ("foreign: a directory named as a segment", _directory(f"{ORDERS}/{5000:020d}.log")),
    ("foreign: a directory in place of a segment", _log_is_a_directory),
    ("foreign: a file in the log dir", holds("README", b"do not touch\n")),
    ("foreign: a file named as a partition", holds("billing-0", b"")),
    ("foreign: notes.txt in a partition", _in_orders("notes.txt", b"x")),
    ("foreign: backup.log in a partition", _in_orders("backup.log", b"x")),
    ("foreign: backup.index in a partition", _in_orders("backup.index", b"x")),
    ("foreign: x.snapshot in a partition", _in_orders("x.snapshot", b"x")),
    ("foreign: x.txnindex in a partition", _in_orders("x.txnindex", b"x")),
    ("foreign: x.swap in a partition", _in_orders("x.swap", b"x")),
    ("foreign: x.cleaned in a partition", _in_orders("x.cleaned", b"x")),
    ("foreign: x.deleted in a partition", _in_orders("x.deleted", b"x")),
    ("foreign: 5.log in a partition", _in_orders("5.log", b"")),
    ("foreign: -5.log in a partition", _in_orders("-0000000000000000005.log", b"")),
    ("foreign: a .log.gz in a partition", _in_orders(f"{0:020d}.log.gz", b"x")),
    ("foreign: a .log.bak in a partition", _in_orders(f"{0:020d}.log.bak", b"x")),
    ("foreign: an index without its log", _in_orders(f"{7:020d}.index", bytes(8))),
    ("foreign: a named pipe in a partition", _pipe),
    ("foreign: a directory without a number", _directory("orders")),
    ("foreign: a directory whose number is none", _directory("orders-x")),
    ("foreign: a directory with a negative number", _directory("orders--1")),
    ("foreign: an empty directory of no topic", _directory("billing-0")),
    ("foreign: an empty directory of a topic's next partition", _directory("orders-3")),
    ("foreign: .Trash-1000 in the log dir", _directory(".Trash-1000")),
    ("foreign: @eaDir in the log dir", _directory("@eaDir")),
    ("foreign: a hidden directory with a number", _directory(".billing-0")),
)
_ASSIGNED = (
    ("partition: of a topic the cluster does not have", _copied(ORDERS, "billing-0", OTHER_ID)),
    ("partition: a number the topic does not have", _copied(ORDERS, "orders-7")),
    ("partition: twice by its number", _copied(ORDERS, "orders-00")),
    ("partition: its directory gone", _without_partition(ORDERS)),
    ("partition: its directory gone, after a crash", after_crash(_without_partition(ORDERS))),
    ("partition: its directory empty", together(_emptied(ORDERS), gone(TOPIC_ID))),
    ("partition: all segments gone", _emptied(ORDERS)),
    ("partition: under the name of another topic", _renamed("codec-none-0", "billing-0")),
    (
        "partition: a file in place of its directory",
        together(_without_partition(ORDERS), holds(ORDERS, b"")),
    ),
)
_LINKS = (
    ("link: a partition to another place", _linked(ORDERS, outside=True)),
    ("link: a segment to another place", _linked_file(".log")),
    ("link: an index to another place", _linked_file(".index")),
    (
        "link: a checkpoint to another place",
        _linked("recovery-point-offset-checkpoint", outside=True),
    ),
    ("link: meta.properties to another place", _linked("meta.properties", outside=True)),
    ("link: the metadata log to another place", _linked(METADATA, outside=True)),
    ("link: broken, named as a partition", _broken_link("billing-0")),
    ("link: broken, named as no partition", _broken_link("old")),
    ("link: broken, in a partition", _broken_link(f"{ORDERS}/old")),
    ("link: broken, named as a segment", _broken_link(f"{ORDERS}/{5000:020d}.log")),
)

STATES = tuple(
    State(area, name, do)
    for area, rows in (
        ("left behind", _LEFT),
        ("foreign", _FOREIGN),
        ("partitions", _ASSIGNED),
        ("links", _LINKS),
    )
    for name, do in rows
)
