"""What the documents take from the code, and README's examples.

`python -m tests.support.documents` writes README's tables, DESIGN's file map and
docs/broker-start.md anew.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kafkalog.auditing.audit_kinds import AUDIT_KINDS
from kafkalog.auditing.contents_kinds import CONTENTS_KINDS
from kafkalog.checking.cluster_kinds import CLUSTER_KINDS
from kafkalog.checking.finding_kind import FindingKind
from kafkalog.checking.finding_kinds import KINDS
from kafkalog.cli import options as cli_options
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES, NODES, TEXTS
from kafkalog.columns.column import Column
from kafkalog.columns.schemas import FINDINGS
from kafkalog.format.limits import LIMITS
from kafkalog.reading.views import VIEWS
from kafkalog.spark.option_table import OPTIONS
from tests.starts.page import PAGE, start_page

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DESIGN = ROOT / "DESIGN.md"
VERBS_WITH_OPTIONS = (
    "audit",
    "cluster",
    "compact",
    "dump",
    "export",
    "recover",
    "retain",
    "salvage",
    "sql",
    "undo",
    "verify",
    "why",
)
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
    NODES: "ARRAY<INT>",
    TEXTS: "ARRAY<STRING>",
}


@dataclass(frozen=True)
class Example:
    """A fenced block: its language, its text, and the line of its first line."""

    language: str
    text: str
    line: int


def examples(language: str, document: Path = README) -> list[Example]:
    return [e for e in _blocks(document.read_text(encoding="utf-8")) if e.language == language]


def _blocks(text: str) -> Iterator[Example]:
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield Example(match[1], match[2], text[: match.start()].count("\n") + 2)


def option_table() -> list[str]:
    """Every option the source takes; `paths` is what Spark itself passes, no one writes it."""
    rows = ["| option | takes | views | means |", "|---|---|---|---|"]
    for option in OPTIONS.values():
        if option.name != "paths":
            views = "all" if option.takers == tuple(VIEWS) else ", ".join(sorted(option.takers))
            takes = _cell(option.takes or "")
            rows.append(f"| `{option.name}` | {takes} | {views} | {option.does} |")
    return rows


def column_table(columns: tuple[Column, ...]) -> list[str]:
    rows = ["| column | type | null | means |", "|---|---|---|---|"]
    for column in columns:
        mark = " †" if column.on_request else ""
        kind = SPARK_NAMES.get(column.type, "ARRAY<STRUCT<key: STRING, value: BINARY>>")
        null = "yes" if column.nullable else ""
        rows.append(f"| `{column.name}`{mark} | {kind} | {null} | {column.meaning} |")
    return rows


def verb_options(verb: str) -> list[str]:
    """The options of a verb and what each does there, from the table of the command line."""
    rows = ["| option | means |", "|---|---|"]
    for option in cli_options.options_of(verb):
        name = option.name if option.takes is None else f"{option.name} {option.takes}"
        rows.append(f"| `{_cell(name)}` | {_cell(option.does_in(verb))} |")
    return rows


def finding_kinds(kinds: tuple[FindingKind, ...]) -> list[str]:
    """What can be found, what a broker makes of it, and what to do."""
    rows = ["| id | severity | means | a broker | to do |", "|---|---|---|---|---|"]
    for kind in kinds:
        cells = (f"`{kind.id}`", str(kind.severity), kind.means, kind.broker, kind.remedy)
        rows.append(f"| {' | '.join(map(_cell, cells))} |")
    return rows


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def limit_table() -> list[str]:
    rows = ["| of | most | held by | why |", "|---|---|---|---|"]
    rows += [f"| {x.of} | {x.most:,} | {x.held_by} | {x.reason} |" for x in LIMITS]
    return rows


def file_map() -> list[str]:
    """Each module of the package and the first sentence of its docstring, room by room."""
    rows: list[str] = []
    rooms = sorted(path.parent for path in (ROOT / "kafkalog").rglob("__init__.py"))
    for room in rooms:
        files = [f for f in sorted(room.glob("*.py")) if f.name != "__init__.py"]
        title = f"**{room.relative_to(ROOT).as_posix()}/** {first_sentence(room / '__init__.py')}"
        rows += [title.rstrip(), "", *(f"- `{f.name}` {first_sentence(f)}" for f in files), ""]
    return rows


def first_sentence(path: Path) -> str:
    """The docstring up to its first full stop or blank line, without line breaks."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[^.])\.(?:\s+(?=[A-Z`])|$)", paragraph)[0].rstrip(":.")


def readme_tables() -> dict[str, list[str]]:
    tables = {"options": option_table()}
    tables |= {f"{verb} options": verb_options(verb) for verb in VERBS_WITH_OPTIONS}
    tables["findings"] = finding_kinds(KINDS)
    tables["cluster findings"] = finding_kinds(CLUSTER_KINDS)
    tables["audit findings"] = finding_kinds((*AUDIT_KINDS, *CONTENTS_KINDS))
    tables["columns findings"] = column_table(FINDINGS)
    # views with the same columns share the table of the first one
    columns_of = {view.name: view.columns for view in VIEWS.values()} | CLUSTER_TABLES
    shown = {columns: view for view, columns in reversed(columns_of.items())}
    return tables | {f"columns {view}": column_table(columns) for columns, view in shown.items()}


def design_tables() -> dict[str, list[str]]:
    return {"file map": file_map(), "limits": limit_table()}


def with_tables(text: str, tables: dict[str, list[str]]) -> str:
    """The text with everything between its marks as the code says it today."""
    for name, rows in tables.items():
        start = text.index(mark := f"<!-- {name} -->\n") + len(mark)
        end = text.index("<!-- end -->", start)
        text = text[:start] + "\n".join(rows).rstrip() + "\n" + text[end:]
    return text


if __name__ == "__main__":
    for document, made in ((README, readme_tables()), (DESIGN, design_tables())):
        document.write_text(with_tables(document.read_text(encoding="utf-8"), made), "utf-8")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(start_page(), "utf-8")
