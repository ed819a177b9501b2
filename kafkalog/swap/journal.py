"""What a run writes into its journal: the plans before anything changes, each result as it comes.

The journal says where a run was and what it did; what it takes to undo it lies beside the files
themselves (see replacement.py), so that a run whose journal ends early can be undone as well. A run
whose journal cannot be begun does not begin; one that cannot go on with it tells so and goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kafkalog import __version__
from kafkalog.clock import now_ms
from kafkalog.errors import LogCleaningRefusedError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.requests.run_request import RunRequest
from kafkalog.runs.journal import LaterSyncs, append_events
from kafkalog.runs.run_dir import Run, begin_run, check_run_dir, finish_run
from kafkalog.swap.checkpoint import Changes
from kafkalog.swap.file_facts import FileFacts
from kafkalog.swap.replacement import Replacement

COMPACT, RETAIN, RECOVER, HEAL = "compact", "retain", "recover", "heal"
ATTACH, RESTORE = "attach", "restore"
# The kinds of runs that change logs.
KINDS = (COMPACT, RETAIN, RECOVER, HEAL, ATTACH, RESTORE)


class Ended(Protocol):
    """A result of any kind of run."""

    @property
    def status(self) -> str: ...


@dataclass(slots=True)
class RunJournal:
    """The journal of a run that has begun."""

    run: Run
    keeps_undo: bool
    problems: list[str] = field(default_factory=list)
    _later: LaterSyncs = field(init=False)

    def __post_init__(self) -> None:
        self._later = LaterSyncs(self.run.path)

    @property
    def run_id(self) -> str:
        return str(self.run.facts["runId"])

    @property
    def keep_for(self) -> str | None:
        """The run that replaced files are kept for."""
        return self.run_id if self.keeps_undo else None

    def resolved(self, lines: Iterable[str]) -> None:
        """What was done about what earlier runs left."""
        self._append({"event": "resolved", "what": line} for line in lines)

    def planned(self, plans: Iterable[tuple[TopicPartition, str, str, int]]) -> None:
        """(partition, its directory, its log dir, bytes the run may write there) of each one that
        will be changed.
        """
        self._append(
            {
                "event": "planned",
                **_place(name, path),
                "logDir": log_dir,
                "peakBytes": peak_bytes,
            }
            for name, path, log_dir, peak_bytes in plans
        )

    def checkpoint(self, log_dir: str, name: str, changes: Changes) -> None:
        """Which lines of a checkpoint file will be changed, from what to what."""
        lines = [
            {"topic": topic, "partition": number, "before": before, "after": after}
            for (topic, number), (before, after) in changes.items()
        ]
        self._append([{"event": "checkpoint", "logDir": log_dir, "file": name, "lines": lines}])

    def ended(
        self,
        name: TopicPartition,
        path: str,
        status: str,
        reason: str,
        replaced: Replacement | None,
    ) -> None:
        """How one partition ended, and what was replaced there."""
        # This need not be on disk before the run goes on: what undo goes by is the record beside
        # the files, which was written before the first of them moved.
        event = {"event": "ended", **_place(name, path), "status": status, "reason": reason}
        self._append([event | (_replaced(replaced) if replaced is not None else {})], syncs=False)

    def settled(self) -> None:
        """No partition is at work any more: what was noted of them is on disk afterwards."""
        try:
            self._later.wait()
        except OSError as error:
            self._note(error)

    def finish(self, results: Sequence[Ended], **more: Any) -> None:
        """The run has come to its end; how many partitions ended how, and what the kind adds."""
        facts = {"partitions": dict(Counter(result.status for result in results)), **more}
        try:
            finish_run(self.run, finished_ms=now_ms(), facts=facts)
        except OSError as error:
            self._note(error)

    def _append(self, events: Iterable[Mapping[str, Any]], *, syncs: bool = True) -> None:
        try:
            append_events(self.run.path, events, at_ms=now_ms(), syncs=syncs)
            if not syncs:
                self._later.ask()
        except OSError as error:
            self._note(error)

    def _note(self, error: OSError) -> None:
        # Told and not raised: a partition must not be left half replaced for want of a line about
        # it.
        self.problems.append(f"{self.run.path}: the journal is not whole: {error.strerror}")


def begin_journal(
    request: RunRequest, run_id: str, kind: str, log_dirs: Sequence[str]
) -> RunJournal:
    """The journal of a run that holds the locks of these log dirs and is still to change anything.

    InvalidConfigError for a run dir in a log dir, LogCleaningRefusedError where no journal can be
    kept.
    """
    check_run_dir(request.run_path, log_dirs)
    try:
        run = begin_run(
            request.run_path,
            run_id,
            kind,
            version=__version__,
            started_ms=now_ms(),
            options={**_options(request), "lockedLogDirs": list(log_dirs)},
        )
    except OSError as error:
        raise LogCleaningRefusedError(
            f"the journal of the run cannot be kept ({error.strerror}): "
            "--run-dir DIR names another place",
            path=str(error.filename or request.run_path),
        ) from error
    return RunJournal(run, request.keeps_undo)


def _options(request: RunRequest) -> dict[str, Any]:
    return {
        "logDirs": list(request.log_dirs),
        "topics": list(request.topics),
        "topicPartitions": [str(name) for name in request.topic_partitions],
        "nowMs": request.now_ms,
        "force": sorted(request.force),
        "keepsUndo": request.keeps_undo,
    }


def _place(name: TopicPartition, path: str) -> dict[str, Any]:
    return {"topic": name.topic, "partition": name.partition, "path": path}


def _replaced(record: Replacement) -> dict[str, Any]:
    cut = record.cut
    return {
        "attempt": record.attempt_id,
        "keepsUndo": record.keeps_undo,
        "replaced": [_file(file) for file in record.every_kept],
        "made": [_file(file) for file in record.every_made],
        "cut": None if cut is None else {**_file(cut.before), "validBytes": cut.valid_bytes},
    }


def _file(file: FileFacts) -> dict[str, Any]:
    return {
        "name": file.name.rpartition("/")[2],
        "size": file.size,
        "mtimeNs": file.mtime_ns,
        "mode": f"{file.mode:04o}",
        "uid": file.uid,
        "gid": file.gid,
        "crc32c": file.checksum,
    }
