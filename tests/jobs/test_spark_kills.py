"""Python workers, executors and drivers of the compaction job are killed on a standalone cluster,
ten times each: Kafka's loader opens what is left, nothing is lost, the next run completes, and undo
gives the original files.

    SPARK_KILLS=10 SEED=1 python -m pytest -m soak tests/jobs/test_spark_kills.py -s
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from tests.conftest import NOW_MS
from tests.jobs.submit import ROOT, SPARK_SUBMIT
from tests.operations.faults.kill_logs import (
    NAMES,
    SETTINGS,
    TOPIC,
    Reading,
    check_nothing_lost,
    cleaned_by_kafka,
    read_by_kafka,
    write_kill_logs,
)
from tests.operations.undo.test_undo_kills import copied, undo_all
from tests.operations.undo.trees import Node, differences, dress, files, kept, tree
from tests.oracle.kafka import Kafka
from tests.support.standalone import Cluster, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.oracle, pytest.mark.soak]

KILLS = int(os.environ.get("SPARK_KILLS", "10"))
SEED = int(os.environ.get("SEED", "1"))
WAIT_S = 300.0
WORKER, DAEMON, EXECUTOR = "worker", "pyspark.daemon", "CoarseGrainedExecutorBackend"


@dataclass
class Scene:
    """A cluster, the logs before, and what consumers read of them."""

    cluster: Cluster
    kafka: Kafka
    work: Path
    random: random.Random
    arguments: list[str]
    before: dict[str, Node]
    readings: dict[str, Reading]
    cleaned: dict[str, Reading]
    killed: Counter[str] = field(default_factory=Counter)

    @property
    def place(self) -> Path:
        return self.work / "place"

    @property
    def run_dir(self) -> Path:
        return self.work / "runs"

    @property
    def words(self) -> list[str]:
        words = ["--log-dir", str(self.place), "--topic", TOPIC, "--apply", "--json"]
        words += ["--run-dir", str(self.run_dir), "--now", str(NOW_MS)]
        return words + [f"--config={key}={value}" for key, value in SETTINGS.items()]

    def fresh(self) -> None:
        for path in (self.place, self.run_dir):
            shutil.rmtree(path, ignore_errors=True)
        copied(self.work / "before", self.place)

    def await_plan(self, is_alive: Callable[[], bool]) -> None:
        """Until the job has planned, which is when its tasks begin."""
        until = time.monotonic() + WAIT_S
        while not any("planned" in p.read_text() for p in self.run_dir.glob("*/journal.jsonl")):
            assert is_alive(), "the job ended before its tasks began"
            assert time.monotonic() < until, "no task began"
            time.sleep(0.005)

    def kafka_reads(self, what: str) -> None:
        for name in NAMES:
            found = read_by_kafka(self.kafka, self.place, name, self.work, clean=False)
            check_nothing_lost(found, self.readings[name], self.cleaned[name], f"{what}, {name}")

    def finish(self, what: str) -> None:
        """The next run completes, without Spark; consumers get what Kafka's cleaner leaves; then
        undo.
        """
        code = main(["compact", *self.words, "--workers", "1"])
        assert code == 0, what
        for name in NAMES:
            found = read_by_kafka(self.kafka, self.place, name, self.work, clean=True)
            assert found == self.cleaned[name], f"{what}, {name}"
        undo_all(self.run_dir, what)
        assert differences(files(tree(self.place)), files(self.before)) == [], what
        assert kept(self.place) == [], what


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka() as running:
        yield running


@pytest.fixture(scope="module")
def scene(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    tmp = tmp_path_factory.mktemp("cluster")
    work = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp
    work = work / f"kafkalog-spark-kills-{os.getpid()}"
    work.mkdir()
    try:
        write_kill_logs(work / "before", SEED, scale=4)
        dress(work / "before")
        with standalone_cluster(tmp, workers=2) as cluster:
            arguments = [
                *("--master", cluster.url, "--executor-memory", "512m"),
                *("--conf", "spark.ui.enabled=false", "--conf", "spark.task.maxFailures=8"),
                # From this folder and not packed: a new worker finds its kernels compiled.
                *("--conf", f"spark.executorEnv.PYTHONPATH={ROOT}"),
            ]
            readings = {
                name: read_by_kafka(kafka, work / "before", name, work, clean=True)
                for name in NAMES
            }
            cleaned = cleaned_by_kafka(kafka, work / "before", work)
            before = tree(work / "before")
            yield Scene(
                cluster, kafka, work, random.Random(SEED), arguments, before, readings, cleaned
            )
    finally:
        shutil.rmtree(work)


@pytest.fixture
def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def test_workers_and_executors_are_killed(scene: Scene, environment: dict[str, str]) -> None:
    """One driver does one run after the other."""
    arguments = " ".join(scene.arguments)
    with (scene.work / "driver.err").open("wb") as errors:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.jobs.repeated_job"],
            env={
                **environment,
                "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell",
                "PYTHONPATH": str(ROOT),
            },
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        assert _job(driver, scene, lambda: None) == 0  # executors and workers start
        begun = time.monotonic()
        assert _job(driver, scene, lambda: None) == 0
        seconds = time.monotonic() - begun
        codes = Counter[int]()
        while sum(scene.killed.values()) < 2 * KILLS:
            kind = WORKER if scene.killed[WORKER] <= scene.killed[EXECUTOR] else EXECUTOR
            what = f"seed {SEED}, kill {sum(scene.killed.values())}, {kind}"
            code = _job(driver, scene, lambda: _kill_one(scene, kind, seconds))  # noqa: B023
            codes[code] += 1
            scene.kafka_reads(what)
            scene.finish(what)
        told = f"{dict(scene.killed)} killed (seed {SEED}); exit codes {dict(codes)}"
        sys.stdout.write(f"\n{told}\n")
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()


def _job(driver: subprocess.Popen[str], scene: Scene, meanwhile: Callable[[], None]) -> int:
    """One run of the driver; its exit code."""
    scene.fresh()
    assert driver.stdin is not None
    assert driver.stdout is not None
    driver.stdin.write(json.dumps([scene.words, str(scene.work / "job.out")]) + "\n")
    driver.stdin.flush()
    scene.await_plan(lambda: driver.poll() is None)
    meanwhile()
    line = driver.stdout.readline()
    assert line, (scene.work / "driver.err").read_text()[-3000:]
    code = int(line)
    out = (scene.work / "job.out").read_text()
    statuses = [partition["status"] for partition in json.loads(out)["partitions"]]
    assert code in (0, 1), out
    assert (set(statuses) == {"compacted"}) == (code == 0), out
    return code


def _kill_one(scene: Scene, kind: str, seconds: float) -> None:
    """Kill a process that runs tasks, some time after they began."""
    time.sleep(scene.random.uniform(0, seconds * 0.8))
    executors = [
        pid for worker in scene.cluster.workers for pid in _below(worker.pid) if _is(pid, EXECUTOR)
    ]
    chosen = executors
    if kind == WORKER:
        daemons = [p for executor in executors for p in _below(executor) if _is(p, DAEMON)]
        chosen = [p for p in daemons if any(_parent(p) == other for other in daemons)]
    if not chosen:
        return  # just then there was none; the next run has another try
    with contextlib.suppress(ProcessLookupError):
        os.kill(scene.random.choice(chosen), signal.SIGKILL)
        scene.killed[kind] += 1


def test_drivers_are_killed(scene: Scene, environment: dict[str, str]) -> None:
    killed, phases = 0, Counter[str]()
    seconds = 3.0
    while killed < KILLS:
        what = f"seed {SEED}, driver {killed}"
        scene.fresh()
        with (scene.work / "submit.out").open("wb") as out:
            driver = subprocess.Popen(
                [
                    *(str(SPARK_SUBMIT), *scene.arguments),
                    *(str(ROOT / "jobs" / "compact_topics.py"), *scene.words),
                ],
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            scene.await_plan(lambda: driver.poll() is None)  # noqa: B023
            time.sleep(scene.random.uniform(0, seconds))
        finally:
            # JVM and Python driver at once, as when their machine dies.
            os.killpg(driver.pid, signal.SIGKILL)
        code = driver.wait()
        is_killed = code == -signal.SIGKILL and not _is_finished(scene.run_dir)
        killed += is_killed
        seconds = seconds if is_killed else seconds / 2
        phases["killed" if is_killed else "came to its end"] += 1
        # Tasks may outlive their driver: the next run waits for them, or they have ended.
        if killed % 2:
            _await_no_executors(scene.cluster)
            scene.kafka_reads(what)
        scene.finish(what)
        _await_no_executors(scene.cluster)
        # Nobody changed anything behind our backs.
        assert differences(files(tree(scene.place)), files(scene.before)) == [], what
    sys.stdout.write(f"\ndrivers (seed {SEED}): {dict(phases)}\n")


def _is_finished(run_dir: Path) -> bool:
    return any("finished" in json.loads(p.read_text()) for p in run_dir.glob("*/run.json"))


def _await_no_executors(cluster: Cluster) -> None:
    until = time.monotonic() + WAIT_S
    while any(_is(pid, EXECUTOR) for worker in cluster.workers for pid in _below(worker.pid)):
        assert time.monotonic() < until, "an executor lives on"
        time.sleep(0.05)


def _processes() -> dict[int, tuple[int, str]]:
    """Parent and command line by pid."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(path.name)] = parent, (path / "cmdline").read_text()
    return found


def _below(pid: int) -> list[int]:
    """Children, their children and so on."""
    processes = _processes()
    found = [pid]
    for known in found:
        found += [child for child, (parent, _) in processes.items() if parent == known]
    return found[1:]


def _is(pid: int, word: str) -> bool:
    with contextlib.suppress(OSError):
        return word in Path(f"/proc/{pid}/cmdline").read_text()
    return False


def _parent(pid: int) -> int | None:
    entry: Any = _processes().get(pid)
    return None if entry is None else int(entry[0])
