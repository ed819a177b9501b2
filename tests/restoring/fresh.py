"""A cluster that is formatted and was never started, for restores into it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.log.metadata_names import BOOTSTRAP_FILE
from kafkalog.log.metadata_records import read_snapshot_records
from kafkalog.messages.cluster_metadata import (
    FEATURE_LEVEL_RECORD,
    RawRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from kafkalog.messages.metadata_snapshot import pack_metadata_snapshot
from tests.support.log_builder import START_MS

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
LEVELS = {"metadata.version": 30, "eligible.leader.replicas.version": 1}


def fresh_node(log_dir: Path, node: int = 1, levels: Mapping[str, int] = LEVELS) -> Path:
    """A log dir as a format leaves it."""
    log_dir.mkdir(parents=True)
    directory_id = f"{node}{len(log_dir.name) % 10}{CLUSTER[2:]}"
    (log_dir / "meta.properties").write_text(
        f"version=1\ncluster.id={CLUSTER}\nnode.id={node}\ndirectory.id={directory_id}\n"
    )
    values = [
        encode_metadata_record(FEATURE_LEVEL_RECORD, 0, {"name": name, "featureLevel": level})
        for name, level in levels.items()
    ]
    (log_dir / BOOTSTRAP_FILE).write_bytes(pack_metadata_snapshot(values, START_MS))
    return log_dir


def new_records(log_dir: Path) -> list[tuple[str, dict[str, object]]]:
    """What a controller begins with: each record's name and fields."""
    found = []
    for record in read_snapshot_records(log_dir / BOOTSTRAP_FILE):
        if record.control_type is None:
            decoded = decode_metadata_record(record.value)
            assert not isinstance(decoded, RawRecord)
            found.append((decoded.message.name, decoded.fields))
    return found


def fields_of(log_dir: Path, name: str) -> list[dict[str, object]]:
    """Of the records of one type."""
    return [fields for each, fields in new_records(log_dir) if each == name]


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """A restore that ends well, as its document."""
    assert main(["restore", *words, "--json"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document
