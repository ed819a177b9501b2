"""What is worth a look first, by names, sizes and small files alone. Each has the id that `verify`
and `audit` give it, and the command that tells more.

What a broker does about it, and what to do, is in the tables of those ids; nothing is read here
that the rest of the overview has not read.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kafkalog.auditing.audit_kinds import ALL_KINDS
from kafkalog.auditing.thresholds import MANY_SEGMENTS, SMALL_SEGMENT_BYTES
from kafkalog.checking.checkpoint_problems import checkpoint_severity
from kafkalog.checking.finding_kind import Severity
from kafkalog.format.file_names import OF_KAFKA_0_7
from kafkalog.format.meta_properties import is_kraft
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC
from kafkalog.log.metadata_names import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.log.topic_partition import PartitionKind
from kafkalog.overview.cluster import Cluster
from kafkalog.overview.disk import LogDir, Partition
from kafkalog.overview.heads import Head

# A broker takes a log dir offline at the first write that fails.
_FULL_SHARE = 0.05
_MOST_NAMES = 3
SPACE_SHORT = "space-short"


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to look at: an id of the tables (or SPACE_SHORT), what was seen, the log dir, and
    the command to read on.
    """

    id: str
    severity: Severity
    text: str
    log_dir: str
    command: str


@dataclass(frozen=True, slots=True)
class Batches:
    """What the batches that were looked at tell. ahead, in_seconds: partitions with records of the
    future, and with times of seconds, where that matters. heads: by a partition's path. commits:
    damage that was met in the offsets topic.
    """

    ahead: Sequence[Partition] = ()
    in_seconds: Sequence[Partition] = ()
    heads: Mapping[str, Head] = field(default_factory=dict)
    commits: Sequence[str] = ()


def find(log_dirs: Sequence[LogDir], cluster: Cluster | None, batches: Batches) -> list[Notice]:
    """All there is, the gravest first."""
    found: list[Notice] = []
    for log_dir in log_dirs:
        found += _of_root(log_dir, log_dirs)
        found += _of_partitions(log_dir, cluster)
        found += _of_segments(log_dir, batches)
        found += _of_space(log_dir)
        for kind, those, text in (
            ("future-timestamp", batches.ahead, "records of the future"),
            ("second-timestamps", batches.in_seconds, "times of seconds, which as ms are of 1970"),
        ):
            own = [p for p in those if p.is_live and Path(p.path).parent == log_dir.path]
            found += _about(own, kind, text, log_dir, "audit")
    found += _across(log_dirs)
    if cluster is not None and cluster.problem is not None and not cluster.is_too_large:
        place = next(d for d in log_dirs if (d.path / METADATA_DIR).is_dir())
        found.append(_notice("metadata-unreadable", cluster.problem, place, "verify"))
    return sorted(found, key=lambda notice: notice.severity.rank)


def _notice(kind: str, text: str, log_dir: LogDir, verb: str) -> Notice:
    command = f"kafkalog {verb} {shlex.quote(str(log_dir.path))}"
    severity = ALL_KINDS[kind].severity if kind in ALL_KINDS else Severity.WARNING
    return Notice(kind, severity, text, str(log_dir.path), command)


def _of_root(log_dir: LogDir, log_dirs: Sequence[LogDir]) -> Iterator[Notice]:
    if not log_dir.is_whole:
        return
    own = [name for name in (METADATA_DIR, BOOTSTRAP_FILE) if (log_dir.path / name).exists()]
    if not log_dir.files.has_meta_file and (own or any(is_kraft(each.meta) for each in log_dirs)):
        why = f"{' and '.join(own)} there" if own else "another log dir is of a KRaft node"
        yield _notice("meta-properties-missing", why, log_dir, "verify")
    if log_dir.foreign:
        text = f"{_named(log_dir.foreign)}: no name of a partition, a broker refuses to start"
        yield _notice("foreign-directory", text, log_dir, "verify")
    for problem in log_dir.files.problems:
        found = _notice("checkpoint-unreadable", _short(problem, log_dir.path), log_dir, "verify")
        path, _, text = problem.partition(": ")
        yield replace(found, severity=checkpoint_severity(path, text) or found.severity)
    for problem in log_dir.problems[len(log_dir.files.problems) :]:
        yield _notice("unreadable", _short(problem, log_dir.path), log_dir, "verify")
    if log_dir.has_broker_logs and not log_dir.is_clean_stop and log_dir.locked_by is None:
        text = "no .kafka_cleanshutdown: it runs, was killed, or was copied while it ran"
        yield _notice("not-stopped-in-order", text, log_dir, "recover")


def _of_segments(log_dir: LogDir, batches: Batches) -> Iterator[Notice]:
    """Segments that cannot be read, and bytes in them that are no batch."""
    heads = [batches.heads[p.path] for p in log_dir.partitions if p.path in batches.heads]
    # A start after a crash cuts off what is damaged at the end of a log.
    is_cut = log_dir.has_broker_logs and not log_dir.is_clean_stop
    damaged = [head.damage or (None if is_cut else head.active_damage) for head in heads]
    own = [text for text in batches.commits if text.startswith(f"{log_dir.path}/")]
    for kind, found in (
        ("unreadable", [head.problem for head in heads]),
        ("batch-unreadable", damaged),
        ("crc-mismatch", own),
    ):
        problems = [text for text in found if text is not None]
        if problems:
            more = f", and of {len(problems) - 1} more partitions" if len(problems) > 1 else ""
            yield _notice(kind, _short(problems[0], log_dir.path) + more, log_dir, "verify")


def _short(problem: str, log_dir: Path) -> str:
    return problem.replace(f"{log_dir}/", "")


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _of_partitions(log_dir: LogDir, cluster: Cluster | None) -> Iterator[Notice]:
    live = [p for p in log_dir.partitions if p.is_live]
    counted = Counter(p.name.topic_partition for p in live)
    twice = [str(name) for name, count in counted.items() if count > 1]
    if twice:
        yield _notice("partition-twice", f"{_named(twice)} in two directories", log_dir, "verify")
    old = [p for p in live if p.has_kafka_0_7 and not p.segments]
    yield from _about(old, "format-not-read", OF_KAFKA_0_7, log_dir, "verify")
    if cluster is not None and cluster.problem is None and is_kraft(log_dir.meta):
        known = {CLUSTER_METADATA_TOPIC, *cluster.topics}
        gone = [p for p in live if p.topic not in known]
        text = "of no topic of the cluster, a start renames it to -stray"
        yield from _about(gone, "not-assigned", text, log_dir, "verify")
    left = {".swap": "swap-left", ".cleaned": "cleaned-left"}
    if not log_dir.is_clean_stop:  # else a start leaves them as they are
        left[".deleted"] = "deleted-left"
    for ending, kind in left.items():
        having = [p for p in live if p.left and p.left.get(ending)]
        text = f"{ending} files of what was interrupted"
        yield from _about(having, kind, text, log_dir, "recover")
    strays = [p for p in log_dir.partitions if p.name.kind is PartitionKind.STRAY]
    yield from _about(strays, "stray-replica", "of no topic of the cluster", log_dir, "audit")
    tiny = [
        p for p in live
        if p.segments > MANY_SEGMENTS and p.log_bytes < p.segments * SMALL_SEGMENT_BYTES
    ]  # fmt: skip
    text = f"more than {MANY_SEGMENTS} segments, below 1 MiB on average"
    yield from _about(tiny, "many-small-segments", text, log_dir, "audit")


def _about(
    partitions: Sequence[Partition], kind: str, text: str, log_dir: LogDir, verb: str
) -> Iterator[Notice]:
    if partitions:
        names = [Path(partition.path).name for partition in partitions]
        yield _notice(kind, f"{_named(names)}: {text}", log_dir, verb)


def _of_space(log_dir: LogDir) -> Iterator[Notice]:
    space = log_dir.space
    if space is not None and space.total and space.free < space.total * _FULL_SHARE:
        share = space.free / space.total
        text = f"{share:.1%} of its disk are free; a broker stops at the first failed write"
        yield _notice(SPACE_SHORT, text, log_dir, "audit")


def _across(log_dirs: Sequence[LogDir]) -> Iterator[Notice]:
    by_directory: dict[tuple[object, ...], list[LogDir]] = defaultdict(list)
    by_node: dict[tuple[object, ...], list[LogDir]] = defaultdict(list)
    for log_dir in log_dirs:
        if log_dir.meta is not None:
            if log_dir.meta.directory_id is not None:
                by_directory[log_dir.meta.cluster_id, log_dir.meta.directory_id].append(log_dir)
            by_node[log_dir.meta.cluster_id, log_dir.meta.node_id].append(log_dir)
    for same in by_directory.values():
        if len(same) > 1:
            text = f"{same[0].path} has the same directory id"
            yield _notice("directory-id-twice", text, same[1], "verify")
    for own in by_node.values():
        yield from _twice_on_node(own)
        yield from _no_metadata(own)


def _twice_on_node(own: Sequence[LogDir]) -> Iterator[Notice]:
    places: dict[object, LogDir] = {}
    for log_dir in own:
        for partition in log_dir.partitions:
            if partition.is_live:
                name = partition.name.topic_partition
                other = places.setdefault(name, log_dir)
                if other is not log_dir and name.topic != CLUSTER_METADATA_TOPIC:
                    text = f"{name} in {other.path} as well"
                    yield _notice("partition-twice", text, log_dir, "verify")
                    return


def _no_metadata(own: Sequence[LogDir]) -> Iterator[Notice]:
    is_told = any((log_dir.path / METADATA_DIR).is_dir() for log_dir in own)
    whole = [d for d in own if d.is_whole and is_kraft(d.meta) and d.partitions]
    if whole and not is_told:
        text = "no log dir that is given has __cluster_metadata-0: give all of the node"
        yield _notice("metadata-log-missing", text, whole[0], "verify")
