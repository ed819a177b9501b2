"""The document of an audit: valid by its schema, and its numbers are those of the files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest

import kafkalog
from tests.auditing.documents import audited_document, validate

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"


@pytest.fixture(scope="module")
def document() -> dict:
    return audited_document(SAMPLES / "broker")


def test_bytes_are_those_of_the_directories(document: dict) -> None:
    for row in document["partitions"]:
        files = [path for path in Path(row["path"]).rglob("*") if path.is_file()]
        assert row["bytes"] == sum(path.stat().st_size for path in files), row["path"]
    assert document["totals"]["bytes"] == sum(row["bytes"] for row in document["partitions"])
    for topic in document["topics"]:
        assert topic["bytes"] == sum(topic["bytesByKind"].values())


def test_records_are_those_that_a_reader_finds(document: dict) -> None:
    """Of logs without legacy wrappers, whose headers do not tell."""
    segments = kafkalog.read_view("segments", SAMPLES / "broker")
    for topic in document["topics"]:
        of_topic = segments.filter(
            pc.and_(
                pc.equal(segments["topic"], topic["topic"]), pc.equal(segments["state"], "live")
            )
        )
        assert topic["records"] == pc.sum(of_topic["recordsCount"]).as_py(), topic["topic"]
        assert topic["segments"] == of_topic.num_rows


def test_every_topic_is_there_by_its_own_settings(document: dict) -> None:
    topics = {row["topic"]: row for row in document["topics"]}
    assert topics["compacted"]["cleanupPolicy"] == "compact"
    assert topics["compacted"]["configSources"]["cleanup.policy"] == "topic"
    assert topics["odd-timestamps"]["retentionMs"] == -1


def test_command_line_writes_the_same_document(document: dict) -> None:
    command = [sys.executable, "-m", "kafkalog", "audit", "--log-dir", str(SAMPLES / "broker")]
    now = ["--now", str(document["nowMs"]), "--workers", "2"]
    done = subprocess.run(
        [*command, *now, "--json"], capture_output=True, text=True, timeout=300, check=False
    )
    found = json.loads(done.stdout)
    validate(found)
    found["seconds"] = document["seconds"]
    assert found == document
    assert done.returncode == int(any(f["severity"] != "info" for f in found["findings"]))
    table = subprocess.run(
        [*command, *now], capture_output=True, text=True, timeout=300, check=False
    )
    assert "compacted" in table.stdout
    assert "24 partitions" in table.stderr


def test_a_directory_that_waits_for_its_removal_is_no_stray(document: dict) -> None:
    """Its bytes are left over."""
    (removed,) = [row for row in document["topics"] if row["topic"] == "removed"]
    assert removed["bytesByKind"]["leftover"] == removed["bytes"] > 0
    assert not [f for f in document["findings"] if f["topic"] == "removed"]
