"""What Kafka's own cleaner made of `cleaning/before` in a running broker is what we make of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES, copy_sample, read_manifest
from kafkalog.cli.main import main
from kafkalog.format.record_batch import parse_batch

AFTER = SAMPLES / "cleaning" / "after"
# A restart of the broker, which lay between the two copies, adds a leader epoch.
NOT_THE_CLEANERS = {"leader-epoch-checkpoint"}


def compact(log_dir: Path, topic_partition: str, *, from_disk: bool = False) -> None:
    """The same pass: the broker's settings, and its clock as the manifest has it.

    The settings were altered after the copy was taken, so they contradict its metadata log, unless
    that is the later one.
    """
    cleaning = read_manifest()["cleaning"]
    words = ["compact", "--log-dir", str(log_dir), "--topic", "*", "--apply", "--workers", "1"]
    words.append("--no-undo")
    words += ["--topic-partition", topic_partition]
    words += ["--now", str(cleaning["nowMs"][topic_partition])]
    if not from_disk:
        words += ["--force", "config-differs"]
        for key, value in cleaning["config"].items():
            words += ["--config", f"{key}={value}"]
    assert main(words) == 0


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.suffix != ".deleted" and path.name not in NOT_THE_CLEANERS
    }


def batches(log: bytes) -> list[tuple[object, ...]]:
    """Every batch with its records, without what depends on the compressor."""
    found, position = [], 0
    while position < len(log):
        header, records = parse_batch(log, position)
        kept = (header.base_offset, header.last_offset, header.attributes, header.base_timestamp)
        found.append((*kept, header.max_timestamp, header.producer_id, records))
        position += 12 + header.batch_length
    return found


@pytest.mark.parametrize("topic_partition", ["accounts-0", "accounts-1"])
def test_uncompressed_log_is_cleaned_to_the_brokers_bytes(
    topic_partition: str, log_dir: Path
) -> None:
    copy = copy_sample("cleaning/before", log_dir / "copy")
    compact(copy, topic_partition)
    assert files(copy / topic_partition) == files(AFTER / topic_partition)


def test_settings_of_the_metadata_log_alone_give_the_brokers_bytes(log_dir: Path) -> None:
    copy = copy_sample("cleaning/before", log_dir / "copy")
    shutil.rmtree(copy / "__cluster_metadata-0")
    shutil.copytree(AFTER / "__cluster_metadata-0", copy / "__cluster_metadata-0")
    compact(copy, "accounts-0", from_disk=True)
    assert files(copy / "accounts-0") == files(AFTER / "accounts-0")


def test_compressed_log_is_cleaned_to_the_brokers_records(log_dir: Path) -> None:
    copy = copy_sample("cleaning/before", log_dir / "copy")
    compact(copy, "sessions-0")
    ours, kafkas = files(copy / "sessions-0"), files(AFTER / "sessions-0")
    assert ours.keys() == kafkas.keys()
    for name in ours:
        if name.endswith(".log"):
            assert batches(ours[name]) == batches(kafkas[name]), name
        elif not name.endswith(".index"):
            assert ours[name] == kafkas[name], name


def test_checkpoint_is_where_the_brokers_cleaner_stopped(log_dir: Path) -> None:
    copy = copy_sample("cleaning/before", log_dir / "copy")
    for topic_partition in ("accounts-0", "accounts-1", "sessions-0"):
        compact(copy, topic_partition)
    ours, kafkas = (
        sorted((root / "cleaner-offset-checkpoint").read_text().splitlines())
        for root in (copy, AFTER)
    )
    assert ours == kafkas
