"""Enough of S3, from memory: list with a delimiter, HEAD, GET of a range with If-Match, PUT with
If-None-Match, deletion, and versions of what is deleted. It counts what it is asked, and misbehaves
on demand. Signatures are not looked at.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

BUCKET = "tiers"


class S3Server:
    """`objects` by key. requests: (method, key) → how often; read_bytes: sent of objects by key.
    refusals: so many of the next GETs of objects are answered with `refusal`, 503; answers:
    cleared, no object is answered; heads: of all requests. is_versioned: what is deleted is
    kept, in `kept` by key and version id; before_deletion: called with the key of each."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: Counter[tuple[str, str]] = Counter()
        self.read_bytes: Counter[str] = Counter()
        self.refusals = 0
        self.refusal = 503
        self.answers = threading.Event()
        self.answers.set()
        self.heads: list[str] = []
        self.is_versioned = False
        self.kept: dict[tuple[str, str], bytes] = {}
        self.before_deletion: Callable[[str], None] = lambda _: None

    def put_tree(self, root: Path) -> None:
        for path in root.rglob("*"):
            if path.is_file():
                self.objects[path.relative_to(root).as_posix()] = path.read_bytes()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator[S3Server]:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.answers.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def delete(self, key: str) -> None:
        self.before_deletion(key)
        data = self.objects.pop(key, None)
        if self.is_versioned and data is not None:
            self.kept[key, version_of(data)] = data

    def listed(self, prefix: str) -> str:
        """One page has all of it."""
        directories, contents = set(), []
        for key, data in sorted(self.objects.items()):
            if key.startswith(prefix):
                first, slash, _ = key[len(prefix) :].partition("/")
                if slash:
                    directories.add(f"{prefix}{first}/")
                else:
                    contents.append(
                        f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
                        f"<LastModified>2026-11-29T00:00:00.000Z</LastModified>"
                        f"<ETag>{tag_of(data)}</ETag></Contents>"
                    )
        prefixes = (
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            for name in sorted(directories)
        )
        body = "".join([*contents, *prefixes])
        return (
            f"<ListBucketResult><Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<IsTruncated>false</IsTruncated>{body}</ListBucketResult>"
        )


def tag_of(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def version_of(data: bytes) -> str:
    return f"v-{hashlib.md5(data).hexdigest()[:8]}"


def _handler(server: S3Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_POST(self) -> None:
            """Deletion of several objects."""
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            deleted = []
            for key in map(unescape, re.findall("<Key>(.*?)</Key>", body)):
                server.requests["DELETE", key] += 1
                if server.refusals:
                    server.refusals -= 1
                    self._send(server.refusal, b"<Error><Code>SlowDown</Code></Error>")
                    return
                server.delete(key)
                deleted.append(f"<Deleted><Key>{escape(key)}</Key></Deleted>")
            answer = f"<DeleteResult>{''.join(deleted)}</DeleteResult>"
            self._send(200, answer.encode(), "application/xml")

        def do_PUT(self) -> None:
            key = unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").strip("/")
            data = self.rfile.read(int(self.headers["Content-Length"]))
            server.requests["PUT", key] += 1
            if self.headers.get("If-None-Match") == "*" and key in server.objects:
                self._send(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            server.objects[key] = data
            self._send(200, b"", tagged=data)

        def _answer(self, *, with_body: bool) -> None:
            parts = urlsplit(self.path)
            key = unquote(parts.path).removeprefix(f"/{BUCKET}").strip("/")
            server.requests[self.command, key] += 1
            server.heads.append(str(self.headers))
            if not key:
                prefix = parse_qs(parts.query).get("prefix", [""])[0]
                self._send(200, server.listed(prefix).encode(), "application/xml")
            elif version := parse_qs(parts.query).get("versionId"):
                self._version(key, version[0], with_body=with_body)
            elif key not in server.objects:
                self._send(404, b"" if not with_body else b"<Error><Code>NoSuchKey</Code></Error>")
            elif with_body and server.refusals:
                server.refusals -= 1
                self._send(server.refusal, b"<Error><Code>SlowDown</Code></Error>")
            else:
                self._object(key, with_body=with_body)

        def _version(self, key: str, version: str, *, with_body: bool) -> None:
            data = server.kept.get((key, version))
            if data is None and version_of(server.objects.get(key, b"")) == version:
                data = server.objects[key]
            if data is None:
                self._send(404, b"<Error><Code>NoSuchVersion</Code></Error>" if with_body else b"")
            else:
                self._send(200, data, sends_body=with_body)

        def _object(self, key: str, *, with_body: bool) -> None:
            server.answers.wait()
            data = server.objects[key]
            if not with_body:
                self._send(200, data, sends_body=False)
                return
            if self.headers.get("If-Match", tag_of(data)) != tag_of(data):
                self._send(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1]
            server.read_bytes[key] += len(part)
            self._send(206, part, whole=data, first=int(first))

        def _send(
            self,
            status: int,
            body: bytes,
            kind: str = "application/octet-stream",
            *,
            sends_body: bool = True,
            whole: bytes | None = None,
            tagged: bytes | None = None,
            first: int = 0,
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Sun, 29 Nov 2026 00:00:00 GMT")
            named = next(data for data in (tagged, whole, body) if data is not None)
            self.send_header("ETag", tag_of(named))
            if server.is_versioned:
                self.send_header("x-amz-version-id", version_of(named))
            if whole is not None:
                last = first + len(body) - 1
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
            self.end_headers()
            if sends_body and self.command != "HEAD":
                self.wfile.write(body)

    return Handler
