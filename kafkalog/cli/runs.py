"""The frame of the verbs whose work is a run over partitions: do it, print the run, choose the exit
code.

What is said on the way goes to `tell`. A job under spark-submit has one stream for both, stdout and
stderr: with `--json` it says nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kafkalog.cli.output import ExitCode, write_json
from kafkalog.cli.tables import show_table
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.operations.run_frame import CANNOT_BE_UNDONE, Run, undo_note
from kafkalog.operations.run_steps import Tell
from kafkalog.planning.statuses import REFUSED, is_done
from kafkalog.requests.run_request import RunOptions

# Of the tables of these verbs, where all columns are too wide.
_CHOSEN = (
    "topic", "partition", "status", "reason", "bytesBefore", "bytesAfter", "file", "retained",
)  # fmt: skip

AnyRun = TypeVar("AnyRun", bound=Run[Any, Any])


@dataclass(frozen=True, slots=True)
class RunVerb(Generic[AnyRun]):
    """What a verb does, and how it shows what it did. `statuses` takes the topics that were named
    and gives one status a partition, of which `is_done` needs to know whether the run applied;
    `document` and `summary` take the seconds as well.
    """

    run: Callable[[Tell], AnyRun]
    statuses: Callable[[AnyRun, Sequence[str]], list[str]]
    document: Callable[[AnyRun, float], dict[str, Any]]
    table: Callable[[AnyRun], list[dict[str, Any]]]
    summary: Callable[[AnyRun, float], str]
    is_done: Callable[[str, bool], bool] = lambda status, applied: is_done(status, applied=applied)


def planned_or_applied(
    args: argparse.Namespace, plan: Callable[[], AnyRun], apply: Callable[[Tell], AnyRun]
) -> Callable[[Tell], AnyRun]:
    """What a verb with --apply does: plan, or plan and carry out."""

    def run(tell: Tell) -> AnyRun:
        if args.apply:
            if args.no_undo:
                tell(CANNOT_BE_UNDONE)
            return apply(tell)
        planned = plan()
        for problem in planned.problems:
            tell(problem)
        return planned

    return run


def carry_out(args: argparse.Namespace, verb: RunVerb[AnyRun], tell: Tell) -> ExitCode:
    """Do what the arguments ask of the verb."""
    started = time.monotonic()
    run = verb.run(tell)
    for fault in run.faults:
        tell(f"this is a fault of kafkalog, please report it: {fault}")
    seconds = time.monotonic() - started
    if args.json:
        write_json(verb.document(run, seconds))
    else:
        rows = verb.table(run)
        show_table(rows, chosen=_CHOSEN, tell=tell)
        for note in run.notes:
            tell(note)
        if run.applied and run.keeps_undo:
            tell(undo_note(run))
        tell(verb.summary(run, seconds))
    return _exit_code(run, verb.statuses(run, args.topic), verb.is_done)


def run_options(args: argparse.Namespace) -> RunOptions:
    """The options that all these verbs take."""
    return {
        **settings_options(args),
        "topics": args.topic,
        "topic_partitions": args.topic_partition,
        "run_dir": args.run_dir,
        "no_undo": args.no_undo,
        "max_batch_bytes": getattr(args, "max_batch_bytes", MAX_BATCH_BYTES),
    }


def settings_options(args: argparse.Namespace) -> RunOptions:
    """Those that say by which settings topics are judged."""
    return {
        "config": args.config,
        "now_ms": args.now,
        "config_file": args.config_file,
        "server_properties": args.server_properties,
        "zookeeper_dir": args.zookeeper_dir,
        "zk_root": args.zk_root,
        "kafka_version": args.kafka_version,
        "high_watermark": args.high_watermark,
        "force": args.force,
    }


def _exit_code(
    run: Run[Any, Any], statuses: Sequence[str], is_done: Callable[[str, bool], bool]
) -> ExitCode:
    """DONE if every partition is planned or done, UNSAFE if rules forbade all that was asked for,
    FAULT if one met a fault of ours, else FINDINGS.
    """
    if run.faults:
        return ExitCode.FAULT
    if not run.problems and all(is_done(status, run.is_carried_out) for status in statuses):
        return ExitCode.DONE
    if run.is_carried_out and all(status == REFUSED for status in statuses):
        return ExitCode.UNSAFE
    return ExitCode.FINDINGS
