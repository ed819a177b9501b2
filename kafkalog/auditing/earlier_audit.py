"""The audit that `--since RUN` names: a run of the run dir by its id, the directory of one, `last`,
or the document that `audit --json` wrote.

Of a run it is known what was asked for: it has to be the same, or more. Of what it saw beside that
nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kafkalog.auditing.audit_state import (
    PARTITIONS_FILE,
    AuditState,
    Directory,
    Row,
    SegmentColumns,
    default_of,
    narrowed,
    numbers,
    read_state,
)
from kafkalog.auditing.kept_directories import KIND
from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.runs.run_dir import RUN_FILE, Run, list_runs, open_run

LAST = "last"
# Of the runs there are, in an error.
_MOST_NAMED = 8
# Settings that a document tells of a topic.
_KEYS = {
    "cleanup.policy": "cleanupPolicy", "retention.ms": "retentionMs",
    "retention.bytes": "retentionBytes", "segment.bytes": "segmentBytes",
    "segment.ms": "segmentMs", "local.retention.ms": "localRetentionMs",
    "local.retention.bytes": "localRetentionBytes",
}  # fmt: skip

Scope = Mapping[str, Any]
IsMeant = Callable[[TopicPartition], bool]


def earlier_audit(run_dir: Path, since: str, scope: Scope, now_ms: int) -> AuditState:
    """What that audit saw. InvalidConfigError: there is none of this name (the text says which
    there are), it was of something else, is of a later time, or cannot be read.
    """
    path = Path(since)
    if path.is_file():
        state = _of_document(path)
    else:
        state = _of_run(_named(run_dir, since, scope, now_ms), scope)
    if state.now_ms > now_ms:
        raise InvalidConfigError(f"--since {since} is of a later time than this audit")
    return state


def what_is_meant(
    earlier: AuditState, now: AuditState, scope: Scope, is_meant: IsMeant
) -> AuditState:
    """Of the earlier audit what is audited now, too. InvalidConfigError if none of its log dirs
    is."""
    # As they are named, or what is in them: of a glob, or a partition's directory.
    named = {str(Path(log_dir).resolve()) for log_dir in scope["logDirs"]}
    own = named | {directory.log_dir for directory in now.directories}
    log_dirs = {directory.log_dir for directory in earlier.directories}
    if log_dirs and not log_dirs & own:
        raise InvalidConfigError(
            f"--since {earlier.name} is of {', '.join(sorted(log_dirs))}, not of "
            f"{', '.join(sorted(own))}"
        )
    meant = [
        directory.log_dir in own and is_meant(TopicPartition(directory.topic, directory.partition))
        for directory in earlier.directories
    ]
    return narrowed(earlier, meant)


def _named(run_dir: Path, since: str, scope: Scope, now_ms: int) -> Run:
    path = Path(since)
    if (path / RUN_FILE).is_file():
        run_dir, since = path.parent, path.name
    runs = [run for run in list_runs(run_dir)[0] if _is_audit(run)]
    if since == LAST:
        own = [r for r in runs if r.facts.get("options") == scope and r.facts["nowMs"] <= now_ms]
        own = [run for run in own if (run.path / PARTITIONS_FILE).exists()]
        if own:
            return max(own, key=lambda run: (run.facts["nowMs"], str(run.facts["started"])))
        raise InvalidConfigError(f"no earlier audit of the same log dirs and topics{_list(runs)}")
    found = next((run for run in runs if run.path.name == since), None)
    if found is not None:
        return found
    if (run_dir / since).is_dir():
        kind = open_run(run_dir, since).facts.get("kind")
        reason = f"is of {kind}" if kind != KIND else "did not come to its end"
        raise InvalidConfigError(f"run {since} {reason}{_list(runs)}", path=str(run_dir))
    raise InvalidConfigError(f"no audit {since}{_list(runs)}", path=str(run_dir))


def _is_audit(run: Run) -> bool:
    facts = run.facts
    return facts.get("kind") == KIND and "finished" in facts and isinstance(facts.get("nowMs"), int)


def _list(runs: Sequence[Run]) -> str:
    """The newest ones, as somebody may want to name them."""
    named = [
        f"{run.path.name} ({run.facts.get('started')}, {_asked_for(run.facts.get('options'))})"
        for run in reversed(runs[-_MOST_NAMED:])
    ]
    more = f" and {len(runs) - len(named)} older" if len(runs) > len(named) else ""
    return f"; there are {'; '.join(named)}{more}" if named else "; no audit is kept there"


def _asked_for(options: Any) -> str:
    try:
        parts = [*options["logDirs"], *options["topics"], *options["topicPartitions"]]
        return " ".join(parts)
    except (TypeError, KeyError):
        return "of another version"


def _of_run(run: Run, scope: Scope) -> AuditState:
    options = run.facts.get("options")
    is_whole = options == {"logDirs": scope["logDirs"], "topics": [], "topicPartitions": []}
    if options != scope and not is_whole:
        raise InvalidConfigError(
            f"run {run.path.name} was an audit of something else: {_asked_for(options)}"
        )
    if not (run.path / PARTITIONS_FILE).exists():
        raise InvalidConfigError(
            f"run {run.path.name} is of a version of kafkalog that kept no {PARTITIONS_FILE}, so "
            "nothing can be compared with it",
            path=str(run.path),
        )
    return read_state(run.path, run.path.name, run.facts["nowMs"])


def _of_document(path: Path) -> AuditState:
    try:
        document = json.loads(path.read_bytes())
        if document["schemaVersion"] != 1:
            raise InvalidConfigError("is of another version of kafkalog", path=str(path))
        return _state_of_document(document, str(path))
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidConfigError(
            f"is no document of `kafkalog audit --json`: {type(error).__name__} {error}",
            path=str(path),
        ) from None


def _state_of_document(document: Row, name: str) -> AuditState:
    directories = [
        Directory(
            row["logDir"], row["topic"], int(row["partition"]), row["kind"], row["path"],
            int(row["bytes"]), int(row["logStartOffset"]), int(row["logEndOffset"]),
        )
        for row in document["partitions"]
    ]  # fmt: skip
    # The segments lie in the order of the partitions.
    rows = document["segments"]
    segments = SegmentColumns(
        numbers(row["segments"] for row in document["partitions"]),
        *(numbers(row[key] for row in rows) for key in ("baseOffset", "bytes", "dueMs")),
    )
    owners = [(row["topic"], row["partition"]) for row in rows]
    places = np.repeat(np.arange(len(directories)), segments.counts).tolist()
    if not segments.is_sound or any(
        (directories[place].topic, directories[place].partition) != owner
        for place, owner in zip(places, owners, strict=True)
    ):
        raise ValueError("segments are not those of the partitions")
    topics = {row["topic"]: _settings(row) for row in document["topics"]}
    keys = frozenset(_KEYS)
    findings = [{**row, "sinceMs": None} for row in document["findings"]]
    now_ms = int(document["nowMs"])
    return AuditState(name, now_ms, directories, segments, topics, findings, keys)


def _settings(topic: Row) -> dict[str, str]:
    told = {key: str(topic[name]) for key, name in _KEYS.items() if name in topic}
    return {key: value for key, value in told.items() if value != default_of(key)}
