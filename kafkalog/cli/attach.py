"""`kafkalog attach LOGDIR… --in-place`: plan, and with `--apply` write, the metadata of a cluster
whose quorum is lost. With `--into` it is `attach_bucket`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.attach_bucket import attach_bucket
from kafkalog.cli.attach_output import exit_code_of, summary
from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.tables import show_table
from kafkalog.clock import now_ms
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.log.names import paths_in
from kafkalog.operations.run_frame import CANNOT_BE_UNDONE
from kafkalog.operations.run_steps import Tell
from kafkalog.restoring.attach import (
    AttachRequest,
    attach_run,
    plan_attach_run,
)
from kafkalog.restoring.attach_document import attach_document, attach_lines, attach_table

_BUCKET_ONLY = (
    "topic", "metadata_from", "metadata_partitions", "end_transactions", "remote_layout",
    "remote_key", "groups", "offsets_partitions", "output",
)  # fmt: skip
_CHOSEN = ("topic", "partition", "leader", "inSync", "replicas", "logEndOffset")


def run(args: argparse.Namespace, tell: Tell = say) -> ExitCode:
    """Plan, or plan and write, then print the run and choose the exit code."""
    if args.into and not args.in_place:
        return attach_bucket(args, tell)
    if not args.in_place or args.into:
        raise UsageError(
            "attach needs either --in-place: the metadata is made for these log dirs; or --into "
            "LOGDIR: a fresh cluster goes on with the segments of a bucket"
        )
    for name in _BUCKET_ONLY:
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} goes with --into")
    started = time.monotonic()
    request = request_of(args)
    if args.apply and args.no_undo:
        tell(CANNOT_BE_UNDONE)
    done = attach_run(request, tell) if args.apply else plan_attach_run(request)
    seconds = time.monotonic() - started
    if args.json:
        write_json(attach_document(done, seconds))
    else:
        show_table(attach_table(done), chosen=_CHOSEN, tell=tell)
        for line in attach_lines(done):
            tell(line)
        tell(summary(done, len(done.plan.partitions), seconds))
    for fault in done.faults:
        tell(f"this is a fault of kafkalog, please report it: {fault}")
    return exit_code_of(done)


def request_of(args: argparse.Namespace) -> AttachRequest:
    """The request the arguments make."""
    return AttachRequest(
        log_dirs=paths_in([Path(each) for each in args.log_dir]),
        now_ms=now_ms() if args.now is None else args.now,
        feature_levels=dict(args.feature),
        controllers=tuple(args.initial_controllers),
        force=frozenset(args.force),
        run_dir=args.run_dir,
        keeps_undo=not args.no_undo,
        max_batch_bytes=check_max_batch_bytes(args.max_batch_bytes),
    )
