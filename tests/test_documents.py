"""The documents tell the truth: their tables are those of the code, their examples run on the
samples, their links lead somewhere.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.cli.options import VERBS
from kafkalog.cli.output import ExitCode
from kafkalog.planning.config_file import parse_config_file
from tests.benchmarks.bench_all import FIGURES
from tests.support.documents import (
    BENCHMARKS,
    DESIGN,
    DOCS,
    PAGES,
    README,
    ROOT,
    Example,
    block_names,
    examples,
    with_blocks,
)
from tests.support.json_tables import json_tables
from tests.support.reference_tables import code_tables
from tests.support.schema_tables import schema_tables
from tests.support.shell_examples import run_shell
from tests.support.tour import PICTURE, lasting, picture, run_tour, tour_steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHERS = ("CONTRIBUTING.md", "CHANGELOG.md", "data/README.md")
DOCUMENTS = (*PAGES, *(ROOT / name for name in OTHERS))
# Words of ours that a reader cannot know.
COINED = re.compile(r"\b(fates|surroundings|twin_?path|Troubles|PassedOver|Told|hopp?ed|dear to)\b")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def with_examples(language: str) -> list[Any]:
    """The pages of the guides other than the one on queries are for the long run: what their
    examples call, `tests/spark` calls, too."""
    return [
        pytest.param(page, marks=pytest.mark.thorough)
        if page.parent.name == "guides" and page.name not in ("query.md", "stream-and-delta.md")
        else page
        for page in sorted({example.page for example in examples(language)})
    ]


def place(example: Example) -> str:
    return example.place


# -- what is taken from the code -------------------------------------------------------------------


@pytest.fixture(scope="module")
def blocks() -> dict[str, list[str]]:
    return code_tables() | schema_tables()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tables_match_the_code(page: Path, blocks: dict[str, list[str]]) -> None:
    """When this fails: `python -m tests.support.documents` writes them anew."""
    text = page.read_text(encoding="utf-8")
    assert text == with_blocks(text, blocks)


@pytest.mark.thorough
def test_keys_of_json_are_those_that_are_printed() -> None:
    """When this fails: `python -m tests.support.documents` writes them anew."""
    text = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    assert text == with_blocks(text, json_tables())


def test_every_table_is_on_a_page_and_every_block_is_known(blocks: dict[str, list[str]]) -> None:
    named = Counter(name for page in PAGES for name in block_names(page.read_text("utf-8")))
    known = {*blocks, *(name for name in named if name.startswith("json "))}
    assert set(named) == known
    assert [name for name, count in named.items() if count > 1] == []


def test_verbs_and_exit_codes_are_all_told() -> None:
    readme = README.read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([a-z]+)(?: [-a-z]+)?` \|", readme, re.MULTILINE))
    assert told == {verb.name for verb in VERBS}
    page = (DOCS / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| (\d) \|", page, re.MULTILINE)) == {str(int(c)) for c in ExitCode}


# -- examples --------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("page", with_examples("python"), ids=name_of)
def test_python_examples_run_in_order(
    page: Path, spark: SparkSession, monkeypatch: Any, tmp_path: Path
) -> None:
    """Those of a page one after another in one namespace, as a reader would type them, with the
    temporary directory of the text replaced by one of our own."""
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    for example in examples("python", page):
        # blank lines in front, so that a traceback shows the page's own line numbers
        source = "\n" * (example.line - 1) + example.text.replace("/tmp/", f"{tmp_path}/")
        exec(compile(source, str(page), "exec"), names)


@pytest.mark.spark
@pytest.mark.parametrize("page", with_examples("sql"), ids=name_of)
def test_sql_examples_run_and_give_rows(page: Path, spark: SparkSession, monkeypatch: Any) -> None:
    from kafkalog.spark import create_views

    monkeypatch.chdir(ROOT)
    create_views(spark, "data/samples/broker")
    for example in examples("sql", page):
        for statement in filter(None, map(str.strip, example.text.split(";"))):
            rows = spark.sql(statement).collect()
            assert rows or not statement.startswith("SELECT"), f"no rows: {statement}"


@pytest.mark.parametrize("example", examples("sh"), ids=place)
def test_shell_example_runs(example: Example, tmp_path: Path) -> None:
    """With the temporary directory of the text, and the user's, replaced by one of our own."""
    text = example.text.replace("/tmp/", f"{tmp_path}/")
    done = run_shell(text, ROOT, tmp_path / "shell", {"XDG_STATE_HOME": str(tmp_path / "state")})
    assert done.returncode == 0, done.stdout
    assert done.stdout


@pytest.mark.spark
def test_the_tour_prints_what_readme_shows(tmp_path: Path) -> None:
    """When this fails: `python -m tests.support.tour` runs it and writes README anew."""
    steps = tour_steps(README.read_text(encoding="utf-8"))
    for shown, printed in zip(steps, run_tour(steps, tmp_path), strict=True):
        assert sorted(lasting(shown.output)) == sorted(lasting(printed.output)), shown.command


def test_the_picture_is_of_the_tour() -> None:
    assert PICTURE.read_text("utf-8") == picture(README.read_text("utf-8"))


def test_shell_examples_give_the_time_they_mean() -> None:
    """What is decided by the time is the same on any day."""
    texts = [example.text.replace("\\\n", " ") for example in examples("sh")]
    decided = re.compile(r"^kafkalog (audit|compact|retain|why) .*", re.M)
    lines = [match.group() for text in texts for match in decided.finditer(text)]
    lines += [step.command for step in tour_steps(README.read_text(encoding="utf-8"))
              if decided.match(step.command)]  # fmt: skip
    assert len(lines) >= 15
    assert [line for line in lines if "--now" not in line] == []


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_every_example_is_of_a_kind_that_runs(page: Path) -> None:
    """`text` is for what needs a cluster, a repository or a mailer: below it is only parsed. A
    block with a title is a step of a how-to, which test_extending follows."""
    fences = [line for line in page.read_text("utf-8").splitlines() if line.startswith("```")]
    opening, closing = fences[::2], fences[1::2]
    assert set(closing) <= {"```"}
    kinds = {line.removeprefix("```") for line in opening if " title=" not in line}
    if page == DESIGN:  # it has drawings only
        assert kinds == {""}
    else:
        assert kinds <= {"python", "sql", "sh", "text", "toml", "console"}
    if " title=" in "".join(opening):
        assert page.parent.name == "extending"


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


@pytest.mark.parametrize("example", examples("toml"), ids=place)
def test_toml_examples_are_config_files(example: Example) -> None:
    assert parse_config_file(example.text.encode())


# -- what the text names ---------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """Those of its headings, as GitHub and mkdocs make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles)
    return {re.sub(r"\s", "-", title) for title in plain}


def broken_links(page: Path) -> Iterator[str]:
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_paths_in_the_text_exist() -> None:
    named = {
        (name_of(page), path)
        for page in PAGES
        for path in re.findall(
            r"`((?:tests|kafkalog|jobs|data|spark_conf)/[\w/.-]*\w)`", page.read_text("utf-8")
        )
        if page.parent.name != "extending" or (ROOT / path).parent.is_dir()
    }
    assert [at for at in named if not (ROOT / at[1]).exists()] == []


def test_names_in_the_how_to_are_in_the_code() -> None:
    sources = (
        p.read_text("utf-8") for room in ("kafkalog", "tests") for p in (ROOT / room).rglob("*.py")
    )
    words = set(re.findall(r"\w+", " ".join(sources)))
    pages = (DOCS / "extending").glob("*.md")
    named = {
        (name_of(p), w) for p in pages for w in re.findall(r"`(\w{4,})`", p.read_text("utf-8"))
    }
    made_there = {"files"}
    assert len(named) > 20
    assert [at for at in named if at[1] not in words | made_there] == []


def test_modules_that_design_names_exist() -> None:
    text = DESIGN.read_text(encoding="utf-8")
    paths = text.partition("## The paths")[2].partition("### Floors")[0]
    rooms = {path.parent.name for path in (ROOT / "kafkalog").glob("*/__init__.py")}
    named = [n for n in re.findall(r"\b([a-z_]+)\.([a-z_]+)\b", paths) if n[0] in rooms]
    assert len(named) > 20
    found = [(ROOT / "kafkalog" / room / f"{module}.py").exists() for room, module in named]
    functions = [("planning", "plan_compaction"), ("planning", "resolve_config")]
    assert [
        n for n, there in zip(named, found, strict=True) if not there and n not in functions
    ] == []
    floors = text.partition("### Floors")[2].partition("## Non-obvious")[0]
    assert rooms <= set(re.findall(r"kafkalog\.([a-z_]+)", floors))


def test_make_targets_in_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for page in DOCUMENTS
        for target in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))
    }
    assert named
    assert named <= targets


def test_readme_and_design_are_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 200
    assert len(DESIGN.read_text("utf-8").splitlines()) <= 400


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_words_are_those_of_kafka_and_spark(page: Path) -> None:
    if page.name != "modules.md":  # the modules' own sentences
        assert COINED.findall(page.read_text(encoding="utf-8")) == []


def test_every_decision_is_in_the_list() -> None:
    folder = DOCS / "decisions"
    names = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [name[:4] for name in names] == [f"{n:04}" for n in range(1, len(names) + 1)]
    assert re.findall(r"\]\((\d{4}-.*?)\)", (folder / "index.md").read_text("utf-8")) == names


@pytest.mark.spark
def test_make_bench_prints_every_row_that_is_measured() -> None:
    measured = BENCHMARKS.read_text("utf-8").partition("## Timed")[2].partition("## Counted")[0]
    rows = [line.split("|")[-2].replace("`", " ") for line in measured.splitlines()
            if line.startswith("| ")]  # fmt: skip
    printed = {tuple(row.replace(",", " ").split()) for row in rows[1:]}
    assert len(rows) > 20
    assert printed == set(FIGURES)


def test_notebook_runs_and_its_results_are_tables(spark: SparkSession, monkeypatch: Any) -> None:
    """The code of its cells, one after the other, as a kernel would, in the notebook's folder (the
    session began in another one); what stands last in a cell is asked for the table that a notebook
    shows."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    shown: list[str] = []
    pictures = []
    names: dict[str, Any] = {}
    cells = json.loads((ROOT / "data" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    try:
        for cell in cells:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == []
                source = "".join(cell["source"]).replace("samples/", f"{ROOT}/data/samples/")
                last = run_cell(source, names)
                if hasattr(last, "figure"):
                    pictures.append(last)
                elif hasattr(last, "_repr_html_"):
                    shown.append(last._repr_html_())
                elif last is not None:
                    shown.append(str(last))
    finally:
        for name in ("enabled", "maxNumRows"):
            spark.conf.unset(f"spark.sql.repl.eagerEval.{name}")
    assert len(pictures) == 3
    assert all(picture.has_data() for picture in pictures)
    assert len(shown) == 10
    # All but DuckDB's, which is text, are tables with more than a heading.
    assert sum(table.count("<tr") > 1 for table in shown) == 9


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "notebook.ipynb", "exec"), names)
    return None if last is None else eval(ast.unparse(last), names)
