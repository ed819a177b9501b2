"""Files of HDFS read as those of the disk they were copied from: from a double in this process, and
from Hadoop's own cluster.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog import open_log_dir, read_batches, read_records, read_view
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError, LogChangedError, RemoteStorageError
from kafkalog.remote import webhdfs
from kafkalog.remote.cache import BLOCKS
from kafkalog.remote.stores import store_of
from tests.remote.test_aiven import BROKER, KEYS, STORE, TOPICS, without_closed_segments
from tests.remote.test_bucket_dirs import UNLIKE, rows
from tests.support import hdfs_cluster
from tests.support.webhdfs_server import WebHdfsServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebHdfsServer]:
    monkeypatch.setenv("HADOOP_USER_NAME", "kafka")
    monkeypatch.setattr(webhdfs, "_WAITS_S", (0.0, 0.0))
    BLOCKS.clear()
    with WebHdfsServer().running() as server:
        yield server
        close(server.host)
    webhdfs._store.cache_clear()


def close(host: str) -> None:
    """What the package holds open to a server that is about to end."""
    store = store_of(f"hdfs://{host}/")
    assert isinstance(store, webhdfs.WebHdfsStore)
    store.close()


def check_tiered(place: str, local: Path) -> None:
    """Segments behind manifests, in front of what the broker's disk has."""
    expected = read_records(BROKER, topics=TOPICS, read_committed=True).read_all()
    found = read_records(
        local, topics=TOPICS, read_committed=True, remote_dirs=place, remote_keys=KEYS
    )
    assert found.read_all().equals(expected)
    batches = read_batches(local, topics=TOPICS, remote_dirs=place, remote_keys=KEYS)
    own = read_batches(BROKER, topics=TOPICS)
    assert batches.drop_columns("path").equals(own.drop_columns("path"))


def check_store(place: str) -> None:
    """What every store does; `place` has a file `a/1` of seven bytes."""
    store = store_of(place)
    listed = store.list_directory(place)
    assert (listed.directories, listed.objects) == (("a",), {})
    inner = store.list_directory(f"{place}/a")
    assert list(inner.objects) == ["1"]
    known = inner.objects["1"]
    assert known == store.look(f"{place}/a/1") == store.recall(f"{place}/a/1")
    assert store.read(known, 0, 100) == b"content"
    assert store.read(known, 3, 2) == b"te"
    assert store.read(known, 7, 1) == b""
    assert store.list_directory(f"{place}/none").objects == {}
    for absent in ("none", "a", "a/none"):
        with pytest.raises(FileNotFoundError):
            store.look(f"{place}/{absent}")
    with pytest.raises(FileNotFoundError):
        store.recall(f"{place}/a/2")
    assert store.look_at_version(f"{place}/a/1") == (known, "")
    assert not store.keeps_versions(f"{place}/a")


def check_replaced(place: str) -> None:
    """`a/1` is another file now, of as many bytes."""
    store = store_of(place)
    known = store.recall(f"{place}/a/1")
    with pytest.raises(LogChangedError, match="the file was replaced or deleted during the read"):
        store.read(known, 0, 7)
    assert store.read(store.look(f"{place}/a/1"), 0, 7) == b"another"
    store.remove(f"{place}/a/1")
    with pytest.raises(FileNotFoundError):
        store.look(f"{place}/a/1")


def test_files_of_hdfs_are_those_that_were_put_there(server: WebHdfsServer) -> None:
    server.put("/tmp/a/1", b"content")
    place = f"hdfs://{server.host}/tmp"
    check_store(place)
    server.put("/tmp/a/1", b"another")
    check_replaced(place)
    assert all("user.name=kafka" in asked for asked in server.asked if asked.startswith("/webhdfs"))


def test_tiered_segments_in_hdfs_are_those_of_the_brokers_own_directory(
    server: WebHdfsServer, tmp_path: Path
) -> None:
    local = without_closed_segments(Path(shutil.copytree(BROKER, tmp_path / "broker")))
    server.put_tree(STORE, "/tiers")
    check_tiered(f"hdfs://{server.host}/tiers", local)


@pytest.mark.thorough
def test_a_log_dir_in_hdfs_is_that_of_the_disk(server: WebHdfsServer) -> None:
    server.put_tree(BROKER, "/disks/1")
    place = f"hdfs://{server.host}/disks/1"
    for view in ("batches", "checkpoints", "offset_index"):
        assert rows(read_view(view, place)).equals(rows(read_view(view, BROKER))), view


def test_a_busy_server_is_asked_again_and_one_that_stays_busy_is_an_error(
    server: WebHdfsServer,
) -> None:
    server.put("/a/1", b"content")
    place = f"hdfs://{server.host}/a/1"
    store = store_of(place)
    server.answers = [(503, b""), (429, b"")]
    known = store.look(place)
    server.answers = [(503, b"busy")] * 3
    with pytest.raises(RemoteStorageError, match="bytes 0 to 6 cannot be read: 503 busy") as raised:
        store.read(known, 0, 7)
    assert "canary" not in str(raised.value)
    # what the data node says, whose address has a token in it
    server.answers = []
    read = store._request  # type: ignore[attr-defined]

    def refuse_data(method: str, address: tuple[str, int], target: str, *rest: object) -> object:
        if target.startswith("/data/"):
            server.answers = [(403, b'{"RemoteException": {"exception": "X", "message": "no"}}')]
        return read(method, address, target, *rest)

    store._request = refuse_data  # type: ignore[attr-defined]
    with pytest.raises(RemoteStorageError, match="cannot be read: 403 X: no") as raised:
        store.read(known, 0, 7)
    assert "canary" not in str(raised.value) + repr(raised.value)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((401, b"Authentication required"), "asks for Kerberos, which is not spoken here"),
        ((404, b"It looks like you are making an HTTP request to a Hadoop IPC port."), "RPC port"),
        ((403, b'{"RemoteException": {"exception": "StandbyException", "message": "standby"}}'),
         "403 StandbyException: standby"),
        ((200, b"<html>"), "the answer is no JSON"),
        ((200, b"{}"), "no list of files came"),
    ],
)  # fmt: skip
def test_what_is_no_open_name_node_is_said(
    server: WebHdfsServer, answer: tuple[int, bytes], text: str
) -> None:
    place = f"hdfs://{server.host}/kafka"
    server.answers = [answer]
    with pytest.raises((InvalidConfigError, RemoteStorageError), match=text):
        store_of(place).list_directory(place)


def test_a_uri_of_hdfs_has_a_host_and_no_more_than_a_path() -> None:
    for uri in ("hdfs:///kafka", "hdfs://user:secret@host/kafka", "hdfs://host/kafka?user=x",
                "hdfs://host:x/kafka"):  # fmt: skip
        with pytest.raises(InvalidConfigError, match="hdfs://HOST") as raised:
            store_of(uri)
        assert "secret" not in str(raised.value)


@pytest.mark.soak
def test_hadoops_own_cluster_gives_what_the_disk_has(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "root")
    local = without_closed_segments(Path(shutil.copytree(BROKER, tmp_path / "broker")))
    with hdfs_cluster.hdfs_cluster(tmp_path) as host:
        hdfs_cluster.put(host, "/check/a/1", b"content")
        check_store(f"hdfs://{host}/check")
        hdfs_cluster.put(host, "/check/a/1", b"another")
        check_replaced(f"hdfs://{host}/check")
        hdfs_cluster.put_tree(host, STORE, "/tiers")
        check_tiered(f"hdfs://{host}/tiers", local)
        hdfs_cluster.put_tree(host, BROKER, "/disks/1")
        place = f"hdfs://{host}/disks/1"
        assert len(open_log_dir(place).partitions) == len(open_log_dir(str(BROKER)).partitions)
        for words in (["dump", "{}/b-txn-0", "--print-data-log"],
                      ["verify", "{}", "--json", "--workers=1"]):  # fmt: skip
            lines = []
            for where in (str(BROKER), place):
                more = [f"--run-dir={tmp_path}/runs"] if words[0] == "verify" else []
                assert main([word.replace("{}", where) for word in words] + more) < 2
                text = capfdbinary.readouterr().out.decode().replace(where, "PLACE")
                lines.append([each for each in text.splitlines() if not UNLIKE.search(each)])
            assert lines[1] == lines[0], words
        data = bytes(range(256)) * 12_000  # over blocks of 1 MiB
        hdfs_cluster.put(host, "/large", data)
        store = store_of(f"hdfs://{host}/large")
        known = store.look(f"hdfs://{host}/large")
        assert store.read(known, 0, len(data)) == data
        assert store.read(known, 1_048_000, 1_200_000) == data[1_048_000:2_248_000]
        close(host)
