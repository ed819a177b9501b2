"""The tables of the reference, from the code: verbs, options, columns, findings, limits."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from kafkalog.auditing.audit_kinds import AUDIT_KINDS
from kafkalog.auditing.contents_kinds import CONTENTS_KINDS
from kafkalog.bucket.bucket_kinds import BUCKET_KINDS
from kafkalog.checking.cluster_kinds import CLUSTER_KINDS
from kafkalog.checking.finding_kind import FindingKind
from kafkalog.checking.finding_kinds import KINDS
from kafkalog.cli import options as cli_options
from kafkalog.columns.bucket_schemas import BUCKET_FINDINGS
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES
from kafkalog.columns.column import Column
from kafkalog.columns.compare_schemas import DIFFERENCES
from kafkalog.columns.schemas import FINDINGS
from kafkalog.comparing.compare_kinds import COMPARE_KINDS
from kafkalog.dialect.allowed import aggregate_names, function_names, window_names
from kafkalog.format.limits import LIMITS
from kafkalog.reading.function_views.table import FUNCTION_VIEWS
from kafkalog.reading.option_table import OPTIONS
from kafkalog.reading.views import VIEWS
from tests.support.cost_tables import cost_tables

ROOT = Path(__file__).resolve().parents[2]
# Where a verb is explained, below docs/guides.
GUIDES = {
    "info": "info.md",
    "lag": "lag.md",
    "compact": "compact.md",
    "segments": "query.md#from-the-command-line",
    "retain": "retain.md",
    "audit": "audit.md",
    "cluster": "cluster.md",
    "attach": "lost-quorum.md",
    "compare": "compare.md",
    "digest": "compare.md#hosts-that-share-no-disk",
    "bucket": "bucket.md",
    "verify": "verify-and-recover.md#verify",
    "recover": "verify-and-recover.md#recover",
    "restore": "restore.md",
    "sql": "query.md",
    "dump": "dump-and-salvage.md#dump",
    "why": "audit.md#why",
    "salvage": "dump-and-salvage.md#salvage",
    "runs": "undo.md",
    "undo": "undo.md",
    "purge": "undo.md",
    "compile": "install.md#kernels",
    "export": "stream-and-delta.md#export-into-delta",
}
SPARK_NAMES = {
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "BYTE",
    pa.int16(): "SHORT",
    pa.int32(): "INT",
    pa.int64(): "LONG",
    pa.float64(): "DOUBLE",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
}


def code_tables() -> dict[str, list[str]]:
    """Each block that is made from tables in the code, by its name."""
    tables = cost_tables() | {
        "verbs": verb_sections(),
        "options": source_options(),
        "findings": finding_kinds(KINDS),
        "cluster findings": finding_kinds(CLUSTER_KINDS),
        "compare findings": finding_kinds(COMPARE_KINDS),
        "bucket findings": finding_kinds(BUCKET_KINDS),
        "audit findings": finding_kinds((*AUDIT_KINDS, *CONTENTS_KINDS)),
        "columns findings": column_table(FINDINGS),
        "columns bucket findings": column_table(BUCKET_FINDINGS),
        "columns differences": column_table(DIFFERENCES),
        "limits": limit_table(),
        "modules": module_list(),
        "spark releases": spark_releases(),
        "SQL functions": _names(function_names()),
        "SQL aggregates": _names(aggregate_names()),
        "SQL window functions": _names(window_names()),
    }
    # views with the same columns share the table of the first one
    views = (*VIEWS.values(), *FUNCTION_VIEWS.values())
    columns_of = {view.name: view.columns for view in views} | CLUSTER_TABLES
    shown = {columns: view for view, columns in reversed(columns_of.items())}
    return tables | {f"columns {view}": column_table(columns) for columns, view in shown.items()}


def _names(names: Sequence[str]) -> list[str]:
    return textwrap.wrap(", ".join(f"`{name}`" for name in names), 120)


def spark_releases() -> list[str]:
    """A row a feature: on which releases the last run of `make matrix` had it; and what the others
    said in its place."""
    from tests.spark.releases import RELEASES, THERE, recorded

    runs = [recorded(release) for release in RELEASES]
    rows = [f"| | {' | '.join(run['spark'] for run in runs)} |", "|---" * (len(runs) + 1) + "|"]
    said: list[str] = []
    for name in runs[0]["features"]:
        answers = [run["features"][name] for run in runs]
        cells = ("yes" if answer == THERE else "–" for answer in answers)
        rows.append(f"| {name} | {' | '.join(cells)} |")
        for answer in dict.fromkeys(answer for answer in answers if answer != THERE):
            of = [r for r, given in zip(RELEASES, answers, strict=True) if given == answer]
            said.append(f"* {name}, on {', '.join(of)}: {answer}")
    return [*rows, "", 'Where it says "–":', "", *said]


def verb_sections() -> list[str]:
    """A section for each verb: what it does, how it is called, and its options."""
    jobs = {**verb_jobs(), **{v.name: v.job for v in cli_options.VERBS if v.job is not None}}
    rows: list[str] = []
    for verb in cli_options.VERBS:
        takes = f" {verb.takes}…" if verb.takes else ""
        calls = [f"`kafkalog {verb.name}{takes}`"] if verb.module is not None else []
        if verb.name in jobs:
            calls.append(f"`spark-submit … jobs/{jobs[verb.name]}`")
        does = verb.does[0].upper() + verb.does[1:]
        calls.append(f"[guide](../guides/{GUIDES[verb.name]})")
        rows += [f"## {verb.name}", "", f"{does}.", "", " · ".join(calls), ""]
        rows += [*verb_options(verb.name), ""]
    return rows


def verb_jobs() -> dict[str, str]:
    """Verb → the script of jobs/ that does its work on Spark."""
    found = {}
    for script in sorted((ROOT / "jobs").glob("*.py")):
        text = script.read_text(encoding="utf-8")
        for match in re.finditer(
            r'run_(?:driver_)?job\(\s*"(\w+)"(, __file__, sys.argv.2:)?', text
        ):
            # What is behind a first word of its own.
            found[match[1]] = f"{script.name} {match[1]}" if match[2] else script.name
    return found


def verb_options(verb: str) -> list[str]:
    """The options that work in this verb, with what they do there."""
    rows = ["| option | what it does |", "|---|---|"]
    for option in cli_options.options_of(verb):
        name = option.name if option.takes is None else f"{option.name} {option.takes}"
        rows.append(f"| {_code(name)} | {_cell(option.does_in(verb))} |")
    return rows


def source_options() -> list[str]:
    """Every option the source takes; `paths` is what Spark itself passes, no one writes it."""
    rows = ["| option | takes | views | means |", "|---|---|---|---|"]
    for option in OPTIONS.values():
        if option.name != "paths":
            views = "all" if option.takers == tuple(VIEWS) else ", ".join(sorted(option.takers))
            takes = _cell(option.takes or "")
            rows.append(f"| `{option.name}` | {takes} | {views} | {_cell(option.does)} |")
    return rows


def column_table(columns: tuple[Column, ...]) -> list[str]:
    rows = ["| column | type | null | means |", "|---|---|---|---|"]
    for column in columns:
        mark = " †" if column.on_request else ""
        kind = spark_name(column.type)
        null = "yes" if column.nullable else ""
        rows.append(f"| `{column.name}`{mark} | `{kind}` | {null} | {_cell(column.meaning)} |")
    return rows


def spark_name(kind: pa.DataType) -> str:
    """A type as Spark's SQL writes it."""
    if pa.types.is_list(kind):
        return f"ARRAY<{spark_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = (f"{field.name}: {spark_name(field.type)}" for field in kind)
        return f"STRUCT<{', '.join(fields)}>"
    return SPARK_NAMES[kind]


def finding_kinds(kinds: tuple[FindingKind, ...]) -> list[str]:
    """What can be found, what a broker makes of it, and what to do."""
    rows = ["| id | severity | means | a broker | to do |", "|---|---|---|---|---|"]
    for kind in kinds:
        cells = (f"`{kind.id}`", str(kind.severity), kind.means, kind.broker, kind.remedy)
        rows.append(f"| {' | '.join(map(_cell, cells))} |")
    return rows


def limit_table() -> list[str]:
    rows = ["| of | most | held by | why |", "|---|---|---|---|"]
    rows += [f"| {x.of} | {x.most:,} | {x.held_by} | {x.reason} |" for x in LIMITS]
    return rows


def module_list() -> list[str]:
    """Each module of the package and the first sentence of its docstring, room by room."""
    rows: list[str] = []
    rooms = sorted(path.parent for path in (ROOT / "kafkalog").rglob("__init__.py"))
    for room in rooms:
        files = [f for f in sorted(room.glob("*.py")) if f.name != "__init__.py"]
        name = room.relative_to(ROOT).as_posix()
        rows += [f"## {name}", "", f"{first_sentence(room / '__init__.py')}.", ""]
        rows += [*(f"- `{f.name}`: {_plain(first_sentence(f))}" for f in files), ""]
    return rows


def first_sentence(path: Path) -> str:
    """The docstring up to its first full stop or blank line, without line breaks."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[^.])\.(?:\s+(?=[A-Z`])|$)", paragraph)[0].rstrip(":.")


def _plain(text: str) -> str:
    """Not taken for HTML, nor for a footnote."""
    return text.replace("<", "&lt;")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    """Code in a cell: a pipe has no escape there that all readers of Markdown know."""
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"
