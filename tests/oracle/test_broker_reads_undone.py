"""A real broker on twenty undone logs, half of them after a kill: consumers of either isolation
level read the very records they read before.
"""

from __future__ import annotations

import random
import shutil
import signal
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import apply_run
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.operations.retain import apply_retention_run
from kafkalog.operations.undo import undo_run
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import CompactionRequest, RunRequest
from kafkalog.swap.local_files import LocalFiles
from tests.operations.faults.breaking_files import CountingFiles, DyingFiles, run_in_child
from tests.operations.undo.test_undo_kills import copied, undo_all
from tests.operations.undo.trees import differences, files, kept, tree
from tests.oracle.consuming import COMMITTED, UNCOMMITTED, consume
from tests.oracle.rounds import work_directory
from tests.oracle.scripts import CODECS
from tests.support.broker import CLIENT_WAIT_S, Broker, running_broker

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]

TOPICS = tuple(f"undone-{number}" for number in range(20))
# 1.0 is never exceeded: the broker's own cleaner leaves these topics alone.
CONFIG = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4096",
    "index.interval.bytes": "512",
    "min.cleanable.dirty.ratio": "1.0",
}
COMPACT = [f"{key}={value}" for key, value in {**CONFIG, "min.cleanable.dirty.ratio": "0"}.items()]
FORCE = frozenset({"config-differs"})
RETAIN = ["cleanup.policy=delete", "retention.ms=1"]


def test_a_broker_reads_the_same_from_undone_logs() -> None:
    rnd = random.Random(1)
    with work_directory() as work:
        with running_broker(work / "broker") as broker:
            _produce(broker, rnd)
            read = _read_all(broker)
        log_dir, run_dir = broker.log_dir, work / "runs"
        before = tree(log_dir)
        ways = Counter[str]()
        for number, topic in enumerate(TOPICS):
            verb = "retain" if number % 5 == 4 else "compact"
            way = ("undone", "run killed", "undone", "undo killed")[number % 4]
            _run_and_undo(verb, way, topic, log_dir, run_dir, rnd)
            ways[f"{verb}, {way}"] += 1
            assert differences(files(tree(log_dir)), files(before)) == [], (topic, verb, way)
        count = sum(len(messages) for messages in read.values())
        sys.stdout.write(f"\n{dict(ways)}, {count} messages read\n")
        assert sum(count for way, count in ways.items() if "killed" in way) == 10
        with running_broker(work / "broker") as broker:
            found = _read_all(broker)
        for key, messages in read.items():
            assert found[key] == messages, key


def _run_and_undo(
    verb: str, way: str, topic: str, log_dir: Path, run_dir: Path, rnd: random.Random
) -> None:
    run = partial(_run, verb, topic)
    what = f"{topic}: {verb}, {way}"
    if way == "run killed":
        counting = CountingFiles()
        copy = copied(log_dir, log_dir.parent / "copy")
        run(copy, run_dir.parent / "counted", counting)
        shutil.rmtree(copy)
        # From the first change of a live file on.
        first = next(n for n, step in enumerate(counting.steps) if step.startswith("link"))
        step = rnd.randrange(first, len(counting.steps))
        code = run_in_child(lambda: run(log_dir, run_dir, DyingFiles(step)))
        assert code == -signal.SIGKILL, what
    done = run(log_dir, run_dir, None)
    # What was killed may have been about to end.
    assert done.results or way == "run killed", (what, [plan.reason for plan in done.plans])
    assert len(list((log_dir / f"{topic}-0").glob("*.undo"))) > 10, what
    if way == "undo killed":
        step = rnd.randrange(40)
        code = run_in_child(lambda: undo_run(run_dir, done.run_id, files=DyingFiles(step)))
        assert code == -signal.SIGKILL, what
    undo_all(run_dir, what)
    assert kept(log_dir) == [], what


def _run(verb: str, topic: str, log_dir: Path, run_dir: Path, counted: LocalFiles | None) -> Any:
    now_ms = time.time_ns() // 1_000_000 + 60_000

    def one_by_one(plans, run: CleanRun):  # type: ignore[no-untyped-def]
        return (clean_partition(plan, run, counted) for plan in plans)

    if verb == "retain":
        config = LogConfig.from_overrides(RETAIN)
        asked = RunRequest(
            (str(log_dir),), now_ms, config, topics=(topic,), run_dir=str(run_dir), force=FORCE
        )
        done: Any = apply_retention_run(asked, files=counted)
    else:
        config = LogConfig.from_overrides(COMPACT)
        to_compact = CompactionRequest(
            (str(log_dir),), now_ms, config, topics=(topic,), run_dir=str(run_dir), force=FORCE
        )
        done = apply_run(to_compact, one_by_one, files=counted)
    assert not done.problems, (topic, done.problems)
    assert {result.status for result in done.results} <= {"compacted", "deleted"}, done.results
    return done


def _produce(broker: Broker, rnd: random.Random) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    new = [NewTopic(topic, 1, 1, config=CONFIG) for topic in TOPICS]
    for future in admin.create_topics(new).values():
        future.result(CLIENT_WAIT_S)
    for number, topic in enumerate(TOPICS):
        settings: dict[str, Any] = {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 5,
            "batch.size": 900,
            "compression.type": CODECS[number % len(CODECS)],
            "log_level": 0,
        }
        if number % 2:
            settings["transactional.id"] = topic
        producer = Producer(settings)
        if number % 2:
            producer.init_transactions(CLIENT_WAIT_S)
        for _ in range(8):
            if number % 2:
                producer.begin_transaction()
            for _ in range(60):
                value = rnd.randbytes(rnd.randrange(60)) if rnd.random() < 0.9 else None
                producer.produce(topic, key=f"key-{rnd.randrange(40)}", value=value, partition=0)
            assert producer.flush(CLIENT_WAIT_S) == 0
            if number % 2 and rnd.random() < 0.3:
                producer.abort_transaction(CLIENT_WAIT_S)
            elif number % 2:
                producer.commit_transaction(CLIENT_WAIT_S)
        if number % 2:  # answered when the last marker is written, which a commit is not
            Producer(settings).init_transactions(CLIENT_WAIT_S)


def _read_all(broker: Broker) -> dict[tuple[str, str], Any]:
    return {
        (topic, isolation): consume(broker, topic, isolation)
        for topic in TOPICS
        for isolation in (COMMITTED, UNCOMMITTED)
    }
