"""A bucket in this process that the package reads, with credentials that a test can look for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kafkalog.remote import buckets
from kafkalog.remote.cache import BLOCKS
from tests.support.s3_server import S3Server

SECRET = "canary-secret-access-key"


def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """What a fixture yields: an empty bucket, and nothing kept of another one."""
    with S3Server().running() as server:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-access-key-id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        buckets._bucket.cache_clear()
        BLOCKS.clear()
        yield server
    buckets._bucket.cache_clear()
