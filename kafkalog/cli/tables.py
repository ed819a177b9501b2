"""Tables of the verbs: rows under their columns, as text or as CSV (see `display`).

A column's unit follows from its name, as everywhere (`…Ms`, `…Bytes`). CSV has the values as
`--json` has them. A table that is too wide keeps the columns its verb has chosen, as many as fit in
their order; long text in the last one goes on below itself.
"""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkalog.cli.display import CSV, coloured, display, shown_time
from kafkalog.cli.output import is_number, say, write_lines
from kafkalog.errors import InvalidConfigError
from kafkalog.options import did_you_mean
from kafkalog.texts import format_bytes, format_exact_duration

Row = Mapping[str, Any]
_GAP = "  "
_TIMES = ("TimestampMs", "AliveMs", "RecordMs", "CommitMs", "StartedMs")
_ISO_TIMES = ("modificationTime", "started", "newest record")
_DURATIONS = ("retentionMs", "segmentMs")
_SIZES = (
    "bytes",
    "Bytes",
    "bytesBefore",
    "bytesAfter",
    "indexSize",
    "timeIndexSize",
    "txnIndexSize",
)
# Settings of which -1 is no limit.
_UNLIMITED = ("retentionMs", "retentionBytes", "retentionCeilingBytes")
# Where words stand that may be long: it goes on in the next line.
_TEXT_COLUMNS = ("text", "reason", "keptBy", "endpoints", "path", "output", "file", "left over")
_LEAST_TEXT = 32


def show_table(
    rows: Sequence[Row],
    columns: Sequence[str] | None = None,
    *,
    chosen: Sequence[str] = (),
    is_main: bool = True,
    even_empty: bool = False,
    tell: Callable[[str], None] = say,
) -> None:
    """Rows with these columns, by default those of the first row. `chosen`: what to keep where all
    do not fit, the most wanted first; `even_empty`: names of columns are shown without a row. CSV
    and `--columns` are for the main table of a verb; the others are left out then.
    InvalidConfigError for `--columns` that it does not have.
    """
    shown = display()
    names = list(columns if columns is not None else rows[0] if rows else ())
    if not rows and shown.form != CSV and not even_empty:
        return
    if not is_main and (shown.columns or shown.form == CSV):
        return
    if shown.columns and rows:
        names = _asked_for(shown.columns, list(rows[0]))
    if shown.form == CSV:
        _write_csv(names, rows)
        return
    is_narrow = shown.width is not None
    cells = {name: [cell(name, row[name], for_people=is_narrow) for row in rows] for name in names}
    kept = names
    if shown.width is not None and not shown.is_wide and not shown.columns:
        kept = _fitting(names, cells, chosen or names, shown.width)
    _write_text(kept, cells, rows, None if shown.is_wide else shown.width)
    left_out = [name for name in names if name not in kept]
    if left_out:
        tell(f"left out: {', '.join(left_out)} (--wide shows all, --columns A,B chooses)")


def cell(name: str, value: Any, *, for_people: bool) -> str:
    """A value as a table has it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name in _UNLIMITED and value < 0:
        return "unlimited"
    if isinstance(value, int) and name.endswith(_TIMES):
        return shown_time(value)
    if isinstance(value, int) and name in _DURATIONS:
        return format_exact_duration(value)
    if isinstance(value, int) and for_people and name.endswith(_SIZES):
        return format_bytes(value)
    return str(value)


def _asked_for(names: Sequence[str], there: Sequence[str]) -> list[str]:
    by_lower = {name.lower(): name for name in there}
    for name in names:
        if name.lower() not in by_lower:
            near = did_you_mean(name, there) or f"; there are {', '.join(there)}"
            raise InvalidConfigError(f"--columns: no column {name}{near}")
    return [by_lower[name.lower()] for name in names]


def _write_csv(names: Sequence[str], rows: Sequence[Row]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_plain(row[name]) for name in names])
    write_lines(text.getvalue().removesuffix("\n").split("\n"))


def _plain(value: Any) -> Any:
    # as `sql` writes lists into CSV
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(value).lower() if isinstance(value, bool) else value


def _fitting(
    names: Sequence[str], cells: Mapping[str, list[str]], wanted: Sequence[str], width: int
) -> list[str]:
    """All columns if they fit, else as many of the wanted ones as do."""
    if _needed(names, cells, ()) <= width:
        return list(names)
    kept = [name for name in wanted if name in names]
    last = _text_column(kept)
    while len(kept) > 1 + len(last) and _needed(kept, cells, last) > width:
        kept.remove(next(name for name in reversed(kept) if name not in last))
    return [name for name in names if name in kept]


def _text_column(names: Sequence[str]) -> list[str]:
    """The one that may go on below itself, if there is one."""
    return [name for name in _TEXT_COLUMNS if name in names][:1]


def _needed(names: Sequence[str], cells: Mapping[str, list[str]], texts: Sequence[str]) -> int:
    widths = [_column_width(name, cells[name]) for name in names]
    bounded = (
        min(width, _LEAST_TEXT) if name in texts else width
        for name, width in zip(names, widths, strict=True)
    )
    return sum(bounded) + len(_GAP) * max(len(names) - 1, 0)


def _column_width(name: str, texts: Sequence[str]) -> int:
    return max(len(name), *(len(text) for text in texts), 0)


def _write_text(
    names: Sequence[str], cells: Mapping[str, list[str]], rows: Sequence[Row], width: int | None
) -> None:
    widths = {name: _column_width(name, cells[name]) for name in names}
    to_the_right = {name for name in names if rows and all(is_number(r[name]) for r in rows)}
    text = next(iter(_text_column(names)), names[-1])
    if width is not None:
        others = sum(w for name, w in widths.items() if name != text) + len(_GAP) * len(names[1:])
        widths[text] = min(widths[text], max(width - others, len(text), 8))
    lines = [
        coloured(_line(names, dict(zip(names, names, strict=True)), widths, to_the_right), "bold")
    ]
    marked = next((name for name in ("severity", "status") if name in names), None)
    for number, row in enumerate(rows):
        own = {name: cells[name][number] for name in names}
        parts = _wrapped(own[text], widths[text]) if width is not None else [own[text]]
        line = _line(names, {**own, text: parts[0]}, widths, to_the_right)
        if marked is not None:
            line = line.replace(own[marked], coloured(own[marked], str(row[marked])), 1)
        lines.append(line)
        for part in parts[1:]:
            rest = {**dict.fromkeys(names, ""), text: part}
            lines.append(_line(names, rest, widths, to_the_right))
    write_lines(lines)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _line(
    names: Sequence[str],
    texts: Mapping[str, str],
    widths: Mapping[str, int],
    to_the_right: set[str],
) -> str:
    padded = (
        texts[n].rjust(widths[n]) if n in to_the_right else texts[n].ljust(widths[n]) for n in names
    )
    return _GAP.join(padded).rstrip()
