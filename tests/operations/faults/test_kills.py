"""The process is killed before every single step of a run (every eleventh in `make test`):
nothing is lost, and the next run ends where an undisturbed one does.
"""

from __future__ import annotations

import base64
import shutil
import signal
from pathlib import Path

import pytest

from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.scratch import is_scratch
from kafkalog.swap.swap import SEGMENT_KINDS
from tests.conftest import NOW_MS
from tests.operations.faults.breaking_files import STRIDES, CountingFiles, DyingFiles, run_in_child
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import NAME, SETTINGS, State, compact, contents
from tests.oracle.kafka import Kafka


def kill_at(log_dir: Path, step: int) -> None:
    code = run_in_child(lambda: compact(log_dir, DyingFiles(step)))
    assert code == -signal.SIGKILL, f"step {step}: exit code {code}"


def finish(log_dir: Path, undisturbed: Undisturbed, what: str) -> None:
    """The next run says what it found and ends like the undisturbed one."""
    left = {path.name for path in (log_dir / NAME).iterdir()}
    leftovers = {n for n in left if is_scratch(n) or n.endswith((".cleaned", ".swap", ".deleted"))}
    run = compact(log_dir)
    assert bool(run.recovered) == bool(leftovers), what
    assert not run.problems, what
    assert all(result.status == "compacted" for result in run.results), (what, run.results)
    assert differences(contents(log_dir), undisturbed.after) == [], what


def differences(
    found: dict[str, tuple[bytes, int]], wanted: dict[str, tuple[bytes, int]]
) -> list[str]:
    return sorted(
        name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)
    )


def last_values(kafka: Kafka, partition_dir: Path) -> State:
    """The last value of each key as Kafka reads the log; offsets must rise throughout."""
    values: State = {}
    previous = -1
    for segment in kafka.dump(partition_dir)["segments"]:
        for batch in segment["batches"]:
            assert batch["valid"]
            assert batch["base"] > previous
            previous = batch["last"]
            for record in batch["records"]:
                value = record["value"]
                values[base64.b64decode(record["key"])] = value and base64.b64decode(value)
    return values


def check_kafka_loses_nothing(
    kafka: Kafka, log_dir: Path, work: Path, undisturbed: Undisturbed, what: str
) -> None:
    """Kafka loads a copy, after a clean stop and after a crash."""
    for clean in (True, False):
        copy = shutil.copytree(log_dir, work / f"kafka-{clean}")
        load = kafka.open_once if clean else kafka.recover
        loaded = load(copy, NAME, now_ms=NOW_MS, config=SETTINGS)
        assert loaded["logEndOffset"] == undisturbed.before.log_end_offset, what
        assert loaded["logStartOffset"] == 0, what
        found = last_values(kafka, copy / NAME)
        wanted = undisturbed.before.last_values
        # A tombstone may be gone once its horizon is past; then no value may come back.
        assert {k: v for k, v in found.items() if v is not None} == {
            k: v for k, v in wanted.items() if v is not None
        }, what
        assert found.keys() <= wanted.keys(), what
        assert b"gone" in found, what  # a tombstone that is not expired
        names = [path.name for path in (copy / NAME).iterdir()]
        assert not [n for n in names if n.endswith((".cleaned", ".swap", ".deleted"))], what
        # Ours goes on from what the loader made of it, and from its own records beside it.
        run = compact(copy)
        assert not run.problems, what
        logs = {n: c for n, (c, _) in contents(copy).items() if n.endswith(".log")}
        assert logs == {n: c for n, (c, _) in undisturbed.after.items() if n.endswith(".log")}, what
        shutil.rmtree(copy)


def kafka_state(log_dir: Path) -> frozenset[tuple[str, int]]:
    """What a broker sees: names and sizes, without our scratch files."""
    files = [path for path in (log_dir / NAME).iterdir() if not is_scratch(path.name)]
    return frozenset((path.name, path.stat().st_size) for path in files)


def test_every_kind_of_step_is_killed(undisturbed: Undisturbed) -> None:
    kinds = {step.split()[0] for step in undisturbed.steps}
    assert kinds == {"create", "write", "sync", "set", "link", "rename", "remove"}
    assert len(set(undisturbed.steps)) >= 40
    empty = f"{NAME}/{0:020d}.log"
    assert undisturbed.after[empty][0] == b""
    bases = [n for n in undisturbed.after if n.endswith(".log")]
    assert len(bases) == 6
    for suffix in (".cleaned", ".swap"):
        assert len([s for s in undisturbed.steps if s.endswith(suffix)]) >= 15, suffix
    gone = [s for s in undisturbed.steps if s.startswith("remove ") and s.endswith(SEGMENT_KINDS)]
    assert len(gone) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
def test_killed_at_any_step_the_next_run_ends_as_if_undisturbed(
    undisturbed: Undisturbed, log_dir: Path, stride: int
) -> None:
    for step, name in list(enumerate(undisturbed.steps))[::stride]:
        crashed = undisturbed.copy(log_dir / "crashed")
        kill_at(crashed, step)
        finish(crashed, undisturbed, f"killed before step {step}, {name}")
        shutil.rmtree(crashed)


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("stride", STRIDES)
def test_killed_at_any_step_kafka_loses_nothing(
    undisturbed: Undisturbed, log_dir: Path, kafka: Kafka, stride: int
) -> None:
    seen: set[frozenset[tuple[str, int]]] = set()
    for step, name in list(enumerate(undisturbed.steps))[::stride]:
        crashed = undisturbed.copy(log_dir / "crashed")
        kill_at(crashed, step)
        if (state := kafka_state(crashed)) not in seen:
            seen.add(state)
            what = f"killed before step {step}, {name}"
            check_kafka_loses_nothing(kafka, crashed, log_dir, undisturbed, what)
        shutil.rmtree(crashed)
    assert len(seen) > 60 // stride


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize(
    "point",
    [
        f"rename to {20:020d}.timeindex.cleaned",
        *(
            pytest.param(point, marks=pytest.mark.thorough)
            for point in (
                f"rename to {20:020d}.index.swap",
                f"remove {0:020d}.log",
                f"remove {10:020d}.index",
                f"rename to {0:020d}.index",
            )
        ),
    ],
)
def test_killed_again_while_it_recovers_the_run_after_that_ends_it(
    undisturbed: Undisturbed, log_dir: Path, point: str, stride: int
) -> None:
    crashed = undisturbed.copy(log_dir / "crashed")
    kill_at(crashed, undisturbed.steps.index(point))
    trial = shutil.copytree(crashed, log_dir / "trial")
    recovering = CountingFiles()
    resolve_interrupted_swap(str(trial / NAME), recovering)
    assert len(recovering.steps) > 5
    for step in range(0, len(recovering.steps) + 1, stride):
        again = shutil.copytree(crashed, log_dir / "again")
        kill_at(again, step)
        finish(again, undisturbed, f"{point}, then killed before {step} of {recovering.steps}")
        shutil.rmtree(again)
