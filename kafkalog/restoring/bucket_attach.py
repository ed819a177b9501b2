"""A fresh cluster over the segments of a bucket, nothing copied: `attach BUCKET --into LOGDIR`.

First the partition directories of all nodes (`bucket_stubs`), then, log dir by log dir, the
checkpoints and `bootstrap.checkpoint` with the topics under their old ids: a node that starts
before its own has them knows of no topic. All of it is new, so `undo` takes it away again.

Source: Kafka RemoteLogManager, TopicBasedRemoteLogMetadataManager, BootstrapDirectory; KIP-405.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kafkalog.errors import LogChangedError, LogCleaningRefusedError
from kafkalog.format.checkpoints import parse_leader_epoch_checkpoint
from kafkalog.format.topics import OFFSETS_TOPIC, REMOTE_LOG_TOPIC
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.messages.metadata_snapshot import pack_metadata_snapshot
from kafkalog.operations.run_steps import Tell, lock_log_dirs
from kafkalog.restoring.attach import AttachRun, is_whole
from kafkalog.restoring.attach_records import check_values, metadata_values, record_counts
from kafkalog.restoring.bucket_cluster import (
    Placement,
    attach_plan,
    known_configs,
    known_partitions,
    made_topic_id,
    metadata_topic_id,
)
from kafkalog.restoring.bucket_copies import Copy, leader_epochs_of, wanted_records
from kafkalog.restoring.bucket_groups import (
    AttachedGroups,
    attached_groups,
    groups_places,
    what_is_lost,
)
from kafkalog.restoring.bucket_old_metadata import open_old
from kafkalog.restoring.bucket_plan import AttachedLog, plan_bucket
from kafkalog.restoring.bucket_reading import read_bucket_copies
from kafkalog.restoring.bucket_request import BucketAttachRequest
from kafkalog.restoring.bucket_stubs import log_dir_places, metadata_places, stub_places
from kafkalog.restoring.fresh import FreshDirs, read_fresh_dirs
from kafkalog.restoring.groups import GroupScript
from kafkalog.restoring.left_metadata import read_left_metadata
from kafkalog.restoring.metadata_place import MetadataPlace
from kafkalog.restoring.place_run import write_places
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.local_files import LocalFiles


@dataclass(frozen=True, slots=True)
class BucketAttachRun:
    """run: what is written, as of any attach. metadata_records: how many each partition of
    `__remote_log_metadata` gets, by_manifests: who tells them; left_out: segments of the bucket
    that count for nothing, and why; groups: whose offsets are in the new `__consumer_offsets`.
    """

    run: AttachRun
    logs: tuple[AttachedLog, ...]
    metadata_records: tuple[int, ...]
    by_manifests: bool
    left_out: tuple[str, ...]
    groups: tuple[GroupScript, ...] = ()


@dataclass(frozen=True, slots=True)
class _Prepared:
    done: BucketAttachRun
    places: tuple[MetadataPlace, ...]


@dataclass(frozen=True, slots=True)
class _Made:
    """values: of the new metadata; records: of each partition of `__remote_log_metadata`."""

    values: Sequence[bytes]
    records: Sequence[Sequence[tuple[int, bytes]]]
    metadata_id: str
    groups: AttachedGroups
    offsets_id: str


def plan_bucket_attach(request: BucketAttachRequest) -> BucketAttachRun:
    """A dry run. InvalidConfigError for what is given wrongly, RemoteStorageError, OSError."""
    with TemporaryDirectory() as work:
        fresh = read_fresh_dirs(request.into)
        return _prepare(request, fresh, new_run_id(), Path(work), writes=False).done


def bucket_attach_run(
    request: BucketAttachRequest, tell: Tell, files: LocalFiles | None = None
) -> BucketAttachRun:
    """Plan and carry out, holding the lock of every log dir; raises as `attach_run`."""
    files, run_id = files or LocalFiles(), new_run_id()
    log_dirs = [each.path for each in read_fresh_dirs(request.into).dirs]
    with lock_log_dirs(log_dirs, []), TemporaryDirectory() as work:
        fresh = read_fresh_dirs(request.into)
        prepared = _prepare(request, fresh, run_id, Path(work), writes=True)
        done = prepared.done
        if done.run.plan.refusals:
            raise LogCleaningRefusedError("; ".join(done.run.plan.refusals))
        results, problems = write_places(
            prepared.places, run_id, log_dirs, request.options, files, tell
        )
        run = replace(
            done.run, applied=True, results=tuple(results), problems=tuple(problems)
        )  # fmt: skip
        if is_whole(run):
            _check_written(log_dirs, done)
    return replace(done, run=run)


def _prepare(
    request: BucketAttachRequest, fresh: FreshDirs, run_id: str, work_dir: Path, *, writes: bool
) -> _Prepared:
    old = open_old(request.metadata_from)
    left = None if old is None else read_left_metadata(old)
    found = read_bucket_copies(request, old, known_partitions(left))
    ids = () if left is None else set(left.ids.values())
    decided = plan_bucket(found, lambda copy: _epochs(copy, request), request.end_transactions, ids)
    records = wanted_records(
        found.records, found.partitions_count, {log.place for log in decided.logs},
        {segment_id for log in decided.logs for segment_id in log.left_out},
    )  # fmt: skip
    placed = Placement(fresh)
    partitions = [*placed.logs(decided.logs, left)]
    metadata_id = metadata_topic_id(fresh, old)
    metadata = [placed.partition(REMOTE_LOG_TOPIC, metadata_id, number, len(own))
                for number, own in enumerate(records)]  # fmt: skip
    groups = attached_groups(request, old, decided.logs, left, work_dir)
    offsets_id = made_topic_id(fresh, OFFSETS_TOPIC)
    offsets = [placed.partition(OFFSETS_TOPIC, offsets_id, each.topic_partition.partition,
                                each.log_end_offset) for each in groups.partitions]  # fmt: skip
    known = known_configs(left, decided.logs)
    plan = attach_plan(
        fresh, decided, [*partitions, *metadata, *offsets], known, groups,
        what_is_lost(request, old),
    )  # fmt: skip
    values = [] if plan.refusals else metadata_values(plan, known, fresh.dirs)
    if values:
        check_values(values, plan)
    run = AttachRun(
        run_id, applied=False, plan=plan, records=record_counts(values), voters=(), moved_aside=(),
        keeps_undo=request.keeps_undo, run_dir=request.run_dir,
    )  # fmt: skip
    done = BucketAttachRun(
        run, decided.logs, tuple(len(own) for own in records), old is None, found.left_out,
        groups.scripts,
    )  # fmt: skip
    if plan.refusals or not writes:
        return _Prepared(done, ())
    made = _Made(values, records, metadata_id, groups, offsets_id)
    return _Prepared(done, tuple(_places(request, fresh, done, made)))


def _places(
    request: BucketAttachRequest, fresh: FreshDirs, done: BucketAttachRun, new: _Made
) -> list[MetadataPlace]:
    replicas = {
        TopicPartition(each.topic, each.partition): each.replicas
        for each in done.run.plan.partitions
    }
    made, ends = metadata_places(new.records, new.metadata_id, replicas)
    offsets, offsets_ends = groups_places(new.groups, new.offsets_id, replicas)
    bootstrap = {
        log_dir: pack_metadata_snapshot([*new.values, *others], request.now_ms)
        for log_dir, others in fresh.others.items()
    }
    log_dirs = [each.path for each in fresh.dirs]
    return [
        *stub_places(done.logs, replicas), *made, *offsets,
        *log_dir_places(log_dirs, done.logs, {**ends, **offsets_ends}, replicas, bootstrap),
    ]  # fmt: skip


def _epochs(copy: Copy, request: BucketAttachRequest) -> list[tuple[int, int]]:
    return parse_leader_epoch_checkpoint(leader_epochs_of(copy, request), copy.stored.place)


def _check_written(log_dirs: Sequence[str], done: BucketAttachRun) -> None:
    """LogChangedError unless a reader of these log dirs finds the plan there."""
    found = {each.path: each for each in open_log_dir(*log_dirs, reads_buckets=False)}
    starts: Mapping[tuple[str, int], int] = {
        (log.topic, log.partition): log.start_offset for log in done.logs
    }
    for each in done.run.plan.partitions:
        for replica in each.replicas:
            if replica.path is None:
                continue
            own = found.get(replica.path)
            start = starts.get((each.topic, each.partition), 0)
            wanted = each.topic_id, replica.end_offset, start
            if own is None or own.problems or wanted != (
                own.topic_id, own.log_end_offset, own.log_start_offset
            ):  # fmt: skip
                what = (
                    "is not there"
                    if own is None
                    else (
                        f"{'; '.join(own.problems)}, offsets {own.log_start_offset} to "
                        f"{own.log_end_offset}"
                    )
                )
                raise LogChangedError(f"read back, it is not as planned: {what}", path=replica.path)
