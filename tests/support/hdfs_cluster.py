"""Hadoop's own small cluster, one name node and one data node, for WebHDFS as it really answers.

    with hdfs_cluster(directory) as host:
        put_tree(host, Path("store"), "/tiers")

Its jars are pinned in `hdfs_jars.lock` and lie below `.cache`; no user needs them.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener, urlopen

import pytest

from tests.oracle.jars import (
    OracleUnavailableError,
    exclusive,
    fetch_jars,
    read_lock,
    scratch_directory,
)
from tests.oracle.setup import find_java

LOCK_FILE = Path(__file__).with_name("hdfs_jars.lock")
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "hdfs"
_PATIENCE_S = 300.0


def _ensure_jars() -> list[Path]:
    wanted, jars = read_lock(LOCK_FILE), CACHE / "jars"
    try:
        with exclusive(CACHE), scratch_directory(CACHE) as scratch:
            fetch_jars(find_java(), wanted, jars, scratch)
    except OracleUnavailableError as error:
        pytest.skip(f"Hadoop's cluster cannot be had here: {error}")
    return [jars / jar.file_name for jar in wanted]


@contextmanager
def hdfs_cluster(directory: Path) -> Iterator[str]:
    """`HOST:PORT` of the name node's HTTP server; its files lie below `directory`."""
    class_path = ":".join(map(str, _ensure_jars()))
    rpc_port, http_port = _free_ports()
    words = [
        str(find_java()), "-Xmx384m", "-cp", class_path,
        "org.apache.hadoop.mapreduce.MiniHadoopClusterManager", "-nomr", "-format",
        "-nnport", str(rpc_port), "-nnhttpport", str(http_port), "-datanodes", "1",
        # Blocks smaller than a segment, so that a range goes over several.
        "-D", "dfs.blocksize=1048576", "-D", "dfs.namenode.fs-limits.min-block-size=65536",
    ]  # fmt: skip
    host = f"127.0.0.1:{http_port}"
    with (
        (directory / "hdfs.log").open("wb") as log,
        subprocess.Popen(
            words, cwd=directory, stdin=subprocess.PIPE, stdout=log, stderr=log
        ) as process,
    ):
        try:
            _wait_until_written(process, host)
            yield host
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


def put(host: str, path: str, data: bytes) -> None:
    """A file of these bytes, by both steps of CREATE."""
    ask = f"http://{host}/webhdfs/v1{quote(path)}?op=CREATE&overwrite=true&user.name=root"
    try:
        build_opener(_NoRedirect).open(Request(ask, method="PUT"), timeout=60)
    except HTTPError as error:
        if error.code != 307:
            raise
        place = error.headers["Location"]
    with urlopen(Request(place, data, {"Content-Type": "application/octet-stream"}, method="PUT")):
        pass


def put_tree(host: str, root: Path, path: str) -> None:
    for each in root.rglob("*"):
        if each.is_file():
            put(host, f"{path}/{each.relative_to(root).as_posix()}", each.read_bytes())


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _wait_until_written(process: subprocess.Popen[bytes], host: str) -> None:
    """The name node answers before there is a data node to write to."""
    started = time.monotonic()
    while True:
        try:
            put(host, "/ready", b"1")
        except OSError as error:
            if process.poll() is not None or time.monotonic() - started > _PATIENCE_S:
                raise RuntimeError(f"HDFS does not begin: {error}") from error
            time.sleep(0.2)
        else:
            return


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1]), int(other.getsockname()[1])
