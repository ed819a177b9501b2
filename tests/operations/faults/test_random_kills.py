"""The command is killed at random times: Kafka's loader opens what is left, nothing is lost, the
next run completes and says what it did about it, and undo gives the original files.

    KILLS=300 SEED=1 python -m pytest -m soak tests/operations/faults/test_random_kills.py -s

Undo and recovery are killed a fifth as often. Half of the times are drawn over the whole run, half
over the time that files are swapped in.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafkalog.swap.local_files import list_names
from kafkalog.swap.scratch import is_scratch
from tests.conftest import NOW_MS
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
from tests.operations.faults.launcher import Command, Launcher
from tests.operations.undo.test_undo_kills import copied, undo_all
from tests.operations.undo.trees import Node, differences, dress, files, kept, tree
from tests.oracle.kafka import Kafka

pytestmark = [pytest.mark.slow, pytest.mark.oracle]

KILLS = int(os.environ.get("KILLS", "300"))
SEED = int(os.environ.get("SEED", "1"))
DAMAGES = (".index", ".timeindex", ".txnindex", ".snapshot")
SWAP_SUFFIXES = (".cleaned", ".swap", ".deleted")


@dataclass
class World:
    """The logs before, what a whole run makes of them, and how long it takes."""

    launcher: Launcher
    kafka: Kafka
    work: Path
    random: random.Random
    source: Path
    before: dict[str, Node] = field(default_factory=dict)
    readings: dict[str, Reading] = field(default_factory=dict)
    cleaned: dict[str, Reading] = field(default_factory=dict)
    phases: Counter[str] = field(default_factory=Counter)
    too_late: int = 0
    # Less than 1 where commands have become faster than they were when they were timed.
    pace: float = 1.0
    # What Kafka read of files it has read before it reads again.
    known: dict[tuple[str, bool, bytes], Reading] = field(default_factory=dict)

    @property
    def place(self) -> Path:
        return self.work / "place"

    @property
    def run_dir(self) -> Path:
        return self.work / "runs"

    def fresh(self) -> None:
        """The log dir as before any run, and no runs."""
        for path in (self.place, self.run_dir):
            shutil.rmtree(path, ignore_errors=True)
        copied(self.source, self.place)

    def words(self, verb: str, workers: int = 1) -> list[str]:
        """The command line of a run."""
        words = [verb, "--log-dir", str(self.place), "--topic", TOPIC, "--apply", "--json"]
        words += ["--run-dir", str(self.run_dir), "--now", str(NOW_MS)]
        words += ["--workers", str(workers)] if verb != "retain" else []
        return words + [f"--config={key}={value}" for key, value in SETTINGS.items()]

    def run(self, *words: str) -> dict[str, Any]:
        """A command that nobody kills."""
        command = self.launcher.start(*words)
        code = command.wait()
        assert code == 0, (words, command.errors)
        document: dict[str, Any] = json.loads(command.output.read_text())
        assert not document["problems"], document
        assert not document["faults"], document
        return document

    def killed(self, words: list[str], seconds: float, swap_seconds: float, what: str) -> str:
        """Run and kill it at a random time; where it was then. Empty if it had ended before."""
        aims_at_swap = self.random.random() < 0.5
        command = self.launcher.start(*words)
        if aims_at_swap:
            _wait_for_swap(self.place, command, seconds * 10)
        longest = swap_seconds if aims_at_swap else seconds
        time.sleep(self.random.uniform(0, longest) * self.pace)
        with contextlib.suppress(ProcessLookupError):
            os.kill(command.pid, signal.SIGKILL)
        code = command.wait()
        if code == 0:
            self.too_late += 1
            self.pace *= 0.95
            return ""
        assert code == -signal.SIGKILL, (what, command.errors)
        phase = _phase(self.place, self.run_dir)
        self.phases[phase] += 1
        return phase

    def kafka_reads(self, what: str) -> None:
        """The loader after a clean stop or a crash, taken in turn, on each partition."""
        for name in NAMES:
            clean = self.random.random() < 0.5
            found = self.read(name, clean=clean)
            check_nothing_lost(found, self.readings[name], self.cleaned[name], f"{what}, {name}")

    def kafka_reads_cleaned(self, what: str) -> None:
        """Consumers get what Kafka's own cleaner leaves."""
        for name in NAMES:
            assert self.read(name, clean=True) == self.cleaned[name], f"{what}, {name}"

    def read(self, name: str, *, clean: bool) -> Reading:
        """What Kafka reads of a partition's files."""
        digest = hashlib.sha256()
        for path in sorted((self.place / name).iterdir()):
            if not is_scratch(path.name) and path.suffix != ".undo":
                digest.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
        key = name, clean, digest.digest()
        if key not in self.known:
            self.known[key] = read_by_kafka(self.kafka, self.place, name, self.work, clean=clean)
        return self.known[key]

    def check_original(self, what: str) -> None:
        assert differences(files(tree(self.place)), files(self.before)) == [], what
        assert kept(self.place) == [], what

    def report(self, verb: str) -> None:
        total = sum(self.phases.values())
        shares = ", ".join(f"{name} {count}" for name, count in sorted(self.phases.items()))
        told = f"{total} kills (seed {SEED}): {shares}; {self.too_late} came too late"
        told += f"; Kafka read {len(self.known)} different states"
        sys.stdout.write(f"\n{verb}: {told}\n")


@pytest.fixture
def world(kafka: Kafka, log_dir: Path, tmp_path: Path) -> Iterator[World]:
    source = log_dir / "before"
    write_kill_logs(source, SEED)
    dress(source)
    with Launcher(tmp_path) as launcher:
        world = World(launcher, kafka, log_dir, random.Random(SEED), source)
        world.readings = {
            name: read_by_kafka(kafka, source, name, log_dir, clean=True) for name in NAMES
        }
        world.cleaned = cleaned_by_kafka(kafka, source, log_dir)
        world.before = tree(source)
        yield world


counted = pytest.mark.parametrize(
    "count",
    [pytest.param(KILLS, marks=pytest.mark.soak), pytest.param(5, marks=pytest.mark.thorough)],
    ids=["all", "sample"],
)


def _wait_for_swap(log_dir: Path, command: Command, at_most_s: float) -> None:
    """Until files of a partition are being swapped, or the command has ended."""
    until = time.monotonic() + at_most_s
    places = [log_dir / name for name in NAMES]
    while time.monotonic() < until and Path(f"/proc/{command.pid}").exists():
        for place in places:
            if any(is_swapping(name) for name in list_names(str(place))):
                return
        time.sleep(0.0003)


def is_swapping(name: str) -> bool:
    return name.endswith(("-swap.tmp", *SWAP_SUFFIXES))


def _phase(log_dir: Path, run_dir: Path) -> str:
    """How far a compaction, a retention or a rebuilding had come."""
    names = [path.name for name in NAMES for path in (log_dir / name).iterdir()]
    journals = list(run_dir.glob("*/journal.jsonl"))
    events = [line for path in journals for line in path.read_text().splitlines()]
    if any(is_swapping(name) for name in names):
        return "swap"
    if any(is_scratch(name) for name in names):
        return "write"
    if len([line for line in events if '"ended"' in line]) == len(NAMES):
        return "after"
    if any('"planned"' in line for line in events):
        return "map or between partitions"
    return "scan and plan" if list(run_dir.glob("*")) else "start"


def _durations(world: World, words: list[str]) -> tuple[float, float]:
    """Seconds of an undisturbed run, and of the swaps in it."""
    runs, swaps = [], []
    for _ in range(3):
        world.fresh()
        command = world.launcher.start(*words)
        begun = time.monotonic()
        _wait_for_swap(world.place, command, 60)
        swapping = time.monotonic()
        assert command.wait() == 0, command.errors
        runs.append(time.monotonic() - begun)
        swaps.append(time.monotonic() - swapping)
    return statistics.median(runs), statistics.median(swaps)


@counted
def test_a_compaction_killed_at_random_times(world: World, count: int) -> None:
    world.fresh()
    document = world.run(*world.words("compact"))
    assert sum(partition["segmentsSplit"] for partition in document["partitions"]) == 1
    world.kafka_reads_cleaned("undisturbed")
    seconds, swap_seconds = _durations(world, world.words("compact"))
    done = {"undid", "finished", "removed"}
    told = Counter[str]()
    while sum(world.phases.values()) < count:
        what = f"seed {SEED}, kill {sum(world.phases.values())}"
        world.fresh()
        words = world.words("compact", workers=world.random.choice((1, 2)))
        phase = world.killed(words, seconds, swap_seconds, what)
        if not phase:
            continue
        world.kafka_reads(f"{what} in {phase}")
        names = [path.name for name in NAMES for path in (world.place / name).iterdir()]
        left = [name for name in names if is_scratch(name) or name.endswith(SWAP_SUFFIXES)]
        recovered = world.run(*world.words("compact"))["recovered"]
        verbs = {line.split()[1] for line in recovered}
        assert bool(verbs) == bool(left), (what, phase, recovered, left)
        assert verbs <= done, recovered
        told.update(verbs)
        world.kafka_reads_cleaned(what)
        undo_all(world.run_dir, what)
        world.check_original(what)
    world.report("compact")
    sys.stdout.write(f"the next run: {dict(told)}\n")
    if count >= 100:
        assert min(world.phases[name] for name in ("swap", "write")) >= count // 20


@pytest.mark.soak
@pytest.mark.parametrize("verb", ["compact", "recover"])
def test_an_undo_killed_at_random_times(world: World, verb: str) -> None:
    if verb == "recover":
        _damage(world)
    world.fresh()
    run_id = world.run(*world.words(verb))["runId"]
    undo = ["undo", run_id, "--run-dir", str(world.run_dir), "--json"]
    begun = time.monotonic()
    world.run(*undo)
    seconds = time.monotonic() - begun
    while sum(world.phases.values()) < KILLS // 5:
        what = f"seed {SEED}, kill {sum(world.phases.values())}"
        world.fresh()
        undo[1] = world.run(*world.words(verb))["runId"]
        if not world.killed(undo, seconds, seconds / 2, what):
            continue
        if verb == "compact":
            world.kafka_reads(what)
        code, output = world.launcher.run(*undo)
        statuses = {partition["status"] for partition in json.loads(output)["partitions"]}
        assert statuses <= {"undone", "nothing"}, (what, output)
        assert code in (0, 3), (what, output)
        world.check_original(what)
    world.report(f"undo of {verb}")


def _damage(world: World) -> None:
    """Files beside the segments are missing, cut, longer, or say something else."""
    for path in sorted(world.source.glob(f"{TOPIC}-*/*")):
        if path.suffix in DAMAGES and world.random.random() < 0.5:
            stat, data = path.stat(), path.read_bytes()
            how = world.random.randrange(3)
            if how == 0:
                path.unlink()
                continue
            path.write_bytes(data[:-5] if how == 1 else data + bytes(200))
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    world.before = tree(world.source)


@pytest.mark.soak
def test_a_recovery_killed_at_random_times(world: World) -> None:
    _damage(world)
    world.fresh()
    world.run(*world.words("recover"))
    after = {n: d.data for n, d in files(tree(world.place)).items() if ".undo" not in n}
    seconds, swap_seconds = _durations(world, world.words("recover"))
    while sum(world.phases.values()) < KILLS // 5:
        what = f"seed {SEED}, kill {sum(world.phases.values())}"
        world.fresh()
        words = world.words("recover", workers=world.random.choice((1, 2)))
        if not world.killed(words, seconds, swap_seconds, what):
            continue
        for name in NAMES:
            assert world.read(name, clean=False) == world.readings[name], (what, name)
        world.run(*world.words("recover"))
        found_files = {n: d.data for n, d in files(tree(world.place)).items() if ".undo" not in n}
        assert found_files == after, what
        undo_all(world.run_dir, what)
        world.check_original(what)
    world.report("recover")
