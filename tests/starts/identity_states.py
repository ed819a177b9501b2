"""States of what says whose a log dir is: `meta.properties`, `quorum-state`,
`bootstrap.checkpoint`, `.kafka_cleanshutdown`, `.lock`, and two log dirs against each other.
"""

from __future__ import annotations

import shutil

from kafkalog.format.meta_properties import META_PROPERTIES_FILE, MetaProperties
from tests.starts.disk import (
    CLUSTER_ID,
    DIRECTORY_ID,
    METADATA,
    OTHER_ID,
    SECOND_ID,
    Change,
    Disk,
    State,
    cut,
    empty,
    gone,
    holds,
    replaced,
    zeros,
)

META = META_PROPERTIES_FILE
QUORUM = f"{METADATA}/quorum-state"
BOOTSTRAP = "bootstrap.checkpoint"
CLEAN = ".kafka_cleanshutdown"


def _without(key: str) -> Change:
    def change(disk: Disk) -> None:
        path = disk.path(META)
        kept = [line for line in path.read_text().splitlines() if not line.startswith(f"{key}=")]
        path.write_text("\n".join(kept) + "\n")

    return change


def _with(key: str, value: str) -> Change:
    def change(disk: Disk) -> None:
        _without(key)(disk)
        with disk.path(META).open("a") as file:
            file.write(f"{key}={value}\n")

    return change


def _version_0(disk: Disk) -> None:
    disk.path(META).write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER_ID}\n")


def _quorum(text: str) -> Change:
    return holds(QUORUM, text.encode())


def _directory(name: str) -> Change:
    def change(disk: Disk) -> None:
        path = disk.path(name)
        path.unlink(missing_ok=True)
        path.mkdir()

    return change


def _second(**other: object) -> Change:
    fields = {"version": 1, "cluster_id": CLUSTER_ID, "node_id": 1, "directory_id": SECOND_ID}

    def change(disk: Disk) -> None:
        disk.second(MetaProperties(**{**fields, **other}))  # type: ignore[arg-type]

    return change


def _second_unformatted(disk: Disk) -> None:
    disk.second()
    (disk.log_dirs[1] / META).unlink()


def _second_empty_meta(disk: Disk) -> None:
    disk.second()
    (disk.log_dirs[1] / META).write_bytes(b"")


def _partition_in_both(disk: Disk) -> None:
    shutil.copytree(disk.path("orders-0"), disk.second() / "orders-0")


def _partition_moved(disk: Disk) -> None:
    disk.path("orders-0").rename(disk.second() / "orders-0")


def _second_with_metadata(disk: Disk) -> None:
    shutil.copytree(disk.path(METADATA), disk.second() / METADATA)


def _metadata_in_second_only(disk: Disk) -> None:
    disk.path(METADATA).rename(disk.second() / METADATA)


def _second_foreign_directory(disk: Disk) -> None:
    (disk.second() / "lost+found").mkdir()


_KRAFT_0 = (
    '{{"clusterId":"","leaderId":{leader},"leaderEpoch":{epoch},"votedId":{voted},'
    '"appliedOffset":0,"currentVoters":[{{"voterId":{voter}}}],"data_version":{version}}}'
)


def _kraft_0(
    leader: int = 1, epoch: int = 1, voted: int = -1, voter: int = 1, version: int = 0
) -> Change:
    return _quorum(
        _KRAFT_0.format(leader=leader, epoch=epoch, voted=voted, voter=voter, version=version)
    )


_META = (
    ("meta.properties: gone", gone(META)),
    ("meta.properties: empty", empty(META)),
    ("meta.properties: zeros", zeros(META)),
    ("meta.properties: cut within directory.id", cut(META, 65)),
    ("meta.properties: cut behind node.id", cut(META, 43)),
    ("meta.properties: no version", _without("version")),
    ("meta.properties: no node.id", _without("node.id")),
    ("meta.properties: no cluster.id", _without("cluster.id")),
    ("meta.properties: no directory.id", _without("directory.id")),
    ("meta.properties: version 2", _with("version", "2")),
    ("meta.properties: version is no number", _with("version", "one")),
    ("meta.properties: node.id of another node", _with("node.id", "2")),
    ("meta.properties: node.id -1", _with("node.id", "-1")),
    ("meta.properties: node.id is no number", _with("node.id", "1x")),
    ("meta.properties: cluster.id of another cluster", _with("cluster.id", OTHER_ID)),
    ("meta.properties: cluster.id empty", _with("cluster.id", "")),
    ("meta.properties: directory.id of another log dir", _with("directory.id", SECOND_ID)),
    ("meta.properties: directory.id is no id", _with("directory.id", "abc")),
    ("meta.properties: directory.id reserved", _with("directory.id", "AAAAAAAAAAAAAAAAAAAAAQ")),
    ("meta.properties: directory.id empty", _with("directory.id", "")),
    ("meta.properties: broker.id beside node.id", _with("broker.id", "1")),
    ("meta.properties: other broker.id beside node.id", _with("broker.id", "2")),
    ("meta.properties: unknown key", _with("flavour", "vanilla")),
    ("meta.properties: of ZooKeeper's era", _version_0),
    ("meta.properties: a directory", _directory(META)),
)
_QUORUM = (
    ("quorum-state: gone", gone(QUORUM)),
    ("quorum-state: empty", empty(QUORUM)),
    ("quorum-state: zeros", zeros(QUORUM)),
    ("quorum-state: cut", cut(QUORUM, 45)),
    ("quorum-state: no JSON", _quorum("leader 1\n")),
    ("quorum-state: a list", _quorum("[1]")),
    ("quorum-state: data_version 2", _kraft_0(version=2)),
    ("quorum-state: no data_version", replaced(QUORUM, b',"data_version":0', b"")),
    ("quorum-state: no leaderEpoch", replaced(QUORUM, b'"leaderEpoch":', b'"epoch":')),
    ("quorum-state: voters of other nodes", _kraft_0(voter=2)),
    ("quorum-state: voted for another node", _kraft_0(leader=-1, epoch=2, voted=2)),
    ("quorum-state: leader is another node", _kraft_0(leader=2)),
    ("quorum-state: leaderEpoch below the log's", _kraft_0(epoch=0)),
    ("quorum-state: leaderEpoch -5", _kraft_0(epoch=-5)),
    ("quorum-state: leaderEpoch far above the log's", _kraft_0(epoch=1000)),
    ("quorum-state: leaderEpoch at its end", _kraft_0(epoch=2147483647)),
    ("quorum-state: of another cluster", replaced(QUORUM, b'"clusterId":""', b'"clusterId":"x"')),
    ("quorum-state: leaderId is text", replaced(QUORUM, b'"leaderId":1', b'"leaderId":"1"')),
    (
        "quorum-state: of kraft.version 1",
        _quorum(
            '{"leaderId":1,"leaderEpoch":1,"votedId":-1,'
            '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
        ),
    ),
    ("quorum-state: a second line", lambda disk: _append(disk, QUORUM, b"\nmore\n")),
    ("quorum-state: a directory", _directory(QUORUM)),
)
_BOOTSTRAP = (
    ("bootstrap.checkpoint: gone", gone(BOOTSTRAP)),
    ("bootstrap.checkpoint: empty", empty(BOOTSTRAP)),
    ("bootstrap.checkpoint: zeros", zeros(BOOTSTRAP)),
    ("bootstrap.checkpoint: cut in the first batch", cut(BOOTSTRAP, 40)),
    ("bootstrap.checkpoint: cut in a later batch", cut(BOOTSTRAP, 200)),
    ("bootstrap.checkpoint: one byte short", cut(BOOTSTRAP, -1)),
    ("bootstrap.checkpoint: a wrong byte", lambda disk: _flip(disk, BOOTSTRAP, 130)),
    ("bootstrap.checkpoint: text", holds(BOOTSTRAP, b"0\n0\n")),
    ("bootstrap.checkpoint: a directory", _directory(BOOTSTRAP)),
)
_CLEAN = (
    (".kafka_cleanshutdown: gone", gone(CLEAN)),
    (".kafka_cleanshutdown: empty", empty(CLEAN)),
    (".kafka_cleanshutdown: zeros", zeros(CLEAN)),
    (".kafka_cleanshutdown: no JSON", holds(CLEAN, b"yes\n")),
    (".kafka_cleanshutdown: another version", holds(CLEAN, b'{"version":9,"brokerEpoch":14}')),
    (".kafka_cleanshutdown: brokerEpoch is text", holds(CLEAN, b'{"version":0,"brokerEpoch":"x"}')),
    (".kafka_cleanshutdown: a directory", _directory(CLEAN)),
    (".lock: left behind, empty", holds(".lock", b"")),
    (".lock: with text", holds(".lock", b"4711\n")),
    (".lock: a directory", _directory(".lock")),
)
_TWO = (
    ("two log dirs: the second formatted and empty", _second()),
    ("two log dirs: the second of another cluster", _second(cluster_id=OTHER_ID)),
    ("two log dirs: the second of another node", _second(node_id=2)),
    ("two log dirs: the same directory.id", _second(directory_id=DIRECTORY_ID)),
    ("two log dirs: the second without directory.id", _second(directory_id=None)),
    ("two log dirs: the second of ZooKeeper's era", _second(version=0)),
    ("two log dirs: the second not formatted", _second_unformatted),
    ("two log dirs: meta.properties of the second empty", _second_empty_meta),
    ("two log dirs: a partition in both", _partition_in_both),
    ("two log dirs: a partition moved to the second", _partition_moved),
    ("two log dirs: a copy of the metadata log in the second", _second_with_metadata),
    ("two log dirs: the metadata log in the second only", _metadata_in_second_only),
    ("two log dirs: lost+found in the second", _second_foreign_directory),
)


def _append(disk: Disk, name: str, data: bytes) -> None:
    path = disk.path(name)
    path.write_bytes(path.read_bytes() + data)


def _flip(disk: Disk, name: str, at: int) -> None:
    path = disk.path(name)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


# The new id is reported to the controller while that lets the broker in: only what is known by
# then gets a leader.
_RACE = "a race: some starts end so, others load all"
_RACES = (
    "meta.properties: no directory.id",
    "meta.properties: directory.id of another log dir",
    "meta.properties: of ZooKeeper's era",
)

STATES = tuple(
    State("identity", name, do, is_race=name in _RACES, why=_RACE if name in _RACES else "")
    for name, do in (*_META, *_QUORUM, *_BOOTSTRAP, *_CLEAN, *_TWO)
)
