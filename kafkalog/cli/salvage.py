"""`kafkalog salvage`: valid copies of damaged partitions without the bad ranges, and a manifest."""

from __future__ import annotations

import argparse
from pathlib import Path

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, say
from kafkalog.cli.runs import RunVerb, carry_out
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.operations.salvage import (
    SalvageRequest,
    SalvageRun,
    salvage_document,
    salvage_run,
    salvage_statuses,
    salvage_table,
)
from kafkalog.repair.salvage import MANIFEST_FILE, SALVAGED
from kafkalog.texts import format_count


def run(args: argparse.Namespace) -> ExitCode:
    """FINDINGS if anything was left out, is missing or could not be done."""
    if args.output is None:
        raise UsageError("salvage needs --output DIR, a new directory outside of the log dirs")
    request = SalvageRequest(
        args.log_dir,
        args.output,
        check_max_batch_bytes(args.max_batch_bytes),
        args.topic,
        args.topic_partition,
    )
    verb = RunVerb(
        run=lambda tell: salvage_run(request, tell),
        statuses=lambda run, _: salvage_statuses(run),
        document=lambda run, _: salvage_document(run),
        table=salvage_table,
        summary=_summary,
        is_done=lambda status, _: status == SALVAGED,
    )
    return carry_out(args, verb, say)


def _summary(run: SalvageRun, seconds: float) -> str:
    path = Path(run.output or "") / MANIFEST_FILE
    return f"{format_count(len(run.results), 'partition')} in {seconds:.1f} s; see {path}"
