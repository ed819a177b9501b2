"""Enough of S3, from memory: list with a delimiter, HEAD, GET of a range with If-Match, PUT with
If-None-Match, deletion, and versions of what is deleted. It counts what it is asked, and misbehaves
on demand. Signatures are not looked at.

GCS and Azure say the same with other words (`dialect`): as obstore speaks to them, and as
fake-gcs-server and Azurite answer it (tests/remote/test_other_clouds.py).
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
S3, GCS, AZURE = "s3", "gs", "az"
# How a version is called in an answer, and in a question.
_VERSION = {
    S3: ("x-amz-version-id", "versionId"),
    GCS: ("x-goog-generation", "generation"),
    AZURE: ("x-ms-version-id", "versionid"),
}


class S3Server:
    """`objects` by key. requests: (method, key) → how often; read_bytes: sent of objects by key.
    refusals: so many of the next GETs of objects are answered with `refusal`, 503; answers:
    cleared, no object is answered; heads: of all requests. is_versioned: what is deleted is
    kept, in `kept` by key and version id; before_deletion: called with the key of each.
    is_read_only: nothing is written.
    heeds_if_match: else a range is sent whatever object it is of."""

    def __init__(self, dialect: str = S3) -> None:
        self.dialect = dialect
        self.heeds_if_match = True
        self.is_read_only = False
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

    @property
    def numbers_objects(self) -> bool:
        """Whether an object has a version id in answers: of GCS always, kept or not."""
        return self.is_versioned or self.dialect == GCS

    def listed(self, prefix: str) -> str:
        """One page has all of it."""
        if self.dialect == AZURE:
            return self._listed_by_azure(prefix)
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

    def _listed_by_azure(self, prefix: str) -> str:
        """Tags are without their quotes there, as nowhere else."""
        directories, blobs = set(), []
        for key, data in sorted(self.objects.items()):
            if key.startswith(prefix):
                first, slash, _ = key[len(prefix) :].partition("/")
                if slash:
                    directories.add(f"{prefix}{first}/")
                else:
                    tag = tag_of(data).strip('"')
                    blobs.append(
                        f"<Blob><Name>{escape(key)}</Name><Properties>"
                        "<Last-Modified>Sun, 29 Nov 2026 00:00:00 GMT</Last-Modified>"
                        f"<Etag>{tag}</Etag><Content-Length>{len(data)}</Content-Length>"
                        "<Content-Type>application/octet-stream</Content-Type>"
                        "<ResourceType>file</ResourceType></Properties></Blob>"
                    )
        found = [f"<BlobPrefix><Name>{escape(d)}</Name></BlobPrefix>" for d in sorted(directories)]
        return (
            f"<EnumerationResults><Prefix>{escape(prefix)}</Prefix>"
            f"<Blobs>{''.join(blobs + found)}</Blobs><NextMarker/></EnumerationResults>"
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

        def do_DELETE(self) -> None:
            key = self._key()
            server.requests["DELETE", key] += 1
            if server.refusals:
                server.refusals -= 1
                self._send(server.refusal, b"")
            else:
                is_there = key in server.objects
                server.delete(key)
                self._send(202 if is_there else 404, b"")

        def do_POST(self) -> None:
            """Deletion of several objects."""
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if server.dialect == AZURE:
                self._delete_by_batch(body)
                return
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

        def _delete_by_batch(self, body: str) -> None:
            (path,) = re.findall(rf"DELETE /{BUCKET}/([^\s?]+)\S* HTTP", body)
            key = unquote(path)
            server.requests["DELETE", key] += 1
            if server.refusals:
                server.refusals -= 1
                self._send(server.refusal, b"")
                return
            status = "202 Accepted" if key in server.objects else "404 Not Found"
            server.delete(key)
            kind = "Content-Type: application/http\r\nContent-ID: 0"
            answer = f"--answers\r\n{kind}\r\n\r\nHTTP/1.1 {status}\r\n\r\n\r\n--answers--\r\n"
            self._send(202, answer.encode(), "multipart/mixed; boundary=answers")

        def do_PUT(self) -> None:
            key = self._key()
            data = self.rfile.read(int(self.headers["Content-Length"]))
            server.requests["PUT", key] += 1
            if server.is_read_only:
                self._send(403, b"<Error><Code>AccessDenied</Code></Error>")
                return
            is_new = {
                self.headers.get("If-None-Match"),
                self.headers.get("x-goog-if-generation-match"),
            }
            if is_new & {"*", "0"} and key in server.objects:
                self._send(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            server.objects[key] = data
            self._send(200, b"", tagged=data)

        def _answer(self, *, with_body: bool) -> None:
            parts, key = urlsplit(self.path), self._key()
            server.requests[self.command, key] += 1
            server.heads.append(f"{self.path}\n{self.headers}")
            if not key:
                prefix = parse_qs(parts.query).get("prefix", [""])[0]
                self._send(200, server.listed(prefix).encode(), "application/xml")
            elif version := parse_qs(parts.query).get(_VERSION[server.dialect][1]):
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
            if data is None and version_of(server.objects.get(key, b"\0")) == version:
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
            wanted = self.headers.get("If-Match", tag_of(data))
            if server.heeds_if_match and wanted != tag_of(data):
                self._send(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1]
            server.read_bytes[key] += len(part)
            self._send(206, part, whole=data, first=int(first))

        def _key(self) -> str:
            return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").strip("/")

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
            if server.numbers_objects:
                self.send_header(_VERSION[server.dialect][0], version_of(named))
            if whole is not None:
                last = first + len(body) - 1
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
            self.end_headers()
            if sends_body and self.command != "HEAD":
                self.wfile.write(body)

    return Handler
