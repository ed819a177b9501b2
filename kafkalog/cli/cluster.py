"""`kafkalog cluster`: members, leaders, placement, drift. Also what `jobs/audit_cluster.py` parses
and prints.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from kafkalog.checking.cluster_document import broker_rows, cluster_document, summary
from kafkalog.checking.cluster_run import ClusterRequest, ClusterRun, cluster_run
from kafkalog.checking.document import explanations, finding_table
from kafkalog.checking.settings_script import settings_script
from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.tables import show_table
from kafkalog.errors import InvalidConfigError
from kafkalog.log.small_files import read_small_file
from kafkalog.planning.config_file import parse_declared_settings
from kafkalog.requests.run_settings import read_server_properties
from kafkalog.texts import format_count

_COLUMNS = ("topic", "partition", "severity", "id", "offset", "text")
_CHOSEN = ("severity", "id", "topic", "partition", "text", "offset")


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: this process reads all there is to read."""
    return run_with(args)


def run_with(args: argparse.Namespace, tell: Callable[[str], None] = say) -> ExitCode:
    """Check, print brokers and findings, choose the exit code; talk goes to `tell`."""
    started = time.monotonic()
    request = request_of(args)
    if args.script is not None and args.redact:
        raise UsageError("--script has names as they are: without --redact")
    done = cluster_run(request)
    if args.script is not None:
        _write_script(done, request, args.script, tell)
    seconds = time.monotonic() - started
    if args.json:
        write_json(cluster_document(done, request, seconds))
    else:
        for cluster in done.clusters:
            brokers = broker_rows(cluster.view)
            show_table(brokers, is_main=False, tell=tell)
        rows = [
            {"topic": finding.topic, "partition": finding.partition, **row}
            for finding, row in zip(done.findings, finding_table(done.findings), strict=True)
        ]
        show_table(rows, _COLUMNS, chosen=_CHOSEN, tell=tell)
        for line in explanations(done.findings):
            tell(line)
        tell(summary(done, seconds))
    return ExitCode.FINDINGS if done.has_failures else ExitCode.DONE


def _write_script(
    done: ClusterRun, request: ClusterRequest, path: str, tell: Callable[[str], None]
) -> None:
    """The settings of the one cluster that there is, into a new file."""
    if len(done.clusters) != 1:
        raise InvalidConfigError(f"--script is of one cluster: here are {len(done.clusters)}")
    view, topics = done.clusters[0].view, None
    if request.topics or request.topic_partitions:
        states = view.states
        topics = {s["topic"] for s in states if request.lists(s["topic"], s["partition"])}
    script = settings_script(view, topics)
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(script.text)
    except OSError as error:
        raise InvalidConfigError(f"--script: {error.strerror or error}", path=path) from None
    left_out = f", {len(script.left_out)} left out: see its head" if script.left_out else ""
    tell(f"{path}: {format_count(script.commands, 'command')} of Kafka's tools{left_out}")


def request_of(args: argparse.Namespace) -> ClusterRequest:
    """The request the arguments make."""
    declared = None
    if args.config_file is not None:
        try:
            data = read_small_file(Path(args.config_file))
        except OSError as error:
            reason = error.strerror or str(error)
            raise InvalidConfigError(reason, path=args.config_file) from None
        declared = parse_declared_settings(data, args.config_file)
    return ClusterRequest(
        log_dirs=tuple(args.log_dir),
        at_ms=args.now,
        declared=declared,
        static=read_server_properties(args.server_properties) or {},
        topics=tuple(args.topic),
        topic_partitions=tuple(args.topic_partition),
        zookeeper_dirs=tuple(args.zookeeper_dir),
        zk_root=args.zk_root,
    )
