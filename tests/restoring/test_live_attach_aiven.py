"""As `test_live_attach_bucket`, by brokers that run Aiven's plug-in: plain and whole objects, and
compressed and encrypted ones below a prefix, with custom metadata.

The plug-in is in no registry of jars. docs/guides/attach-bucket.md tells how it was compiled;
KAFKALOG_AIVEN_JARS is the directory with its jar and those that it needs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from Crypto.PublicKey import RSA

from kafkalog.remote.paths import KeyFiles
from tests.bucket.test_live_cluster import settings
from tests.restoring.test_live_attach_bucket import (
    attach,
    check_goes_on,
    kept_metadata,
    lost_cluster,
    wrong,
)
from tests.support.broker import Broker, BrokerFactory
from tests.support.broker import broker_factory as broker_factory  # a fixture

JARS = os.environ.get("KAFKALOG_AIVEN_JARS", "")
KEY = "key1"
_CLASSES = "io.aiven.kafka.tieredstorage"

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.broker,
    pytest.mark.soak,
    pytest.mark.skipif(not JARS, reason="KAFKALOG_AIVEN_JARS does not name the plug-in's jars"),
]


def plugin(store: Path) -> dict[str, str]:
    return {
        **settings(store),
        "rsm.config.dir": "",
        "remote.log.storage.manager.class.name": f"{_CLASSES}.RemoteStorageManager",
        "remote.log.storage.manager.class.path": f"{JARS}/*",
        "rsm.config.storage.backend.class": f"{_CLASSES}.storage.filesystem.FileSystemStorage",
        "rsm.config.storage.root": str(store),
        "rsm.config.chunk.size": "4096",
        "rsm.config.fetch.chunk.cache.class": f"{_CLASSES}.fetch.cache.MemoryChunkCache",
        "rsm.config.fetch.chunk.cache.size": "4194304",
    }


def encrypting(directory: Path) -> tuple[Callable[[Path], dict[str, str]], KeyFiles]:
    """The settings, and the key for a reader."""
    key = RSA.generate(2048)
    private, public = directory / "private.pem", directory / "public.pem"
    private.write_bytes(key.export_key(pkcs=8))
    public.write_bytes(key.public_key().export_key())
    own = {
        "rsm.config.key.prefix": "some/prefix/",
        "rsm.config.custom.metadata.fields.include": "REMOTE_SIZE,OBJECT_PREFIX,OBJECT_KEY",
        "rsm.config.compression.enabled": "true",
        "rsm.config.encryption.enabled": "true",
        "rsm.config.encryption.key.pair.id": KEY,
        "rsm.config.encryption.key.pairs": KEY,
        f"rsm.config.encryption.key.pairs.{KEY}.public.key.file": str(public),
        f"rsm.config.encryption.key.pairs.{KEY}.private.key.file": str(private),
    }
    return lambda store: plugin(store) | own, ((KEY, str(private)),)


@pytest.mark.parametrize("source", ["manifests", "records"])
@pytest.mark.parametrize("kind", ["plain", "encrypted"])
def test_a_broker_with_aivens_plugin_goes_on_over_the_bucket(
    broker_factory: BrokerFactory, tmp_path: Path, kind: str, source: str
) -> None:
    made, keys = encrypting(tmp_path) if kind == "encrypted" else (plugin, ())
    log_dir, store, before = lost_cluster(broker_factory, tmp_path, plugin=made)
    assert list(store.rglob("*.rsm-manifest"))
    old = kept_metadata(log_dir, tmp_path / "old") if source == "records" else None
    shutil.rmtree(log_dir)
    target = Broker(tmp_path / "target", made(store))
    target.format()
    try:
        done = attach(store, [target.log_dir], tmp_path / "runs", old, keys=keys)
        target.start()
        check_goes_on(target.bootstrap_servers, target.log_dir, store, done, before)
        assert wrong([target.log_file]) == []
    finally:
        target.kill()
