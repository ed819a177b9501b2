"""Topics that a run has made, metadata and logs, go back as a whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.log.metadata_names import BOOTSTRAP_FILE
from tests.operations.undo.trees import differences, tree
from tests.restoring.fresh import fresh_node
from tests.restoring.test_attach_bucket import Tiered
from tests.restoring.test_restore import busy


def restored(path: Path) -> tuple[list[str], list[Path]]:
    busy(path / "source").write()
    target = [fresh_node(path / name, node) for node, name in enumerate(("a", "b"), 1)]
    return ["restore", str(path / "source"), *_into(target), "--topic", "*"], target


def over_a_bucket(path: Path) -> tuple[list[str], list[Path]]:
    tiered = Tiered(path, 2)
    words = [str(tiered.bucket), *_into(tiered.dirs), "--topic", "*", "--metadata-partitions", "2"]
    return ["attach", *words], tiered.dirs


def _into(target: list[Path]) -> list[str]:
    return [word for path in target for word in ("--into", str(path))]


@pytest.mark.parametrize("make", [restored, over_a_bucket])
def test_undo_takes_all_or_nothing(
    make: Callable[[Path], tuple[list[str], list[Path]]],
    log_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, target = make(log_dir)
    runs = ["--run-dir", str(tmp_path / "runs")]
    before = [tree(path) for path in target]
    assert main([*words, *runs, "--apply", "--json"]) == 0
    run_id = json.loads(capsys.readouterr().out)["runId"]
    bootstrap = target[-1] / BOOTSTRAP_FILE
    made = shutil.copy2(bootstrap, tmp_path / "made")
    bootstrap.unlink()
    shutil.copy2(made, bootstrap)
    bootstrap.write_bytes(bootstrap.read_bytes() + b"\0")
    changed = [tree(path) for path in target]
    assert main(["undo", run_id, *runs]) != 0
    assert "all of it, or nothing" in capsys.readouterr().err
    assert not any(differences(c, tree(p)) for c, p in zip(changed, target, strict=True))
    bootstrap.write_bytes(made.read_bytes())
    assert main(["undo", run_id, *runs]) == 0
    assert not any(differences(b, tree(p)) for b, p in zip(before, target, strict=True))
