"""A bucket for measuring clients: the files of a directory, sent from the page cache by the kernel,
after as long as a store in the network takes to answer and no faster than one of its connections.

    python -m tests.benchmarks.range_server DIR --latency-ms 20 --connection-bytes 100000000

Prints its port. A thread a connection; waiting costs no CPU, so what a client reaches is bound by
how much it asks for at once. Signatures are not looked at.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.s3_server import BUCKET

_SEND_BYTES = 256 * 1024


class RangeServer(ThreadingHTTPServer):
    """`root`: the directory; latency_s, connection_bytes: of each answer, a second."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, root: Path, latency_s: float, connection_bytes: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.latency_s = latency_s
        self.connection_bytes = connection_bytes

    def listed(self, prefix: str, *, is_flat: bool) -> str:
        """What is directly below a prefix, or all."""
        directory, parts = self.root / prefix, []
        for path in sorted(directory.rglob("*") if is_flat else directory.glob("*")):
            key = path.relative_to(self.root).as_posix()
            if path.is_dir():
                if is_flat:
                    continue
                parts.append(f"<CommonPrefixes><Prefix>{key}/</Prefix></CommonPrefixes>")
            else:
                parts.append(
                    f"<Contents><Key>{key}</Key><Size>{path.stat().st_size}</Size>"
                    "<LastModified>2026-11-29T00:00:00.000Z</LastModified>"
                    f"<ETag>{tag_of(path)}</ETag></Contents>"
                )
        return (
            f"<ListBucketResult><Name>{BUCKET}</Name><Prefix>{prefix}</Prefix>"
            f"<IsTruncated>false</IsTruncated>{''.join(parts)}</ListBucketResult>"
        )


def tag_of(path: Path) -> str:
    stat = path.stat()
    return f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RangeServer

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        time.sleep(self.server.latency_s)
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").strip("/")
        path = self.server.root / key
        if not key:
            asked_for = parse_qs(parts.query)
            prefix, is_flat = asked_for.get("prefix", [""])[0], "delimiter" not in asked_for
            self._head(200, body := self.server.listed(prefix, is_flat=is_flat).encode())
            self.wfile.write(body)
        elif not path.is_file():
            self._head(404, b"")
        else:
            size = path.stat().st_size
            asked = self.headers.get("Range", "").removeprefix("bytes=")
            first, last = (int(each) for each in asked.split("-")) if asked else (0, size - 1)
            length = min(last, size - 1) - first + 1
            more = {"ETag": tag_of(path)}
            if asked:
                more["Content-Range"] = f"bytes {first}-{first + length - 1}/{size}"
            self._head(206 if asked else 200, length, more)
            if with_body:
                self._send(path, first, length)

    def _head(self, status: int, body: bytes | int, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        length = body if isinstance(body, int) else len(body)
        self.send_header("Content-Length", str(length))
        self.send_header("Last-Modified", "Sun, 29 Nov 2026 00:00:00 GMT")
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()

    def _send(self, path: Path, first: int, length: int) -> None:
        started, sent = time.monotonic(), 0
        with path.open("rb") as file:
            while sent < length:
                part = min(_SEND_BYTES, length - sent)
                sent += os.sendfile(self.connection.fileno(), file.fileno(), first + sent, part)
                due = started + sent / self.server.connection_bytes
                time.sleep(max(0.0, due - time.monotonic()))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--connection-bytes", type=float, default=100e6)
    args = parser.parse_args()
    server = RangeServer(args.directory, args.latency_ms / 1000, args.connection_bytes)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
