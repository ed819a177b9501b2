"""README tells the truth: its tables are those of the code, its examples run on the samples."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.planning.config_file import parse_config_file
from tests.benchmarks.bench_all import FIGURES
from tests.support.documents import (
    DESIGN,
    README,
    ROOT,
    Example,
    design_tables,
    examples,
    readme_tables,
    with_tables,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENTS = ("README.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md")


def by_line(example: Example) -> str:
    return f"line-{example.line}"


@pytest.mark.parametrize(
    ("document", "tables"),
    [(README, readme_tables), (DESIGN, design_tables)],
    ids=["README", "DESIGN"],
)
def test_tables_match_the_code(document: Path, tables: Callable[[], dict[str, list[str]]]) -> None:
    """When this fails: `python -m tests.support.documents` writes them anew."""
    text = document.read_text(encoding="utf-8")
    assert text == with_tables(text, tables())


@pytest.mark.spark
def test_python_examples_run_in_order(
    spark: SparkSession, monkeypatch: Any, tmp_path: Path
) -> None:
    """One after another in one namespace, as a reader would type them, with the temporary directory
    of the text replaced by one of our own."""
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    found = examples("python")
    assert len(found) >= 3
    for example in found:
        # blank lines in front, so that a traceback shows README's own line numbers
        source = "\n" * (example.line - 1) + example.text.replace("/tmp/", f"{tmp_path}/")
        exec(compile(source, str(README), "exec"), names)


@pytest.mark.spark
def test_sql_examples_run_and_give_rows(spark: SparkSession, monkeypatch: Any) -> None:
    from kafkalog.spark import create_views

    monkeypatch.chdir(ROOT)
    create_views(spark, "data/samples/broker")
    found = examples("sql")
    assert found
    for example in found:
        for statement in filter(None, map(str.strip, example.text.split(";"))):
            rows = spark.sql(statement).collect()
            assert rows or not statement.startswith("SELECT"), f"no rows: {statement}"


@pytest.mark.parametrize("example", examples("sh"), ids=by_line)
def test_shell_example_runs(example: Example, tmp_path: Path) -> None:
    """With the temporary directory of the text replaced by one of our own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", example.text.replace("/tmp/", f"{tmp_path}/")],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_shell_examples_give_the_time_they_mean() -> None:
    """What is decided by the time is the same on any day."""
    texts = [example.text.replace("\\\n", " ") for example in examples("sh")]
    decided = re.compile(r"^kafkalog (audit|compact|retain|why) .*", re.M)
    lines = [match.group() for text in texts for match in decided.finditer(text)]
    assert len(lines) >= 12
    assert [line for line in lines if "--now" not in line] == []


def test_every_example_is_of_a_kind_that_runs() -> None:
    """`text` is for what needs a cluster, a repository or a mailer: below it is only parsed."""
    fences = [line for line in README.read_text("utf-8").splitlines() if line.startswith("```")]
    kinds = Counter(line.removeprefix("```") for line in fences)
    assert kinds.pop("") == kinds.total()
    assert set(kinds) == {"python", "sql", "sh", "text", "toml"}
    for name in set(DOCUMENTS) - {"README.md", "DESIGN.md"}:  # DESIGN has drawings only
        assert "```" not in (ROOT / name).read_text("utf-8")


def test_jobs_in_text_examples_take_their_options() -> None:
    texts = [example.text.replace("\\\n", " ") for example in examples("text")]
    texts = [re.sub(r"\$\([^)]*\)", "today", text) for text in texts]  # what the shell computes
    lines = [line for text in texts for line in text.splitlines() if "jobs/" in line]
    assert len(lines) == sum(text.count("spark-submit") for text in texts) >= 4
    for line in lines:
        words = shlex.split(line.partition("||")[0])
        script = next(ROOT / word for word in words if word.startswith("jobs/"))
        verb = re.search(r'run_job\("(\w+)"', script.read_text("utf-8"))
        assert verb is not None
        given = words[words.index(script.relative_to(ROOT).as_posix()) + 1 :]
        assert parse_verb_arguments(verb[1], given).log_dir
        conf = words[words.index("--properties-file") + 1]
        assert (ROOT / conf).is_file()


@pytest.mark.parametrize("example", examples("toml"), ids=by_line)
def test_toml_examples_are_config_files(example: Example) -> None:
    assert parse_config_file(example.text.encode())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    document = ROOT / name
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [t for t in targets if not (document.parent / t).exists()] == []


def test_make_targets_in_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for name in DOCUMENTS
        for target in re.findall(r"`make ([a-z-]+)", (ROOT / name).read_text(encoding="utf-8"))
    }
    assert named
    assert named <= targets


@pytest.mark.spark
def test_make_bench_prints_every_row_that_is_measured() -> None:
    measured = DESIGN.read_text().partition("## Measured")[2].partition("counted rather")[0]
    rows = [line.split("|")[-2].replace("`", " ") for line in measured.splitlines()[3:]
            if line.startswith("| ")]  # fmt: skip
    printed = {tuple(row.replace(",", " ").split()) for row in rows[1:]}
    assert len(rows) > 20
    assert printed == set(FIGURES)


def test_notebook_runs_and_its_results_are_tables(spark: SparkSession, monkeypatch: Any) -> None:
    """The code of its cells, one after the other, as a kernel would; what stands last in a cell is
    asked for the table that a notebook shows."""
    monkeypatch.chdir(ROOT)
    shown = []
    names: dict[str, Any] = {}
    cells = json.loads((ROOT / "data" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    try:
        for cell in cells:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == []
                last = run_cell("".join(cell["source"]), names)
                if last is not None:
                    shown.append(last._repr_html_())
    finally:
        for name in ("enabled", "maxNumRows"):
            spark.conf.unset(f"spark.sql.repl.eagerEval.{name}")
    assert len(shown) == 5
    assert [table.count("<tr>") > 1 for table in shown] == [True] * 5


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "notebook.ipynb", "exec"), names)
    return None if last is None else eval(ast.unparse(last), names)
