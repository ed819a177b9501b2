"""`kafkalog lag DIR…`: how far groups are behind, in the columns of the view `lag`."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.display import CSV, display
from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.tables import show_table
from kafkalog.errors import InvalidConfigError
from kafkalog.format.redaction import redacted_name
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.reading.consumer_offsets.parts import unreadable
from kafkalog.reading.consumer_offsets.problems import problems
from kafkalog.reading.function_views import lag
from kafkalog.reading.function_views.group_offsets import commits_in_force
from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads
from kafkalog.reading.function_views.topic_rows import live_partitions
from kafkalog.reading.request import ReadMode
from kafkalog.texts import format_bytes, format_count, format_duration

# Those that need a word.
_STATES = {
    lag.BEYOND_END: "committed above the end of the log: it was cut or made anew, or this is an "
    "old replica; consumers start again where auto.offset.reset says",
    lag.BELOW_START: "what they would read next is gone (lostOffsets); consumers start again "
    "where auto.offset.reset says",
    lag.NO_LOG: "no log dir here has the partition: give those of the brokers that have it",
    lag.NO_COMMIT: "a member was given the partition, and nothing is committed",
}
_FINDINGS = (lag.BEYOND_END, lag.BELOW_START)
_MOST_NAMES = 20
# Where all columns are too wide.
_CHOSEN = ("group", "topic", "partition", "lag", "time", "bytes", "state", "lost", "committed")


def run(args: argparse.Namespace) -> ExitCode:
    """Print the lag; FINDINGS if a group is outside of a log, or something could not be read."""
    if args.zk_root is not None and not args.zookeeper_dir:
        raise UsageError("--zk-root is for --zookeeper-dir")
    started = time.monotonic()
    options = FunctionOptions(
        mode=ReadMode.DROPMALFORMED, zookeeper_dir=tuple(args.zookeeper_dir), zk_root=args.zk_root
    )
    reads = SharedReads(args.log_dir, options)
    if not args.zookeeper_dir and not live_partitions(reads.inventory, OFFSETS_TOPIC):
        raise InvalidConfigError(
            f"no partition of {OFFSETS_TOPIC} here, which has what groups have committed: give the "
            "log dirs of the brokers that have it"
        )
    state = reads.offsets_topic
    commits, members = commits_in_force(reads), state.members()
    _refuse_unknown(args.group, {*commits["group"].to_pylist(), *members["group"].to_pylist()})
    table = lag.lag(commits, members, reads.inventory, reads.partition_changes, args.group)
    rows = table.to_pylist()
    left_out = [problem.text for problem in problems(unreadable(state.records))]
    if args.redact:
        rows = [row | {"group": redacted_name(row["group"])} for row in rows]
        left_out = [f"a record of {OFFSETS_TOPIC} cannot be read" for _ in left_out]
    if args.json:
        seconds = round(time.monotonic() - started, 3)
        write_json({"seconds": seconds, "partitions": rows, "problems": left_out})
    else:
        _write(rows)
        for line in (*left_out, *_explanations(rows), _summary(rows)):
            say(line)
    has_findings = any(row["state"] in _FINDINGS or row["error"] is not None for row in rows)
    return ExitCode.FINDINGS if has_findings or left_out else ExitCode.DONE


def _refuse_unknown(wanted: Sequence[str], known: set[str]) -> None:
    unknown = sorted(set(wanted) - known)
    if unknown:
        names = sorted(known)
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        raise InvalidConfigError(
            f"no group {', '.join(unknown)} here; there are "
            f"{', '.join(names[:_MOST_NAMES]) or 'none'}{more}"
        )


def _write(rows: Sequence[Mapping[str, Any]]) -> None:
    shown = [
        {
            "group": row["group"],
            "topic": row["topic"],
            "partition": row["partition"],
            "committed": row["committedOffset"],
            "logEnd": row["logEndOffset"],
            "lag": row["lag"],
            "bytes": None if row["lagBytes"] is None else format_bytes(row["lagBytes"]),
            "time": None if row["lagMs"] is None else format_duration(row["lagMs"]),
            "lost": row["lostOffsets"] or None,
            "state": row["state"] + ("" if row["isLeaderHere"] is not False else ", no leader"),
        }
        for row in rows
    ]
    if display().form == CSV:
        show_table(rows)
    elif shown:
        is_lost = any(row["lost"] is not None for row in shown)
        names = [name for name in shown[0] if name != "lost" or is_lost]
        show_table(shown, names, chosen=_CHOSEN)


def _explanations(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    counts = Counter(row["state"] for row in rows)
    for state, text in _STATES.items():
        if counts[state]:
            yield f"{state} ({counts[state]}): {text}"
    elsewhere = sum(row["isLeaderHere"] is False for row in rows)
    if elsewhere:
        yield (
            f"no leader ({elsewhere}): the replica here is not the leader's, whose log may end "
            "elsewhere"
        )
    for row in rows:
        if row["error"] is not None:
            yield f"{row['topic']}-{row['partition']}: {row['error']}"


def _summary(rows: Sequence[Mapping[str, Any]]) -> str:
    groups = len({row["group"] for row in rows})
    behind = [row for row in rows if (row["lag"] or 0) > 0]
    records = sum(row["lag"] for row in behind)
    size = format_bytes(sum(row["lagBytes"] or 0 for row in behind))
    longest = max((row["lagMs"] for row in behind if row["lagMs"] is not None), default=None)
    time_behind = "" if longest is None else f", {format_duration(longest)} at most"
    return (
        f"{format_count(groups, 'group')}, {format_count(len(rows), 'partition')}, "
        f"{len(behind)} of them behind: {format_count(records, 'record')},"
        f" {size}{time_behind}"
    )
