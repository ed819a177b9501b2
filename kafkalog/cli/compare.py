"""`kafkalog compare`: the replicas of partitions against each other. Also what
`jobs/compare_replicas.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.option_values import remote_storage
from kafkalog.cli.output import ExitCode, write_json
from kafkalog.cli.progress import say_above, with_progress
from kafkalog.cli.tables import show_table
from kafkalog.comparing.across_tasks import CompareAcross, execute_by_size
from kafkalog.comparing.comparison import compare_died, compare_partition
from kafkalog.comparing.difference import ComparedPartition
from kafkalog.comparing.document import (
    compare_document,
    difference_table,
    explanations,
    failures,
    replica_table,
    summary,
)
from kafkalog.comparing.request import CompareRequest, CompareTask
from kafkalog.comparing.run import Executor, compare_run
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.healing.document import heal_document, heal_table
from kafkalog.healing.patch import opened_patch, write_patch
from kafkalog.healing.plan import HealPlan
from kafkalog.healing.run import (
    HealExecutor,
    Healing,
    HealRun,
    apply_healing,
    heal_in_processes,
    is_well,
    local_log_dirs,
    plan_healing,
)
from kafkalog.operations.run_frame import CANNOT_BE_UNDONE, undo_note
from kafkalog.requests.run_request import RunOptions, run_request
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, check_memory
from kafkalog.resources.process_pool import in_processes
from kafkalog.resources.staged_tasks import run_stages

_COLUMNS = ("severity", "id", "topic", "partition", "offset", "key", "wrong", "right", "text")
_CHOSEN = ("severity", "id", "topic", "partition", "offset", "text", "wrong", "right")


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: worker processes of this machine do the reading."""
    workers = args.workers or os.cpu_count() or 1

    def within(tasks: Sequence[CompareTask]) -> Iterator[ComparedPartition]:
        return in_processes(tasks, compare_partition, workers, compare_died)

    def across(stages: CompareAcross) -> list[ComparedPartition]:
        count = len(stages.ranges)
        return run_stages(count, stages.read, [stages.judge], stages.conclude, workers)

    def execute(tasks: Sequence[CompareTask]) -> Iterable[ComparedPartition]:
        results = execute_by_size(tasks, across, within) if workers > 1 else within(tasks)
        sizes = {task.topic_partition: task.size_in_bytes for task in tasks}
        return with_progress(
            results, sizes, lambda result: result.topic_partition, "compare", parts="partitions"
        )

    return run_with(args, execute, say_above, partial(heal_in_processes, workers=workers))


def run_with(
    args: argparse.Namespace,
    execute: Executor,
    tell: Callable[[str], None],
    carry_out: HealExecutor,
) -> ExitCode:
    """Compare with `execute` and heal with `carry_out`, print what differs and choose the exit
    code; talk goes to `tell`.
    """
    if (args.apply or args.patch) and not args.heal:
        raise UsageError("compare changes nothing: --apply and --patch are for --heal")
    started = time.monotonic()
    healing = _heal(args, execute, tell, carry_out) if args.heal else None
    done = healing.compared if healing else compare_run(request_of(args), execute)
    seconds = time.monotonic() - started
    if args.json:
        document = compare_document(done, seconds, redact=args.redact)
        if healing is not None:
            document["heal"] = heal_document(healing.healed, seconds)
        write_json(document)
    else:
        show_table(replica_table(done), is_main=False, tell=tell)
        rows = difference_table(done.differences, redact=args.redact)
        show_table(rows, _COLUMNS, chosen=_CHOSEN, tell=tell)
        for line in (*failures(done), *explanations(done.differences)):
            tell(line)
        tell(summary(done, seconds))
        if healing is not None:
            _tell_healed(healing.healed, tell)
    if healing is not None and healing.healed.faults:
        return ExitCode.FAULT
    if healing is not None and healing.healed.applied and not done.failed:
        return ExitCode.DONE if is_well(healing.healed) else ExitCode.FINDINGS
    return ExitCode.FINDINGS if done.has_failures else ExitCode.DONE


def _heal(
    args: argparse.Namespace,
    execute: Executor,
    tell: Callable[[str], None],
    carry_out: HealExecutor,
) -> Healing:
    if args.remote_dir:
        raise UsageError("--heal puts right what is on disks: it goes without --remote-dir")
    log_dirs = local_log_dirs(args.log_dir)
    if not log_dirs:
        raise UsageError("--heal needs the log dirs of the wrong replica and of a right one")
    options: RunOptions = {
        "topics": args.topic,
        "topic_partitions": args.topic_partition,
        "run_dir": args.run_dir,
        "no_undo": args.no_undo,
        "max_batch_bytes": args.max_batch_bytes,
    }
    request = run_request(log_dirs, options)
    is_made = args.patch is not None and not Path(args.patch).exists()
    if is_made and args.apply:
        raise UsageError(f"--patch {args.patch} is not there: it is made without --apply")
    with ExitStack() as stack:
        is_there = args.patch is not None and not is_made
        unpacked = stack.enter_context(opened_patch(args.patch)) if is_there else []
        compare = replace(request_of(args), log_dirs=(*args.log_dir, *unpacked))
        if args.apply:
            if args.no_undo:
                tell(CANNOT_BE_UNDONE)
            return apply_healing(request, compare, execute, tell, carry_out)
        healing = plan_healing(request, compare, execute)
    if is_made:
        size = write_patch(healing.patches, args.patch)
        tell(f"{args.patch}: {size} bytes, for {', '.join(map(_place, healing.patches))}")
    return healing


def _place(plan: HealPlan) -> str:
    return f"{plan.topic_partition} of {plan.name}" + (": refused" if plan.reason else "")


def _tell_healed(run: HealRun, tell: Callable[[str], None]) -> None:
    show_table(heal_table(run), is_main=False, tell=tell)
    for problem in run.problems if not run.applied else ():
        tell(problem)
    if run.applied and run.keeps_undo:
        tell(undo_note(run))
    if not run.applied and run.plans:
        tell("nothing was changed: --heal --apply puts right what is provable")


def request_of(args: argparse.Namespace) -> CompareRequest:
    """The request the arguments make."""
    memory = DEFAULT_MEMORY_BYTES if args.memory is None else args.memory
    return CompareRequest(
        log_dirs=tuple(args.log_dir),
        topics=tuple(args.topic),
        topic_partitions=tuple(args.topic_partition),
        memory_bytes=check_memory(memory),
        max_batch_bytes=check_max_batch_bytes(args.max_batch_bytes),
        hash_key=args.hash_key,
        remote=remote_storage(args),
    )
