"""What the verbs that may change log dirs share: arguments → request, statuses → exit code."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from kafkalog.cleaner.run_frame import Run
from kafkalog.cleaner.run_request import CompactionRequest
from kafkalog.cleaner.settings import read_config_file, read_server_properties
from kafkalog.cleaner.stats import REFUSED, is_done
from kafkalog.cli.output import ExitCode
from kafkalog.planning.log_config import LogConfig


def request_of(args: argparse.Namespace) -> CompactionRequest:
    """The request the arguments make; InvalidConfigError for settings Kafka would refuse."""
    return CompactionRequest(
        log_dirs=tuple(args.log_dir),
        now_ms=args.now if args.now is not None else time.time_ns() // 1_000_000,
        config=LogConfig.from_overrides(args.config, is_partial=True),
        topics=tuple(args.topic),
        topic_partitions=tuple(args.topic_partition),
        kafka_version=args.kafka_version,
        high_watermark=args.high_watermark,
        force=frozenset(args.force),
        dedupe_buffer_size=getattr(args, "dedupe_buffer_size", None),
        config_file=read_config_file(getattr(args, "config_file", None)),
        server_properties=read_server_properties(getattr(args, "server_properties", None)),
    )


def exit_code_of(run: Run, statuses: Sequence[str]) -> ExitCode:
    """The same from one status a partition, for the run of any verb."""
    if not run.problems and all(is_done(status) for status in statuses):
        return ExitCode.DONE
    if run.applied and all(status == REFUSED for status in statuses):
        return ExitCode.UNSAFE
    return ExitCode.FINDINGS
