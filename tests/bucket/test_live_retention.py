"""A live tiered broker deletes from remote storage what `retain` planned of its stopped log dir: by
size, by time, by both, by the log start, and nothing else.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kafkalog.cli.main import main
from kafkalog.format.checkpoints import (
    LOG_START_OFFSET_FILE,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from tests.bucket.test_live_cluster import (
    Tiered,
    await_that,
    await_upload,
    consumed,
    create,
    local_bases,
    look,
    produce,
    stored,
)
from tests.bucket.test_live_cluster import broker_factory as broker_factory  # a fixture
from tests.bucket.test_live_cluster import tiered as tiered  # a fixture

pytestmark = [pytest.mark.oracle, pytest.mark.soak]

DAY_MS = 86_400_000
COUNT = 900
LIMITS = {
    "size": {"retention.bytes": "70000"},
    "time": {"retention.ms": str(DAY_MS)},
    "both": {"retention.ms": str(DAY_MS), "retention.bytes": "40000"},
    "small": {"retention.bytes": "1"},
    "none": {},
    "start": {},
}
START = 400


def produce_in_two_days(servers: str, topic: str) -> None:
    """The first third of the records is ten days old."""
    producer = Producer({"bootstrap.servers": servers, "batch.size": 2048, "linger.ms": 5})
    now_ms = time.time_ns() // 1_000_000
    for number in range(COUNT):
        at_ms = now_ms - 10 * DAY_MS if number < COUNT // 3 else now_ms
        producer.produce(topic, key=f"k{number}", value=f"{number} " + "v" * 90, timestamp=at_ms)
    assert producer.flush(120) == 0


def planned(
    log_dir: Path, topic: str, capsys: pytest.CaptureFixture[str], **limits: str
) -> dict[str, Any]:
    given = {"retention.ms": "-1", "local.retention.bytes": "1", **LIMITS.get(topic, limits)}
    words = ["retain", str(log_dir), f"--topic={topic}", "--json", "--force=config-differs"]
    main([*words, *(f"--config={key}={value}" for key, value in given.items())])
    (found,) = json.loads(capsys.readouterr().out)["partitions"]
    assert found["remote"] is not None, found["reason"]
    return dict(found["remote"])


def set_log_start(log_dir: Path, topic: str, offset: int) -> None:
    path = log_dir / LOG_START_OFFSET_FILE
    lines = {**parse_offset_checkpoint(path.read_bytes()), (topic, 0): offset}
    path.write_bytes(pack_offset_checkpoint(lines))


def limit(servers: str) -> None:
    """Set all limits, and delete records of one topic."""
    admin = AdminClient({"bootstrap.servers": servers})
    for topic, own in LIMITS.items():
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in own.items()
        ]
        if entries:
            resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
            for done in admin.incremental_alter_configs([resource]).values():
                done.result(120)
    for done in admin.delete_records([TopicPartition("start", 0, START)]).values():
        done.result(120)


def bases_in(store: Path, topic: str) -> list[int]:
    return [int(path.name[:20]) for path in stored(store, topic, "log")]


def test_a_broker_deletes_what_the_plan_lets_go(
    tiered: Tiered, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create(tiered.servers, *LIMITS, **{"retention.ms": "-1"})
    for topic in LIMITS:
        produce_in_two_days(tiered.servers, topic)
        await_upload(tiered.broker.log_dir, topic)
    before = {topic: bases_in(tiered.store, topic) for topic in LIMITS}
    tiered.broker.stop()
    copy = Path(shutil.copytree(tiered.broker.log_dir, tmp_path / "copy"))
    set_log_start(copy, "start", START)
    plans = {topic: planned(copy, topic, capsys) for topic in LIMITS}
    expected = {
        topic: [segment["baseOffset"] for segment in plan["kept"]] for topic, plan in plans.items()
    }
    gone = {topic: len(plan["deleted"]) for topic, plan in plans.items()}
    assert gone["none"] == 0
    assert min(gone[topic] for topic in LIMITS if topic != "none") > 0
    assert gone["both"] > gone["time"] < len(before["time"])
    tiered.broker.start()
    limit(tiered.servers)
    for topic, bases in expected.items():
        await_that(
            lambda topic=topic, bases=bases: bases_in(tiered.store, topic) == bases,  # type: ignore[misc]
            f"{topic}: {bases_in(tiered.store, topic)} of {before[topic]}, expected {bases}",
        )
    time.sleep(3)  # some passes more
    assert {topic: bases_in(tiered.store, topic) for topic in LIMITS} == expected
    tiered.broker.stop()
    lines = parse_offset_checkpoint((tiered.broker.log_dir / LOG_START_OFFSET_FILE).read_bytes())
    starts = {topic: lines[topic, 0] for topic in LIMITS}
    assert starts == {topic: plan["logStartOffset"] for topic, plan in plans.items()}


def test_what_is_below_the_log_start_counts_in_the_pass_that_deletes_it(
    tiered: Tiered, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first segment is the largest, and what is above the limit lies between its size and the
    second's: nothing goes by size until the log start lets the first one go."""
    topic = "passed"
    create(tiered.servers, topic, **{"retention.ms": "-1"})
    own = {"bootstrap.servers": tiered.servers, "batch.size": 2048, "linger.ms": 5}
    producer = Producer(own)
    for number in range(140):
        producer.produce(topic, key=f"k{number}", value="v" * 90)
    assert producer.flush(120) == 0
    for number in range(6):
        producer.produce(topic, key=f"l{number}", value="v" * 10_000)
        assert producer.flush(120) == 0
    await_upload(tiered.broker.log_dir, topic)
    sizes = {
        int(path.name[:20]): path.stat().st_size for path in stored(tiered.store, topic, "log")
    }
    (first, second, third, *_), local = sorted(sizes), local_bases(tiered.broker.log_dir, topic)
    tiered.broker.stop()
    active = tiered.broker.log_dir / f"{topic}-0" / f"{local[0]:020d}.log"
    excess = (sizes[first] + sizes[second]) // 2
    assert sizes[second] <= excess < sizes[first]
    limit_bytes = str(sum(sizes.values()) + active.stat().st_size - excess)
    copy = Path(shutil.copytree(tiered.broker.log_dir, tmp_path / "copy"))
    limits = {"retention.bytes": limit_bytes}
    assert planned(copy, topic, capsys, **limits)["deleted"] == []
    set_log_start(copy, topic, second)
    plan = planned(copy, topic, capsys, **limits)
    gone = {segment["baseOffset"]: segment["rule"] for segment in plan["deleted"]}

    tiered.broker.start()
    admin = AdminClient({"bootstrap.servers": tiered.servers})
    entry = ConfigEntry("retention.bytes", limit_bytes, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(120)
    time.sleep(3)  # some passes
    assert bases_in(tiered.store, topic) == sorted(sizes)
    (done,) = admin.delete_records([TopicPartition(topic, 0, second)]).values()
    done.result(120)
    await_that(lambda: first not in bases_in(tiered.store, topic), "the first segment is there")
    time.sleep(3)
    assert bases_in(tiered.store, topic) == [each for each in sorted(sizes) if each not in gone]
    assert gone == {first: "log-start-offset", second: "retention.bytes"}
    assert plan["logStartOffset"] == third


def test_a_broker_goes_on_behind_what_was_deleted_of_a_gone_cluster(
    tiered: Tiered, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster was not gone after all: what `retain` wrote is what a broker would have."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tiered.store.parent / "state"))
    topic, log_dir = "gone", tiered.broker.log_dir
    create(tiered.servers, topic, **{"retention.ms": "-1"})
    produce(tiered.servers, topic, 1500)
    await_upload(log_dir, topic)
    before = consumed(tiered.servers, topic, "read_uncommitted")
    tiered.broker.stop()
    words = ["retain", str(log_dir), f"--topic={topic}", "--config=retention.bytes=70000",
             "--force=config-differs", f"--remote-dir={tiered.store}", "--cluster-is-gone",
             "--apply", "--no-undo", "--json"]  # fmt: skip
    assert main(words) == 0
    done = json.loads(capsys.readouterr().out)
    assert len(done["remoteDeletions"]["segments"]) > 2
    start = done["partitions"][0]["remote"]["logStartOffset"]
    assert look([log_dir], tiered.store).findings == ()
    tiered.broker.start()
    left = [row for row in before if row[0] >= start]
    assert 0 < len(left) < len(before)
    assert consumed(tiered.servers, topic, "read_uncommitted") == left
    there = bases_in(tiered.store, topic)
    produce(tiered.servers, topic, 600)
    await_upload(log_dir, topic)
    assert bases_in(tiered.store, topic)[: len(there)] == there
    assert len(bases_in(tiered.store, topic)) > len(there)
    assert len(consumed(tiered.servers, topic, "read_uncommitted")) == len(left) + 600
    tiered.broker.stop()
    assert look([log_dir], tiered.store).findings == ()
