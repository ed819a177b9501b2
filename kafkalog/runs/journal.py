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
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.runs import durable

JOURNAL_FILE = "journal.jsonl"
SCHEMA_FILE = "journal.schema.json"
# A line names every file of a partition that a run replaced.
_MAX_LINE_BYTES = 256 * 1024 * 1024


class LaterSyncs:
    """Forces the journal of one run to disk, beside the run."""

    def __init__(self, run_path: Path) -> None:
        self._path = run_path / JOURNAL_FILE
        self._pool: ThreadPoolExecutor | None = None
        self._syncs: list[Future[None]] = []

    def ask(self) -> None:
        """All that was appended until now is to be forced to disk."""
        # One that has not begun yet comes behind what was appended.
        if self._syncs and not (self._syncs[-1].running() or self._syncs[-1].done()):
            return
        self._pool = self._pool or ThreadPoolExecutor(1, "journal")
        self._syncs = [sync for sync in self._syncs if not sync.done() or sync.exception()]
        self._syncs.append(self._pool.submit(durable.sync_file, self._path))

    def wait(self) -> None:
        """Until it is. OSError if that failed."""
        if self._pool is None:
            return
        self._pool.shutdown()
        syncs, self._pool, self._syncs = self._syncs, None, []
        for sync in syncs:
            sync.result()


def append_events(
    run_path: Path, events: Iterable[Mapping[str, Any]], *, at_ms: int, syncs: bool = True
) -> None:
    """Put events behind those that are there, and force them to disk unless that is done later.
    OSError if that fails.
    """
    at = time_text(at_ms)
    lines = [json.dumps({"at": at, **event}, separators=(",", ":")) + "\n" for event in events]
    if not lines:
        return
    path = run_path / JOURNAL_FILE
    # A line that was cut off stays one of its own.
    prefix = "" if _ends_with_line(path) else "\n"
    durable.append(path, (prefix + "".join(lines)).encode(), syncs=syncs)


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


def _ends_with_line(path: Path) -> bool:
    """Whether the next line begins one; of a file that is empty or not there, too."""
    if not path.exists() or path.stat().st_size == 0:
        return True
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
