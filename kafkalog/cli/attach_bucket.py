"""`kafkalog attach BUCKET --into LOGDIR…`: a fresh cluster over the segments of a bucket."""

from __future__ import annotations

import argparse
import time

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.attach_output import exit_code_of, summary
from kafkalog.cli.output import ExitCode, write_json
from kafkalog.cli.tables import show_table
from kafkalog.clock import now_ms
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.operations.run_frame import CANNOT_BE_UNDONE
from kafkalog.operations.run_steps import Tell
from kafkalog.remote.paths import RemoteStorage
from kafkalog.restoring.bucket_attach import (
    bucket_attach_run,
    plan_bucket_attach,
)
from kafkalog.restoring.bucket_document import bucket_document, bucket_lines, bucket_table
from kafkalog.restoring.bucket_groups import old_group_scripts
from kafkalog.restoring.bucket_old_metadata import open_old
from kafkalog.restoring.bucket_request import BucketAttachRequest
from kafkalog.restoring.groups import GroupScript, write_scripts

_CHOSEN = ("topic", "partition", "leader", "replicas", "offsets", "segments", "sizeInBytes")
_IN_PLACE_ONLY = ("feature", "initial_controllers", "force")


def attach_bucket(args: argparse.Namespace, tell: Tell) -> ExitCode:
    """Plan, or plan and write, then print the run and choose the exit code."""
    given = [name for name in _IN_PLACE_ONLY if getattr(args, name)]
    if given:
        raise UsageError(f"--{given[0].replace('_', '-')} goes with --in-place")
    if args.output is not None and not args.groups:
        raise UsageError("--output is for the files of --groups")
    if args.offsets_partitions and (not args.groups or args.output is not None):
        raise UsageError("--offsets-partitions is for the topic that --groups makes")
    started = time.monotonic()
    request = request_of(args)
    if args.apply and args.no_undo:
        tell(CANNOT_BE_UNDONE)
    done = bucket_attach_run(request, tell) if args.apply else plan_bucket_attach(request)
    scripts: list[GroupScript] = []
    if args.output is not None:
        old = open_old(request.metadata_from)
        scripts = old_group_scripts(request, old, done.logs, args.groups)
        write_scripts(scripts, args.output)
    seconds = time.monotonic() - started
    for script in scripts:
        tell(script.said)
    if args.json:
        write_json(bucket_document(done, seconds, scripts))
    else:
        show_table(bucket_table(done), chosen=_CHOSEN, tell=tell)
        for line in bucket_lines(done):
            tell(line)
        tell(summary(done.run, len(done.logs), seconds))
    for fault in done.run.faults:
        tell(f"this is a fault of kafkalog, please report it: {fault}")
    return exit_code_of(done.run)


def request_of(args: argparse.Namespace) -> BucketAttachRequest:
    """The request the arguments make."""
    return BucketAttachRequest(
        remote=RemoteStorage(tuple(args.log_dir), args.remote_layout, tuple(args.remote_key)),
        into=tuple(args.into),
        now_ms=now_ms() if args.now is None else args.now,
        topics=tuple(args.topic),
        metadata_from=tuple(args.metadata_from),
        metadata_partitions=args.metadata_partitions,
        end_transactions=args.end_transactions,
        groups=() if args.output is not None else tuple(args.groups),
        offsets_partitions=args.offsets_partitions,
        run_dir=args.run_dir,
        keeps_undo=not args.no_undo,
        max_batch_bytes=check_max_batch_bytes(args.max_batch_bytes),
    )
