"""The how-to pages are followed word by word: a view and a finding are made from them, in a copy of
the package, and work.

A block with a title is a step: `diff` changes a file at the one place where its old lines are,
another language is a new file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import DOCS, ROOT

_STEP = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A tree of links to this one, in which files can be replaced."""
    for top in ("kafkalog", "pyspark_kafkalog", "data", "docs"):
        _link(ROOT / top, tmp_path / top)
    return tmp_path


def _link(source: Path, target: Path) -> None:
    """Rooms of the package are directories of links to files, for kernels are found by their path
    beside what was compiled of them; what lies deeper is linked as it is."""
    target.mkdir()
    for path in source.iterdir():
        is_room = source.name == "kafkalog" and (path / "__init__.py").exists()
        if is_room or path == DOCS / "reference":
            (target / path.name).mkdir()
            for below in path.iterdir():
                (target / path.name / below.name).symlink_to(below)
        else:
            (target / path.name).symlink_to(path)


def follow(page: str, copy: Path) -> None:
    """Take all steps of a page."""
    steps = _STEP.findall((DOCS / "extending" / page).read_text(encoding="utf-8"))
    assert len(steps) >= 3
    for language, name, text in steps:
        path = copy / name
        if language != "diff":
            assert not path.exists()
            path.write_text(text, encoding="utf-8")
            continue
        old, new = (
            "".join(f"{line[1:]}\n" for line in text.splitlines() if line[:1] in f"{sign} ")
            for sign in ("-", "+")
        )
        found = path.read_text(encoding="utf-8")
        assert found.count(old) == 1, f"{page}: {name} has not once:\n{old}"
        path.unlink()  # the link, not the file that it leads to
        path.write_text(found.replace(old, new), encoding="utf-8")


def run(copy: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "XDG_STATE_HOME": str(copy / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_the_view_of_the_page_can_be_read_and_is_in_the_reference(copy: Path) -> None:
    follow("view.md", copy)
    code = """
import json, kafkalog
from kafkalog.reading.source_options import parse_options
from kafkalog.reading.views import VIEWS

rows = kafkalog.read_view("files", [f"data/samples/broker/{name}" for name in ("orders-0",)])
options = parse_options({"path": "data/samples/broker", "view": "files", "columns": "name,path"})
print(json.dumps([rows.to_pylist(), list(options.column_names), "files" in VIEWS]))
"""
    rows, columns, is_known = json.loads(run(copy, "-c", code))
    directory = ROOT / "data" / "samples" / "broker" / "orders-0"
    there = {path.name: path.stat().st_size for path in directory.iterdir()}
    assert {row["name"]: row["sizeInBytes"] for row in rows} == there
    assert columns == ["name", "path"]
    assert is_known
    text = (copy / "docs" / "reference" / "views.md").read_text(encoding="utf-8")
    assert text.count("<!-- columns files -->") == 1


def test_the_finding_of_the_page_is_found(
    copy: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    follow("finding.md", copy)
    from data.copy_samples import copy_sample

    log_dir = copy_sample("broker", tmp_path_factory.mktemp("logs") / "broker")
    log = log_dir / "orders-0" / "00000000000000000000.log"
    command = ("-m", "kafkalog", "verify", "--log-dir", str(log_dir), "--topic", "orders", "--json")
    assert "log-file-writable" not in run(copy, *command)
    log.chmod(0o666)
    document = json.loads(run(copy, *command))
    (found,) = (f for f in document["findings"] if f["id"] == "log-file-writable")
    assert (found["severity"], found["text"]) == ("warning", "mode 666")
    assert Path(found["path"]) == log
    assert "chmod o-w" in document["kinds"]["log-file-writable"]["remedy"]
