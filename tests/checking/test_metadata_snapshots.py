"""Snapshots of the cluster's metadata: sound ones are passed over, damaged ones are found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES
from kafkalog.checking.metadata_checks import check_metadata_files
from tests.checking.running import findings
from tests.support.metadata_builder import MetadataBuilder, begin, feature, frame, topic

BROKEN = "metadata-snapshot-broken"


@pytest.mark.parametrize("node", ["1", "2", "3"])
def test_a_brokers_snapshots_are_sound(node: str) -> None:
    directory = SAMPLES / "cluster" / node / "data" / "__cluster_metadata-0"
    assert list(directory.glob("*-*.checkpoint"))
    assert list(check_metadata_files(str(directory))) == []


def _flip(data: bytes) -> bytes:
    return data[:400] + bytes([data[400] ^ 1]) + data[401:]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-1], "bytes after the last whole batch"),
        (lambda data: data[: -int.from_bytes(data[8:12], "big") // 4], ""),
        (_flip, "CRC does not agree"),
        (lambda _: b"", "does not begin with its header"),
    ],
)
def test_a_damaged_snapshot_is_a_finding_of_verify(
    tmp_path: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    log_dir = tmp_path / "data"
    shutil.copytree(SAMPLES / "cluster" / "1" / "data", log_dir)
    snapshot = max((log_dir / "__cluster_metadata-0").glob("*-*.checkpoint"))
    assert [f for f in findings(log_dir) if f.kind == BROKEN] == []
    snapshot.chmod(0o644)
    snapshot.write_bytes(damage(snapshot.read_bytes()))
    (found,) = [f for f in findings(log_dir) if f.kind == BROKEN]
    assert words in found.text
    assert found.path == str(snapshot.resolve())
    assert (found.topic, found.severity.is_failure) == ("__cluster_metadata", True)


def test_records_of_a_snapshot_are_looked_at(log_dir: Path) -> None:
    broken = frame(12, 0, b"\xff\xff")
    unknown = frame(99, 0, b"\xde\xad")
    directory = (
        MetadataBuilder(log_dir)
        .batch(feature("metadata.version", 30))
        .snapshot(10, 1, topic("a"), broken, unknown)
        .snapshot(20, 1, topic("a"), begin())
        .write()
    )
    found = [
        (f.kind, Path(f.path).name[:20], f.offset) for f in check_metadata_files(str(directory))
    ]
    assert found == [(BROKEN, f"{10:020}", 2), (BROKEN, f"{20:020}", None)]
