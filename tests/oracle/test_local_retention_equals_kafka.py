"""Local segments of tiered topics: `retain --apply` deletes those that Kafka deletes of the same
log with the same offsets in remote storage, and leaves the rest as Kafka does.

Kafka besides rolls an active segment that is due, for its copying to take it. A stopped broker
copies nothing, and rolls when it is up again: ours does not.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.bucket.metadata_log import write_metadata_log
from kafkalog.bucket.stored_copies import StoredCopy
from kafkalog.format.checkpoints import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    pack_offset_checkpoint,
    parse_leader_epoch_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.partition_metadata import pack_partition_metadata
from kafkalog.format.segment_manifest import CopiedSegment
from tests.oracle.compare import compare_log_dirs
from tests.oracle.kafka import Answer, Kafka, Kafkas
from tests.oracle.retention import (
    LOG_CONFIG,
    NAME,
    START_MS,
    RetentionCall,
    random_call,
    retain_with_kafkalog,
    retention_script,
)
from tests.support.log_builder import TOPIC_ID

pytestmark = [pytest.mark.oracle, pytest.mark.thorough]

TOPIC, NUMBER = NAME.rpartition("-")[0], int(NAME.rpartition("-")[2])
SEGMENT_ID = "B" * 21 + "A"


@pytest.fixture(scope="module")
def kafkas() -> Iterator[Kafkas]:
    with Kafkas() as running:
        yield running


def tiered_call(rnd: random.Random, written: Answer, line: str) -> RetentionCall:
    """Limits of the local part, or those of all that hold for it as well."""
    call = random_call(rnd, written, line)
    limits = {key: call.config[key] for key in ("retention.ms", "retention.bytes")}
    if rnd.random() < 0.6:
        limits = {f"local.{key}": value for key, value in limits.items() if value != "-1"}
    own = {"remote.storage.enable": "true", "retention.ms": "-1", "cleanup.policy": "delete"}
    return replace(call, config={**LOG_CONFIG, **own, **limits})


def copied(epochs: list[tuple[int, int]], start: int, end: int) -> StoredCopy:
    """All offsets up to one as one segment of remote storage."""
    own = [(epoch, max(first, start)) for epoch, first in epochs if first <= end]
    kept = [e for n, e in enumerate(own) if n + 1 == len(own) or own[n + 1][1] > start]
    segment = CopiedSegment(
        TOPIC, NUMBER, TOPIC_ID, SEGMENT_ID, start, end, 0, START_MS, tuple(kept)
    )
    return StoredCopy(segment, 1000, START_MS, "x")


def add_uploads(log_dir: Path, work: Path, uploaded: int, start: int) -> None:
    """`__remote_log_metadata` beside the partition, and the log start line of a tiered log."""
    epochs_file = log_dir / NAME / "leader-epoch-checkpoint"
    epochs = list(parse_leader_epoch_checkpoint(epochs_file.read_bytes()))
    work.mkdir()
    write_metadata_log(work, [copied(epochs, min(start, uploaded), uploaded)], 1)
    shutil.move(work / "__remote_log_metadata-0", log_dir)
    (log_dir / NAME / "partition.metadata").write_bytes(pack_partition_metadata(TOPIC_ID))
    for name in (HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE):
        own = (log_dir / name).read_bytes() if (log_dir / name).exists() else None
        marks = dict(parse_offset_checkpoint(own)) if own else {}
        marks |= parse_offset_checkpoint((work / name).read_bytes())
        (log_dir / name).write_bytes(pack_offset_checkpoint(marks))
    (log_dir / LOG_START_OFFSET_FILE).write_bytes(pack_offset_checkpoint({(TOPIC, NUMBER): start}))


def drop_rolled(kafkas: Path, ours: Path, end: int) -> None:
    """The empty segment at the end that Kafka alone has."""
    made = kafkas / f"{end:020d}.log"
    if made.exists() and not (ours / made.name).exists():
        assert made.stat().st_size == 0
        for ending in (".log", ".index", ".timeindex"):
            made.with_suffix(ending).unlink()


def play(seed: int, kafka: Kafka, work: Path) -> tuple[int, list[str]]:
    """One log, one call: how many segments went, and what differs."""
    rnd = random.Random(seed)
    base = work / "base"
    base.mkdir(parents=True)
    written = kafka.write(base / NAME, retention_script(rnd), now_ms=START_MS, config=LOG_CONFIG)
    start, end = int(written["logStartOffset"]), int(written["logEndOffset"])
    if end == start or not (base / NAME / "leader-epoch-checkpoint").exists():
        return 0, []
    kafka.open_once(base, NAME, now_ms=int(written["now"]), config=LOG_CONFIG)
    call = tiered_call(rnd, written, kafka.line)
    bases = [int(log.stem) for log in sorted((base / NAME).glob("*.log"))]
    uploaded = rnd.choice([b - 1 for b in bases if b > start] or [start])
    if not parse_leader_epoch_checkpoint((base / NAME / "leader-epoch-checkpoint").read_bytes()):
        return 0, []
    add_uploads(base, work / "uploads", uploaded, start)
    kafkas, ours = work / "kafka", work / "ours"
    shutil.copytree(base, kafkas)
    shutil.copytree(base, ours)
    watermark = "checkpoint" if call.high_watermark is None else call.high_watermark
    expected = kafka.retain(
        kafkas, NAME, now_ms=call.now_ms, config=call.config, high_watermark=watermark,
        uploaded=uploaded,
    )  # fmt: skip
    facts = retain_with_kafkalog(ours, call)
    found = []
    if facts["deletedBaseOffsets"] != expected["deleted"]:
        found.append(f"deleted: {facts['deletedBaseOffsets']}, Kafka {expected['deleted']}")
    line = parse_offset_checkpoint((ours / LOG_START_OFFSET_FILE).read_bytes()).get((TOPIC, NUMBER))
    if expected["deleted"] and (line, facts["logStartOffset"]) != (start, start):
        found.append(f"log start {start}: line {line}, said {facts['logStartOffset']}")
    drop_rolled(kafkas / NAME, ours / NAME, int(expected["logEndOffset"]))
    names = [sorted(path.name for path in (place / NAME).iterdir()) for place in (ours, kafkas)]
    if names[0] != names[1]:
        found.append(f"files {sorted(set(names[0]) ^ set(names[1]))}")
    for log_dir in (ours, kafkas):
        (log_dir / LOG_START_OFFSET_FILE).write_bytes(
            pack_offset_checkpoint({(TOPIC, NUMBER): start})
        )
    found += map(str, compare_log_dirs(
        ours, kafkas, NAME, source=base, kafka=kafka,
        index_interval_bytes=int(LOG_CONFIG["index.interval.bytes"]),
    ))  # fmt: skip
    return len(expected["deleted"]), [f"seed {seed} {call} uploaded {uploaded}: {f}" for f in found]


@pytest.mark.parametrize(
    "seeds", [range(10), range(100, 200)],
    ids=lambda seeds: str(len(seeds)),
)  # fmt: skip
def test_local_segments_go_as_kafka_lets_them(kafkas: Kafkas, seeds: range, log_dir: Path) -> None:
    deleting, complaints = 0, []
    for seed in seeds:
        count, found = play(seed, kafkas.of("4.3"), log_dir / "case")
        deleting += count > 0
        complaints += found
        shutil.rmtree(log_dir / "case")
    assert not complaints, "\n".join(complaints)
    assert deleting >= len(seeds) // 6
