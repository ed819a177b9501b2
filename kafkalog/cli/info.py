"""`kafkalog info DIR…`: what this is, on one screen, in a second."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

from kafkalog.cli.output import ExitCode, write_json, write_lines, write_table
from kafkalog.clock import now_ms
from kafkalog.format.redaction import redacted_name
from kafkalog.overview.disk import LogDir
from kafkalog.overview.document import overview_document
from kafkalog.overview.groups import Groups
from kafkalog.overview.overview import Life, Overview, Topic, read_overview
from kafkalog.texts import format_bytes, format_time

_MOST_TOPICS, _MOST_GROUPS, _MOST_FINDINGS, _MOST_LOG_DIRS = 8, 4, 3, 4


def run(args: argparse.Namespace) -> ExitCode:
    """Print the overview; FINDINGS if there is an error or a warning among what to look at."""
    started = time.monotonic()
    overview = read_overview(args.log_dir, now_ms() if args.now is None else args.now)
    if args.redact:
        overview.groups.groups = [
            group.named(redacted_name(group.group)) for group in overview.groups.groups
        ]
    if args.json:
        write_json(overview_document(overview, time.monotonic() - started))
    else:
        _write(overview)
    is_well = not any(notice.is_failure for notice in overview.notices)
    return ExitCode.DONE if is_well else ExitCode.FINDINGS


def _write(overview: Overview) -> None:
    write_lines(list(_head(overview)))
    write_lines(list(_log_dirs(overview)))
    own = [topic for topic in overview.topics if not topic.is_internal]
    internal = [topic for topic in overview.topics if topic.is_internal]
    if own:
        write_lines([""])
        write_table(list(_topic(own[0])), [_topic(topic) for topic in own[:_MOST_TOPICS]])
    left = own[_MOST_TOPICS:]
    if left:
        size = format_bytes(sum(topic.bytes for topic in left))
        write_lines([f"and {len(left)} smaller topics of {size}"])
    if internal:
        named = (f"{t.name} {format_bytes(t.bytes)} ({t.partitions})" for t in internal)
        write_lines(["", f"internal: {', '.join(named)}"])
    write_lines(list(_groups(overview.groups, overview.log_dirs)))
    write_lines(["", *_findings(overview)])


def _head(overview: Overview) -> Iterator[str]:
    era = overview.era
    why = "; ".join(era.evidence[:2])
    yield f"Kafka {era.text}, {era.mode}" + (f" ({why})" if why else "")
    nodes = dict.fromkeys(
        (d.meta.cluster_id or "without an id", d.meta.node_id)
        for d in overview.log_dirs
        if d.meta is not None
    )
    for cluster_id, node_id in nodes:
        node = "without an id" if node_id is None else node_id
        yield f"cluster {cluster_id}, node {node}"
    if not nodes:
        yield "no meta.properties that can be read: of which cluster and node is not known"
    live = [p for p in overview.partitions if p.is_live]
    segments = sum(partition.segments for partition in live)
    size = format_bytes(sum(partition.log_bytes for partition in live))
    yield (
        f"{len(overview.topics)} topics, {len(live)} partitions, {segments} segments, {size}"
        + (", tiered storage" if overview.is_tiered else "")
    )
    if overview.oldest_ms >= 0:
        of = "" if overview.has_all_heads else f" (of the {overview.heads_count} largest)"
        span = f"{format_time(overview.oldest_ms)} to {format_time(overview.newest_ms)}"
        yield f"records from {span}{of}"
    if overview.cluster is not None and overview.cluster.problem is not None:
        yield f"settings are not known: {overview.cluster.problem}"


def _log_dirs(overview: Overview) -> Iterator[str]:
    pairs = list(zip(overview.log_dirs, overview.lives, strict=True))
    for log_dir, life in pairs[:_MOST_LOG_DIRS]:
        yield f"{log_dir.path}: {_space(log_dir)}"
        yield f"  {_life(log_dir, life)}"
    if len(pairs) > _MOST_LOG_DIRS:
        yield f"and {len(pairs) - _MOST_LOG_DIRS} more log dirs (--json has them)"


def _space(log_dir: LogDir) -> str:
    text = f"{format_bytes(log_dir.log_bytes)} of logs"
    if log_dir.space is None:
        return text
    return f"{text}, {format_bytes(log_dir.space.free)} of {format_bytes(log_dir.space.total)} free"


def _life(log_dir: LogDir, life: Life) -> str:
    when = format_time(life.alive_ms) if life.alive_ms else "at a time nothing tells"
    if log_dir.locked_by is not None:
        process = f" (process {log_dir.locked_by})" if log_dir.locked_by else ""
        return f"a broker runs on it now{process}"
    how = "stopped in order" if log_dir.is_clean_stop else "not stopped in order"
    if not log_dir.is_clean_stop and not log_dir.has_broker_logs:
        how = "a controller's, or empty: nothing tells how it was stopped"
    copied = ", files have the times of a copy" if life.is_copied else ""
    return f"{how}; last alive {when}{copied}"


def _topic(topic: Topic) -> dict[str, object]:
    policy = topic.policy or "?"
    return {
        "topic": topic.name,
        "partitions": topic.partitions,
        "segments": topic.segments,
        "size": format_bytes(topic.bytes),
        "policy": f"{policy}, tiered" if topic.is_tiered else policy,
        "codec": ",".join(topic.codecs) or "-",
        "newest record": "-" if topic.newest_ms < 0 else format_time(topic.newest_ms),
    }


def _groups(groups: Groups, log_dirs: Sequence[LogDir]) -> Iterator[str]:
    if not groups.total_bytes:
        return
    yield ""
    own = groups.groups
    if not own:
        yield "groups: none" if groups.is_whole else "groups: kafkalog lag reads them"
        return
    shown = ", ".join(_lag(g.group, g.lag, g.unknown) for g in own[:_MOST_GROUPS])
    more = f" and {len(own) - _MOST_GROUPS} more" if len(own) > _MOST_GROUPS else ""
    yield f"{len(own)} groups, records behind: {shown}{more}"
    if not groups.is_whole:
        read, total = format_bytes(groups.read_bytes), format_bytes(groups.total_bytes)
        yield f"  seen in the last {read} of {total} of commits; kafkalog lag reads all"


def _lag(group: str, lag: int, unknown: int) -> str:
    return f"{group} {lag}" + (f" (+{unknown} partitions elsewhere)" if unknown else "")


def _findings(overview: Overview) -> Iterator[str]:
    found = overview.notices
    if not found:
        yield "nothing stands out; kafkalog verify reads everything"
        return
    yield "look here first:"
    for notice in found[:_MOST_FINDINGS]:
        yield f"  {notice.severity} {notice.id}: {notice.text}"
        yield f"    {notice.command}"
    if len(found) > _MOST_FINDINGS:
        yield f"  and {len(found) - _MOST_FINDINGS} more (--json has them)"
