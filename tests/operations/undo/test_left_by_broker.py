"""What a broker marked `.deleted` and left: it goes with what a run removes, is said beforehand,
and comes back; where a run changes nothing it stays.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from kafkalog.operations.undo import undo_run
from kafkalog.swap.replacement import DELETED_SUFFIX
from tests.operations.undo.trees import differences, tree
from tests.support.log_builder import START_MS, LogBuilder

NOW = str(START_MS + 10_000_000)
SETTINGS = {
    "compact": ("cleanup.policy=compact", "min.cleanable.dirty.ratio=0"),
    "retain": ("cleanup.policy=delete", "retention.ms=1000"),
}
# One has the name that the run's own would get, the others are of segments that are long gone.
LEFT = {
    f"{0:020d}.log.deleted": b"an old segment",
    f"{0:020d}.timeindex.deleted": bytes(12),
    f"{77:020d}.log.deleted": b"x" * 1000,
    f"{77:020d}.snapshot.deleted": b"",
}


def written(log_dir: Path, *, is_due: bool = True) -> Path:
    log = LogBuilder(log_dir, "orders-0")
    time_ms = START_MS if is_due else int(NOW)
    log.segment().batch(("a", "1"), ("b", "1"), timestamp=time_ms)
    log.segment().batch(("a", "2"), timestamp=time_ms)
    path = log.segment().batch(("c", "1"), timestamp=int(NOW)).write()
    for name, data in LEFT.items():
        (path / name).write_bytes(data)
    return path


def run(
    verb: str, log_dir: Path, run_dir: Path, *words: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    where = [verb, "--log-dir", str(log_dir), "--topic", "orders", "--now", NOW, "--json"]
    settings = [f"--config={setting}" for setting in SETTINGS[verb]]
    code = main([*where, "--run-dir", str(run_dir), *settings, *words])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def left(path: Path) -> set[str]:
    return {file.name for file in path.iterdir() if file.name.endswith(DELETED_SUFFIX)}


@pytest.mark.parametrize("verb", ["compact", "retain"])
def test_it_is_planned_goes_and_comes_back(
    verb: str, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(log_dir)
    before = tree(log_dir)
    code, document = run(verb, log_dir, tmp_path, capsys=capsys)
    (planned,) = document["partitions"]
    assert code == 0
    assert {f["name"]: f["sizeInBytes"] for f in planned["removedFiles"]} == {
        name: len(data) for name, data in LEFT.items()
    }
    assert planned["removedFileBytes"] == sum(map(len, LEFT.values()))
    assert left(path) == LEFT.keys()
    code, document = run(verb, log_dir, tmp_path, "--apply", capsys=capsys)
    assert (code, left(path)) == (0, set())
    assert document["partitions"][0]["removedFiles"] == planned["removedFiles"]
    done = undo_run(tmp_path, document["runId"])
    assert [result.status for result in done.results] == ["undone"]
    assert not differences(tree(log_dir), before)


@pytest.mark.parametrize("verb", ["compact", "retain"])
def test_for_people_the_reason_names_it(
    verb: str, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(log_dir)
    words = [verb, "--log-dir", str(log_dir), "--topic", "orders", "--now", NOW]
    words += [f"--config={setting}" for setting in SETTINGS[verb]]
    assert main(words) == 0
    assert "4 files that a broker left as .deleted go as well (1.0 KiB)" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["compact", "retain"])
@pytest.mark.parametrize("why", ["skipped", "refused"])
def test_where_nothing_is_to_be_done_nothing_is_removed(
    verb: str, why: str, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(log_dir, is_due=False)
    orphan = path / f"{1:020d}.index"
    orphan.write_bytes(b"")
    if why == "refused":
        (log_dir / "replication-offset-checkpoint").unlink()
    words = ["--config=min.compaction.lag.ms=1000000", "--apply"]
    code, document = run(verb, log_dir, tmp_path, *words, capsys=capsys)
    (partition,) = document["partitions"]
    assert partition["status"] == ("skip" if why == "skipped" else "refused")
    assert code == (0 if why == "skipped" else 3)
    assert (partition["removedFiles"], partition["removedFileBytes"]) == ([], 0)
    assert left(path) == LEFT.keys()
    assert orphan.exists()
    assert document["recovered"] == []


def test_recovering_indexes_leaves_it(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(log_dir)
    (path / f"{0:020d}.index").unlink()
    words = ["recover", "--log-dir", str(log_dir), "--topic", "orders", "--apply", "--workers", "1"]
    assert main([*words, "--run-dir", str(tmp_path)]) == 0
    assert (path / f"{0:020d}.index").exists()
    assert left(path) == LEFT.keys()


def test_without_undo_it_is_gone(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(log_dir)
    code, document = run("retain", log_dir, tmp_path, "--apply", "--no-undo", capsys=capsys)
    assert (code, left(path)) == (0, set())
    assert not list(path.glob("kafkalog-*"))
    assert len(document["partitions"][0]["removedFiles"]) == len(LEFT)
