"""Credentials of a store do not come into what Spark shows and keeps of a query: the pages of its
UI, its REST API, plans, the event log and messages.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remote.test_aiven import BROKER, KEYS, STORE, without_closed_segments
from tests.spark.sessions import run_session
from tests.support.buckets import SECRET, served
from tests.support.s3_server import BUCKET, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.soak]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    yield from served(monkeypatch)


def test_no_credentials_are_in_the_ui_plans_or_the_event_log(
    bucket: S3Server, tmp_path: Path
) -> None:
    local = without_closed_segments(Path(shutil.copytree(BROKER, tmp_path / "broker")))
    bucket.put_tree(STORE)
    output = tmp_path / "output"
    output.mkdir()
    keys = ",".join(f"{key_id}={file}" for key_id, file in KEYS.items())
    words = (str(local), f"s3://{BUCKET}", keys, str(output), SECRET)
    done = run_session("tests.spark.ui_session", *words)
    (output / "stdout.txt").write_text(done.stdout)
    (output / "stderr.txt").write_text(done.stderr)
    assert done.returncode == 0, done.stderr[-5000:]
    answers = json.loads((output / "answers.json").read_text())
    assert answers["rows"] == answers["counted"] > 1000
    refused = (output / "refused.txt").read_text()
    assert refused.count("credentials do not belong into a URI") == 2
    seen = {path: path.read_text(errors="replace") for path in output.rglob("*") if path.is_file()}
    # What is looked for would be found: the place is there, in pages, plans and the event log.
    places = [path.name for path, text in seen.items() if f"s3://{BUCKET}" in text]
    assert len(places) > 2, places
    words = {SECRET, "canary-access-key-id", "canary-token"}
    words |= {line for file in KEYS.values() for line in Path(file).read_text().splitlines()[1:-1]}
    found = {(path.name, word) for path, text in seen.items() for word in words if word in text}
    assert found == set()
