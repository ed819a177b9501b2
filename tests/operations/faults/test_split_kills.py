"""The process is killed while it splits a segment whose offsets lie too far apart: no batch is
lost, a broker loads what is there, and the next run ends where an undisturbed one does.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.conftest import NOW_MS
from tests.operations.faults.breaking_files import CountingFiles, DyingFiles, run_in_child
from tests.operations.faults.logs import ISLAND, NAME, SETTINGS, State, compact, contents
from tests.operations.faults.test_kills import differences, kafka_state, last_values
from tests.oracle.kafka import Kafka
from tests.support.log_builder import LogBuilder

OLD_MS = NOW_MS - 1_000_000


def write_log(log_dir: Path) -> State:
    """A segment before it, the one to split with an aborted transaction in it, one behind it."""
    log = LogBuilder(log_dir, NAME, index_interval_bytes=100)
    log.segment(0, modified_ms=OLD_MS).batch(("a", "1"), ("b", "1")).batch(("a", "2"))
    log.segment(10, modified_ms=OLD_MS + 1).batch(("c", "1"), ("a", "3")).batch(("d", "1"))
    log.segment(ISLAND, modified_ms=OLD_MS + 1).batch(("e", "1"), ("c", "2")).batch(("f", "x" * 60))
    log.segment(2 * ISLAND, modified_ms=OLD_MS + 2).batch(("g", "1"), ("gone", None))
    log.segment().batch(("f", "active"))
    path = log.write()
    first, second = (path / f"{base:020d}.log" for base in (10, ISLAND))
    first.write_bytes(first.read_bytes() + second.read_bytes())
    for file in path.glob(f"{ISLAND:020d}.*"):
        file.unlink()
    return {record.key: record.value for record in log.records if record.key is not None}


@pytest.mark.parametrize(
    "every", [11, pytest.param(1, marks=pytest.mark.soak)], ids=["sample", "all"]
)
def test_killed_while_splitting_nothing_is_lost(kafka: Kafka, log_dir: Path, every: int) -> None:
    before, undisturbed = log_dir / "before", log_dir / "undisturbed"
    wanted = write_log(before)
    shutil.copytree(before, undisturbed)
    files = CountingFiles()
    (result,) = compact(undisturbed, files).results
    assert (result.status, result.stats.segments_split) == ("compacted", 1)
    after = contents(undisturbed)
    split_is_over = max(n for n, step in enumerate(files.steps) if step.endswith("-swap.tmp"))
    names = enumerate(files.steps[:split_is_over])
    begun = next(n for n, step in names if ".log.cleaned" in step)
    # all steps from the first rename of the split on; of those before it, which touch nothing, few
    steps = [n for n in range(len(files.steps)) if n >= begun - 1 or n % 10 == 0]
    seen: dict[frozenset[tuple[str, int]], str] = {}
    for step in steps[::every]:
        what = f"killed before step {step}: {files.steps[step]}"
        crashed = Path(shutil.copytree(before, log_dir / "crashed"))
        code = run_in_child(lambda: compact(crashed, DyingFiles(step)))  # noqa: B023 - runs at once
        assert code == -signal.SIGKILL, what
        state = kafka_state(crashed)
        if state not in seen:
            seen[state] = what
            copy = Path(shutil.copytree(crashed, log_dir / "kafkas"))
            kafka.open_once(copy, NAME, now_ms=NOW_MS, config=SETTINGS)
            assert last_values(kafka, copy / NAME) == wanted, what
            shutil.rmtree(copy)
        run = compact(crashed)
        assert not run.problems, what
        assert all(result.status == "compacted" for result in run.results), (what, run.results)
        assert differences(contents(crashed), after) == [], what
        shutil.rmtree(crashed)
    assert len(seen) > 5
