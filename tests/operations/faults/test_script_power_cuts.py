"""The power fails anywhere while the script of `--output` runs, its undo, its purge, or the swap
that ends one that was cut off: nothing is lost, and the script ends it, either way.

`make test` takes some of the cuts, `make soak` 5,000 of each, each distinct state of them opened by
Kafka's own loader.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.operations.faults.forgetful_disk import State, SyncedDirectory
from tests.operations.faults.power_cuts import (
    Broker,
    Place,
    Recorded,
    is_begun,
    logs_of,
    named,
    segments_of,
)
from tests.operations.faults.recording import recorded
from tests.operations.faults.shell_recording import recorded_script, tools_that_do_not_sync
from tests.operations.faults.test_output import SCRIPT, small_log, swap, write_output
from tests.operations.undo.cases import Case, written
from tests.operations.undo.trees import NAME, differences, files, tree
from tests.oracle.kafka import Kafka

SOAK_CUTS = 5000
RERUNS = 20  # the script itself, of each verb and case: each takes two or three seconds
VERBS = ("run", "resume", "undo", "purge")
OPTIONS: dict[str, list[str]] = {"run": [], "resume": [], "undo": ["--undo"], "purge": ["--purge"]}


class ScriptPlace(Place):
    """Where the script runs; the output lies where other runs have their journals."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.path = tools_that_do_not_sync(root.parent / "no-sync")

    def fill(self, case: Case) -> None:
        self.clear()
        written(case, self.log_dir)
        assert write_output(self.log_dir, self.run_dir) == 0

    def run(self, case: Case, what: str) -> None:
        self.script("run", what)

    def script(self, verb: str, what: str) -> None:
        done = swap(self.run_dir, *OPTIONS[verb], path=self.path)
        assert done.returncode == 0, (what, done.stderr)

    def output(self) -> list[str]:
        return sorted(tree(self.run_dir))


class RecordedScript(Recorded):
    """The script with an option over a case's log dir."""

    place: ScriptPlace

    def check(self, seed: int, state: State) -> None:
        """The script once more, or the other way at once, ends where it should."""
        what = f"script, {self.verb} of {self.case.name}, seed {seed}"
        place = self.place
        state.write_to(place.root)
        if self.verb == "purge":
            place.script("purge", what)
            assert logs_of(place.log_dir) == self.after, what
            assert not [name for name in tree(place.log_dir) if "kafkalog-" in name], what
            return
        if seed % 2:
            place.script("run", what)
            assert logs_of(place.log_dir) == self.after, what
            assert "directory.time" in {Path(name).name for name in place.output()}, what
        place.script("undo", what)
        assert differences(files(tree(place.log_dir)), files(self.before)) == [], what
        names = {Path(name).name for name in place.output()}
        assert not [n for n in names if n.startswith(("checkpoint-", "directory."))], what


def record(verb: str, case: Case, root: Path) -> RecordedScript:
    """The trace of the script with this option."""
    place = ScriptPlace(root)
    place.fill(case)
    before = tree(place.log_dir)
    shell = root.parent / "tools"

    def script() -> list[str]:
        return ["sh", str(place.run_dir / SCRIPT), *OPTIONS[verb]]

    if verb in ("undo", "purge"):
        place.run(case, "recorded")
        after, segments = logs_of(place.log_dir), segments_of(place.log_dir)
    trace = recorded_script(root, script(), shell)
    if verb in ("run", "resume"):
        after, segments = logs_of(place.log_dir), segments_of(place.log_dir)
    if verb == "resume":
        begun = next(n for n, event in enumerate(trace.events) if is_begun(event))
        trace.crash(begun + 1, list).write_to(root)
        trace = recorded_script(root, script(), shell)
    return RecordedScript(verb, case, place, trace, before, after, segments, frozenset())


def _run_by_script(*_: object) -> object:
    raise AssertionError("the script does it")


SMALL = Case("small", small_log, _run_by_script)  # type: ignore[arg-type]
CASES = (SMALL, named("compact-trailing"), named("compact-transactions"))
by_verb = pytest.mark.parametrize("verb", VERBS)
some_verbs = pytest.mark.parametrize(
    "verb",
    ["run", "undo", *(pytest.param(v, marks=pytest.mark.soak) for v in ("resume", "purge"))],
)


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        ("run", "compact-trailing"),
        ("undo", "compact-transactions"),
        pytest.param("undo", "compact-trailing", marks=pytest.mark.soak),
        pytest.param("resume", "compact-trailing", marks=pytest.mark.soak),
        pytest.param("purge", "compact-trailing", marks=pytest.mark.soak),
    ],
)
def test_a_power_cut_while_the_script_runs_loses_no_value(
    log_dir: Path, verb: str, name: str
) -> None:
    """A broker that starts at once finds the last value of each key."""
    found = record(verb, named(name), log_dir / "root")
    states = 0
    for seed, state in found.cuts(range(150)):
        found.check_loader(seed, state)
        states += 1
    assert states > (10 if verb == "purge" else 40)


@some_verbs
def test_after_a_power_cut_the_script_ends_what_it_began_either_way(
    log_dir: Path, verb: str
) -> None:
    """And what it has done is on disk when it ends."""
    found = record(verb, SMALL, log_dir / "root")
    wanted = files(tree(found.place.root))
    found.trace.crash(len(found.trace.events), lambda _: []).write_to(found.place.root)
    assert differences(files(tree(found.place.root)), wanted) == []
    # In the middle of it; of an odd seed the script goes on, then back.
    cuts = [cut for cut in found.cuts(range(100)) if cut[0] % 2 == (verb == "run")]
    found.check(*cuts[len(cuts) // 2])


def test_what_output_wrote_is_on_disk_when_it_ends(log_dir: Path) -> None:
    root = log_dir / "root"
    small_log(root / "logs")
    with recorded(root) as trace:
        assert write_output(root / "logs", root / "output") == 0
    wanted = files(tree(root))
    trace.crash(len(trace.events), lambda _: []).write_to(root)
    found = files(tree(root))
    assert {n: found[n].data for n in wanted} == {n: node.data for n, node in wanted.items()}
    assert swap(root / "output").returncode == 0


@pytest.mark.soak
def test_without_one_of_its_syncs_the_script_loses_values(log_dir: Path) -> None:
    """The layer sees what the script would forget."""
    found = record("run", named("compact-trailing"), log_dir / "root")
    events = found.trace.events
    syncs = [n for n, e in enumerate(events) if e == SyncedDirectory(f"logs/{NAME}")]
    lost = 0
    for number in syncs:
        found.trace.events = events[:number] + events[number + 1 :]
        try:
            for seed, state in found.cuts(range(60), number, number + 6):
                found.check_loader(seed, state)
        except AssertionError:
            lost += 1
    assert lost > 2


@pytest.mark.soak
@pytest.mark.oracle
@by_verb
def test_5000_power_cuts_while_the_script_runs_lose_nothing(
    log_dir: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    share = -(-SOAK_CUTS // len(CASES))
    states = loads = reruns = 0
    started = time.monotonic()
    with Kafka() as kafka:
        for case in CASES:
            found = record(verb, case, log_dir / "root")
            broker = Broker(kafka, found, log_dir)
            cuts = list(found.cuts(range(share)))
            again = {seed for seed, _ in cuts[:: max(1, len(cuts) // RERUNS)]}
            for seed, state in cuts:
                found.check_loader(seed, state)
                loads += broker.check(seed, state)
                if seed in again:
                    found.check(seed, state)
                    reruns += 1
            states += len(cuts)
    with capsys.disabled():
        sys.stdout.write(
            f"\nscript, {verb}: {share * len(CASES)} power cuts, {states} distinct states, {loads} "
            f"of them distinct to Kafka's loader, {reruns} ended by the script, "
            f"{time.monotonic() - started:.0f} s\n"
        )
    assert states > 100
