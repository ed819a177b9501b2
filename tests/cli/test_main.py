"""The command as a whole: exit codes, data on stdout, talk on stderr."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalog.cli import main as cli
from kafkalog.cli import segments
from kafkalog.errors import (
    CorruptRecordError,
    InvalidConfigError,
    LogChangedError,
    LogCleaningRefusedError,
    LogDirLockedError,
)
from kafkalog.format.file_names import log_file_name
from kafkalog.planning import compaction
from kafkalog.reading.log_views import SegmentTask, segment_row
from kafkalog.reading.views import view_columns
from tests.support.log_builder import START_MS, LogBuilder


def _two_topics(log_dir: Path) -> None:
    LogBuilder(log_dir, "a-0").batch(("k", "v"), ("l", None)).segment().batch(("k", "w")).write()
    LogBuilder(log_dir, "b-3").batch(("k", "v")).write()


def test_segments_prints_a_table_with_the_views_columns(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _two_topics(log_dir)
    assert cli.main(["segments", "--log-dir", str(log_dir)]) == 0
    out, err = capsys.readouterr()
    header, *rows = [line.split() for line in out.splitlines()]
    usual = {"kind", "error", "indexState", "timeIndexState"}
    assert header == [c.name for c in view_columns("segments") if c.name not in usual]
    places = [row[: header.index("recordsCount") + 1] for row in rows]
    assert places == [
        ["a", "0", "0", "2", "2"],
        ["a", "0", "2", "3", "1"],
        ["b", "3", "0", "1", "1"],
    ]
    assert [row[header.index("isActive")] for row in rows] == ["no", "yes", "yes"]
    assert err == ""


def test_segments_prints_one_json_document(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _two_topics(log_dir)
    assert cli.main(["segments", "--log-dir", str(log_dir), "--topic", "a", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["problems"] == []
    first, second = document["segments"]
    assert list(first) == [column.name for column in view_columns("segments")]
    size = (log_dir / "a-0" / log_file_name(0)).stat().st_size
    assert (first["topic"], first["baseOffset"], first["nextOffset"]) == ("a", 0, 2)
    assert (first["recordsCount"], first["sizeInBytes"], first["validBytes"]) == (2, size, size)
    assert (first["largestTimestampMs"], first["smallestTimestampMs"]) == (START_MS + 1, START_MS)
    assert (first["isActive"], second["isActive"], second["hasSnapshot"]) == (False, True, True)
    assert first["modificationTime"].endswith("Z")


def test_segments_reports_damage_and_goes_on(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _two_topics(log_dir)
    LogBuilder(log_dir, "c-0").batch(("k", "v")).raw(bytes(20) + b"\x01" * 60).write()
    assert cli.main(["segments", "--log-dir", str(log_dir), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    errors = [row["error"] for row in document["segments"]]
    assert errors[:3] == [None, None, None]
    assert errors[3] is not None
    assert len(document["problems"]) == 1


def test_segments_names_a_file_that_may_not_be_read_and_goes_on(
    log_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    LogBuilder(log_dir, "a-0").batch(("k", "v")).segment().batch(("k", "v")).write()
    path = str(log_dir / "a-0" / log_file_name(0))

    def row_of(task: SegmentTask) -> dict[str, Any]:
        if task.segment.path == path:
            raise PermissionError(13, "Permission denied", path)
        return segment_row(task)

    monkeypatch.setattr(segments, "segment_row", row_of)
    assert cli.main(["segments", "--log-dir", str(log_dir), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [row["baseOffset"] for row in document["segments"]] == [1]
    assert document["problems"] == [f"{path}: Permission denied"]


def test_segments_of_nothing_is_an_empty_table(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log_dir / "meta.properties").write_text("version=1\n")
    assert cli.main(["segments", "--log-dir", str(log_dir)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["retain"],
        ["segments"],
        ["segments", "--log-dir", "/no/such/dir"],
        ["compact", "--log-dir", "/tmp", "--apply"],
        ["compact", "--log-dir", "/tmp", "--report", "page.html"],
    ],
)
def test_bad_usage_ends_with_2_and_says_why_on_stderr(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("kafkalog: ")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidConfigError("bad setting"), 2),
        (LogDirLockedError("a broker runs"), 3),
        (LogChangedError("another disk"), 3),
        (LogCleaningRefusedError("null keys"), 3),
        (CorruptRecordError("bad batch", path="x.log", position=61), 1),
        (PermissionError(13, "Permission denied", "x.log"), 1),
        (ZeroDivisionError("ours"), 4),
    ],
)
def test_errors_become_exit_codes(
    error: Exception,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(args: object) -> int:
        raise error

    monkeypatch.setattr(cli, "import_module", lambda name: SimpleNamespace(run=run))
    assert cli.main(["segments", "--log-dir", "x"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert ("Traceback" in err) is (code == 4)
    said = "x.log: Permission denied" if isinstance(error, OSError) else str(error)
    assert said in err


def test_help_and_version_end_well(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["--version"], ["compact", "--help"]):
        with pytest.raises(SystemExit) as caught:
            cli.main(words)
        assert caught.value.code == 0
    out = capsys.readouterr().out
    assert "--topic-partition" in out
    assert "--report" not in out  # of another verb


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, timeout=300
    )


def test_the_module_runs_as_a_command(log_dir: Path) -> None:
    _two_topics(log_dir)
    done = _run("-m", "kafkalog", "segments", "--log-dir", str(log_dir), "--topic", "b")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 2


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom kafkalog.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'numba', 'pyarrow', 'pyspark', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = _run("-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_segments_does_not_need_pandas_or_spark(log_dir: Path) -> None:
    _two_topics(log_dir)
    code = (
        "import sys\nfrom kafkalog.cli.main import main\n"
        f"code = main(['segments', '--log-dir', {str(log_dir)!r}])\n"
        "heavy = {'pyspark', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    done = _run("-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_stops_early_is_no_error(log_dir: Path) -> None:
    for number in range(300):
        LogBuilder(log_dir, f"topic-{number}").write()
    command = f"{sys.executable} -m kafkalog segments --log-dir {log_dir} | head -1"
    done = subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("topic")


@pytest.mark.parametrize(
    ("partitions", "options", "strategy"),
    [
        (1, ["--workers", "1"], "within-task"),
        (1, ["--workers", "2"], "across-tasks"),
        (4, ["--workers", "2"], "within-task"),
        (4, ["--workers", "2", "--strategy", "across-tasks"], "across-tasks"),
    ],
)
def test_a_large_partition_is_shared_where_there_are_workers_to_share_it(
    log_dir: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    partitions: int,
    options: list[str],
    strategy: str,
) -> None:
    monkeypatch.setattr(compaction, "ACROSS_TASKS_BYTES", 1)
    for number in range(partitions):
        log = LogBuilder(log_dir, f"a-{number}").batch(("k", "v"), ("k", "w"))
        log.segment(3_000_000_000).batch(("k", "x")).segment().batch(("k", "y")).write()
    command = ["compact", "--topic", "a", "--log-dir", str(log_dir), "--json"]
    command += ["--config", "cleanup.policy=compact"]
    assert cli.main([*command, *options]) == 0
    plans = json.loads(capsys.readouterr().out)["partitions"]
    assert [(len(plan["groups"]), plan["strategy"]) for plan in plans] == [
        (2, strategy)
    ] * partitions


def test_a_host_that_calls_main_keeps_its_own_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    frozen = gc.get_freeze_count()
    for name, freeze in (("of_a_host", False), ("of_a_command", True)):
        (tmp_path / f"{name}.py").write_text("")
        cli._loaded(name, freeze=freeze)
        assert (gc.get_freeze_count() > frozen) == freeze
    gc.unfreeze()
