"""A bucket in this process that the package reads, with credentials that a test can look for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kafkalog.remote import buckets
from kafkalog.remote.cache import BLOCKS
from tests.support.s3_server import S3, S3Server

SECRET = "canary-secret-access-key"
_CLOUDS = ("AWS_", "GOOGLE_", "AZURE_", "STORAGE_EMULATOR_HOST")


def served(monkeypatch: pytest.MonkeyPatch, dialect: str = S3) -> Iterator[S3Server]:
    """What a fixture yields: an empty bucket, and nothing kept of another one."""
    with S3Server(dialect).running() as server:
        asked_at(monkeypatch, server.url, server.url, server.url)
        yield server
    buckets._bucket.cache_clear()


def asked_at(monkeypatch: pytest.MonkeyPatch, s3: str, gcs: str, azure: str) -> None:
    """Clients of each cloud go to these endpoints from here on, Azure's with a signature that is
    part of its URLs."""
    for name in [name for name in os.environ if name.startswith(_CLOUDS)]:
        monkeypatch.delenv(name)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "canary-access-key-id",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3,
        "GOOGLE_BASE_URL": gcs,
        "GOOGLE_BEARER_TOKEN": "canary-token",
        "AZURE_STORAGE_ENDPOINT": azure,
        "AZURE_STORAGE_ACCOUNT_NAME": "tests",
        "AZURE_STORAGE_SAS_TOKEN": f"sv=2026-01-01&sig={SECRET}",
    }.items():
        monkeypatch.setenv(name, value)
    buckets._bucket.cache_clear()
    BLOCKS.clear()
