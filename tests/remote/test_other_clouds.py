"""What holds of S3 holds of GCS and Azure, which answer with other words: records of real segments,
what a question costs, an object that is replaced, and credentials that nobody sees.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog import read_records, read_view
from kafkalog.errors import KafkaLogError, LogChangedError
from kafkalog.remote import bucket_client
from kafkalog.remote.cache import BLOCKS
from kafkalog.remote.stores import store_of
from tests.remote.test_aiven import BROKER, KEYS, STORE, TOPICS, without_closed_segments
from tests.remote.test_bucket_dirs import copied, rows
from tests.support.buckets import served
from tests.support.s3_server import AZURE, BUCKET, GCS, S3Server


@pytest.fixture(params=[GCS, AZURE])
def bucket(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[S3Server]:
    yield from served(monkeypatch, request.param)


def uri(bucket: S3Server, key: str = "") -> str:
    return f"{bucket.dialect}://{BUCKET}/{key}"


def test_tiered_segments_are_those_of_the_brokers_own_directory(
    bucket: S3Server, tmp_path: Path
) -> None:
    local = without_closed_segments(Path(shutil.copytree(BROKER, tmp_path / "broker")))
    bucket.put_tree(STORE)
    remote = {"remote_dirs": uri(bucket), "remote_keys": KEYS}
    expected = read_records(BROKER, topics=TOPICS).read_all()
    found = read_records(local, topics=TOPICS, **remote)  # type: ignore[arg-type]
    assert found.read_all().equals(expected)


@pytest.mark.thorough
def test_a_log_dir_is_that_of_the_disk(bucket: S3Server) -> None:
    copied(bucket, BROKER, "disk")
    for view in ("batches", "checkpoints"):
        found = rows(read_view(view, uri(bucket, "disk")))
        assert found.equals(rows(read_view(view, BROKER)))
        assert found.num_rows > 1


@pytest.mark.parametrize("heeds_if_match", [True, False])
def test_an_object_that_is_replaced_is_a_change_whether_the_store_heeds_the_tag_or_not(
    bucket: S3Server, heeds_if_match: bool
) -> None:
    """Tags of lists and of answers are the same ones, in quotes or not."""
    bucket.heeds_if_match = heeds_if_match
    bucket.objects["a/1"] = b"before"
    store = store_of(uri(bucket))
    listed = store.list_directory(uri(bucket, "a")).objects["1"]
    assert listed == store.look(uri(bucket, "a/1"))
    assert store.read(listed, 0, 100) == b"before"
    bucket.objects["a/1"] = b"behind"
    with pytest.raises(LogChangedError, match="the object was replaced during the read"):
        store.read(listed, 0, 100)


def test_credentials_are_in_no_row_message_or_log(
    bucket: S3Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(bucket_client, "RETRIES", {"max_retries": 0})
    copied(bucket, BROKER, "disk")
    seen = str(read_view("segments", uri(bucket, "disk")).to_pylist())
    BLOCKS.clear()
    bucket.refusals = 1000
    with pytest.raises(KafkaLogError, match="cannot be read: ") as raised:
        read_view("batches", uri(bucket, "disk"), topics="a-lz4")
    seen += caplog.text + str(raised.value) + repr(raised.value)
    assert "canary" not in seen
    assert all("canary-" in head for head in bucket.heads)  # they were used
