"""Python workers of Spark hold no more than `--memory` either, whatever they are given."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import uuid
from pathlib import Path

import pytest

from tests.benchmarks.generate import LogSpec, write_log
from tests.jobs.submit import submit
from tests.operations.test_memory import DEFAULT, large_batches, many_keys
from tests.support.topics import topic_words

pytestmark = [pytest.mark.spark, pytest.mark.soak]

# A worker that has loaded the engine and done nothing.
_IDLE_MIB = 90


class PeaksOfWorkers:
    """The peak resident size in MiB of each Python worker that lives meanwhile, by process: of
    those whose environment comes from here.
    """

    def __init__(self) -> None:
        self.by_process: dict[str, float] = {}
        self._mark = f"KAFKALOG_PEAKS={uuid.uuid4().hex}"
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look_until_ended)

    def __enter__(self) -> PeaksOfWorkers:
        name, _, value = self._mark.partition("=")
        os.environ[name] = value
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()

    def _look_until_ended(self) -> None:
        while not self._ended.wait(0.05):
            found = subprocess.run(
                ["pgrep", "-f", "pyspark.daemon"], capture_output=True, text=True, check=False
            )
            for process in found.stdout.split():
                try:
                    environment = Path("/proc", process, "environ").read_bytes()
                    status = Path("/proc", process, "status").read_text()
                except OSError:
                    continue  # gone meanwhile
                if self._mark.encode() not in environment:
                    continue
                for line in status.splitlines():
                    if line.startswith("VmHWM:"):
                        self.by_process[process] = int(line.split()[1]) / 1024


def compacted(log_dir: Path, strategy: str) -> dict[str, float]:
    """Compact all below `log_dir` on two local cores; the peaks of the workers."""
    with PeaksOfWorkers() as peaks:
        done = submit(
            "compact_topics.py", "--log-dir", str(log_dir), *topic_words(log_dir), "--apply",
            "--json", "--no-undo", "--config", "cleanup.policy=compact", "--strategy", strategy,
            timeout_seconds=1800,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    partitions = json.loads(done.stdout)["partitions"]
    assert {partition["status"] for partition in partitions} == {"compacted"}
    return peaks.by_process


def check(peaks: dict[str, float]) -> None:
    busy = [peak for peak in peaks.values() if peak > _IDLE_MIB]
    assert busy, peaks
    assert max(busy) < DEFAULT, peaks
    print(f"peaks of workers: {sorted(round(peak) for peak in busy)} MiB")  # noqa: T201


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_two_workers_with_batches_of_almost_64_mib(log_dir: Path, codec: str) -> None:
    for partition in range(2):
        write_log(log_dir, "t", large_batches(63, codec), partition)
    check(compacted(log_dir, "within-task"))


def test_four_small_partitions_in_a_task_with_batches_of_almost_64_mib(log_dir: Path) -> None:
    """As many as a task cleans at once."""
    for partition in range(4):
        write_log(log_dir, "t", large_batches(63, "zstd", 1), partition)
        write_log(log_dir, "u", LogSpec(records=1000, keys=10), partition)
    check(compacted(log_dir, "within-task"))


@pytest.mark.parametrize("strategy", ["within-task", "across-tasks"])
def test_many_keys(log_dir: Path, strategy: str) -> None:
    for partition in range(2):
        write_log(log_dir, "t", many_keys(4_000_000), partition)
    check(compacted(log_dir, strategy))
