"""The journal of a run: what its schema says, in the order it happened, however the run ended."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import InvalidConfigError, LogCleaningRefusedError
from kafkalog.format.checksum import crc32c
from kafkalog.operations.purge import purge_run
from kafkalog.operations.undo import undo_run
from kafkalog.runs import durable, journal
from kafkalog.runs.journal import LaterSyncs, append_events, read_events
from kafkalog.runs.run_dir import list_runs
from tests.operations.faults.breaking_files import DyingFiles, run_in_child
from tests.operations.undo.cases import CASES, Case, written
from tests.operations.undo.trees import NAME, differences, tree
from tests.support.reference.json_schema import errors_of

SCHEMA: dict[str, Any] = json.loads(
    Path(journal.__file__).with_name(journal.SCHEMA_FILE).read_text()
)
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def events_of(run_path: Path) -> list[dict[str, Any]]:
    found = list(read_events(run_path))
    for event in found:
        assert errors_of(event, SCHEMA, SCHEMA) == [], event
    return found


@by_case
def test_a_journal_tells_what_was_planned_and_replaced(
    case: Case, log_dir: Path, tmp_path: Path
) -> None:
    path = written(case, log_dir)
    before = {file.name: (file.read_bytes(), file.stat()) for file in path.iterdir()}
    done = case.run(log_dir, tmp_path, None)
    events = events_of(tmp_path / done.run_id)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "planned"
    (ended,) = [e for e in events if e["event"] == "ended" and e["path"] == str(path)]
    assert ended["attempt"]
    gone = {n for n in before if not (path / n).exists()}
    assert {file["name"] for file in ended["replaced"]} >= gone
    assert len(ended["replaced"]) >= 3
    for file in ended["replaced"]:
        data, stat = before[file["name"]]
        assert (file["size"], file["mtimeNs"]) == (len(data), stat.st_mtime_ns)
        assert (file["uid"], file["gid"]) == (stat.st_uid, stat.st_gid)
        assert file["mode"] == f"{stat.st_mode & 0o7777:04o}"
        assert file["crc32c"] in (None, crc32c(data))
        assert file["crc32c"] is not None or case.name.startswith("retain")
    for file in ended["made"]:
        data = (path / file["name"]).read_bytes()
        if file["name"].endswith(".log") and not case.name.startswith("compact"):
            continue
        assert (file["size"], file["crc32c"]) == (len(data), crc32c(data))
    undo_run(tmp_path, done.run_id)
    purge_run(tmp_path, done.run_id)
    kinds = [event["event"] for event in events_of(tmp_path / done.run_id)]
    assert kinds.index("undone") < kinds.index("purged")


@by_case
def test_a_run_that_was_killed_has_a_journal_up_to_there(
    case: Case, log_dir: Path, tmp_path: Path
) -> None:
    written(case, log_dir)
    run_in_child(lambda: case.run(log_dir, tmp_path, DyingFiles(12)))
    (run,), problems = list_runs(tmp_path)
    assert not problems
    assert "finished" not in run.facts
    assert {event["event"] for event in events_of(run.path)} >= {"planned"}


def test_a_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    append_events(tmp_path, [{"event": "resolved", "what": "a"}], at_ms=0)
    path = tmp_path / journal.JOURNAL_FILE
    with path.open("ab") as file:
        file.write(b'{"at":"1970-01-01T00:00')
    append_events(tmp_path, [{"event": "resolved", "what": "b"}], at_ms=1)
    assert [event["what"] for event in events_of(tmp_path)] == ["a", "b"]
    path.write_bytes(b"\x00\xff\n[]\n" + b"[" * 100_000 + b"\n" + path.read_bytes())
    assert [event["what"] for event in events_of(tmp_path)] == ["a", "b"]


def test_a_journal_that_cannot_be_kept_stops_the_run_before_it_begins(
    log_dir: Path, tmp_path: Path
) -> None:
    written(CASES[0], log_dir)
    before = tree(log_dir)
    (tmp_path / "file").write_text("x")
    with pytest.raises(LogCleaningRefusedError, match="--run-dir"):
        CASES[0].run(log_dir, tmp_path / "file", None)
    with pytest.raises(InvalidConfigError, match="lies in the log dir"):
        CASES[0].run(log_dir, log_dir / "runs", None)
    assert differences(tree(log_dir), before) == []


def test_a_journal_of_hostile_lines_leads_nowhere(log_dir: Path, tmp_path: Path) -> None:
    """Paths in a journal lead to directories; there only the run's own names are touched."""
    case = CASES[0]
    path = written(case, log_dir)
    done = case.run(log_dir, tmp_path, None)
    victim = tmp_path / "victim-0"
    victim.mkdir()
    (victim / "file").write_text("x")
    planned = {"event": "planned", "topic": "victim", "partition": 0, "peakBytes": 0}
    place = {"path": str(victim), "logDir": str(tmp_path)}
    append_events(tmp_path / done.run_id, [{**planned, **place}], at_ms=0)
    append_events(
        tmp_path / done.run_id,
        [{"event": "checkpoint", "logDir": str(victim), "file": "../../x", "lines": []}],
        at_ms=0,
    )
    undo_run(tmp_path, done.run_id)
    assert [file.name for file in victim.iterdir()] == ["file"]
    append_events(tmp_path / done.run_id, [{"event": "planned", "topic": 1}], at_ms=0)
    with pytest.raises(InvalidConfigError, match="cannot be understood"):
        undo_run(tmp_path, done.run_id)
    assert path.name == NAME


def test_what_is_noted_during_a_sync_is_forced_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    lines_synced: list[int] = []

    def sync(path: Path) -> None:
        lines_synced.append(len(path.read_text().splitlines()))
        begun.set()
        assert go_on.wait(300)

    monkeypatch.setattr(durable, "sync_file", sync)
    later = LaterSyncs(tmp_path)
    for number in range(5):
        append_events(tmp_path, [{"event": "resolved", "what": str(number)}], at_ms=0, syncs=False)
        later.ask()
        assert begun.wait(300)
    go_on.set()
    later.wait()
    assert lines_synced == [1, 5]


def test_a_later_sync_that_fails_is_told_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error", str(path))

    monkeypatch.setattr(durable, "sync_file", sync)
    later = LaterSyncs(tmp_path)
    for _ in range(3):
        later.ask()
    with pytest.raises(OSError, match="Input/output error"):
        later.wait()


@by_case
def test_how_each_partition_ended_is_on_disk_when_the_run_ends(
    case: Case, log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[str, str] = {}
    real = os.fsync

    def fsync(fd: int) -> None:
        real(fd)
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.name == journal.JOURNAL_FILE:
            synced[str(path)] = path.read_text()

    written(case, log_dir)
    monkeypatch.setattr(os, "fsync", fsync)
    done = case.run(log_dir, tmp_path, None)
    path = tmp_path / done.run_id / journal.JOURNAL_FILE
    assert synced[str(path)] == path.read_text()
