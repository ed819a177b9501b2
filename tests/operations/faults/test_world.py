"""The world misbehaves: each case ends in a named error, and a partition as it was or completed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from tests.conftest import NOW_MS
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import ISLAND, NAME, SETTINGS, contents
from tests.operations.faults.test_attempts import InterruptedFiles
from tests.operations.faults.test_space import per_group
from tests.operations.undo.cases import CASES, written
from tests.operations.undo.trees import differences, files, tree
from tests.support.topics import topic_words


def compact(
    log_dir: Path, capsys: pytest.CaptureFixture[str], *more: str, now_ms: int = NOW_MS
) -> tuple[int, dict[str, dict[str, str]]]:
    """`kafkalog compact --apply` over all: exit code, partitions by name."""
    words = ["compact", "--log-dir", str(log_dir), *topic_words(log_dir), "--apply", "--json"]
    words += ["--now", str(now_ms), "--workers", "1", *more]
    code = main(words + [f"--config={key}={value}" for key, value in SETTINGS.items()])
    found = json.loads(capsys.readouterr().out)["partitions"]
    return code, {f"{entry['topic']}-{entry['partition']}": entry for entry in found}


def test_a_backup_by_hard_links_stays_as_it_is(
    undisturbed: Undisturbed, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, backup = undisturbed.copy(log_dir / "copy"), log_dir / "backup"
    backup.mkdir()
    for path in (copy / NAME).iterdir():
        os.link(path, backup / path.name)
    before = files(tree(backup))
    code, partitions = compact(copy, capsys)
    assert (code, partitions[NAME]["status"]) == (0, "compacted")
    assert contents(copy) == undisturbed.after
    assert differences(files(tree(backup)), before) == []


def test_a_linked_segment_with_a_torn_tail_is_not_cut(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torn = next(case for case in CASES if case.name == "recover-torn")
    path = written(torn, log_dir)
    active = max(path.glob("*.log"))
    os.link(active, log_dir / "backup")
    before = files(tree(log_dir))
    (result,) = torn.run(log_dir, tmp_path / "runs", None).results
    assert result.status == "refused"
    assert "2 names (hard links)" in result.reason
    assert differences(files(tree(log_dir)), before) == []


def test_odd_directory_names_are_named_and_the_others_done(
    undisturbed: Undisturbed, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    odd = [b"\xff\xfe-0", "späß-0".encode(), b"new\nline-1", b"..-3", b" -0", b"a" * 250 + b"-0"]
    for name in odd:
        (Path(os.fsdecode(os.fsencode(copy) + b"/" + name))).mkdir()
    code, partitions = compact(copy, capsys)
    assert code in (0, 1)
    assert partitions[NAME]["status"] == "compacted"
    assert contents(copy) == undisturbed.after
    assert main(["segments", "--log-dir", str(copy), "--json"]) in (0, 1)
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "name",
    [
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "meta.properties",
        f"{NAME}/partition.metadata",
        f"{NAME}/leader-epoch-checkpoint",
    ],
)
@pytest.mark.parametrize("data", [b"\xff\x00\xfe", b"0\n99999999999\n", b"", b"0\n1\norders 0 x\n"])
def test_a_corrupt_small_file_is_named_and_the_log_old_or_new(
    undisturbed: Undisturbed,
    log_dir: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    data: bytes,
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    (copy / name).write_bytes(data)
    before = contents(copy)
    code, partitions = compact(copy, capsys)
    entry = partitions[NAME]
    logs = [
        {n: v for n, v in t.items() if n.endswith(".log")}
        for t in (contents(copy), before, undisturbed.after)
    ]
    if entry["status"] == "compacted":
        assert logs[0] == logs[2]
    else:
        assert code in (1, 3)
        assert entry["reason"]
        assert contents(copy) == before


@pytest.mark.parametrize("now_ms", [0, 1, 2**62], ids=["1970", "a moment later", "far ahead"])
def test_a_clock_that_jumped_loses_no_value(
    undisturbed: Undisturbed, log_dir: Path, capsys: pytest.CaptureFixture[str], now_ms: int
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    before = contents(copy)
    code, partitions = compact(copy, capsys, "--force", "clock-differs", now_ms=now_ms)
    assert code == 0
    # The last values of the log are in its last two segments, which are kept whole or untouched.
    for base in (ISLAND + 30, 2 * ISLAND, 2 * ISLAND + 40):
        log = f"{NAME}/{base:020d}.log"
        assert contents(copy)[log] == before[log]
    assert partitions[NAME]["status"] in ("compacted", "skip")


@pytest.mark.parametrize("what", ["vanishes", "grows"])
def test_a_source_that_changes_between_groups_stops_the_rest(
    undisturbed: Undisturbed, log_dir: Path, what: str
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    source = copy / NAME / f"{2 * ISLAND:020d}.log"

    def change() -> None:
        if what == "vanishes":
            source.rename(log_dir / "elsewhere")
        else:
            source.write_bytes(source.read_bytes() + b"x")

    first_group_is_in = 30
    (result,) = per_group(copy, InterruptedFiles(first_group_is_in, change)).results
    assert result.status == "failed"
    assert "not those" in result.reason or "No such file" in result.reason
    names = [path.name for path in (copy / NAME).iterdir()]
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".tmp"))]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write anything")
def test_read_only_files_are_named(
    undisturbed: Undisturbed, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    (copy / NAME).chmod(0o500)
    before = contents(copy)
    code, partitions = compact(copy, capsys)
    (copy / NAME).chmod(0o700)
    assert code == 1
    assert "Permission denied" in partitions[NAME]["reason"]
    assert contents(copy) == before
