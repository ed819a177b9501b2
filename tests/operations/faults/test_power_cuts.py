"""The power fails anywhere in a run, its undo, its purge, or the run after one that was cut off,
and the disk forgets any part of what was not synced: nothing is lost.

`make test` takes some of the cuts, `make soak` 5,000 of each verb, each distinct state of them
opened by Kafka's own loader.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.operations.run_history import held_runs
from kafkalog.runs import durable
from tests.operations.faults.forgetful_disk import Event, Names, SyncedDirectory, SyncedFile
from tests.operations.faults.power_cuts import (
    CUT_CASES,
    Broker,
    Place,
    Recorded,
    logs_of,
    named,
    record,
)
from tests.operations.faults.recording import recorded
from tests.operations.undo.cases import written
from tests.operations.undo.test_undo_kills import check_original, undo_all
from tests.operations.undo.trees import NAME, differences, files, tree
from tests.oracle.kafka import Kafka

SOAK_CUTS = 5000
COMPACTIONS = [case.name for case in CUT_CASES if case.name.startswith("compact")]
VERBS = ("run", "undo", "purge", "resume")


def check_some(found: Recorded, most: int, seeds: range = range(200)) -> int:
    """Check so many states; how many there were."""
    checked = 0
    for seed, state in found.cuts(seeds):
        found.check(seed, state)
        checked += 1
        if checked == most:
            break
    return checked


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        ("run", "compact"),
        ("run", "retain-all"),
        ("run", "recover-torn"),
        ("undo", "compact"),
        ("purge", "retain-all"),
        pytest.param("run", "compact-split", marks=pytest.mark.thorough),
        pytest.param("undo", "retain-all", marks=pytest.mark.thorough),
        pytest.param("undo", "recover-torn", marks=pytest.mark.thorough),
        pytest.param("resume", "compact", marks=pytest.mark.thorough),
    ],
)
def test_a_power_cut_loses_nothing_and_the_next_run_or_undo_ends_it(
    log_dir: Path, verb: str, name: str
) -> None:
    assert check_some(record(verb, named(name), log_dir / "root"), 14) == 14


@pytest.mark.parametrize(
    "name",
    [COMPACTIONS[0], *(pytest.param(n, marks=pytest.mark.thorough) for n in COMPACTIONS[1:])],
)
@pytest.mark.parametrize("verb", ["run", "undo", "resume"])
def test_a_broker_that_starts_after_a_power_cut_finds_every_last_value(
    log_dir: Path, verb: str, name: str
) -> None:
    found = record(verb, named(name), log_dir / "root")
    events = found.trace.events
    swap = [n for n, event in enumerate(events) if is_of_swap(event)]
    first, last = min(swap, default=0), max(swap, default=0) + 3
    states = 0
    for seed, state in (*found.cuts(range(200)), *found.cuts(range(300), first, last)):
        found.check_loader(seed, state)
        states += 1
    assert states > 80


@pytest.mark.parametrize(
    "name", ["compact", pytest.param("compact-transactions", marks=pytest.mark.thorough)]
)
def test_after_a_recovery_a_partition_is_all_old_or_all_new(log_dir: Path, name: str) -> None:
    found = record("run", named(name), log_dir / "root")
    begun = next(n for n, e in enumerate(found.trace.events) if ".cleaned'" in repr(e))
    ended = max(n for n, e in enumerate(found.trace.events) if ".swap'" in repr(e))
    found.trace.events[ended + 2 :] = []
    checked = 0
    for seed, state in found.cuts(range(0, 400, 4), begun):
        found.check(seed, state)
        checked += 1
        if checked == 40:
            break
    assert checked > 20


@pytest.mark.parametrize("case", CUT_CASES, ids=lambda case: case.name)
def test_what_a_run_has_done_is_on_disk_when_it_ends(log_dir: Path, case) -> None:  # type: ignore[no-untyped-def]
    found = record("run", case, log_dir / "root")
    found.trace.crash(len(found.trace.events), lambda _: []).write_to(found.place.root)
    assert logs_of(found.place.log_dir) == found.after
    (run,) = held_runs(found.place.run_dir)[0]
    assert run.finished is not None
    assert run.held_partitions == 1
    undo_all(found.place.run_dir, case.name)
    check_original(found.place.log_dir, found.before, case.name)
    undone = record("undo", case, log_dir / "root")
    undone.trace.crash(len(undone.trace.events), lambda _: []).write_to(undone.place.root)
    wanted = files(undone.before)
    assert {
        n: node for n, node in files(tree(undone.place.log_dir)).items() if n in wanted
    } == wanted


def test_what_salvage_copied_is_on_disk_when_it_ends(log_dir: Path) -> None:
    place = Place(log_dir / "root")
    place.clear()
    written(named("recover-torn"), place.log_dir)
    with recorded(place.root) as trace:
        code = main(["salvage", "--log-dir", str(place.log_dir), "--output", f"{place.root}/a/b"])
    assert code == 1
    made = files(tree(place.root / "a"))
    assert len(made) > 12
    trace.crash(len(trace.events), lambda _: []).write_to(place.root)
    found = {n: node for n, node in files(tree(place.root / "a")).items() if "/kafkalog-" not in n}
    assert differences(found, made) == []


@pytest.mark.parametrize("verb", ["run", "undo"])
@pytest.mark.parametrize("name", ["compact", "retain-all", "recover-torn"])
def test_no_file_from_before_is_ever_without_a_name(log_dir: Path, verb: str, name: str) -> None:
    """Its own, that of what goes, or the second one it is kept by."""
    found = record(verb, named(name), log_dir / "root")
    for seed, state in found.cuts(range(300)):
        assert found.originals <= set(state.names.values()), seed


def test_zeros_of_its_length_are_not_taken_for_the_tail_that_was_cut(log_dir: Path) -> None:
    place = Place(log_dir / "root")
    place.fill(named("recover-torn"))
    before = tree(place.log_dir)
    place.run(named("recover-torn"), "cut")
    log = max((place.log_dir / NAME).glob("*.log"))
    os.truncate(log, len(before[f"{NAME}/{log.name}"].data or b""))
    undo_all(place.run_dir, "zeros")
    check_original(place.log_dir, before, "zeros")


def test_deleted_segments_come_back_whole_and_from_the_last(log_dir: Path) -> None:
    """A power cut during the undo of a deletion leaves no log that lacks an index of its own, or a
    segment in the middle.
    """
    found = record("undo", named("retain-all"), log_dir / "root")
    wanted = {name.split("/")[1] for name in found.before if name.startswith(f"{NAME}/")}
    logs = sorted(name for name in wanted if name.endswith(".log"))
    for seed, state in found.cuts(range(300)):
        names = {name for directory, name in state.names if directory == f"logs/{NAME}"}
        there = [name for name in logs if name in names]
        assert there == logs[len(logs) - len(there) :], seed
        beside = {n for n in wanted if n.split(".")[0] + ".log" in there and "index" in n}
        assert beside <= names, seed


# -- the layer itself can fail ---------------------------------------------------------------------


def lost_without(found: Recorded, number: int, last: int | None = None) -> bool:
    """Whether a cut behind it, up to the event `last`, loses a value if one sync had not
    happened.
    """
    with_it, found.trace.events = found.trace.events, found.trace.without(number).events
    try:
        for seed, state in found.cuts(range(120), number, last):
            found.check_loader(seed, state)
    except AssertionError:
        return True
    finally:
        found.trace.events = with_it
    return False


def test_without_one_of_its_syncs_a_run_loses_values(log_dir: Path) -> None:
    """Of a new segment that has batches; of the directory before sources go, before new segments
    get their names, and between sources that must go in order.
    """
    found = record("run", named("compact-per-group"), log_dir / "root")
    events = found.trace.events
    logs = [inode for event in events if (inode := inode_of(event, ".log.cleaned"))]
    assert lost_without(found, events.index(SyncedFile(logs[0])))
    syncs = [n for n, e in enumerate(events) if e == SyncedDirectory(f"logs/{NAME}")]
    lost = {n for n in syncs if lost_without(found, n, n + 5)}
    # what the last change before a sync was: the names it gave, or took
    before = [event for n in lost if isinstance(event := events[n - 1], Names)]
    assert any(name.endswith(".swap") for event in before for name, _ in event.given)
    taken = [name for event in before if not event.given for name, _ in event.gone]
    assert any(name.endswith(".log") for name in taken)


def inode_of(event: Event, suffix: str) -> int | None:
    """The inode that an event gives such a name to."""
    new = event.given if isinstance(event, Names) else ()
    return next((inode for name, inode in new if name.endswith(suffix)), None)


def is_of_swap(event: Event) -> bool:
    """Whether it gives or takes a name as `.swap`."""
    names = (*event.given, *event.gone) if isinstance(event, Names) else ()
    return any(name.endswith(".swap") for name, _ in names)


def test_a_change_that_is_not_recorded_is_noticed(log_dir: Path) -> None:
    (log_dir / "a").write_bytes(b"before")
    with pytest.raises(AssertionError), recorded(log_dir):
        (log_dir / "a").write_bytes(b"after!")


def test_what_is_not_synced_is_lost_and_what_is_synced_is_not(log_dir: Path) -> None:
    (log_dir / "old").write_bytes(b"old")
    with recorded(log_dir) as trace:
        fd = os.open(log_dir / "new", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"abc")
        os.fsync(fd)
        os.write(fd, b"def")
        os.close(fd)
        durable.sync_directory(log_dir)
        (log_dir / "old").rename(log_dir / "renamed")
    nothing, all_of_it = (trace.crash(len(trace.events), lose) for lose in (lambda _: [], list))
    assert {name for _, name in nothing.names} == {"old", "new"}
    assert nothing.data[nothing.names["", "new"]] == b"abc"
    assert {name for _, name in all_of_it.names} == {"renamed", "new"}
    assert all_of_it.data[all_of_it.names["", "new"]] == b"abcdef"
    unsynced = trace.crash(1, lambda _: [])
    assert {name for _, name in unsynced.names} == {"old"}


# -- soak ------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.oracle
@pytest.mark.parametrize("verb", ["compact", "retain", "recover", "undo", "purge"])
def test_5000_power_cuts_of_each_verb_lose_nothing(
    log_dir: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each distinct state is opened by Kafka's loader, which is what the twin in `loader.py` is
    held to, and ended by us.
    """
    ways = ("run", "resume") if verb in ("compact", "retain", "recover") else (verb,)
    cases = [c for c in CUT_CASES if verb in ways or c.name.startswith(verb)]
    share = -(-SOAK_CUTS // (len(ways) * len(cases)))
    states = loads = 0
    started = time.monotonic()
    with Kafka() as kafka:
        for way in ways:
            for case in cases:
                found = record(way, case, log_dir / "root")
                broker = Broker(kafka, found, log_dir)
                for seed, state in found.cuts(range(share)):
                    loads += broker.check(seed, state)
                    if case.name in COMPACTIONS:
                        found.check_loader(seed, state)
                    found.check(seed, state)
                    states += 1
    with capsys.disabled():
        sys.stdout.write(
            f"\n{verb}: {share * len(ways) * len(cases)} power cuts, {states} distinct states, "
            f"{loads} of them distinct to Kafka's loader, {time.monotonic() - started:.0f} s\n"
        )
    assert states > 300
