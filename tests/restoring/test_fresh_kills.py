"""A restore into a new cluster that is killed: the cluster has none of it, or all; what is left the
next run clears, or undo does.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from kafkalog.errors import LogCleaningRefusedError
from kafkalog.operations.earlier_run import NOTHING, UNDONE, UndoResult
from kafkalog.operations.undo import undo_run
from kafkalog.requests.run_request import run_request
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.restore import RESTORED, RestoreRun
from kafkalog.restoring.run import apply_restore, restore_statuses
from kafkalog.swap.local_files import LocalFiles
from tests.operations.faults.breaking_files import CountingFiles, DyingFiles, run_in_child
from tests.restoring.fresh import fields_of, fresh_node
from tests.restoring.target import served
from tests.restoring.test_fresh import tree
from tests.restoring.test_restore import busy
from tests.support.log_builder import START_MS


def run(source: Path, target: Path, run_dir: Path, files: LocalFiles | None) -> RestoreRun:
    log_dirs = [str(target / name) for name in ("a", "b")]
    request = run_request(log_dirs, {"run_dir": str(run_dir), "now_ms": START_MS})
    asked = RestoreRequest((str(source),), ("orders",))
    return apply_restore(request, asked, lambda _: None, files)


def undone(run_dir: Path) -> list[UndoResult]:
    (run_id,) = (each.name for each in run_dir.iterdir())
    return [*undo_run(run_dir, run_id).results]


@pytest.mark.parametrize(
    "every",
    [97, pytest.param(5, marks=pytest.mark.thorough), pytest.param(1, marks=pytest.mark.soak)],
)
def test_new_cluster_has_none_of_it_or_all(every: int, log_dir: Path, tmp_path: Path) -> None:
    source, place = log_dir / "source", log_dir / "place"
    busy(source).log_start_offset(3).write()

    def prepared() -> dict[str, bytes]:
        shutil.rmtree(place, ignore_errors=True)
        for node, name in enumerate(("a", "b"), 1):
            fresh_node(place / name, node)
        return tree(place)

    prepared()
    counting = CountingFiles()
    assert restore_statuses(run(source, place, tmp_path / "whole", counting)) == [RESTORED] * 2
    refused = 0
    for step in range(every // 2, len(counting.steps), every):
        what = f"killed before step {step}, {counting.steps[step]}"
        before, run_dir = prepared(), tmp_path / f"{step}"
        code = run_in_child(lambda: run(source, place, run_dir, DyingFiles(step)))  # noqa: B023
        assert code == -signal.SIGKILL, what
        for name in ("a", "b"):
            if fields_of(place / name, "TopicRecord"):
                # What its metadata names is whole, on every node.
                for copy in ("a", "b"):
                    assert served(place / copy / "orders-0") == served(source / "orders-0"), what
        names = {path.name for path in place.glob("*/*")}
        if "orders-0" in names or any(name.startswith("kafkalog-") for name in names):
            # Something has its name, or metadata is written: nothing is done about it unasked.
            with pytest.raises(LogCleaningRefusedError, match="kafkalog undo"):
                run(source, place, run_dir, None)
            refused += 1
            # What has no name yet is no refusal, and nothing of it is left.
            results = undone(run_dir)
            assert {each.status for each in results} <= {UNDONE, NOTHING}, (what, results)
            assert UNDONE in {each.status for each in results}, what
            assert (tree(place), [*place.rglob("*-delete")]) == (before, []), what
            assert {each.status for each in undone(run_dir)} == {NOTHING}, what
        again = run(source, place, run_dir, None)
        assert restore_statuses(again) == [RESTORED] * 2, (what, again)
        assert [str(path) for path in place.rglob("*-delete")] == [], what
        undo_run(run_dir, again.run_id)
        assert tree(place) == before, what
    assert refused or every > 1
