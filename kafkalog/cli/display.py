"""How a table is shown: for whom, how wide, in which zone, with colours or without. Set once, from
the arguments, by whoever calls a verb.

On a terminal, or where COLUMNS says how wide it is, people read: sizes have units, columns are
chosen so that a line fits. In a pipe all columns come, and sizes as plain numbers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kafkalog.texts import format_timestamp

TABLE, JSON, CSV = "table", "json", "csv"
TABLE_FORMATS = (TABLE, JSON, CSV)
_LEAST_WIDTH = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Display:
    """width: of a line, None for no bound; columns: those asked for by name, none: as they come."""

    form: str = TABLE
    is_wide: bool = False
    columns: tuple[str, ...] = ()
    is_utc: bool = True
    width: int | None = None
    has_colours: bool = False


_display = Display()


def display() -> Display:
    """As the arguments of the verb that runs ask for."""
    return _display


def set_display(args: argparse.Namespace) -> None:
    """For the verb with these arguments. `--format json` becomes `--json` where a verb has both."""
    global _display
    form = getattr(args, "format", None)
    if form not in TABLE_FORMATS:  # of dump and sql, which have their own
        form = TABLE
    if form == JSON and hasattr(args, "json"):
        args.json = True
    names = (name for text in getattr(args, "columns", None) or () for name in text.split(","))
    _display = Display(
        form=form,
        is_wide=bool(getattr(args, "wide", False)),
        columns=tuple(name.strip() for name in names if name.strip()),
        is_utc=bool(getattr(args, "utc", False)),
        width=_width(),
        has_colours=wants_colours(),
    )


def _width() -> int | None:
    is_told = os.environ.get("COLUMNS", "").isdigit()
    if not is_told and not sys.stdout.isatty():
        return None
    return max(shutil.get_terminal_size().columns, _LEAST_WIDTH)


def wants_colours() -> bool:
    """Where stdout is a terminal that can, and nobody says no (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in ("", "dumb"):
        return False
    return sys.stdout.isatty()


def shown_time(timestamp_ms: int) -> str:
    """ISO to the second, in the machine's zone or with --utc in UTC; `-` for a negative one."""
    if timestamp_ms < 0:
        return "-"
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
        local = moment if _display.is_utc else moment.astimezone()
    except (OverflowError, ValueError, OSError):
        return format_timestamp(timestamp_ms)
    return local.isoformat(timespec="seconds").replace("+00:00", "Z")


_STYLES = {"bold": "1", "red": "31", "yellow": "33", "green": "32", "dim": "2"}
_COLOURS = {
    "error": "red", "refused": "red", "failed": "red", "warning": "yellow", "left": "yellow",
    "compacted": "green", "deleted": "green", "rebuilt": "green", "undone": "green", "info": "dim",
}  # fmt: skip


def coloured(text: str, word: str) -> str:
    """The text in the colour of a severity or status, or `bold`; as it is without colours."""
    style = _COLOURS.get(word, word)
    if not _display.has_colours or style not in _STYLES:
        return text
    return f"\033[{_STYLES[style]}m{text}\033[0m"
