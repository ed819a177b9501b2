"""Runs of each verb that are recorded once, then cut off by the power anywhere and any number of
times (`forgetful_disk.py`); and what must hold of each state that such a cut may leave:

    a broker loads it, after a clean stop and after a crash, with every record that must be there
    the next run of the same verb, or its undo, ends as if nothing had happened
    whatever a run replaced by then, undo brings back
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafkalog.format.control_record import ControlRecordType
from kafkalog.operations.compact import apply_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.operations.earlier_run import NOTHING, PURGED
from kafkalog.operations.purge import purge_run
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_history import held_runs
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.local_files import LocalFiles
from tests.conftest import NOW_MS
from tests.operations.faults.forgetful_disk import SYNCS, Event, Name, Names, State, Trace, seeded
from tests.operations.faults.kill_logs import Reading, read_by_kafka
from tests.operations.faults.loader import loaded, values_of
from tests.operations.faults.logs import CONFIG, ISLAND, OLD_MS
from tests.operations.faults.recording import recorded
from tests.operations.undo.cases import CASES, Case, written
from tests.operations.undo.test_undo_kills import check_original, undo_all
from tests.operations.undo.trees import NAME, Node, files, kept, tree
from tests.oracle.kafka import Kafka
from tests.support.log_builder import LogBuilder
from tests.support.topics import topics_of

Logs = dict[str, bytes | None]


def _write_transactions(log_dir: Path) -> None:
    """Aborted transactions whose data a round leaves alone: without their index it is read."""
    log = LogBuilder(log_dir, NAME, index_interval_bytes=100)
    for number in range(3):
        log.segment(modified_ms=OLD_MS + number)
        for producer, end in ((7, ControlRecordType.ABORT), (8, ControlRecordType.COMMIT)):
            for key in "abc":
                log.batch((key, f"{number} of {producer}"), timestamp=NOW_MS - 1000,
                          producer_id=producer, is_transactional=True)  # fmt: skip
            log.marker(end, producer, timestamp=NOW_MS - 1000)
        log.batch((f"only-{number}", "stays"), ("a", str(number)), timestamp=NOW_MS - 1000)
    log.segment().batch(("a", "last"), timestamp=NOW_MS).write()


def _write_trailing(log_dir: Path) -> None:
    """Three groups. Of the first the last segments lose all: the values of a key, then the
    tombstone that deletes it. Of another key the value is in the first group, the tombstone in the
    last.
    """
    log = LogBuilder(log_dir, NAME, index_interval_bytes=100)
    log.segment(0, modified_ms=OLD_MS)
    log.batch(("stays", "1"), ("b", "1"), ("far", "1"), timestamp=OLD_MS)
    for number in range(1, 4):
        log.segment(10 * number, modified_ms=OLD_MS + number)
        log.batch(("deleted", str(number)), ("b", str(number)), timestamp=OLD_MS)
    log.segment(40, modified_ms=OLD_MS + 4)
    log.batch(("deleted", None), timestamp=OLD_MS, delete_horizon_ms=NOW_MS - 1)
    # Its offsets reach too far for the group in front: a group of its own.
    log.segment(50, modified_ms=OLD_MS + 4).batch(("own", "1"), timestamp=OLD_MS)
    log.segment(ISLAND, modified_ms=OLD_MS + 5).batch(("b", "4"), ("c", "1"), timestamp=OLD_MS)
    log.batch(("far", None), timestamp=OLD_MS, delete_horizon_ms=NOW_MS - 1)
    log.segment().batch(("b", "5"), timestamp=NOW_MS).write()


def _compact_per_group(log_dir: Path, run_dir: Path, files: LocalFiles | None) -> Run[Any, Any]:
    request = CompactionRequest(
        (str(log_dir),),
        NOW_MS,
        CONFIG,
        topics=topics_of(log_dir),
        run_dir=str(run_dir),
        swap_per_group=True,
    )
    return apply_run(request, clean_pack, files=files)


(_COMPACT,) = (case for case in CASES if case.name == "compact")
CUT_CASES = (
    *CASES,
    replace(_COMPACT, name="compact-transactions", write=_write_transactions),
    replace(_COMPACT, name="compact-trailing", write=_write_trailing),
    Case("compact-per-group", _write_trailing, _compact_per_group),
)
# One swap, which a power cut cannot divide.
ALL_OR_NOTHING = ("compact", "compact-transactions", "compact-trailing")
# A round over what a round left does more.
GO_ON = ("compact-transactions", "compact-trailing", "compact-per-group")


def logs_of(log_dir: Path) -> Logs:
    return {n: node.data for n, node in files(tree(log_dir)).items() if n.endswith(".log")}


def segments_of_tree(nodes: dict[str, Node]) -> Logs:
    """The files of segments, by name."""
    kinds = (".log", ".index", ".timeindex", ".txnindex")
    return {name: node.data for name, node in nodes.items() if name.endswith(kinds)}


def segments_of(log_dir: Path) -> Logs:
    return segments_of_tree(files(tree(log_dir)))


def purge_all(run_dir: Path, what: str) -> None:
    """Purge every run."""
    runs, problems = held_runs(run_dir)
    assert not problems, what
    for run in runs:
        done = purge_run(run_dir, run.run_id)
        assert not done.problems, what
        assert {result.status for result in done.results} <= {PURGED, NOTHING}, (what, done)


class Place:
    """Where a run is recorded and its crashes lie: journals name paths, so it is the same."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log_dir, self.run_dir = root / "logs", root / "runs"

    def fill(self, case: Case) -> None:
        self.clear()
        written(case, self.log_dir)
        (self.log_dir / ".lock").touch()

    def clear(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.log_dir.mkdir(parents=True)
        self.run_dir.mkdir()

    def run(self, case: Case, what: str) -> None:
        """The case's run, without any trouble."""
        run = case.run(self.log_dir, self.run_dir, None)
        assert not run.problems, (what, run.problems)
        assert {result.status for result in run.results} <= {
            "compacted", "deleted", "rebuilt", "sound",
        }, (what, run.results)  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """A verb over a case's log dir: its trace; what was there before the case's run, and after."""

    verb: str
    case: Case
    place: Place
    trace: Trace
    before: dict[str, Node]
    after: Logs
    segments: Logs
    originals: frozenset[int]

    def cuts(
        self, seeds: range, first: int = 0, last: int | None = None
    ) -> Iterator[tuple[int, State]]:
        """Each state that these seeds lead to, once; cut off at one of these events."""
        last = len(self.trace.events) if last is None else min(last, len(self.trace.events))
        syncs = [n for n, event in enumerate(self.trace.events) if isinstance(event, SYNCS)]
        seen: set[bytes] = set()
        for seed in seeds:
            length = random.Random(seed).randint(first, last)
            if seed // 2 % 2:  # right before a sync the most is to be lost
                length = next((n for n in syncs if n >= length), length)
            state = self.trace.crash(length, seeded(seed))
            if (digest := state.digest()) not in seen:
                seen.add(digest)
                yield seed, state

    def check(self, seed: int, state: State) -> None:
        """The verb done again, or undone at once, ends where it should."""
        what = f"{self.verb} of {self.case.name}, seed {seed}"
        place = self.place
        state.write_to(place.root)
        if self.verb == "purge":
            purge_all(place.run_dir, what)
            assert kept(place.log_dir) == [], what
            assert logs_of(place.log_dir) == self.after, what
            return
        if self.verb == "run" and self.case.name in ALL_OR_NOTHING and seed % 4 == 0:
            resolve_interrupted_swap(str(place.log_dir / NAME), LocalFiles())
            found = segments_of(place.log_dir)
            assert found in (segments_of_tree(self.before), self.segments), what
        if self.verb != "undo" and seed % 2:
            place.run(self.case, what)
            if self.case.name not in GO_ON:
                assert logs_of(place.log_dir) == self.after, what
        undo_all(place.run_dir, what)
        check_original(place.log_dir, self.before, what)

    def check_loader(self, seed: int, state: State) -> None:
        """A broker that starts at once finds the last value of each key, and no other."""
        what = f"{self.verb} of {self.case.name}, seed {seed}"
        found = {
            name: state.data.get(inode, b"")
            for (directory, name), inode in state.names.items()
            if directory == f"logs/{NAME}"
        }
        before = {n.split("/")[1]: node.data or b"" for n, node in self.before.items() if "/" in n}
        assert values_of(loaded(found)) == values_of(loaded(before)), what


def record(verb: str, case: Case, root: Path) -> Recorded:
    """The trace of `run` (the case's own verb), of its `undo` or its `purge`; or `resume`: of the
    run after one that was cut off.
    """
    place = Place(root)
    place.fill(case)
    before = tree(place.log_dir)
    with recorded(root) as trace:
        place.run(case, "recorded")
    after = logs_of(place.log_dir)
    segments = segments_of(place.log_dir)
    names = trace.start.names.items()
    originals = frozenset(inode for (directory, _), inode in names if directory != "runs")
    originals &= trace.start.data.keys()
    found = Recorded(verb, case, place, trace, before, after, segments, originals)
    if verb == "run":
        return found
    if verb == "resume":
        moved = [n for n, event in enumerate(trace.events) if is_begun(event)]
        trace.crash(moved[0] + 1 if moved else len(trace.events) * 2 // 3, list).write_to(root)
    again: dict[str, Callable[[], None]] = {
        "undo": lambda: undo_all(place.run_dir, "recorded"),
        "purge": lambda: purge_all(place.run_dir, "recorded"),
        "resume": lambda: place.run(case, "recorded"),
    }
    with recorded(root) as trace:
        again[verb]()
    return replace(found, trace=trace)


def is_begun(event: Event) -> bool:
    """Whether a swap or a deletion has begun."""
    names = (*event.given, *event.gone) if isinstance(event, Names) else ()
    return any(name.endswith((".log", ".deleted")) for name, _ in names)


class Broker:
    """What Kafka's loader makes of the states of a recorded verb."""

    def __init__(self, kafka: Kafka, recorded: Recorded, work: Path) -> None:
        self._kafka = kafka
        self._work = work
        self._recorded = recorded
        self._seen: set[bytes] = set()
        place, case = recorded.place, recorded.case
        # The loader believes what lies beside a log after a clean stop: that is what recover mends.
        self._clean = [False] if case.name.startswith("recover") else [True, False]
        place.fill(case)
        self._before = self._read(False)
        place.run(case, "for Kafka")
        self._after = self._read(False)

    def _read(self, clean: bool) -> Reading:
        return read_by_kafka(
            self._kafka, self._recorded.place.log_dir, NAME, self._work, clean=clean
        )

    def check(self, seed: int, state: State) -> bool:
        """Whether the state was new to a broker; nothing is lost, and nothing comes back."""
        digest = state.digest(is_kafkas)
        if digest in self._seen:
            return False
        self._seen.add(digest)
        what = f"{self._recorded.verb} of {self._recorded.case.name}, seed {seed}"
        state.write_to(self._recorded.place.root)
        for clean in self._clean:
            found = self._read(clean)
            assert self._after.uncommitted <= found.uncommitted <= self._before.uncommitted, what
            assert self._after.committed <= found.committed <= self._before.committed, what
            if not self._recorded.case.name.startswith("retain"):
                assert found.last_values() == self._before.last_values(), (what, clean)
            assert found.log_end_offset == self._before.log_end_offset, what
            assert found.last_stable_offset == self._before.last_stable_offset, what
        return True


def is_kafkas(name: Name) -> bool:
    """Whether a broker looks at a file."""
    directory, file = name
    return (
        f"{directory}/".startswith(("logs/", "/"))
        and not file.startswith("kafkalog-")
        and file != "runs"
    )


def named(name: str) -> Case:
    (case,) = (case for case in CUT_CASES if case.name == name)
    return case
