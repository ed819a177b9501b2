"""A look at remote storage: list it, judge each segment by what the cluster knows, look at those
that are wanted.

The command line and Spark do the same and differ in how tasks become results (`Executor`). Nothing
is changed anywhere and no lock is taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from kafkalog.bucket.finding import BucketFinding
from kafkalog.bucket.judgement import Deletion, Judge, Judgement
from kafkalog.bucket.kept_looks import keeping, read_kept
from kafkalog.bucket.knowledge import ClusterKnowledge, read_knowledge
from kafkalog.bucket.look import LookResult, LookTask
from kafkalog.bucket.overdue import check_retention
from kafkalog.bucket.ranges import check_ranges, local_log
from kafkalog.bucket.request import BucketRequest
from kafkalog.checking.finding_kind import Severity
from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.selection import refuse_missing
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.config_sources import GivenSettings
from kafkalog.planning.log_config import LogConfig
from kafkalog.reading.remote_copies import SegmentCopy
from kafkalog.remote.layouts import find_directories
from kafkalog.remote.stored_segments import StoredSegment, stored_segments
from kafkalog.requests.run_settings import RunSettings
from kafkalog.runs.run_dir import check_run_dir, new_run_id

Executor = Callable[[Sequence[LookTask]], Iterable[LookResult]]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BucketRun:
    """What a run found. segments: all of the storage that were asked for; run_id: of a deep look
    that is kept, else None; looked: results of the segments that were wanted."""

    request: BucketRequest
    known: ClusterKnowledge
    segments: tuple[StoredSegment, ...]
    findings: tuple[BucketFinding, ...]
    deletions: tuple[Deletion, ...]
    looked: tuple[LookResult, ...]
    run_id: str | None = None

    @property
    def has_failures(self) -> bool:
        """Whether anything was found that is more than information."""
        return any(finding.severity.is_failure for finding in self.findings)

    @property
    def bytes_read(self) -> int:
        """Of `.log` objects, by a deep look."""
        return sum(r.task.size_in_bytes for r in self.looked if r.report and not r.is_carried)


def bucket_run(request: BucketRequest, execute: Executor, tell: Tell) -> BucketRun:
    """Look at what is asked for.

    InvalidConfigError for log dirs and remote storage that do not exist, log dirs of two clusters,
    a layout that is not read, topics that neither has, and a run that is not there.
    """
    if not request.remote.places:
        raise InvalidConfigError("--remote-dir is needed: the remote storage to look at")
    inventory = open_log_dir(*request.log_dirs, reads_buckets=False)
    check_run_dir(request.run_path, {partition.log_dir for partition in inventory})
    earlier = read_kept(request.run_path, request.since) if request.since is not None else {}
    known = read_knowledge(inventory, request.max_batch_bytes)
    everything = stored_segments(
        directory
        for place in request.remote.places
        for directory in find_directories(place, request.remote.layout)
    )
    _check_names(request, everything, known)
    segments = [s for s in everything if _is_wanted(request, s, known)]
    judge = Judge(known, request.now_ms, request.min_age_ms)
    judged = judge.judge(segments)
    findings = [*judged.findings, *_of_copies(request, judge, segments, inventory)]
    tasks = [
        LookTask(
            segment,
            path := segment.log_path(request.remote.keys),
            judge.place_of(segment),
            copy,
            request.is_deep,
            earlier.get(path),
            request.max_batch_bytes,
        )
        for segment, copy in judged.wanted
    ]
    looked, run_id = _looked(request, tasks, execute, tell)
    findings += [finding for result in looked for finding in result.findings]
    findings += _closed(looked)
    return BucketRun(
        request,
        known,
        tuple(segments),
        tuple(sorted(findings, key=lambda finding: finding.order)),
        _in_order(judged),
        tuple(looked),
        run_id,
    )


def _looked(
    request: BucketRequest, tasks: list[LookTask], execute: Executor, tell: Tell
) -> tuple[list[LookResult], str | None]:
    """The results, and the id of the run that keeps those of a deep look."""
    run_id = new_run_id() if request.is_deep else None
    options = {
        "logDirs": list(request.log_dirs),
        "remoteDirs": list(request.remote.places),
        "topics": list(request.topics),
        "since": request.since,
    }
    looked = []
    with (
        nullcontext(None) if run_id is None else keeping(request.run_path, run_id, options) as keep
    ):
        if run_id is not None:
            tell(f"run {run_id}: cut off, --deep --since {run_id} goes on with it")
        for result in execute(tasks):
            if keep is not None and result.report is not None:
                keep(result.report)
            looked.append(result)
    return sorted(looked, key=lambda result: str(result.task.path)), run_id


def _is_wanted(request: BucketRequest, segment: StoredSegment, known: ClusterKnowledge) -> bool:
    topic = known.had.get(segment.topic_id or "", segment.name)
    return request.wants(topic, segment.partition)


def _check_names(
    request: BucketRequest, segments: Iterable[StoredSegment], known: ClusterKnowledge
) -> None:
    there = {*known.had.values(), *(segment.name for segment in segments)}
    # Of a topic that is known any partition may be asked for.
    asked = [name for name in request.topic_partitions if name.topic in there]
    known_names = [*(TopicPartition(topic, 0) for topic in there), *asked]
    where = "neither in the storage nor known"
    refuse_missing(request.topics, request.topic_partitions, known_names, where)


def _in_order(judged: Judgement) -> tuple[Deletion, ...]:
    return tuple(
        sorted(
            judged.deletions,
            key=lambda d: (d.topic, d.segment.partition, d.segment.base_offset, d.segment.place),
        )
    )


def _closed(looked: Iterable[LookResult]) -> Iterator[BucketFinding]:
    """Where no key was given, once for each id."""
    by_key: dict[str, list[LookResult]] = defaultdict(list)
    for result in looked:
        if result.closed_by is not None:
            by_key[result.closed_by].append(result)
    for key_id, own in sorted(by_key.items()):
        first = own[0].task
        yield BucketFinding(
            "key-unreadable",
            # Who asks for a deep look and gives no key has not got what was asked for.
            Severity.ERROR if first.is_deep else Severity.INFO,
            f"encrypted with key {key_id!r}, and no key was given: not opened",
            first.segment.place,
            first.place.topic,
            segments=len(own),
            size_in_bytes=sum(result.task.segment.size_in_bytes for result in own),
        )


# -- what the copies say by themselves -------------------------------------------------------------


def _of_copies(
    request: BucketRequest,
    judge: Judge,
    segments: Iterable[StoredSegment],
    inventory: LogInventory,
) -> Iterator[BucketFinding]:
    """Finished copies of which nothing is there; gaps, overlaps, and what is overdue."""
    known = judge.known
    there = {segment.segment_id for segment in segments}
    copies: dict[tuple[str, int], list[SegmentCopy]] = defaultdict(list)
    for copy in known.copies.values():
        _, why = known.metadata_of(copy.topic_id, copy.partition)
        is_gone, _ = known.gone_since(copy.topic_id)
        if not why and not is_gone and request.wants(copy.topic, copy.partition):
            copies[copy.topic_id, copy.partition].append(copy)
    replicas: dict[tuple[str, int], list[PartitionInventory]] = defaultdict(list)
    for partition in inventory:
        if partition.kind is PartitionKind.LIVE and partition.topic_id is not None:
            key = partition.topic_id, partition.topic_partition.partition
            replicas[key].append(partition)
    settings = _settings(request, inventory)
    for key, own in sorted(copies.items()):
        yield from _not_there(own, there)
        yield from _of_partition(request, own, replicas.get(key, []), settings)


def _not_there(own: Iterable[SegmentCopy], there: set[str | None]) -> Iterator[BucketFinding]:
    for copy in own:
        if copy.is_finished and copy.segment_id not in there:
            yield BucketFinding(
                "object-missing",
                Severity.ERROR,
                f"none of its objects is there; offsets {copy.start_offset} to {copy.end_offset}",
                f"{copy.topic}-{copy.partition}",
                copy.topic,
                copy.partition,
                copy.topic_id,
                copy.segment_id,
                copy.start_offset,
                size_in_bytes=max(copy.size_in_bytes, 0),
            )


def _settings(request: BucketRequest, inventory: LogInventory) -> RunSettings:
    given = GivenSettings(
        LogConfig.from_overrides([], is_partial=True), server_properties=request.server_properties
    )
    log_dirs = [partition.log_dir for partition in inventory]
    return RunSettings(given, log_dirs, force_differs=False, kafka_version=None)


def _of_partition(
    request: BucketRequest,
    own: Sequence[SegmentCopy],
    replicas: Sequence[PartitionInventory],
    settings: RunSettings,
) -> Iterator[BucketFinding]:
    local = local_log(replicas) if replicas else None
    yield from check_ranges(own, local, own[0].topic)
    if local is None:
        return
    resolved = settings.resolve(replicas[0])
    if resolved.refusal is not None or resolved.unreliable is not None:
        return
    overdue = check_retention(
        own,
        local,
        resolved.config,
        due_before_ms=request.now_ms - request.min_age_ms,
        is_default_known=request.server_properties is not None,
    )
    if overdue is not None:
        yield overdue
