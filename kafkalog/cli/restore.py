"""`kafkalog restore`: topics back from segments, offsets as they were. Also what
`jobs/restore_topics.py` parses and prints.
"""

from __future__ import annotations

import argparse

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.option_values import parse_now, remote_storage
from kafkalog.cli.output import ExitCode, say
from kafkalog.cli.runs import RunVerb, carry_out, planned_or_applied
from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.run_steps import Tell
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.requests.run_request import RunOptions, run_request
from kafkalog.restoring.document import restore_document, restore_table, warnings
from kafkalog.restoring.execute import RestoreExecutor
from kafkalog.restoring.fresh import is_fresh
from kafkalog.restoring.fresh_run import FreshRun
from kafkalog.restoring.groups import GroupScript, group_scripts, restored_ranges, write_scripts
from kafkalog.restoring.plan import RestorePlan
from kafkalog.restoring.request import RestoreRequest, parse_offsets, parse_topics
from kafkalog.restoring.restore import RestoreRun
from kafkalog.restoring.run import apply_restore, plan_restore, restore_statuses


def run(args: argparse.Namespace) -> ExitCode:
    """The verb."""
    return run_with(args, say)


def run_with(
    args: argparse.Namespace, tell: Tell, execute: RestoreExecutor | None = None
) -> ExitCode:
    """Plan or restore, print it and choose the exit code; talk goes to `tell`, tasks to `execute`,
    which is this process without one.
    """
    if not args.into:
        raise UsageError("restore needs --into LOGDIR, a log dir of the stopped cluster")
    options: RunOptions = {
        "now_ms": args.now,
        "run_dir": args.run_dir,
        "no_undo": args.no_undo,
        "max_batch_bytes": args.max_batch_bytes,
    }
    remote = remote_storage(args)
    uris = [path for path in args.log_dir if "://" in path]
    if uris and not remote.is_tree:
        raise UsageError(
            f"{uris[0]}: restore takes log dirs of this host, and remote storage of tiered topics, "
            "whose layout --remote-layout tells"
        )
    if args.groups and remote.is_tree:
        raise UsageError("--groups: what groups have committed is in log dirs alone")
    if args.output is not None and not args.groups:
        raise UsageError("--output is for the files of --groups")
    if args.groups and args.output is None and not is_fresh(args.into):
        raise UsageError(
            "--groups needs --output DIR for its files: the target's cluster was started before, "
            "and has its own __consumer_offsets"
        )
    request, restore = run_request(args.into, options), request_of(args)
    scripts: list[GroupScript] = []

    def with_groups(run: RestoreRun) -> RestoreRun:
        if isinstance(run, FreshRun):
            scripts.extend(run.groups)
        if args.output is not None:
            done = restored_ranges(_carried_out(run))
            scripts.extend(group_scripts(args.log_dir, args.groups, done))
            write_scripts(scripts, args.output)
        for script in scripts:
            tell(script.said)
        return run

    def with_words(run: RestoreRun) -> RestoreRun:
        for line in warnings(run):
            tell(line)
        return with_groups(run)

    verb = RunVerb(
        run=planned_or_applied(
            args,
            plan=lambda: with_words(plan_restore(request, restore)),
            apply=lambda tell: with_words(apply_restore(request, restore, tell, execute=execute)),
        ),
        statuses=lambda run, _: restore_statuses(run),
        document=lambda run, seconds: restore_document(run, seconds, scripts),
        table=restore_table,
        summary=_summary,
    )
    return carry_out(args, verb, tell)


def _carried_out(run: RestoreRun) -> list[RestorePlan]:
    """The plans that were; of a dry run those that would be."""
    statuses = zip(run.plans, restore_statuses(run), strict=True)
    return [plan for plan, status in statuses if status not in (FAILED, REFUSED)]


def request_of(args: argparse.Namespace) -> RestoreRequest:
    """The request the arguments make. InvalidConfigError for words that cannot be understood."""
    topics, renamed = parse_topics(args.topic)
    since_ms, since_offsets = _time_or_offsets("--since", args.since)
    until_ms, until_offsets = _time_or_offsets("--until", args.until)
    if since_ms is not None and until_ms is not None and since_ms > until_ms:
        raise InvalidConfigError(f"--since {args.since} is later than --until {args.until}")
    return RestoreRequest(
        sources=tuple(args.log_dir),
        topics=topics,
        topic_partitions=tuple(args.topic_partition),
        renamed=renamed,
        since_ms=since_ms,
        since_offsets=since_offsets,
        until_ms=until_ms,
        until_offsets=until_offsets,
        end_transactions=args.end_transactions,
        replication_factor=args.replication_factor,
        leaves_followers_empty=args.empty_followers,
        groups=() if args.output is not None else tuple(args.groups),
        offsets_partitions=args.offsets_partitions,
        remote=remote_storage(args),
        compacts=args.compact,
    )


def _time_or_offsets(option: str, text: str | None) -> tuple[int | None, dict[TopicPartition, int]]:
    if text is None:
        return None, {}
    try:
        return parse_now(text), {}
    except ValueError:
        return None, parse_offsets(option, text)


def _summary(run: RestoreRun, seconds: float) -> str:
    size = sum(result.bytes_after for result in run.results)
    if run.applied:
        return f"{len(run.results)} partition directories, {size} bytes in {seconds:.1f} s"
    size = sum(plan.cut.size_in_bytes for plan in run.plans if plan.cut and not plan.reason)
    planned = f"{len(run.plans)} partition directories, {size} bytes planned in {seconds:.1f} s"
    return f"{planned}; nothing was changed (--apply does)"
