"""`kafkalog why T-P [--key K | --offset N]`: which rule keeps a partition or a record, and when it
goes.
"""

from __future__ import annotations

import argparse

from kafkalog.auditing.audit_run import open_audit
from kafkalog.auditing.explanation import Explainer, Explanation
from kafkalog.auditing.request import AuditScope, audit_request
from kafkalog.cli.option_values import parse_partition_name
from kafkalog.cli.output import ExitCode, write_json, write_lines
from kafkalog.cli.runs import settings_options
from kafkalog.errors import InvalidConfigError


def run(args: argparse.Namespace) -> ExitCode:
    """Explain each directory of the partition there is, replicas of several brokers too."""
    if len(args.paths) != 1:
        raise InvalidConfigError("one partition is needed, as orders-3")
    if args.key is not None and args.offset is not None:
        raise InvalidConfigError("--key or --offset, not both")
    try:
        name = parse_partition_name(args.paths[0])
    except ValueError as error:
        raise InvalidConfigError(str(error)) from None
    options = settings_options(args)
    options["topic_partitions"] = [name]
    options["max_batch_bytes"] = args.max_batch_bytes
    scope = AuditScope(redact=args.redact)
    found: list[Explanation] = []
    for task in open_audit(audit_request(args.log_dir, options, scope)).tasks:
        explainer = Explainer(task)
        if args.offset is not None:
            found.append(explainer.at(args.offset))
        elif args.key is not None:
            found += explainer.with_key(args.key.encode())
        else:
            found.append(explainer.partition())
    if args.json:
        write_json([explanation.to_json() for explanation in found])
    else:
        for explanation in found:
            write_lines(explanation.lines())
    return ExitCode.DONE
