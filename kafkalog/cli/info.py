"""`kafkalog info DIR…`: what this is, on one screen, in a second."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from textwrap import wrap

from kafkalog.cli.display import CSV, coloured, display, shown_time
from kafkalog.cli.output import ExitCode, say_nothing, write_json, write_lines
from kafkalog.cli.tables import show_table
from kafkalog.clock import now_ms
from kafkalog.format.redaction import redacted_name
from kafkalog.overview.disk import LogDir
from kafkalog.overview.document import overview_document
from kafkalog.overview.groups import GroupLag, Groups
from kafkalog.overview.overview import Life, Overview, Topic, read_overview
from kafkalog.texts import format_bytes, format_count

_CHOSEN = ("topic", "size", "policy", "partitions", "newest record", "codec", "segments")
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
    elif display().form == CSV or display().columns:
        topics = overview_document(overview, 0.0)["topics"]
        show_table(topics, chosen=("topic", "bytes", "cleanupPolicy", "partitions"))
    else:
        _write(overview)
    is_well = not any(notice.severity.is_failure for notice in overview.notices)
    return ExitCode.DONE if is_well else ExitCode.FINDINGS


def _write(overview: Overview) -> None:
    _say([*_head(overview), *_log_dirs(overview)])
    own = [topic for topic in overview.topics if not topic.is_internal]
    internal = [topic for topic in overview.topics if topic.is_internal]
    if own:
        write_lines([""])
        rows = [_topic(topic) for topic in own[:_MOST_TOPICS]]
        show_table(rows, chosen=_CHOSEN, tell=say_nothing)
    left = own[_MOST_TOPICS:]
    if left:
        size = format_bytes(sum(topic.bytes for topic in left))
        _say([f"and {len(left)} smaller topics of {size}"])
    if internal:
        named = (f"{t.name} {format_bytes(t.bytes)} ({t.partitions})" for t in internal)
        _say(["", f"internal: {', '.join(named)}"])
    _say([*_groups(overview.groups), "", *_findings(overview)])


def _say(lines: Iterable[str]) -> None:
    """Lines that fit the terminal; a command to copy stays in one."""
    width = display().width
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        is_whole = width is None or line.startswith(f"{indent}kafkalog ")
        more = f"{indent}  "
        write_lines([line] if is_whole else wrap(line, width or 0, subsequent_indent=more) or [""])


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
        f"{format_count(len(overview.topics), 'topic')}, {format_count(len(live), 'partition')}, "
        f"{format_count(segments, 'segment')}, {size}"
        + (", tiered storage" if overview.is_tiered else "")
    )
    if overview.oldest_ms >= 0:
        span = f"{shown_time(overview.oldest_ms)} to {shown_time(overview.newest_ms)}"
        seen = f"{overview.heads_count} of {format_count(overview.with_data_count, 'partition')}"
        yield f"records from {span} at least (seen at the ends of {seen} with records)"
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
    when = shown_time(life.alive_ms) if life.alive_ms else "at a time nothing tells"
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
        "newest record": "-" if topic.newest_ms < 0 else shown_time(topic.newest_ms),
    }


def _groups(groups: Groups) -> Iterator[str]:
    if not groups.total_bytes:
        return
    yield ""
    own = groups.groups
    if not own:
        yield "groups: none" if groups.is_whole else "groups: kafkalog lag reads them"
        yield from _unread_commits(groups)
        return
    shown = ", ".join(map(_lag, own[:_MOST_GROUPS]))
    more = f" and {len(own) - _MOST_GROUPS} more" if len(own) > _MOST_GROUPS else ""
    yield f"{format_count(len(own), 'group')}, records behind: {shown}{more}"
    if groups.read_bytes < groups.total_bytes:
        read, total = format_bytes(groups.read_bytes), format_bytes(groups.total_bytes)
        yield f"  seen in the last {read} of {total} of commits; kafkalog lag reads all"
    yield from _unread_commits(groups)


def _unread_commits(groups: Groups) -> Iterator[str]:
    for problem in groups.problems[:1]:
        more = f", and {len(groups.problems) - 1} more" if len(groups.problems) > 1 else ""
        yield f"  without the commits behind {problem}{more}; kafkalog lag reads all"


def _lag(own: GroupLag) -> str:
    if not own.partitions:  # a share group, or one whose members never committed
        return f"{own.group} - (nothing committed)"
    elsewhere = f" (+{own.unknown} partitions elsewhere)" if own.unknown else ""
    return f"{own.group} {own.lag}{elsewhere}"


def _findings(overview: Overview) -> Iterator[str]:
    found = overview.notices
    if not found:
        yield "nothing stands out; kafkalog verify reads everything"
        return
    yield "look here first:"
    for notice in found[:_MOST_FINDINGS]:
        yield f"  {coloured(str(notice.severity), str(notice.severity))} {notice.id}: {notice.text}"
        yield f"    {notice.command}"
    if len(found) > _MOST_FINDINGS:
        yield f"  and {len(found) - _MOST_FINDINGS} more (--json has them)"
