"""The same bytes as on the broker's disk, from servers that others made to stand for GCS and Azure:
what our own double of them answers is held to that.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import obstore
import pytest

from kafkalog import read_batches, read_records
from kafkalog.bucket.deletion_run import DELETED, delete_segments
from kafkalog.bucket.undo_deletions import UNDONE, undo_deletions
from kafkalog.cli.main import main
from kafkalog.planning.statuses import REFUSED
from kafkalog.remote.bucket_client import open_client
from kafkalog.remote.paths import RemoteStorage
from tests.bucket.tiered_cluster import (
    COPIED_MS,
    DAY_MS,
    FINISHED,
    OTHER,
    WHOLE,
    TieredCluster,
    kinds,
    look_in_turn,
)
from tests.remote.test_aiven import BROKER, KEYS, STORE, TOPICS, without_closed_segments
from tests.remote.test_bucket_dirs import UNLIKE
from tests.support.buckets import asked_at
from tests.support.cloud_doubles import (
    ACCOUNT,
    ACCOUNT_KEY,
    azurite,
    fake_gcs_server,
    put_into_gcs,
)
from tests.support.s3_server import AZURE, BUCKET, GCS

# In the year 2099.
LATER_MS = 4_080_000_000_000

pytestmark = pytest.mark.soak


@dataclass(frozen=True)
class Double:
    scheme: str
    url: str

    def put_tree(self, root: Path, prefix: str = "") -> None:
        client = open_client(f"{self.scheme}://{BUCKET}")
        for path in root.rglob("*"):
            if path.is_file():
                key = f"{prefix}{path.relative_to(root).as_posix()}"
                if self.scheme == GCS:
                    put_into_gcs(self.url, key, path.read_bytes())
                else:
                    obstore.put(client, key, path.read_bytes())

    def keys(self) -> set[str]:
        client = open_client(f"{self.scheme}://{BUCKET}")
        return {meta["path"] for page in obstore.list(client) for meta in page}


@contextmanager
def xml_writes(url: str) -> Iterator[str]:
    """In front of fake-gcs-server, which refuses a PUT of the XML API: what is put goes in by the
    JSON API under the same condition, and all else through as it is."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _through(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            heads = {k: v for k, v in self.headers.items() if k.lower() != "host"}
            target, method = f"{url}{self.path}", self.command
            if method == "PUT":
                key = unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}/")
                if heads.get("x-goog-if-generation-match") == "0" and self._is_there(key):
                    self._send(412, b"", {})
                    return
                put_into_gcs(url, key, body)
                target, method, body = f"{url}/{BUCKET}/{key}", "HEAD", b""
                heads = {}
            request = Request(target, body or None, heads, method=method)
            try:
                with urlopen(request) as answer:
                    self._send(answer.status, answer.read(), dict(answer.headers))
            except HTTPError as error:
                self._send(error.code, error.read(), dict(error.headers))

        do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = _through

        def _is_there(self, key: str) -> bool:
            try:
                with urlopen(Request(f"{url}/{BUCKET}/{key}", method="HEAD")):
                    return True
            except HTTPError:
                return False

        def _send(self, status: int, body: bytes, heads: dict[str, str]) -> None:
            self.send_response(status)
            length = heads.get("Content-Length") if self.command == "HEAD" else None
            for name, value in heads.items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length or str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(params=[GCS, AZURE])
def double(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Double]:
    nowhere = "http://127.0.0.1:9"
    if request.param == GCS:
        with fake_gcs_server() as url, xml_writes(url) as front:
            asked_at(monkeypatch, nowhere, nowhere, nowhere)
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", front.removeprefix("http://"))
            monkeypatch.delenv("GOOGLE_BASE_URL")
            monkeypatch.delenv("GOOGLE_BEARER_TOKEN")
            yield Double(GCS, url)
    else:
        with azurite() as url:
            asked_at(monkeypatch, nowhere, nowhere, url)
            monkeypatch.delenv("AZURE_STORAGE_SAS_TOKEN")
            monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
            monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY)
            yield Double(AZURE, url)


def printed(words: list[str], place: str, capfdbinary: pytest.CaptureFixture[bytes]) -> list[str]:
    assert main(words) < 2
    text = capfdbinary.readouterr().out.decode().replace(place, "PLACE")
    return [line for line in text.splitlines() if not UNLIKE.search(line)]


def test_all_that_reads_finds_the_brokers_own_segments(
    double: Double, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Records, batches, verify, dump, audit, bucket: of tiered segments, and of a log dir copied
    as it is."""
    local = without_closed_segments(Path(shutil.copytree(BROKER, tmp_path / "broker")))
    double.put_tree(STORE, "tiers/")
    place = f"{double.scheme}://{BUCKET}/tiers"
    for read_committed in (False, True):
        expected = read_records(BROKER, topics=TOPICS, read_committed=read_committed).read_all()
        found = read_records(
            local, topics=TOPICS, read_committed=read_committed, remote_dirs=place, remote_keys=KEYS
        )
        assert found.read_all().equals(expected)
    batches = read_batches(local, topics=TOPICS, remote_dirs=place, remote_keys=KEYS)
    own = read_batches(BROKER, topics=TOPICS)
    assert batches.drop_columns("path").equals(own.drop_columns("path"))
    keys = [f"--remote-key={key_id}={file}" for key_id, file in KEYS.items()]
    topics = [f"--topic={topic}" for topic in TOPICS]
    for verb in ("verify", "bucket"):
        words = [*topics, *keys, "--json", "--workers=1"]
        words += ["--now=2100-01-01T00:00:00Z"] if verb == "bucket" else []
        both = [
            printed([verb, str(local), f"--remote-dir={where}", *words,
                     f"--run-dir={tmp_path}/runs"], str(where), capfdbinary)
            for where in (STORE, place)
        ]  # fmt: skip
        both = [[line for line in lines if "modificationTime" not in line] for lines in both]
        assert both[1] == both[0], verb
        assert len(both[0]) > 20
    copy = f"{double.scheme}://{BUCKET}/disk"
    double.put_tree(BROKER, "disk/")
    for words in (["dump", "{}/b-txn-0", "--print-data-log"],
                  ["audit", "{}", "--json", "--workers=1", "--now=2100-01-01T00:00:00Z"],
                  ["verify", "{}", "--json", "--workers=1"]):  # fmt: skip
        more = [] if words[0] == "dump" else [f"--run-dir={tmp_path}/runs-{words[0]}"]
        lines = [
            printed([word.replace("{}", where) for word in words] + more, where, capfdbinary)
            for where in (str(BROKER), copy)
        ]
        if words[0] == "audit":  # objects are younger than files
            facts = [[json.loads("\n".join(each))[name] for name in ("totals", "partitions")]
                     for each in lines]  # fmt: skip
            assert facts[1] == facts[0]
        else:
            assert lines[1] == lines[0], words
            assert len(lines[0]) > 50


def test_what_is_deleted_comes_back_where_it_is_kept(double: Double, tmp_path: Path) -> None:
    """fake-gcs-server keeps generations, Azurite no versions: there nothing goes without a word."""
    cluster = TieredCluster(tmp_path)
    # Objects are as old as this run, and the newest record has to be younger.
    own = cluster.object("a-lz4", 0, "log").stem[21:]
    cluster.again("a-lz4", OTHER, WHOLE, COPIED_MS)
    cluster.change("a-lz4", own, FINISHED, event_ms=LATER_MS)
    double.put_tree(cluster.store)
    storage = RemoteStorage((f"{double.scheme}://{BUCKET}",), keys=tuple(KEYS.items()))
    request = replace(cluster.request(), run_dir=str(tmp_path / "runs"), remote=storage,
                      now_ms=LATER_MS + DAY_MS, min_age_ms=0)  # fmt: skip
    run, before = look_in_turn(request), double.keys()
    assert len(run.deletions) == 1
    deleted = delete_segments(
        run.deletions, tmp_path / "runs", {}, keeps_undo=True, tell=lambda _: None
    )
    found = [result.status for result in deleted.results]
    if double.scheme == AZURE:
        assert found == [REFUSED]
        assert double.keys() == before
        deleted = delete_segments(
            run.deletions, tmp_path / "runs", {}, keeps_undo=False, tell=lambda _: None
        )
        assert [result.status for result in deleted.results] == [DELETED]
    else:
        assert found == [DELETED]
    assert {Path(key).stem[21:] for key in before - double.keys()} == {OTHER}
    assert kinds(look_in_turn(request)) == []
    back = [each.status for each in undo_deletions(tmp_path / "runs", str(deleted.run_id))]
    if double.scheme == GCS:
        assert back == [UNDONE]
        assert double.keys() == before
        assert kinds(look_in_turn(request)) == kinds(run)
    else:
        assert back == [REFUSED]
