"""Local segments of tiered topics go by the local limits, once they are in remote storage; what is
there, `__remote_log_metadata` in the log dirs says.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafkalog.bucket.metadata_log import write_metadata_log
from kafkalog.bucket.stored_copies import StoredCopy
from kafkalog.cli.main import main
from kafkalog.format.checkpoints import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.segment_manifest import CopiedSegment
from kafkalog.planning.local_retention import highest_uploaded
from kafkalog.runs.run_dir import default_run_dir
from tests.support.log_builder import START_MS, TOPIC_ID, LogBuilder

NOW = str(START_MS + 10_000)
TIERED = ("cleanup.policy=delete", "remote.storage.enable=true", "retention.ms=-1")
METADATA = "__remote_log_metadata-0"


@pytest.fixture(autouse=True)
def _own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def tiered(log_dir: Path, tmp_path: Path) -> Path:
    """Four segments of three offsets each; six offsets are in remote storage."""
    log = LogBuilder(log_dir, "orders-0")
    for number in range(4):
        log.segment().batch(*((f"k{number}", "v" * 100) for _ in range(3)))
    log.write()
    set_line(log_dir, LOG_START_OFFSET_FILE, {("orders", 0): 0})
    set_uploads(log_dir, tmp_path, [(0, 5, ((0, 0),))])
    return log_dir


def set_line(log_dir: Path, name: str, lines: dict[tuple[str, int], int]) -> None:
    path = log_dir / name
    own = dict(parse_offset_checkpoint(path.read_bytes())) if path.exists() else {}
    path.write_bytes(pack_offset_checkpoint({**own, **lines}))


def set_uploads(
    log_dir: Path, tmp_path: Path, copies: list[tuple[int, int, tuple[tuple[int, int], ...]]]
) -> None:
    """(first offset, last offset, leader epochs) of what is finished."""
    output = tmp_path / "metadata"
    shutil.rmtree(output, ignore_errors=True)
    shutil.rmtree(log_dir / METADATA, ignore_errors=True)
    output.mkdir()
    made = []
    for number, (start, end, epochs) in enumerate(copies):
        segment_id = f"{number}" * 21 + "A"
        own = CopiedSegment(
            "orders", 0, TOPIC_ID, segment_id, start, end, START_MS, START_MS, epochs
        )
        made.append(StoredCopy(own, 1000, START_MS, "x"))
    write_metadata_log(output, made, 1)
    shutil.move(output / METADATA, log_dir)
    for name in (HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE):
        set_line(log_dir, name, dict(parse_offset_checkpoint((output / name).read_bytes())))


def retain(log_dir: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    words = ["retain", str(log_dir), "--topic=orders", f"--now={NOW}", "--json", *more]
    main([*words, *(f"--config={each}" for each in TIERED)])
    (found,) = json.loads(capsys.readouterr().out)["partitions"]
    return dict(found)


def bases(log_dir: Path) -> list[int]:
    return sorted(int(path.stem) for path in (log_dir / "orders-0").glob("*.log"))


LOCAL = "--config=local.retention.ms=1000"


def test_what_is_uploaded_goes_and_comes_back(
    tiered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = retain(tiered, capsys, LOCAL)
    assert found["deletedBaseOffsets"] == [0, 3]
    assert [each["rule"] for each in found["kept"]] == ["awaits-upload", "awaits-upload"]
    assert bases(tiered) == [0, 3, 6, 9]
    before = {path: path.read_bytes() for path in tiered.rglob("*") if path.is_file()}
    done = retain(tiered, capsys, LOCAL, "--apply")
    assert done["status"] == "deleted"
    assert bases(tiered) == [6, 9]
    # The log begins where it did: in remote storage.
    assert done["logStartOffset"] == 0
    lines = parse_offset_checkpoint((tiered / LOG_START_OFFSET_FILE).read_bytes())
    assert lines["orders", 0] == 0
    epochs = tiered / "orders-0" / "leader-epoch-checkpoint"
    assert epochs.read_bytes() == before[epochs]
    (run,) = default_run_dir().iterdir()
    assert main(["undo", run.name]) == 0
    after = {path: path.read_bytes() for path in tiered.rglob("*") if path.is_file()}
    assert {path: after.get(path) for path in before} == before


def test_limits_are_the_local_ones(tiered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert retain(tiered, capsys)["deletedBaseOffsets"] == []
    assert retain(tiered, capsys, "--config=local.retention.bytes=1")["deletedBaseOffsets"] == [
        0,
        3,
    ]


def without_metadata(log_dir: Path) -> None:
    shutil.rmtree(log_dir / METADATA)


def metadata_cut(log_dir: Path) -> None:
    set_line(log_dir, HIGH_WATERMARK_FILE, {("__remote_log_metadata", 0): 3})
    set_line(log_dir, RECOVERY_POINT_FILE, {("__remote_log_metadata", 0): 2})


def metadata_damaged(log_dir: Path) -> None:
    path = log_dir / METADATA / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [without_metadata, metadata_cut, metadata_damaged])
def test_where_it_is_not_known_what_is_uploaded_nothing_goes(
    tiered: Path, harm: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    harm(tiered)
    found = retain(tiered, capsys, LOCAL, "--apply")
    assert found["status"] == "refused"
    assert "what may go depends on what is uploaded" in found["reason"]
    assert bases(tiered) == [0, 3, 6, 9]


def test_a_log_without_its_start_or_with_copying_disabled_is_refused(
    tiered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disabled = retain(tiered, capsys, LOCAL, "--config=remote.log.copy.disable=true")
    assert disabled["status"] == "refused"
    assert "with remote.log.copy.disable" in disabled["reason"]
    (tiered / LOG_START_OFFSET_FILE).unlink()
    found = retain(tiered, capsys, LOCAL)
    assert "there is no line in log-start-offset-checkpoint" in found["reason"]


def test_a_copy_of_a_leader_that_was_replaced_does_not_count(
    tiered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_uploads(tiered, tmp_path, [(0, 2, ((0, 0),)), (3, 9, ((0, 3), (7, 4)))])
    assert retain(tiered, capsys, LOCAL)["deletedBaseOffsets"] == [0]


@pytest.mark.parametrize(
    ("epochs", "copies", "highest"),
    [
        ([], [(5, [(0, 0)])], -1),
        ([(0, 0)], [], -1),
        ([(0, 0)], [(5, [(0, 0)]), (2, [(0, 0)])], 5),
        # Of epoch 1 the log has offsets up to 6, whatever its replaced leader went on to write.
        ([(0, 0), (1, 4), (3, 7)], [(9, [(1, 4)])], 6),
        ([(0, 0), (1, 4), (3, 7)], [(9, [(1, 4), (3, 7)])], 9),
        ([(0, 0), (3, 7)], [(9, [(1, 4)])], -1),
        ([(0, 0)], [(5, [])], -1),
    ],
)
def test_the_highest_offset_is_of_the_own_leader_epochs(
    epochs: list[tuple[int, int]], copies: Any, highest: int
) -> None:
    assert highest_uploaded(epochs, copies) == highest
