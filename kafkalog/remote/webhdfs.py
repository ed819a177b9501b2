"""Files of HDFS as objects, by WebHDFS: a name node answers what there is and says which data node
sends a range.

    hdfs://HOST[:PORT]/PATH    PORT: of the name node's HTTP server, 9870 unless it is given

Who asks is HADOOP_USER_NAME, or nobody in particular. Kerberos and TLS are not spoken.

A file has no ETag; its inode's number stands for it. Ranges are read by that number
(`/.reserved/.inodes/N`), so a file that was replaced is gone, and never half of each.

Source: "WebHDFS REST API" of Hadoop; FSDirectory.resolvePath of HDFS for inode paths.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import threading
import time
from functools import lru_cache
from typing import Any, NoReturn
from urllib.parse import quote, urlencode, urlsplit

from kafkalog.errors import InvalidConfigError, LogChangedError, RemoteStorageError
from kafkalog.remote.seen_objects import SeenObjects
from kafkalog.remote.stores import Listing, StoredObject, WithoutVersions, joined

DEFAULT_PORT = 9870
# As of other stores, see `bucket_client`.
_TIMEOUT_S = 30.0
_WAITS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_BUSY = (429, 500, 502, 503, 504)
_MOST_ANSWER_BYTES = 64 * 1024 * 1024
_MOST_REASON_BYTES = 64 * 1024
_MOST_IDLE = 16
_IPC = "Hadoop IPC port"


class WebHdfsStore(WithoutVersions):
    """The files of one name node; they are named by whole URIs."""

    def __init__(self, host: str, port: int, root: str) -> None:
        self._address = host, port
        self._root = root
        self._seen = SeenObjects()
        # Open, and used by nobody: by process and server.
        self._idle: dict[tuple[int, tuple[str, int]], list[http.client.HTTPConnection]] = {}
        self._lock = threading.Lock()

    def list_directory(self, path: str) -> Listing:
        try:
            statuses = self._statuses(path)
        except FileNotFoundError:
            return Listing((), {})
        # A file is listed as itself, without a name.
        named = [each for each in statuses if each["pathSuffix"]]
        objects = {
            each["pathSuffix"]: self._stored(joined(path, each["pathSuffix"]), each)
            for each in named
            if each["type"] == "FILE"
        }
        self._seen.note_listed(path, len(objects))
        directories = (each["pathSuffix"] for each in named if each["type"] == "DIRECTORY")
        return Listing(tuple(directories), objects)

    def look(self, path: str) -> StoredObject:
        what = "it cannot be looked at"
        try:
            status = self._ask("GET", self._file(path), path, what, op="GETFILESTATUS")
        except OSError:
            self._seen.forget(path)
            raise
        own = status.get("FileStatus", {}) if isinstance(status, dict) else {}
        if own.get("type") != "FILE":
            raise FileNotFoundError(2, "no such file", path)
        return self._stored(path, own)

    def recall(self, path: str) -> StoredObject:
        return self._seen.recall(path) or self.look(path)

    def read(self, known: StoredObject, start: int, length: int) -> bytes:
        end = min(start + length, known.size)
        if start >= end:
            return b""
        what = f"bytes {start} to {end - 1} cannot be read"
        inode = f"/.reserved/.inodes/{known.tag}"
        asked = {"op": "OPEN", "offset": start, "length": end - start, "noredirect": "true"}
        try:
            answer = self._ask("GET", inode, known.path, what, **asked)
        except FileNotFoundError:
            self._seen.forget(known.path)
            raise LogChangedError(
                f"{what}: the file was replaced or deleted during the read",
                path=known.path,
                position=start,
            ) from None
        try:
            place = urlsplit(str(answer["Location"]))
            address = str(place.hostname), int(place.port or 80)
        except (KeyError, TypeError, ValueError):
            raise RemoteStorageError(
                f"{what}: the name node names no data node", path=known.path, position=start
            ) from None
        if place.scheme != "http":
            raise RemoteStorageError(
                f"{what}: the data node speaks {place.scheme}, which is not spoken here",
                path=known.path,
            )
        target = f"{place.path}?{place.query}"
        return self._request("GET", address, target, known.path, what, end - start)

    def view(self, known: StoredObject, start: int, length: int) -> memoryview:
        return memoryview(self.read(known, start, length))

    def look_at_version(self, path: str) -> tuple[StoredObject, str]:
        return self.look(path), ""

    def remove(self, path: str) -> None:
        self._seen.forget(path)
        what = "it cannot be deleted"
        answer = self._ask("DELETE", self._file(path), path, what, op="DELETE", recursive="false")
        if not (isinstance(answer, dict) and answer.get("boolean") is True):
            raise FileNotFoundError(2, "no such file", path)

    def _statuses(self, path: str) -> list[dict[str, Any]]:
        what = "it cannot be listed"
        answer = self._ask("GET", self._file(path), path, what, op="LISTSTATUS")
        try:
            found = [
                {
                    "pathSuffix": str(each["pathSuffix"]),
                    "type": each["type"],
                    "length": each["length"],
                    "modificationTime": each["modificationTime"],
                    "fileId": each["fileId"],
                }
                for each in answer["FileStatuses"]["FileStatus"]
            ]
        except (KeyError, TypeError):
            raise RemoteStorageError(f"{what}: no list of files came", path=path) from None
        return sorted(found, key=lambda each: each["pathSuffix"])

    def _stored(self, path: str, status: dict[str, Any]) -> StoredObject:
        try:
            size, inode = int(status["length"]), int(status["fileId"])
            changed_ms = int(status["modificationTime"])
        except (KeyError, TypeError, ValueError):
            raise RemoteStorageError("the name node's answer is no status", path=path) from None
        digest = hashlib.blake2b(f"{inode} {changed_ms}".encode(), digest_size=8).digest()
        version = int.from_bytes(digest) >> 1
        return self._seen.note(
            StoredObject(path, size, changed_ms * 1_000_000, version, str(inode))
        )

    def _file(self, path: str) -> str:
        return path.removeprefix(self._root) or "/"

    def _ask(self, method: str, file: str, path: str, what: str, **asked: object) -> Any:
        """What the name node answers, as JSON."""
        user = os.environ.get("HADOOP_USER_NAME")
        query = urlencode(asked | ({"user.name": user} if user else {}))
        target = f"/webhdfs/v1{quote(file)}?{query}"
        data = self._request(method, self._address, target, path, what, _MOST_ANSWER_BYTES)
        try:
            return json.loads(data)
        except ValueError:
            raise RemoteStorageError(f"{what}: the answer is no JSON", path=path) from None

    def _request(
        self, method: str, address: tuple[str, int], target: str, path: str, what: str, most: int
    ) -> bytes:
        """Asked again where a server is busy or away; OSError, RemoteStorageError."""
        reason = ""
        for wait_s in (*_WAITS_S, None):
            connection = self._connection(address)
            try:
                connection.request(method, target)
                answer = connection.getresponse()
                data = answer.read(most if answer.status < 300 else _MOST_REASON_BYTES)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                reason = f"{address[0]}:{address[1]}: {type(error).__name__}: {error}"
            else:
                self._give_back(address, connection, is_clean=not answer.read(1))
                if answer.status < 300:
                    return data
                reason = _reason(answer.status, data)
                if answer.status not in _BUSY:
                    self._raise(answer.status, reason, path, what)
            if wait_s is not None:
                time.sleep(wait_s)
        raise RemoteStorageError(f"{what}: {reason}", path=path)

    def _raise(self, status: int, reason: str, path: str, what: str) -> NoReturn:
        if _IPC in reason:
            raise InvalidConfigError(
                "this is the name node's RPC port: hdfs:// takes that of its HTTP server"
                f" (dfs.namenode.http-address, {DEFAULT_PORT} unless it is set)",
                path=self._root,
            )
        if status == 401:
            raise InvalidConfigError(
                "the name node asks for Kerberos, which is not spoken here: read a copy in a"
                " directory or a bucket, or a mount",
                path=self._root,
            )
        if status == 404:
            raise FileNotFoundError(2, "no such file", path)
        raise RemoteStorageError(f"{what}: {reason}", path=path)

    def _connection(self, address: tuple[str, int]) -> http.client.HTTPConnection:
        """One that nobody uses, and not one of a process that was forked."""
        with self._lock:
            idle = self._idle.get((os.getpid(), address))
            if idle:
                return idle.pop()
        return http.client.HTTPConnection(*address, timeout=_TIMEOUT_S)

    def _give_back(
        self, address: tuple[str, int], connection: http.client.HTTPConnection, *, is_clean: bool
    ) -> None:
        """A connection whose answer was read to its end."""
        with self._lock:
            idle = self._idle.setdefault((os.getpid(), address), [])
            if is_clean and len(idle) < _MOST_IDLE:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """The connections; it may be asked on."""
        with self._lock:
            for idle in self._idle.values():
                while idle:
                    idle.pop().close()


@lru_cache(maxsize=16)
def _store(host: str, port: int, root: str) -> WebHdfsStore:
    return WebHdfsStore(host, port, root)


def webhdfs_of(uri: str) -> WebHdfsStore:
    """The store in which a file lies; InvalidConfigError for a URI that names no host or has more
    in it than a path."""
    parts = urlsplit(uri)
    try:
        host, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError:
        host, port = None, 0
    if not host or "@" in parts.netloc or parts.query:
        raise InvalidConfigError(
            "hdfs://HOST[:PORT]/PATH names a file of HDFS; who asks is HADOOP_USER_NAME",
            path=f"hdfs://{parts.netloc.rpartition('@')[2]}{parts.path}",
        )
    return _store(host, port, f"hdfs://{parts.netloc}")


def _reason(status: int, data: bytes) -> str:
    """What went wrong as Hadoop says it, or a server in front of it, in a line."""
    try:
        said = json.loads(data)["RemoteException"]
        text = f"{said['exception']}: {said['message']}"
    except (ValueError, KeyError, TypeError):
        text = data[:400].decode(errors="replace")
    return f"{status} {' '.join(text.split())[:300]}"
