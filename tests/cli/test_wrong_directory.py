"""An empty, unmounted or wrong directory: no verb ends well on it, and none finds "nothing"."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import kafkalog
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from kafkalog.reading.cluster_tables import read_histories
from tests.support.log_builder import LogBuilder

VERBS = {
    "info": [],
    "segments": [],
    "lag": [],
    "verify": ["--workers=1"],
    "audit": ["--workers=1"],
    "bucket": ["--workers=1", "--remote-dir=data/samples/tiered/remote"],
    "cluster": [],
    "attach": ["--in-place"],
    "compare": ["--workers=1"],
    "compact": [],
    "retain": ["--apply", "--topic=*"],
    "recover": ["--workers=1"],
    "salvage": [],
    "why": ["orders-0"],
}


def ask(verb: str, path: Path, tmp_path: Path) -> int:
    words = [verb, *VERBS[verb], "--log-dir", str(path)]
    if verb in ("bucket", "verify", "audit", "compact", "retain", "recover"):
        words += ["--run-dir", str(tmp_path / "runs")]
    if verb == "salvage":
        words += ["--output", str(tmp_path / "salvaged")]
    return main(words)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "name", ["data", "disk-1"]
)  # the name of a mount point may end in a number
def test_an_empty_directory_is_an_error_of_every_verb(
    verb: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.mkdir()
    assert ask(verb, path, tmp_path) == 2
    err = capsys.readouterr().err
    assert f"{path}: no log dir" in err
    assert "the directory is empty" in err
    assert list(path.iterdir()) == []


@pytest.mark.parametrize(
    "verb",
    sorted(VERBS.keys() - {"attach", "why", "retain", "cluster", "compare", "lag", "bucket"}),
)
def test_a_formatted_log_dir_without_partitions_is_sound(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = LogBuilder(tmp_path / "made", "orders-0").write().parent
    shutil.rmtree(path / "orders-0")
    for checkpoint in path.glob("*checkpoint"):
        checkpoint.unlink()
    assert (path / "meta.properties").exists()
    assert ask(verb, path, tmp_path) == 0


def test_log_dirs_one_level_below_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(4):
        LogBuilder(tmp_path / "kafka" / f"broker-{number}", "orders-0").write()
    (tmp_path / "kafka" / "notes.txt").write_text("")
    path = tmp_path / "kafka"
    assert main(["segments", "--log-dir", str(path)]) == 2
    err = capsys.readouterr().err
    assert f"did you mean {path}/broker-0, {path}/broker-1, {path}/broker-2, …?" in err
    # a lost mount among many, named by a glob
    (tmp_path / "mounts" / "2").mkdir(parents=True)
    LogBuilder(tmp_path / "mounts" / "1", "orders-0").write()
    assert main(["segments", "--log-dir", str(tmp_path / "mounts" / "*")]) == 2
    assert f"{tmp_path}/mounts/2: no log dir" in capsys.readouterr().err


@pytest.mark.parametrize(
    "read",
    [
        lambda path: kafkalog.open_log_dir(path),
        lambda path: kafkalog.read_records(path).read_all(),
        lambda path: kafkalog.read_batches(path),
        lambda path: kafkalog.read_view("segments", path),
        lambda path: kafkalog.fetch(path, 0, 1000),
        lambda path: kafkalog.list_offsets(path, 0),
        lambda path: read_histories([path]),
    ],
)
def test_python_raises(read: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    with pytest.raises(InvalidConfigError, match="no log dir"):
        read(tmp_path)


def test_what_a_log_dir_may_be_without(tmp_path: Path) -> None:
    """A copy of a partition, an empty one in its log dir, the log dir of a controller."""
    whole = LogBuilder(tmp_path / "whole", "orders-0").segment().batch(("k", "v")).write()
    bare = Path(shutil.copytree(whole, tmp_path / "bare" / "orders-0"))
    assert len(kafkalog.open_log_dir(bare)) == 1
    assert len(kafkalog.open_log_dir(bare.parent)) == 1
    (tmp_path / "whole" / "orders-1").mkdir()
    assert len(kafkalog.open_log_dir(tmp_path / "whole" / "orders-1")) == 1
    (bare.parent / "stray").mkdir()
    LogBuilder(tmp_path / "kafka-logs-1", "__cluster_metadata-0").write()
    assert len(kafkalog.open_log_dir(tmp_path / "kafka-logs-1")) == 1
