"""What verbs say: data on stdout (a table or one JSON document), talk on stderr; exit codes.

Numbers that no JSON reader is sure to keep do not occur: offsets and times are below 2^63 and
written as integers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, TextIO

from kafkalog.cli.json_text import json_pieces


class ExitCode(IntEnum):
    """How a verb or job ended."""

    DONE = 0  # every selected partition planned or done, nothing to report
    FINDINGS = 1  # findings, or some partitions not done
    USAGE = 2  # the command was not understood
    UNSAFE = 3  # nothing was done, for safety
    FAULT = 4  # a fault of ours


def write_json(document: Any) -> None:
    """One JSON document and a line end on stdout."""
    for piece in json_pieces(document):
        _put(piece)
    _put("\n")


def write_lines(lines: Sequence[str]) -> None:
    """Text on stdout."""
    for line in lines:
        _put(line + "\n")


def write_bytes(data: bytes | memoryview) -> bool:
    """Lines as they are on stdout, behind whatever was written before; False once nobody reads them
    any more (`| head`)."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    except BrokenPipeError:
        _silence(sys.stdout)
        return False
    return True


def write_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows under their column names on stdout; numbers to the right, None as `-`."""
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [
        max(len(column), *(len(line[number]) for line in cells), 0)
        for number, column in enumerate(columns)
    ]
    to_the_right = [
        all(is_number(row[column]) for row in rows) and bool(rows) for column in columns
    ]
    for line in [list(columns), *cells]:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, to_the_right, strict=True)
        ]
        _put("  ".join(padded).rstrip() + "\n")


def say(text: str) -> None:
    """One line of talk on stderr; whether anybody listens must not stop the work it is about."""
    try:
        sys.stderr.write(_writable(text) + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        _silence(sys.stderr)


def say_nothing(_: str) -> None:
    """In place of `say` where nobody is to be told."""


def finish_output() -> None:
    """Hand over all data; what nobody reads any more (`| head`) is dropped."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)


def _put(text: str) -> None:
    try:
        sys.stdout.write(_writable(text))
    except BrokenPipeError:
        _silence(sys.stdout)


def _writable(text: str) -> str:
    """Bytes of names that are no UTF-8 as escapes, which JSON reads as such too."""
    # Of ASCII that is known without a look at it; a document has some hundred million characters.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _silence(stream: TextIO) -> None:
    """Python would complain again when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def is_number(value: Any) -> bool:
    """Whether a value of a table stands to the right; what is not there does as well."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
