"""Streams into Delta deliver each record once: a batch that is run again, and a process that is
killed again and again while the log grows, rolls, is compacted and cut by retention.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from kafkalog.spark import gaps
from tests.support.growing_log import GrowingLog
from tests.support.log_builder import LogBuilder
from tests.support.streams import WAIT_S, run_to_end

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
# Records ahead of the stream in each partition, and what retention leaves of one: less than that.
AHEAD, RETENTION_BYTES = 1000, 60_000
KILLS = int(os.environ.get("KAFKALOG_KILLS", "15"))


@pytest.mark.thorough
def test_a_batch_that_is_run_again_is_in_the_table_once(spark: SparkSession, log_dir: Path) -> None:
    """As after a kill between Delta's commit and the checkpoint's."""
    LogBuilder(log_dir / "logs", "orders-0").batch(*(("k", str(n)) for n in range(30))).write()
    checkpoint = log_dir / "checkpoint"
    reader = spark.readStream.format("kafkalog").option("maxOffsetsPerTrigger", "10")
    frame = reader.load(str(log_dir / "logs"))
    for _ in range(2):
        query = available_now(frame, log_dir / "table", checkpoint)
        batches = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
        assert len(batches) == 3
        batches[-1].unlink()
        (checkpoint / "commits" / f".{batches[-1].name}.crc").unlink()
    assert query.recentProgress[0].batchId == 2  # it was run again
    found = spark.read.format("delta").load(str(log_dir / "table"))
    assert sorted(row.offset for row in found.select("offset").collect()) == list(range(30))


def available_now(frame: DataFrame, table: Path, checkpoint: Path) -> StreamingQuery:
    writer = frame.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
    return run_to_end(writer, str(table))


class KilledStream:
    """The stream's process: started, killed at random, started again over the same checkpoint."""

    def __init__(self, log_dir: Path, work: Path) -> None:
        self.table, self.plans = work / "table", work / "plans"
        self._checkpoint, self._done = work / "checkpoint", work / "done"
        self._command = [sys.executable, "-m", "tests.support.stream_to_delta", str(log_dir)]
        self._command += [str(self.table), str(self._checkpoint), str(self._done), str(self.plans)]
        self._errors = work / "stream.log"
        self._process = self._start()

    def kill(self) -> None:
        """The process, its JVM and their workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def start_again(self) -> None:
        self._process = self._start()

    def await_running(self) -> None:
        """Until a batch of this process is through."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == b"running\n", self._errors.read_text()[-3000:]

    def finish(self) -> None:
        self._done.touch()
        self._process.communicate(timeout=WAIT_S)
        assert self._process.returncode == 0, self._errors.read_text()[-3000:]

    def planned_offset(self, partition: int) -> int:
        """Up to where it has planned so far."""
        plans = self.plans.read_text().splitlines() if self.plans.exists() else []
        return int(json.loads(plans[-1])["end"]["orders"][str(partition)]) if plans else 0

    def _start(self) -> subprocess.Popen[bytes]:
        with self._errors.open("ab") as errors:
            return subprocess.Popen(
                self._command,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"},
                start_new_session=True,
            )


class Writer(threading.Thread):
    """What happens to the logs meanwhile, by turns that a seed decides: as fast as it goes, up to
    `AHEAD` records ahead of the stream, then slowly, and without records."""

    def __init__(
        self, logs: list[GrowingLog], run_dir: Path, numbers: random.Random, stream: KilledStream
    ) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self.counts = {"append": 0, "roll": 0, "compact": 0, "retain": 0}
        self._logs, self._run_dir, self._numbers = logs, run_dir, numbers
        self._stream = stream
        self._ends = threading.Event()

    def run(self) -> None:
        turns: list[tuple[str, Callable[[GrowingLog], None]]] = [
            *[("append", GrowingLog.append)] * 30,
            *[("roll", GrowingLog.roll)] * 4,
            ("compact", lambda log: log.compact(self._run_dir)),
            ("retain", lambda log: log.retain(self._run_dir, RETENTION_BYTES)),
        ]
        try:
            while not self._ends.wait(0.03):
                name, turn = self._numbers.choice(turns)
                number = self._numbers.randrange(len(self._logs))
                log = self._logs[number]
                if log.next_offset > AHEAD + self._stream.planned_offset(number):
                    self._ends.wait(0.5)
                    if name == "append":
                        continue
                turn(log)
                self.counts[name] += 1
        except BaseException as error:  # raised again by end()
            self.error = error

    def end(self) -> None:
        self._ends.set()
        self.join()
        if self.error is not None:
            raise self.error


@pytest.mark.soak
def test_stream_killed_at_random_delivers_each_record_once(
    request: pytest.FixtureRequest, log_dir: Path, tmp_path: Path
) -> None:
    seed = int(os.environ.get("KAFKALOG_SEED", "1"))
    numbers = random.Random(seed)
    logs = [GrowingLog(log_dir / "logs", f"orders-{n}", random.Random(n)) for n in range(2)]
    stream = KilledStream(log_dir / "logs", tmp_path)
    writer = Writer(logs, tmp_path / "runs", random.Random(seed), stream)
    writer.start()
    try:
        for number in range(KILLS):
            if number % 3 == 0:
                stream.await_running()
                time.sleep(numbers.uniform(0, 6))
            else:  # wherever it is then: it starts, plans its first batch, or goes on
                time.sleep(numbers.uniform(5, 45))
            stream.kill()
            stream.start_again()
        stream.await_running()
        writer.end()
        stream.finish()
    finally:
        writer.end()
        stream.kill()
    assert min(writer.counts.values()) > 0
    # our own session only now: the stream's has the machine for itself till here
    counts = check_delivered(request.getfixturevalue("spark"), logs, stream)
    sys.stderr.write(f"seed {seed}: {KILLS} kills, {writer.counts}, {counts}\n")


def check_delivered(
    spark: SparkSession, logs: list[GrowingLog], stream: KilledStream
) -> dict[str, int]:
    """Nothing twice, nothing missing that was there; counts of what was seen.

    A record that a command removed while its batch was read is in what that command kept for its
    undo, and delivered from there, as long as no further command came.
    """
    counts = dict.fromkeys(("written", "delivered", "removed_first", "forgotten_while_read"), 0)
    table = spark.read.format("delta").load(str(stream.table))
    delivered = table.groupBy("partition").agg(F.collect_list("offset").alias("offsets")).collect()
    by_partition = {row.partition: row.offsets for row in delivered}
    reported = gaps(spark, str(logs[0].log_dir)).groupBy("partition").agg(F.sum("missingCount"))
    missing_on_disk = {row[0]: row[1] for row in reported.collect()}
    plans = [json.loads(line) for line in stream.plans.read_text().splitlines()]
    for number, log in enumerate(logs):
        offsets = by_partition[number]
        assert len(offsets) == len(set(offsets)), "a record came twice"
        written = set(range(log.next_offset))
        assert set(offsets) <= written
        on_disk = log.on_disk()
        # what gaps reports is what the writer wrote and the disk does not have any more
        assert missing_on_disk[number] == len(written - on_disk)
        lost = written - set(offsets)
        assert not lost & on_disk, "a record that is still there was not delivered"
        for offset in lost:
            planned = last_plan(plans, number, offset)
            if log.removed[offset] < planned["time"]:
                counts["removed_first"] += 1
                continue
            # the batch is through before the next one is planned
            through = next((p["time"] for p in plans if p["start"] == planned["end"]), math.inf)
            forgotten = log.forgotten.get(offset, math.inf)
            assert forgotten < through, f"{log.path.name}: {offset} was on disk, in plan {planned}"
            counts["forgotten_while_read"] += 1
        counts["written"] += len(written)
        counts["delivered"] += len(offsets)
    assert counts["written"] == sum(
        counts[name] for name in ("delivered", "removed_first", "forgotten_while_read")
    )
    assert min(counts["delivered"], counts["removed_first"]) > 0
    return counts


def last_plan(plans: list[dict[str, Any]], partition: int, offset: int) -> dict[str, Any]:
    """The plan of the batch that an offset was in; the last one of those it had, if it was killed
    and planned anew. The end of a batch stays, in the checkpoint."""
    name = str(partition)
    batch = next(plan["end"] for plan in plans if offset < plan["end"]["orders"][name])
    return next(plan for plan in reversed(plans) if plan["end"] == batch)
