"""README's generated tables and its examples: `python -m tests.support.documents` writes the tables
anew from the code they describe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kafkalog.columns.schemas import VIEWS, Column
from kafkalog.spark.option_values import ALL_VIEWS
from kafkalog.spark.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
SPARK_NAMES = {
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "BYTE",
    pa.int16(): "SHORT",
    pa.int32(): "INT",
    pa.int64(): "LONG",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
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
            views = "all" if option.views == ALL_VIEWS else ", ".join(sorted(option.views))
            rows.append(f"| `{option.name}` | {option.takes} | {views} | {option.meaning} |")
    return rows


def column_table(columns: tuple[Column, ...]) -> list[str]:
    rows = ["| column | type | null | means |", "|---|---|---|---|"]
    for column in columns:
        mark = " †" if column.on_request else ""
        kind = SPARK_NAMES.get(column.type, "ARRAY<STRUCT<key: STRING, value: BINARY>>")
        null = "yes" if column.nullable else ""
        rows.append(f"| `{column.name}`{mark} | {kind} | {null} | {column.meaning} |")
    return rows


def with_tables(text: str) -> str:
    """The README with every table between its marks as the code says it today."""
    tables = {"options": option_table()}
    tables |= {f"columns {view}": column_table(columns) for view, columns in VIEWS.items()}
    for name, rows in tables.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        body = "\n".join(rows) + "\n"
        text, count = re.subn(pattern, rf"\g<1>{_literal(body)}\g<2>", text, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"README has {count} places for the table '{name}'")
    return text


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\")


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
