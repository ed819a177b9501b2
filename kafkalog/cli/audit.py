"""`kafkalog audit`: what the policies in force make of the logs on disk, and what blocks them. Also
what `jobs/audit_retention.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafkalog.auditing.audit_kinds import ALL_KINDS
from kafkalog.auditing.audit_run import AuditRun, Executor
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.changes import has_new_failures
from kafkalog.auditing.document import topic_rows, totals
from kafkalog.auditing.partition_audit import audit_partition, partition_died
from kafkalog.auditing.request import AuditScope, AuditTask, audit_request
from kafkalog.auditing.scenarios import parse_scenarios
from kafkalog.auditing.whole import AuditOptions, WholeAudit, no_collection, whole_audit
from kafkalog.checking.document import finding_table
from kafkalog.checking.finding_kind import count_found
from kafkalog.cli.audit_changes import changes_note, write_changes
from kafkalog.cli.audit_tables import capacity_notes, simulation_notes, write_contents_tables
from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.progress import say_above, with_progress
from kafkalog.cli.runs import settings_options
from kafkalog.cli.tables import show_table
from kafkalog.clock import now_ms
from kafkalog.errors import InvalidConfigError
from kafkalog.remote.paths import RemoteStorage
from kafkalog.requests.run_request import RunOptions
from kafkalog.resources.process_pool import in_processes
from kafkalog.texts import format_bytes, format_count

# Of one kind, on the screen.
_MOST_FIXES = 3
_COLUMNS = (
    "topic", "partitions", "segments", "records", "bytes", "cleanupPolicy", "retentionMs",
    "retentionBytes", "dueBytes", "blockedBytes",
)  # fmt: skip

_REMOTE_COLUMNS = ("remoteBytes", "remoteStoredBytes", "remoteDueBytes", "remoteCostPerMonth")

_CHOSEN = (
    "topic", "bytes", "cleanupPolicy", "retentionMs", "dueBytes", "blockedBytes", "partitions",
)  # fmt: skip


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: worker processes of this machine do the reading."""
    workers = args.workers or os.cpu_count() or 1

    def execute(tasks: Sequence[AuditTask]) -> Iterable[AuditedPartition]:
        results = in_processes(largest_first(tasks), audit_partition, workers, partition_died)
        sizes = {task.partition.path: task.partition.size_in_bytes for task in tasks}
        passes = 2 if args.contents or args.estimate else 1
        return with_progress(results, sizes, lambda each: each.path, "audit", passes=passes)

    return run_with(args, execute, say_above)


def largest_first(tasks: Iterable[AuditTask]) -> list[AuditTask]:
    """The tasks that take longest in front, so that none of them is the last."""
    return sorted(tasks, key=lambda task: -len(task.partition.segments))


def scope_of(args: argparse.Namespace) -> AuditScope:
    """How far to look, by the arguments; InvalidConfigError for a setting Kafka would refuse."""
    if args.remote_layout and not args.remote_dir:
        raise InvalidConfigError("--remote-layout is for --remote-dir")
    return AuditScope(
        reads_records=args.contents,
        reads_keys=args.estimate,
        scenarios=parse_scenarios(args.what_if or ()),
        times=tuple(args.at or ()),
        before_ms=args.before,
        redact=args.redact,
        price=args.price_per_gib_month,
        remote=RemoteStorage(tuple(args.remote_dir), args.remote_layout),
    )


def run_with(
    args: argparse.Namespace, execute: Executor, tell: Callable[[str], None] = say
) -> ExitCode:
    """Audit with `execute`, print what was found and choose the exit code; talk goes to `tell`."""
    options: RunOptions = {
        **settings_options(args),
        "topics": args.topic,
        "topic_partitions": args.topic_partition,
        "run_dir": args.run_dir,
        "max_batch_bytes": args.max_batch_bytes,
    }
    if args.fail_on == "new" and args.since is None:
        raise InvalidConfigError("--fail-on new is for --since: what is new since when?")
    request = audit_request(args.log_dir, options, scope_of(args))
    audit_options = AuditOptions(
        args.policy, dict(args.capacity), makes_rows_anew=args.report is None, since=args.since
    )
    with no_collection():
        whole = whole_audit(request, audit_options, execute, now_ms)
        return _told(args, whole, tell)


def _told(args: argparse.Namespace, whole: WholeAudit, tell: Callable[[str], None]) -> ExitCode:
    """Write what was found where it is asked for."""
    done, document = whole.run, whole.document
    if args.report is not None:
        # Of templates, which nothing else needs.
        from kafkalog.report.page import write_page

        write_page(document, args.report)
    if args.json:
        write_json(document)
    else:
        if document["since"] is None:
            _write_tables(done, document, tell)
        else:
            write_changes(document["since"], tell)
        notes = (*simulation_notes(document["whatIf"]), *capacity_notes(document["logDirs"]))
        for note in (*notes, *whole.notes):
            tell(note)
        tell(_summary(done, document))
        if document["since"] is not None:
            tell(changes_note(document["since"], done.now_ms))
    has_failures = done.has_failures
    if args.fail_on == "new":
        has_failures = has_new_failures(document["since"])
    return ExitCode.FINDINGS if has_failures else ExitCode.DONE


def _write_tables(done: AuditRun, document: dict[str, Any], tell: Callable[[str], None]) -> None:
    topics = topic_rows(done.partitions, done.price)
    # Of a disk without tiered topics they would say nothing.
    remote = tuple(name for name in _REMOTE_COLUMNS if any(row[name] for row in topics))
    show_table(topics, (*_COLUMNS, *remote), chosen=(*_CHOSEN, *remote), tell=tell)
    write_contents_tables(document)
    rows = finding_table(done.findings)
    columns = ("severity", "id", "file", "offset", "text")
    show_table(rows, columns, chosen=("severity", "id", "text", "file"), is_main=False, tell=tell)
    fixes: dict[str, dict[str, None]] = {}
    for finding in done.findings:
        fixes.setdefault(finding.kind, {})[finding.fix or ALL_KINDS[finding.kind].remedy] = None
    for kind, own in fixes.items():
        shown = "; or ".join([*own][:_MOST_FIXES])
        more = f" ({len(own) - _MOST_FIXES} more: --json)" if len(own) > _MOST_FIXES else ""
        tell(f"{kind}: {ALL_KINDS[kind].means}. To do: {shown}{more}.")


def _in_remote(document: dict[str, Any]) -> str:
    size = document["totals"]["remoteBytes"]
    due = document["totals"]["remoteDueBytes"]
    return (
        f"; {format_bytes(size)} in remote storage, {format_bytes(due)} of it due" if size else ""
    )


def _summary(done: AuditRun, document: dict[str, Any]) -> str:
    sums = totals(done.partitions)
    found = count_found(finding.severity for finding in done.findings)
    return (
        f"{format_count(sums['partitions'], 'partition')}, "
        f"{format_count(sums['segments'], 'segment')}, "
        f"{format_bytes(sums['bytes'])} in {document['seconds']:.1f} s: "
        f"{format_bytes(sums['dueBytes'])} due, {format_bytes(sums['blockedBytes'])} held back, "
        f"{format_bytes(sums['leftoverBytes'])} left over{_in_remote(document)}; {found}"
    )
