"""A Spark standalone cluster on this machine: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEADLINE_S = 600.0


class Cluster:
    """`url` is the master's; workers can be killed."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._started: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def start_master(self) -> None:
        """Returns when it says its address."""
        self._start("master", "master.Master", "--host", "127.0.0.1", "--port", "0",
                    "--webui-port", "0")  # fmt: skip
        self.url = self._said("master", r"(spark://127\.0\.0\.1:\d+)")

    def add_worker(self) -> None:
        """One more worker, of one core; returns when the master knows it."""
        name = f"worker-{len(self.workers)}"
        process = self._start(
            name, "worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g",
            "--webui-port", "0", "--work-dir", str(self._work / name), self.url,
        )  # fmt: skip
        self.workers.append(process)
        self._said(name, r"(Successfully registered with master)")

    def executors(self) -> int:
        """How many executors the workers have launched so far."""
        logs = [self._log(f"worker-{n}") for n in range(len(self.workers))]
        return sum(len(re.findall("Asked to launch executor", log)) for log in logs)

    def stop(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()

    def _start(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        with (self._work / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(_SPARK_CLASS), f"org.apache.spark.deploy.{main}", *arguments],
                env=env, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._started.append(process)
        return process

    def _log(self, name: str) -> str:
        return (self._work / f"{name}.log").read_text(errors="replace")

    def _said(self, name: str, pattern: str) -> str:
        until = time.monotonic() + _DEADLINE_S
        while time.monotonic() < until:
            if (found := re.search(pattern, self._log(name))) is not None:
                return found[1]
            time.sleep(0.2)
        raise TimeoutError(f"{name} did not say {pattern}:\n{self._log(name)[-3000:]}")


@contextmanager
def standalone_cluster(work: Path, workers: int) -> Iterator[Cluster]:
    """A cluster that is stopped at the end, also where it did not come up."""
    cluster = Cluster(work)
    try:
        cluster.start_master()
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()
