"""The log dirs and partitions of a run: which segments are to be read, and whose they are."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.given_log_dir import GivenLogDir
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.segment import segment_task
from kafkalog.checking.segment_report import SegmentTask
from kafkalog.errors import RemoteStorageError
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.listing import is_directory, path_text
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.remote_segments import Note, with_remote_segments
from kafkalog.log.remote_tree import open_logs
from kafkalog.log.selection import asked_for, select_partitions
from kafkalog.planning.config_sources import GivenSettings
from kafkalog.planning.log_config import LogConfig
from kafkalog.remote.paths import RemoteStorage
from kafkalog.remote.stores import bucket_uri, local_path
from kafkalog.requests.run_settings import RunSettings
from kafkalog.runs.run_dir import check_run_dir


@dataclass(slots=True)
class Opened:
    """The partitions with their tasks, in the inventory's order; `whole`: the log dirs that were
    asked for as such.
    """

    inventory: LogInventory
    whole: list[GivenLogDir]
    partitions: list[PartitionInventory]
    settings: RunSettings
    tasks: dict[str, list[SegmentTask]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def open_for_checks(request: VerifyRequest) -> Opened:
    """All that a run looks at. InvalidConfigError for paths and partitions that do not exist."""
    findings: list[Finding] = []
    inventory = open_logs(
        request.log_dirs,
        request.remote,
        accepts=asked_for(request.topics, request.topic_partitions),
        note=_noting(findings),
    )
    chosen = select_partitions(inventory, request.topics, request.topic_partitions)
    # A directory that waits for its deletion is nobody's any more.
    partitions = [p for p in chosen if p.kind is not PartitionKind.DELETE]
    log_dirs = {partition.log_dir for partition in inventory}
    check_run_dir(request.run_path, log_dirs)
    no_settings = GivenSettings(LogConfig.from_overrides([], is_partial=True))
    whole = [] if request.remote.is_tree else _whole_log_dirs(request, inventory)
    settings = RunSettings(
        no_settings, {*log_dirs, *map(path_text, whole)},
        force_differs=False, kafka_version=None, zookeeper=request.zookeeper,
    )  # fmt: skip
    given = [GivenLogDir(read_log_dir_files(p), settings.cluster_of(path_text(p))) for p in whole]
    opened = Opened(inventory, given, partitions, settings, findings=findings)
    if request.remote.places:
        opened.partitions = partitions = _with_remote(opened, request.remote)
    for partition in partitions:
        tasks = []
        for segment in partition.segments:
            try:
                tasks.append(segment_task(segment, request.max_batch_bytes))
            except OSError as error:
                found = FindingList(segment.path, segment.base_offset)
                found.add("unreadable", error.strerror or str(error))
                opened.findings += placed(partition, found.findings())
        opened.tasks[partition.path] = tasks
    return opened


def _with_remote(opened: Opened, remote: RemoteStorage) -> list[PartitionInventory]:
    # Late: it brings pyarrow, a tenth of the start and 24 MiB, which nobody else here needs.
    from kafkalog.reading.remote_log_events import copy_states

    states = copy_states(opened.inventory)
    note = _noting(opened.findings)
    return with_remote_segments(opened.partitions, remote, states, note=note)


def _noting(findings: list[Finding]) -> Note:
    """Segments in remote storage that cannot be read are findings."""

    def note(partition: PartitionInventory, error: RemoteStorageError) -> None:
        found = FindingList(error.path or partition.path)
        found.add("unreadable", error.reason, position=error.position)
        findings.extend(placed(partition, found.findings()))

    return note


def _whole_log_dirs(request: VerifyRequest, inventory: LogInventory) -> list[Path]:
    """The log dirs that were named, not the partitions and files."""
    partitions = {partition.path for partition in inventory}
    found = set()
    for name in map(local_path, request.log_dirs):
        if bucket_uri(name) is None:
            named = map(Path, glob.glob(name) or [name])  # noqa: PTH207 - it may be absolute
            found |= {path.resolve() for path in named if path.is_dir()}
        elif is_directory(name):
            found.add(Path(name))
    return sorted(path for path in found if path_text(path) not in partitions)


def placed(partition: PartitionInventory, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings about files of a partition, with its name."""
    name = partition.topic_partition
    for finding in findings:
        yield replace(
            finding, log_dir=partition.log_dir, topic=name.topic, partition=name.partition
        )
