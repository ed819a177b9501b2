"""The process is killed before every step of `compare --heal --apply` (before every seventh but in
`make soak`): Kafka loads what is left, `recover` mends it, and nothing of the run lies about.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.cli.output import ExitCode
from kafkalog.comparing.comparison import compare_partition
from kafkalog.comparing.request import CompareRequest
from kafkalog.healing.run import Healing, apply_healing, heal_statuses
from kafkalog.requests.run_request import run_request
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.scratch import is_scratch
from tests.comparing.comparing import told
from tests.comparing.test_differences import nodes
from tests.conftest import NOW_MS
from tests.healing.test_heal import CASES, served, verified
from tests.operations.faults.breaking_files import CountingFiles, DyingFiles, run_in_child
from tests.oracle.kafka import Kafka, Kafkas

SETTINGS = {"cleanup.policy": "compact"}
# The step at which the healed copy is half written.
STAGED = 8


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafkas() as running:
        yield running.of("4.3")


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def heal(root: Path, files: LocalFiles) -> Healing:
    paths = tuple(str(root / f"node-{n}") for n in (1, 2))
    return apply_healing(
        run_request(paths, {"topics": ["*"], "run_dir": str(root / "runs")}),
        CompareRequest(paths),
        lambda tasks: map(compare_partition, tasks),
        lambda _: None,
        files=files,
    )


def left_of(root: Path) -> list[str]:
    """What a run has beside a log's own files; what is kept for undo is meant to be there."""
    names = [path.name for path in root.glob("node-2/orders-0/*")]
    return [n for n in names if is_scratch(n) or n.endswith((".cleaned", ".swap", ".deleted"))]


def check_kafka_loads(kafka: Kafka, crashed: Path, root: Path, what: str) -> None:
    """What a broker makes of it after a clean stop and after a crash: all of the log's offsets, and
    of each the record of either the wrong copy or the right one."""
    for clean in (True, False):
        copy = shutil.copytree(crashed / "node-2", root / "kafkas")
        load = kafka.open_once if clean else kafka.recover
        loaded = load(copy, "orders-0", now_ms=NOW_MS, config=SETTINGS)
        assert loaded["logEndOffset"] == 7, what
        everything = {row for n in (1, 2) for row in served(root / "whole" / f"node-{n}")[0]}
        assert set(served(copy)[0]) <= everything, what
        shutil.rmtree(copy)


@pytest.mark.oracle
@pytest.mark.thorough
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.soak)])
def test_killed_at_any_step_recover_mends_it_and_a_broker_loads_it(
    log_dir: Path, kafka: Kafka, stride: int, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = log_dir / "whole"
    whole.mkdir()
    nodes(whole, *CASES["resurrected-key"])
    wrong = told(whole / "node-1", whole / "node-2")
    undisturbed, counting = shutil.copytree(whole, log_dir / "undisturbed"), CountingFiles()
    assert heal_statuses(heal(undisturbed, counting).healed) == ["healed"]
    assert told(undisturbed / "node-1", undisturbed / "node-2") == []
    ended: set[bool] = set()
    for step in range(0, len(counting.steps), stride):
        what = f"killed before step {step}, {counting.steps[step]}"
        crashed = shutil.copytree(whole, log_dir / "crashed")
        code = run_in_child(lambda root=crashed, last=step: heal(root, DyingFiles(last)))  # type: ignore[misc]
        assert code == -signal.SIGKILL, what
        check_kafka_loads(kafka, crashed, log_dir, what)
        assert main(["recover", str(crashed / "node-2"), "--topic", "*", "--apply"]) == 0, what
        assert left_of(crashed) == [], what
        assert verified(crashed / "node-2", capsys) == {"metadata-log-missing"}, what
        found = told(crashed / "node-1", crashed / "node-2")
        assert found in ([], wrong), what
        ended.add(not found)
        assert heal_statuses(heal(crashed, LocalFiles()).healed) in (["healed"], []), what
        assert told(crashed / "node-1", crashed / "node-2") == [], what
        shutil.rmtree(crashed)
    assert ended == {True, False}


@pytest.mark.parametrize(
    ("verb", "code"),
    [("recover", ExitCode.DONE), ("purge", ExitCode.DONE), ("undo", ExitCode.UNSAFE)],
)
def test_the_staged_copy_of_a_run_that_died_goes(log_dir: Path, verb: str, code: int) -> None:
    nodes(log_dir, *CASES["resurrected-key"])
    before = served(log_dir / "node-2")
    assert run_in_child(lambda: heal(log_dir, DyingFiles(STAGED))) == -signal.SIGKILL
    (run,) = (log_dir / "runs").iterdir()
    assert left_of(log_dir) == [f"kafkalog-{run.name}-healing.tmp"]
    words = [verb, run.name, "--run-dir", str(log_dir / "runs")]
    if verb == "recover":
        words = [verb, str(log_dir / "node-2"), "--topic", "*", "--apply"]
    assert main(words) == code
    assert left_of(log_dir) == []
    assert served(log_dir / "node-2") == before
