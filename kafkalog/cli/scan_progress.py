"""How far a query is, over all logs that it reads: a line on a terminal, which is gone when the
rows are there; elsewhere a line every half minute. It moves with each 8 MiB or so.
"""

from __future__ import annotations

import time
from typing import Any

from kafkalog.cli.output import say
from kafkalog.cli.progress import is_shown, line_of_bytes
from kafkalog.texts import format_bytes

_SAID_EVERY_S = 30.0


class ScanProgress:
    """As `duckdb.log_rows.Progress` has it; of a query that is quick nothing is shown."""

    def __init__(self) -> None:
        self._line: Any = None
        self._total = self._done = 0
        self._said = time.monotonic()

    def begin(self, total_bytes: int) -> None:
        """So many bytes of logs more will be read."""
        if not self._total:
            self._said = time.monotonic()
        self._total += total_bytes
        if self._line is not None:
            self._line.total = self._total
        elif is_shown() and total_bytes:
            self._line = line_of_bytes("read", total_bytes)

    def advance(self, done_bytes: int) -> None:
        """So many of them are."""
        self._done += done_bytes
        if self._line is not None:
            self._line.update(done_bytes)
        elif time.monotonic() - self._said >= _SAID_EVERY_S:
            self._said = time.monotonic()
            say(f"read: {format_bytes(self._done)} of {format_bytes(self._total)}")

    def end(self) -> None:
        """The line goes."""
        if self._line is not None:
            self._line.close()
        self._line = None
        self._total = self._done = 0
