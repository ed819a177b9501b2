"""An audit from its request to its document: partitions, policy, log dirs, the runs before it.

    audit_run → check_policy → log dirs and growth → audit_document; kept in the run dir

The command line, the job and `kafkalog.spark.audit` do this and differ in who executes the tasks.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from kafkalog import __version__
from kafkalog.auditing.audit_run import AuditRun, Executor, audit_run
from kafkalog.auditing.audit_state import AuditState, state_of, write_state
from kafkalog.auditing.changes import changes_since
from kafkalog.auditing.delete_before import delete_before_rows
from kafkalog.auditing.document import audit_document
from kafkalog.auditing.earlier_audit import earlier_audit, what_is_meant
from kafkalog.auditing.finding_changes import dated
from kafkalog.auditing.history import (
    History,
    drop_older_scans,
    read_history,
    sizes_now,
    write_history,
)
from kafkalog.auditing.kept_directories import KIND, audit_scope
from kafkalog.auditing.kept_scans import NextScans
from kafkalog.auditing.log_dir_rows import log_dir_rows
from kafkalog.auditing.policy_checks import PolicyVerdict, check_policy
from kafkalog.auditing.policy_file import read_policy
from kafkalog.auditing.request import AuditRequest
from kafkalog.errors import InvalidConfigError
from kafkalog.log.selection import asked_for
from kafkalog.runs.run_dir import begin_run, check_run_dir, finish_run, new_run_id
from kafkalog.texts import format_count


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """policy: a file; capacity: bytes by log dir, "" for all others; keeps: whether the run is kept
    in the run dir of the request, for growth and for "since when"; makes_rows_anew: as
    `audit_document` has it; since: the earlier audit to compare with, see `earlier_audit`.
    """

    policy: str | None = None
    capacity: Mapping[str, int] = field(default_factory=dict)
    keeps: bool = True
    makes_rows_anew: bool = False
    since: str | None = None


@dataclass(frozen=True, slots=True)
class WholeAudit:
    """The run, its document, and what there is to say beside it."""

    run: AuditRun
    document: dict[str, Any]
    notes: tuple[str, ...]


def whole_audit(
    request: AuditRequest, options: AuditOptions, execute: Executor, clock: Callable[[], int]
) -> WholeAudit:
    """Audit what is asked for. `clock`: ms, for how long it took and when it was.

    InvalidConfigError for paths that do not exist, settings that Kafka would refuse, a policy or a
    capacity that make no sense, and an earlier audit that is not there or of something else.
    """
    with no_collection():
        return _whole_audit(request, options, execute, clock)


@contextmanager
def no_collection() -> Iterator[None]:
    """Without looking for cycles meanwhile: there are none among some hundred thousand small
    objects that all stay, and each look goes over all of them. For who writes the document, too.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _whole_audit(
    request: AuditRequest, options: AuditOptions, execute: Executor, clock: Callable[[], int]
) -> WholeAudit:
    started_ms = clock()
    policy = None if options.policy is None else read_policy(options.policy)
    scope, history = _scope(request), History()
    earlier = None
    if options.since is not None:
        earlier = earlier_audit(request.run_path, options.since, scope, request.now_ms)
    if options.keeps:
        history = read_history(request.run_path, scope, request.now_ms)
    if options.keeps:
        run = audit_run(request, execute, history.scans)
        check_run_dir(request.run_path, {partition.log_dir for partition in run.partitions})
    else:
        run = audit_run(request, execute)
    notes = [*run.notes, *(f"left out of the history: {text}" for text in history.problems)]
    carried = sum(partition.is_carried for partition in run.partitions)
    segments = sum(p.carried_segments for p in run.partitions if not p.is_carried)
    if carried or segments:
        notes.append(
            "not read again, for unchanged since an earlier run: "
            f"{format_count(carried, 'partition')}, and {format_count(segments, 'segment')} of the "
            "others"
        )
    sizes = sizes_now(run.partitions)
    verdict = None
    if policy is not None:
        verdict = check_policy(policy, run.partitions, run.now_ms, history.first_seen)
        run = replace(run, other_findings=(*run.other_findings, *verdict.findings))
    log_dirs = log_dir_rows(sizes, options.capacity, history, run.now_ms)
    growth = history.topic_growth(sizes, run.now_ms)
    trend = {row["topic"]: row["bytesPerDay"] for row in growth}
    seconds = (clock() - started_ms) / 1000
    document = audit_document(run, seconds, trend, makes_rows_anew=options.makes_rows_anew) | {
        "deleteBefore": []
        if request.scope.before_ms is None
        else list(delete_before_rows(run.partitions, request.scope.before_ms)),
        "logDirs": log_dirs,
        "policy": None if verdict is None else verdict.section,
        "history": {"runs": history.runs, "growth": growth} if history.runs else None,
        "since": None,
    }
    state = None
    if options.keeps or earlier is not None:
        last = _last_findings(history, notes)
        findings = dated([*document["findings"]], last, run.now_ms)
        del last
        state = state_of(run, "", findings)
    if earlier is not None and state is not None:
        is_meant = asked_for(request.topics, request.topic_partitions)
        before = what_is_meant(earlier, state, scope, is_meant)
        document["since"] = changes_since(before, state)
    if options.keeps and state is not None:
        try:
            _keep(request, run, history, verdict, state, started_ms, clock())
        except (OSError, UnicodeEncodeError) as error:  # the latter: a path that is not UTF-8
            notes.append(f"the run is not kept, later ones do not know of it: {error}")
        # What is kept is let go before the document is written.
        run = replace(run, scans=None)
    return WholeAudit(run, document, tuple(notes))


def _last_findings(history: History, notes: list[str]) -> Sequence[Mapping[str, Any]]:
    """Those of the last run; a note where they cannot be read."""
    try:
        return history.findings()
    except InvalidConfigError as error:
        notes.append(f"left out of the history: {error}")
        return ()


def _keep(
    request: AuditRequest,
    run: AuditRun,
    history: History,
    verdict: PolicyVerdict | None,
    state: AuditState,
    started_ms: int,
    finished_ms: int,
) -> None:
    scope = _scope(request)
    kept = begin_run(
        request.run_path, new_run_id(), KIND, version=__version__, started_ms=started_ms,
        options=scope,
    )  # fmt: skip
    violations = () if verdict is None else verdict.violations
    scans = run.scans or NextScans(history.scans)
    write_history(kept, run.now_ms, run.partitions, violations, scans)
    write_state(kept.path, state)
    facts = {
        "nowMs": run.now_ms,
        "partitions": len(run.partitions),
        "findings": run.findings_count,
    }
    finish_run(kept, finished_ms=finished_ms, facts=facts)
    drop_older_scans(request.run_path, kept, scope)


def _scope(request: AuditRequest) -> dict[str, Any]:
    return audit_scope(request.log_dirs, request.topics, request.topic_partitions)
