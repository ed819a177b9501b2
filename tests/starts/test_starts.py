"""`verify` is a rehearsal of a broker's start: on every state of `states` it says what the broker
does, an error where that does not start, at least a warning where something is lost, no error where
all is there.

What the broker does was recorded (`rows`); some states are given to one again here, the soak tests
give it all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.rounds import work_directory
from tests.starts.disk import CONTRADICTIONS, Disk, State
from tests.starts.node import LOADS, LOSES, REFUSES, Node
from tests.starts.page import PAGE, start_page
from tests.starts.rows import (
    Row,
    knowing_sound,
    read_rows,
    started,
    tidied,
    verified,
)
from tests.starts.states import STATES
from tests.support.broker import Broker, BrokerFailedError

ROWS = read_rows()
BY_NAME = {state.name: state for state in STATES}
# Each kind of small file and each interpreter once, with every kind of answer.
AGAIN = (
    "meta.properties: empty",
    "quorum-state: empty",
    "bootstrap.checkpoint: empty",
    "recovery-point-offset-checkpoint: zeros",
    "log-start-offset-checkpoint: within the log",
    "partition.metadata: gone",
    "leader-epoch-checkpoint: gone",
    "producer snapshot: the newest empty",
    "snapshot: a gap to the log's start",
    "record: a topic is created twice",
    "control record: no value",
    "group record: an offset commit cut short",
    ".swap: instead of a segment",
    "foreign: lost+found in the log dir",
)
# Of the soak test of all states, each some minutes.
PARTS = 4
# In a process of its own, as a service manager starts it.
AS_A_PROCESS = (
    "sound: the sample as it is",
    "meta.properties: empty",
    "quorum-state: empty",
    "recovery-point-offset-checkpoint: zeros",
    "foreign: lost+found in the log dir",
    "partition.metadata: gone",
    "snapshot: empty",
    "record: of an unknown type",
    ".lock: a directory",
)


def test_every_state_has_a_row_and_every_row_a_state() -> None:
    assert len(STATES) == len(BY_NAME) >= 400
    assert BY_NAME.keys() == ROWS.keys()
    for outcome in (LOADS, LOSES, REFUSES):
        assert sum(row.broker == outcome for row in ROWS.values()) > 40, outcome


def test_verify_says_of_every_state_what_the_broker_does() -> None:
    assert [row for row in ROWS.values() if not row.agrees] == []


def test_files_that_contradict_each_other_are_at_least_a_warning() -> None:
    contradicting = [ROWS[state.name] for state in STATES if state.area == CONTRADICTIONS]
    assert len(contradicting) >= 14
    assert {(row.broker, row.verdict) for row in contradicting} == {
        (LOADS, "warning"),
        (LOSES, "error"),
    }


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(state, id=state.name, marks=pytest.mark.thorough if number % 8 else ())
        for number, state in enumerate(STATES)
    ],
)
def test_verify_finds_what_is_written_down(state: State, log_dir: Path) -> None:
    assert verified(state.make(log_dir)) == ROWS[state.name].verify


def test_the_page_is_made_of_the_rows() -> None:
    assert PAGE.read_text(encoding="utf-8") == start_page(), "python -m tests.support.documents"


# -- a real broker -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with Node() as running:
        yield knowing_sound(running)


def answered(node: Node, name: str) -> tuple[str, str]:
    """Asked once more where it is another answer than the row's: a node has some seconds for each
    thing, which a busy machine may not give it.
    """
    start = started(node, BY_NAME[name])
    if start.outcome != ROWS[name].broker:
        start = started(node, BY_NAME[name])
    return start.outcome, tidied(start.what)


def written(row: Row) -> tuple[str, str]:
    return row.broker, row.what


@pytest.mark.oracle
@pytest.mark.broker
def test_a_broker_does_so_again(node: Node) -> None:
    found = {name: answered(node, name)[0] for name in AGAIN}
    assert found == {name: ROWS[name].broker for name in AGAIN}


@pytest.mark.soak
@pytest.mark.oracle
@pytest.mark.broker
@pytest.mark.parametrize("part", range(PARTS))
def test_a_broker_does_so_with_every_state(node: Node, part: int) -> None:
    found = {state.name: answered(node, state.name) for state in STATES[part::PARTS]}
    differing = {
        name: (start, written(ROWS[name]))
        for name, start in found.items()
        if start[0] != ROWS[name].broker and not (BY_NAME[name].is_race and start[0] == LOADS)
    }
    assert differing == {}


@pytest.mark.soak
@pytest.mark.oracle
@pytest.mark.broker
@pytest.mark.parametrize("name", AS_A_PROCESS)
def test_a_process_of_its_own_does_the_same(name: str) -> None:
    """The nodes above share a JVM."""
    with work_directory() as work:
        disk = BY_NAME[name].make(work)
        assert starts(disk) == (ROWS[name].broker != REFUSES)


def starts(disk: Disk) -> bool:
    log_dirs = ",".join(map(str, disk.log_dirs))
    broker = Broker(disk.root / "node", {"log.dirs": log_dirs})
    try:
        broker.start(timeout_s=40)
    except BrokerFailedError:
        return False
    finally:
        broker.kill()
    return True
