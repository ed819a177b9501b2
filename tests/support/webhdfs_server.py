"""Enough of WebHDFS, from memory: what Hadoop's own cluster answers (`tests/remote/test_hdfs.py`
holds both to the same). Name node and data node are one server here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_API, _INODES, _DATA = "/webhdfs/v1", "/.reserved/.inodes/", "/data/"


class WebHdfsServer:
    """`files`: (inode, bytes) by path. answers: (status, body) for the next requests instead of
    what they ask for. asked: path and query of each request."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[int, bytes]] = {}
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[str] = []
        self._next_inode = 16_386

    def put(self, path: str, data: bytes) -> None:
        """Another file each time, as HDFS has it."""
        self._next_inode += 1
        self.files[path] = self._next_inode, data

    def put_tree(self, root: Path, path: str) -> None:
        for each in root.rglob("*"):
            if each.is_file():
                self.put(f"{path}/{each.relative_to(root).as_posix()}", each.read_bytes())

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator[WebHdfsServer]:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def status(self, path: str, name: str) -> dict[str, Any] | None:
        if path in self.files:
            inode, data = self.files[path]
            return {"pathSuffix": name, "type": "FILE", "length": len(data), "fileId": inode,
                    "modificationTime": 1_795_910_400_000 + inode}  # fmt: skip
        if any(file.startswith(path.rstrip("/") + "/") for file in self.files):
            return {"pathSuffix": name, "type": "DIRECTORY", "length": 0, "fileId": 1,
                    "modificationTime": 1_795_910_400_000}  # fmt: skip
        return None

    def children(self, path: str) -> list[dict[str, Any]]:
        if path in self.files:
            found = [self.status(path, "")]
        else:
            front = path.rstrip("/") + "/"
            names = {file[len(front) :].partition("/")[0] for file in self.files
                     if file.startswith(front)}  # fmt: skip
            found = [self.status(front + name, name) for name in sorted(names)]
        return [each for each in found if each is not None]


def _handler(server: WebHdfsServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._do()

        def do_DELETE(self) -> None:
            self._do()

        def _do(self) -> None:
            server.asked.append(self.path)
            parts = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            path = unquote(parts.path)
            if server.answers:
                self._send(*server.answers.pop(0))
            elif path.startswith(_DATA):
                self._range(path.removeprefix(_DATA), asked)
            else:
                self._name_node(path.removeprefix(_API), asked)

        def _name_node(self, path: str, asked: dict[str, str]) -> None:
            operation, found = asked["op"], server.status(path, "")
            if operation == "OPEN" and path.startswith(_INODES):
                inode = path.removeprefix(_INODES)
                if any(str(own) == inode for own, _ in server.files.values()):
                    where = f"http://{server.host}{_DATA}{inode}"
                    query = f"offset={asked['offset']}&length={asked['length']}&delegation=canary"
                    self._json({"Location": f"{where}?{query}"})
                    return
            elif operation == "LISTSTATUS" and found:
                self._json({"FileStatuses": {"FileStatus": server.children(path)}})
                return
            elif operation == "GETFILESTATUS" and found:
                self._json({"FileStatus": found})
                return
            elif operation == "DELETE":
                self._json({"boolean": server.files.pop(path, None) is not None})
                return
            said = {"exception": "FileNotFoundException", "message": f"File does not exist: {path}"}
            self._send(404, json.dumps({"RemoteException": said}).encode())

        def _range(self, inode: str, asked: dict[str, str]) -> None:
            data = next(data for own, data in server.files.values() if str(own) == inode)
            start = int(asked["offset"])
            self._send(200, data[start : start + int(asked["length"])])

        def _json(self, body: dict[str, Any]) -> None:
            self._send(200, json.dumps(body).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
