"""Our reading of the metadata log against Kafka's own decoder and its own table of versions."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.messages.cluster_metadata import MetadataRecord, decode_metadata_record
from kafkalog.messages.json_form import json_form
from kafkalog.planning.kafka_version import FIRST_METADATA_VERSIONS, kafka_version_of
from tests.oracle.kafka import Kafka
from tests.oracle.setup import ensure_oracle
from tests.support.metadata_builder import (
    MetadataBuilder,
    abort,
    begin,
    broker_config,
    change_replicas,
    config,
    end,
    feature,
    frame,
    no_op,
    numbers,
    partition,
    remove_topic,
    tags,
    topic,
    uuid,
)
from tests.support.reference.batches import parse_batches

pytestmark = pytest.mark.oracle

TOPIC_ID = "4L6g3nShT-eMCtK--X86sw"
# One record of each kind with what a small cluster never writes.
ODD = (
    topic("a"), partition([1, 2]), partition([3], number=1), change_replicas([]),
    frame(3, 2, partition([1])[3:-1] + b"\x02" + uuid(TOPIC_ID) + tags((0, b"\1"),
          (1, numbers([4])), (2, b"\0"))),
    frame(5, 2, bytes(4) + uuid(TOPIC_ID) + tags((0, numbers([1])), (1, b"\xff" * 4), (3, b"\0"),
          (4, numbers([9])), (5, b"\1"), (6, numbers([])), (7, b"\0"),
          (8, b"\2" + uuid(TOPIC_ID)))),
    config("a", "k", None), config("a", "k", ""), broker_config("", "k", "v\u00e9"),
    feature("metadata.version", 30), no_op(), begin(), abort(), begin(None), end(),
    remove_topic(),
)  # fmt: skip


def kafkas_records(kafka: Kafka, file: Path) -> dict[int, dict[str, Any]]:
    """offset → what DumpLogSegments' metadata decoder prints of a data record."""
    text = kafka.call("dumplog", "--files", str(file), "--cluster-metadata-decoder")["text"]
    found = re.findall(r"^\| offset: (\d+) .*? payload: (\{.*\})$", text, re.MULTILINE)
    return {int(offset): json.loads(payload) for offset, payload in found}


def values(file: Path) -> Iterator[tuple[int, bytes]]:
    for _, header, records in parse_batches(file.read_bytes()):
        if not header.is_control:
            yield from ((record.offset, record.value or b"") for record in records)


def kafkas_name(name: str) -> str:
    """`TopicRecord` → `TOPIC_RECORD`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def compare(kafka: Kafka, file: Path) -> int:
    """Every record that has a table here is read as Kafka reads it; how many there were."""
    theirs = kafkas_records(kafka, file)
    compared = 0
    for offset, value in values(file):
        record = decode_metadata_record(value)
        printed = theirs.pop(offset)
        assert isinstance(record, MetadataRecord)
        assert kafkas_name(record.message.name) == printed["type"]
        assert record.version == printed["version"]
        ours = json_form(record.message.body, record.version, record.fields)
        assert ours == printed["data"], (offset, value)
        compared += 1
    assert theirs == {}
    return compared


@pytest.mark.parametrize(
    "sample", ["broker", "cleaning/before", "cleaning/after", "share", "cluster/1/data"]
)
def test_the_samples_records_are_read_as_kafka_reads_them(kafka: Kafka, sample: str) -> None:
    directory = SAMPLES / sample / "__cluster_metadata-0"
    assert compare(kafka, directory / f"{0:020d}.log") > 40


def test_a_snapshot_of_kafkas_is_read_as_kafka_reads_it(kafka: Kafka, tmp_path: Path) -> None:
    file = tmp_path / f"{0:020d}-{0:010d}.checkpoint"
    file.write_bytes((SAMPLES / "broker" / "bootstrap.checkpoint").read_bytes())
    assert compare(kafka, file) >= 6
    for checkpoint in (SAMPLES / "cluster" / "1" / "data").rglob("*-*.checkpoint"):
        compare(kafka, checkpoint)


def test_records_of_every_kind_are_read_as_kafka_reads_them(kafka: Kafka, log_dir: Path) -> None:
    directory = MetadataBuilder(log_dir).batch(*ODD).write()
    assert compare(kafka, directory / f"{0:020d}.log") == len(ODD)


@pytest.mark.thorough
def test_levels_of_metadata_version_are_those_of_the_releases() -> None:
    """Kafka's own `version-mapping` for the first and the last level of each release."""
    for release, first_level in FIRST_METADATA_VERSIONS.items():
        name = ".".join(map(str, release))
        assert _level(f"{name}-IV0") == first_level
        assert kafka_version_of(first_level) == name
    for name in ("4.1", "4.2", "4.3"):
        assert kafka_version_of(_level(name)) == name
    assert kafka_version_of(_level("4.0")) == "4.1"


def _level(release: str) -> int:
    runtime = ensure_oracle()
    done = subprocess.run(
        [
            *(str(runtime.java), "-cp", runtime.class_path),
            *("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", "localhost:1"),
            *("version-mapping", "--release-version", release),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    match = re.search(r"metadata\.version=(\d+)", done.stdout)
    assert match, done.stdout + done.stderr
    return int(match[1])
