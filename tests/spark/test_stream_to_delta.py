"""Streams into Delta deliver each record once: a batch that is run again, and a process that is
killed again and again while the log grows, rolls, is compacted and cut by retention.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from kafkalog.spark import gaps
from tests.support.growing_log import GrowingLog
from tests.support.log_builder import LogBuilder

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 600
TRIES = 5
KILLS = int(os.environ.get("KAFKALOG_KILLS", "15"))


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
    """Run to the end. Spark gives a Python worker ten seconds to start, which a busy machine may
    exceed: then again."""
    writer = frame.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
    for _ in range(TRIES):
        query = writer.trigger(availableNow=True).start(str(table))
        try:
            assert query.awaitTermination(WAIT_S)
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise
        else:
            return query
    raise AssertionError(f"no worker came up, {TRIES} times")


class KilledStream:
    """The stream's process: started, killed at random, started again over the same checkpoint."""

    def __init__(self, log_dir: Path, work: Path) -> None:
        self.table, self.checkpoint, self.done = work / "table", work / "checkpoint", work / "done"
        self._command = [sys.executable, "-m", "tests.support.stream_to_delta", str(log_dir)]
        self._command += [str(self.table), str(self.checkpoint), str(self.done)]
        self._errors = work / "stream.log"
        self._process = self._start()

    def kill(self) -> None:
        """The process, its JVM and their workers; then it is started again."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = self._start()

    def await_running(self) -> None:
        """Until a batch of this process is through."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == b"running\n", self._errors.read_text()[-3000:]

    def finish(self) -> None:
        self.done.touch()
        assert self._process.wait(WAIT_S) == 0, self._errors.read_text()[-3000:]

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
    """What happens to the logs meanwhile, by turns that a seed decides."""

    def __init__(self, logs: list[GrowingLog], run_dir: Path, numbers: random.Random) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self.counts = {"append": 0, "roll": 0, "compact": 0, "retain": 0}
        self._logs, self._run_dir, self._numbers = logs, run_dir, numbers
        self._ends = threading.Event()

    def run(self) -> None:
        turns: list[tuple[str, Callable[[GrowingLog], None]]] = [
            *[("append", GrowingLog.append)] * 30,
            *[("roll", GrowingLog.roll)] * 4,
            ("compact", lambda log: log.compact(self._run_dir)),
            ("retain", lambda log: log.retain(self._run_dir, 150_000)),
        ]
        try:
            while not self._ends.wait(0.03):
                name, turn = self._numbers.choice(turns)
                turn(self._numbers.choice(self._logs))
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
    writer = Writer(logs, tmp_path / "runs", random.Random(seed))
    writer.start()
    try:
        for number in range(KILLS):
            if number % 5 == 4:  # while it starts or plans its first batch
                time.sleep(numbers.uniform(2, 20))
            else:
                stream.await_running()
                time.sleep(numbers.uniform(0, 6))
            stream.kill()
        stream.await_running()
    finally:
        writer.end()
    stream.finish()
    # our own session only now: the stream's has the machine for itself till here
    counts = check_delivered(request.getfixturevalue("spark"), logs, stream)
    sys.stderr.write(f"seed {seed}: {KILLS} kills, {writer.counts}, {counts}\n")


def check_delivered(
    spark: SparkSession, logs: list[GrowingLog], stream: KilledStream
) -> dict[str, int]:
    """Nothing twice, nothing missing that was there; counts of what was seen."""
    counts = dict.fromkeys(("written", "delivered", "removed_first", "removed_while_read"), 0)
    table = spark.read.format("delta").load(str(stream.table))
    delivered = table.groupBy("partition").agg(F.collect_list("offset").alias("offsets")).collect()
    by_partition = {row.partition: row.offsets for row in delivered}
    reported = gaps(spark, str(logs[0].log_dir)).groupBy("partition").agg(F.sum("missingCount"))
    missing_on_disk = {row[0]: row[1] for row in reported.collect()}
    batches = batch_times(stream)
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
            planned, done = next(t for end, *t in batches[number] if offset < end)
            gone = log.removed[offset]
            assert gone < done, f"{log.path.name}: {offset} was on disk while its batch was read"
            counts["removed_first" if gone < planned else "removed_while_read"] += 1
        counts["written"] += len(written)
        counts["delivered"] += len(offsets)
    assert counts["written"] == sum(
        counts[name] for name in ("delivered", "removed_first", "removed_while_read")
    )
    return counts


def batch_times(stream: KilledStream) -> dict[int, list[tuple[int, float, float]]]:
    """(end offset, planned at, done at) of each batch, by partition: from the checkpoint's files.
    A batch that was run again was planned again: then it is done later than its offsets say."""
    times: dict[int, list[tuple[int, float, float]]] = {}
    files = sorted((stream.checkpoint / "offsets").glob("[0-9]*"), key=lambda p: int(p.name))
    for file in files:
        ends = json.loads(file.read_text().splitlines()[2])["orders"]
        done = (stream.checkpoint / "commits" / file.name).stat().st_mtime
        for partition, end in ends.items():
            times.setdefault(int(partition), []).append((end, file.stat().st_mtime, done))
    return times
