"""What a run replaced comes back as it was: names, bytes, owner, mode and times."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from kafkalog.operations.earlier_run import NOTHING, UNDONE
from kafkalog.operations.purge import purge_run
from kafkalog.operations.run_history import held_runs
from kafkalog.operations.undo import undo_run
from kafkalog.swap.scratch import Scratch
from kafkalog.swap.undo_swap import read_undo_record
from tests.operations.undo.cases import CASES, Case, some_cases, written
from tests.operations.undo.trees import NAME, differences, dress, files, kept, tree

by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@by_case
def test_undo_gives_the_original_tree(case: Case, log_dir: Path, run_dir: Path) -> None:
    written(case, log_dir)
    before = tree(log_dir)
    done = case.run(log_dir, run_dir, None)
    assert not done.problems
    after = tree(log_dir)
    assert differences(after, before)
    (held,), _ = held_runs(run_dir)
    assert held.held_bytes > 0
    assert held.finished
    undone = undo_run(run_dir, done.run_id)
    assert UNDONE in {result.status for result in undone.results}
    assert {result.status for result in undone.results} <= {UNDONE, NOTHING}
    assert not undone.problems
    assert differences(tree(log_dir), before) == []
    assert [run.held_partitions for run in held_runs(run_dir)[0]] == [0]
    # A run after it does the same again.
    case.run(log_dir, run_dir, None)
    logs = [{n: d.data for n, d in t.items() if ".undo" not in n} for t in (tree(log_dir), after)]
    assert logs[0].keys() == logs[1].keys()
    assert {n: d for n, d in logs[0].items() if n.endswith((".log", "index"))} == {
        n: d for n, d in logs[1].items() if n.endswith((".log", "index"))
    }


@some_cases
def test_undo_gives_back_the_very_files(case: Case, log_dir: Path, run_dir: Path) -> None:
    """With what hangs on a file and not on its name: its number, other names, attributes."""
    path, others = written(case, log_dir / "log"), log_dir / "others"
    others.mkdir()
    for file in path.iterdir():
        # A torn tail of a log that has other names is not cut.
        if not (case.name.startswith("recover") and file.suffix == ".log"):
            os.link(file, others / file.name)
        with suppress(OSError):  # not every file system has them
            os.setxattr(file, "user.kafkalog", file.name.encode())
    dress(log_dir / "log")
    before = hanging_on(path)
    done = case.run(log_dir / "log", run_dir, None)
    assert hanging_on(path) != before
    undo_run(run_dir, done.run_id)
    assert hanging_on(path) == before


def hanging_on(path: Path) -> dict[str, tuple[object, ...]]:
    """Inode, other names and attributes of each file, and the directory's own."""
    found = {}
    for file in (path, *path.iterdir()):
        stat = file.stat()
        with suppress(OSError):
            attributes = [(name, os.getxattr(file, name)) for name in sorted(os.listxattr(file))]
            found[f"{file.name} attributes"] = tuple(attributes)
        found[file.name] = stat.st_ino, stat.st_nlink, stat.st_mode, stat.st_uid, stat.st_mtime_ns
    return found


@some_cases
def test_purge_frees_the_space_and_ends_undo(case: Case, log_dir: Path, run_dir: Path) -> None:
    written(case, log_dir)
    done = case.run(log_dir, run_dir, None)
    live = {name: node for name, node in files(tree(log_dir)).items() if ".undo" not in name}
    held = held_runs(run_dir)[0][0].held_bytes
    purged = purge_run(run_dir, done.run_id)
    assert sum(result.freed_bytes for result in purged.results) == held
    assert kept(log_dir) == []
    assert differences(files(tree(log_dir)), live) == []
    undone = undo_run(run_dir, done.run_id)
    assert {result.status for result in undone.results} == {NOTHING}
    assert differences(files(tree(log_dir)), live) == []


@some_cases
def test_no_undo_keeps_nothing(case: Case, log_dir: Path, run_dir: Path) -> None:
    verb, *_ = case.name.split("-")
    written(case, log_dir)
    words = [verb, "--log-dir", str(log_dir), "--topic", "orders", "--apply", "--no-undo", "--json"]
    words += ["--run-dir", str(run_dir), "--now", "1750000000000", "--workers", "1"]
    settings = {
        "compact": ("cleanup.policy=compact", "segment.bytes=1048576"),
        "retain": ("cleanup.policy=delete", "retention.ms=1000"),
        "recover": ("index.interval.bytes=100",),
    }
    if verb == "retain":
        del words[words.index("--workers") :][:2]
    words = words[:-2] if verb == "retain" else words
    words += [f"--config={setting}" for setting in settings[verb]]
    assert main(words) == 0
    assert kept(log_dir) == []
    (held,), _ = held_runs(run_dir)
    assert held.partitions
    assert not held.held_partitions


@pytest.mark.parametrize("data", [None, b"", b"0\n0\n", b"0\n1\nother 0 5\n"], ids=repr)
@pytest.mark.parametrize("case", [CASES[1], CASES[2]], ids=lambda case: case.name)
def test_undo_gives_back_the_checkpoint_or_none(
    case: Case, data: bytes | None, log_dir: Path, run_dir: Path
) -> None:
    """A broker begins with an empty file."""
    written(case, log_dir)
    for name in ("cleaner-offset-checkpoint", "log-start-offset-checkpoint"):
        (log_dir / name).unlink(missing_ok=True)
        if data is not None:
            (log_dir / name).write_bytes(data)
    before = files(tree(log_dir))
    done = case.run(log_dir, run_dir, None)
    assert differences(files(tree(log_dir)), before)
    assert not undo_run(run_dir, done.run_id).problems
    assert differences(files(tree(log_dir)), before) == []


def test_runs_stack_and_come_off_in_turn(log_dir: Path, run_dir: Path) -> None:
    """The second run's sources are the first one's outputs: the first waits for the second."""
    case = CASES[0]
    written(case, log_dir)
    before = tree(log_dir)
    first = case.run(log_dir, run_dir, None)
    between = tree(log_dir)
    (log_dir / "cleaner-offset-checkpoint").unlink()
    no_checkpoint = tree(log_dir)
    second = case.run(log_dir, run_dir, None)
    refused = undo_run(run_dir, first.run_id)
    assert {result.status for result in refused.results} == {"refused"}
    assert "changed since the run" in refused.results[0].reason
    undo_run(run_dir, second.run_id)
    assert differences(files(tree(log_dir)), files(no_checkpoint)) == []
    (log_dir / "cleaner-offset-checkpoint").write_bytes(
        between["cleaner-offset-checkpoint"].data or b""
    )
    assert undo_run(run_dir, first.run_id).results[0].status == UNDONE
    assert differences(files(tree(log_dir)), files(before)) == []


@contextmanager
def changed(path: Path, how: str) -> Iterator[None]:
    """The file grown, with other bytes, or gone; as it was afterwards, the same inode and time."""
    data, stat, aside = path.read_bytes(), path.stat(), path.with_name("aside")
    if how == "gone":
        path.rename(aside)
    else:
        path.write_bytes(data + b"x" if how == "grown" else bytes(byte ^ 1 for byte in data))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    yield
    if how == "gone":
        aside.rename(path)
    else:
        path.write_bytes(data)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@some_cases
def test_a_partition_that_changed_is_refused_and_left(
    case: Case, log_dir: Path, run_dir: Path
) -> None:
    path = written(case, log_dir)
    before = files(tree(log_dir))
    done = case.run(log_dir, run_dir, None)
    record = read_undo_record(Scratch(str(path), done.run_id))
    assert record is not None
    checked = 0
    made = record.every_made
    live = [path / file.name for file in made]
    keeps = [file for file in path.glob("*.undo") if not file.name.endswith("record.undo")]
    for file in (*live, *keeps):
        for how in ("grown", "other bytes", "gone"):
            # A `.log` with the same size, time and inode is believed; files by name may be gone.
            if how == "other bytes" and (file.suffix == ".log" or ".log" in file.suffixes):
                continue
            loose = {path / made.name for made in record.made}
            if (
                how == "gone"
                and (file in loose or file.parent / file.name in live)
                and (file in loose or file.suffix == ".log")
            ):
                continue
            if how == "other bytes" and (not file.stat().st_size or case.name[:6] == "retain"):
                continue
            what = f"{file.name} {how}"
            with changed(file, how):
                now = files(tree(path))
                results = undo_run(run_dir, done.run_id).results
                result = next(r for r in results if r.place.path == str(path))
                assert result.status == "refused", what
                assert "changed since the run" in result.reason, what
                assert differences(files(tree(path)), now) == [], what
                checked += 1
    assert checked >= 9
    assert undo_run(run_dir, done.run_id).results[0].status in (UNDONE, NOTHING)
    assert differences(files(tree(log_dir)), before) == []


@some_cases
def test_a_record_that_names_other_files_is_refused(
    case: Case, log_dir: Path, run_dir: Path
) -> None:
    """The record is a file like any other: it may lead nowhere else."""
    path = written(case, log_dir)
    done = case.run(log_dir, run_dir, None)
    record = path / f"kafkalog-{done.run_id}-record.undo"
    (victim := log_dir / "victim").write_text("x")
    values = json.loads(record.read_text())
    names = (
        [values["swapped"][0][side][0] for side in ("kept", "made")] if values["swapped"] else []
    )
    names += [side[0] for side in (values["kept"], values["made"]) if side]
    for entry in names:
        right = entry["name"]
        for name in (
            "../victim",
            str(victim),
            "..",
            "",
            f"{0:020d}.log.swap",
            "partition.metadata",
        ):
            entry["name"] = name
            record.write_text(json.dumps(values))
            now = files(tree(path))
            result = next(
                r for r in undo_run(run_dir, done.run_id).results if r.place.path == str(path)
            )
            assert result.status == "refused", name
            assert differences(files(tree(path)), now) == [], name
        entry["name"] = right
    for nonsense in (b"", b"{}", b"[" * 100_000, b"\xff\x00", record.read_bytes()[:-7]):
        record.write_bytes(nonsense)
        result = next(
            r for r in undo_run(run_dir, done.run_id).results if r.place.path == str(path)
        )
        assert (result.status, "cannot be read" in result.reason) == ("refused", True)
    assert victim.read_text() == "x"


def test_what_the_run_did_not_touch_may_have_changed(log_dir: Path, run_dir: Path) -> None:
    case = CASES[0]
    path = written(case, log_dir)
    before = files(tree(log_dir))
    done = case.run(log_dir, run_dir, None)
    active = max(path.glob("*.log"))
    with active.open("ab") as file:
        file.write(active.read_bytes())
    undo_run(run_dir, done.run_id)
    assert differences(files(tree(log_dir)), before) == [f"{NAME}/{active.name}"]


@pytest.mark.parametrize("verb", ["undo", "purge"])
def test_a_run_that_is_not_there_is_a_usage_error(
    verb: str, run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["abc"], ["../abc"], [], ["a", "b"], ["/etc"]):
        assert main([verb, *words, "--run-dir", str(run_dir)]) == 2
        assert capsys.readouterr().err
    with pytest.raises(InvalidConfigError, match=r"no run abc .*kafkalog runs.*--run-dir"):
        undo_run(run_dir, "abc")


def test_the_verbs_print_what_they_did(
    log_dir: Path, run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[0]
    written(case, log_dir)
    done = case.run(log_dir, run_dir, None)
    where = ["--run-dir", str(run_dir)]
    assert main(["runs", *where, "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert (listed["run"], listed["kind"], listed["held"]) == (done.run_id, "compact", 1)
    assert main(["runs", *where]) == 0
    assert done.run_id in capsys.readouterr().out
    assert main(["runs", done.run_id, *where]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["runs"]
    assert [e["event"] for e in shown["events"]] == ["planned", "ended", "checkpoint"]
    assert main(["undo", done.run_id, *where, "--json"]) == 0
    (undone,) = json.loads(capsys.readouterr().out)["partitions"]
    assert (undone["status"], undone["topic"]) == ("undone", "orders")
    assert main(["undo", done.run_id, *where]) == 3
    assert main(["purge", done.run_id, *where]) == 0
    shutil.rmtree(log_dir / NAME)
    assert main(["undo", done.run_id, *where]) == 3
    assert "no such directory" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do anything")
def test_an_unwritable_run_dir_stops_the_run_before_it_begins(log_dir: Path) -> None:
    written(CASES[0], log_dir)
    before = tree(log_dir)
    assert main(["compact", "--log-dir", str(log_dir), "--topic", "*", "--apply"]) == 3
    assert differences(tree(log_dir), before) == []


@pytest.mark.parametrize("name", ["00000000000000000004.index", "00000000000000000000.log"])
def test_a_name_that_somebody_has_again_is_not_taken(
    log_dir: Path, run_dir: Path, name: str
) -> None:
    (case,) = (case for case in CASES if case.name == "retain-some")
    path = written(case, log_dir)
    run_id = case.run(log_dir, run_dir, None).run_id
    (path / name).write_bytes(b"of somebody else")
    (result,) = (r for r in undo_run(run_dir, run_id).results if r.place.path == str(path))
    assert result.status == "refused"
    assert name in result.reason
    assert (path / name).read_bytes() == b"of somebody else"
