"""The journal of a run: what it planned and did, one JSON object a line, in the order it happened.

    RUN_DIR/<run id>/journal.jsonl     lines as `journal.schema.json`, beside this module, has them

Lines are appended before the run goes on, so the journal of a run that was cut off tells how far it
came; a last line that is not whole does not count. What a run is about to do is synced before it
does it; how its partitions ended is synced by a thread, all lines that are there at once: of
thousands of small partitions the run would wait for the disk most of the time. Undoing and purging
are noted in the journal of the run they are about.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.runs import durable

JOURNAL_FILE = "journal.jsonl"
SCHEMA_FILE = "journal.schema.json"
# A line names every file of a partition that a run replaced.
_MAX_LINE_BYTES = 256 * 1024 * 1024
# Between two syncs of lines for which nobody waits.
_PAUSE_S = 0.2
_to_json = json.JSONEncoder(separators=(",", ":")).encode


class LaterSyncs:
    """Forces the journal of one run to disk, beside the run."""

    def __init__(self, run_path: Path) -> None:
        self._path = run_path / JOURNAL_FILE
        self._thread: threading.Thread | None = None
        self._asked, self._ends = threading.Event(), threading.Event()
        self._error: OSError | None = None

    def ask(self) -> None:
        """All that was appended until now is to be forced to disk."""
        self._asked.set()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._sync_until_end, name="journal", daemon=True
            )
            self._thread.start()

    def wait(self) -> None:
        """Until it is. OSError if that failed."""
        if self._thread is None:
            return
        self._ends.set()
        self._thread.join()
        error, self._thread, self._error = self._error, None, None
        self._ends.clear()
        if error is not None:
            raise error

    def _sync_until_end(self) -> None:
        # Some times a second at most: a thread that is woken for each of thousands of small
        # partitions takes a fiftieth of the run.
        while not self._ends.wait(_PAUSE_S):
            self._sync()
        self._sync()

    def _sync(self) -> None:
        if not self._asked.is_set():
            return
        # Before the sync: what is appended meanwhile asks for the next one.
        self._asked.clear()
        try:
            durable.sync_file(self._path)
        except OSError as error:
            self._error = self._error or error


def append_events(
    run_path: Path, events: Iterable[Mapping[str, Any]], *, at_ms: int, syncs: bool = True
) -> None:
    """Put events behind those that are there, and force them to disk unless that is done later.
    OSError if that fails.
    """
    at = time_text(at_ms)
    lines = [_to_json({"at": at, **event}) + "\n" for event in events]
    if lines:
        durable.append_lines(run_path / JOURNAL_FILE, "".join(lines).encode(), syncs=syncs)


def read_events(run_path: Path) -> Iterator[dict[str, Any]]:
    """The events of a run; none without a journal. Lines that are no JSON object are skipped.

    InvalidConfigError if it cannot be read.
    """
    path = run_path / JOURNAL_FILE
    try:
        with path.open("rb") as file:
            while line := file.readline(_MAX_LINE_BYTES):
                try:
                    event = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(event, dict):
                    yield event
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidConfigError(f"the journal cannot be read: {error}", path=str(path)) from None


def time_text(time_ms: int) -> str:
    """A time as run files have it: 2026-11-28T05:52:46.000Z."""
    time = datetime.fromtimestamp(time_ms / 1000, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
