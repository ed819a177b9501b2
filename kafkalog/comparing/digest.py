"""Digests of the replicas of one host, for `compare` where hosts share no disk.

A task a partition writes its part beside the output, streaming: memory does not grow with the log.
Parts are put behind each other in the order of partitions, so the same logs under the same key make
the same bytes. The output has its name only when all of it is there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from kafkalog.comparing.record_stream import Facts, RecordStream
from kafkalog.comparing.tiered_copies import with_remote_copies
from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.inventory import PartitionKind
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.selection import asked_for, select_partitions
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.remote.paths import NO_REMOTE_STORAGE, RemoteStorage
from kafkalog.replicas import digest_format
from kafkalog.replicas.copies import copies_by_partition
from kafkalog.replicas.digest_facts import facts_to_json
from kafkalog.replicas.hash_key import key_check, read_hash_key
from kafkalog.replicas.replica import Replica, replica_facts

DIGESTED, FAILED = "digested", "failed"


@dataclass(frozen=True, slots=True)
class DigestRequest:
    """What to digest: the options of `digest`. output: the new file; hash_key: a file; remote:
    where the older segments of tiered partitions are."""

    log_dirs: tuple[str, ...]
    output: str
    hash_key: str
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    max_batch_bytes: int = MAX_BATCH_BYTES
    remote: RemoteStorage = NO_REMOTE_STORAGE


@dataclass(frozen=True, slots=True)
class DigestTask:
    """A copy, and where its part of the digest goes."""

    replica: Replica
    part: str
    max_batch_bytes: int
    secret: bytes = field(repr=False)

    @property
    def topic_partition(self) -> TopicPartition:
        """Its name."""
        return self.replica.topic_partition


@dataclass(frozen=True, slots=True)
class DigestedPartition(JsonFacts):
    """How a copy ended: `digested`, or `failed` and not in the digest. size_in_bytes: of its
    log.
    """

    topic_partition: TopicPartition
    path: str
    status: str
    reason: str = ""
    records: int = 0
    size_in_bytes: int = 0
    digest_bytes: int = 0


DigestExecutor = Callable[[Sequence[DigestTask]], Iterable[tuple[DigestTask, DigestedPartition]]]


def digest_run(request: DigestRequest, execute: DigestExecutor) -> list[DigestedPartition]:
    """Write the digest; how each partition ended, in their order.

    InvalidConfigError for paths and partitions that do not exist, a key that is none, and an output
    that is there; OSError as from writing it.
    """
    output, secret = Path(request.output), read_hash_key(request.hash_key)
    if output.exists() or not output.parent.is_dir():
        what = "is there" if output.exists() else "has no directory"
        raise InvalidConfigError(f"--output {output} {what}: a new file is needed")
    everything = open_log_dir(*request.log_dirs)
    chosen = select_partitions(everything, request.topics, request.topic_partitions)
    copies = with_remote_copies(
        copies_by_partition([p for p in chosen if p.kind is PartitionKind.LIVE]),
        everything,
        request.remote,
        is_whole=True,
    )
    replicas = [each for own in copies.values() for each in own if isinstance(each, Replica)]
    is_asked_for = asked_for(request.topics, request.topic_partitions)
    unread = [
        DigestedPartition(each.topic_partition, each.path, FAILED, each.reason)
        for each in everything.unread
        if is_asked_for(each.topic_partition)
    ]
    if not replicas:
        raise InvalidConfigError(
            "; ".join(
                [
                    f"no partition is in {', '.join(request.log_dirs)}",
                    *(f"{each.path}: {each.reason}" for each in unread),
                ]
            )
        )
    tasks = [
        DigestTask(each, f"{output.absolute()}.{n}.tmp", request.max_batch_bytes, secret)
        for n, each in enumerate(replicas)
    ]
    whole = f"{output}.tmp"
    try:
        done = _written(tasks, execute, whole, output, key_check(secret))
    finally:
        for path in (whole, *(task.part for task in tasks)):
            Path(path).unlink(missing_ok=True)
    return sorted([*done, *unread], key=lambda each: each.topic_partition)


def _written(
    tasks: Sequence[DigestTask], execute: DigestExecutor, whole: str, output: Path, check: bytes
) -> list[DigestedPartition]:
    results: list[DigestedPartition] = []
    waiting: dict[str, DigestedPartition] = {}
    with Path(whole).open("xb") as file:
        file.write(digest_format.pack_header(check))
        for task, result in execute(tasks):
            waiting[task.part] = result
            # A part waits for those in front of it.
            while len(results) < len(tasks) and tasks[len(results)].part in waiting:
                part = tasks[len(results)].part
                results.append(waiting.pop(part))
                _append(file, part, results[-1])
        file.write(digest_format.pack_end(sum(each.status == DIGESTED for each in results)))
        file.flush()
        os.fsync(file.fileno())
    Path(whole).rename(output)
    return results


def _append(file: BinaryIO, part: str, result: DigestedPartition) -> None:
    if result.status == DIGESTED:
        with Path(part).open("rb") as source:
            shutil.copyfileobj(source, file, 1024 * 1024)
    Path(part).unlink(missing_ok=True)


def digest_partition(task: DigestTask) -> tuple[DigestTask, DigestedPartition]:
    """Write the part of a task; what cannot be read at all makes it `failed`, with a reason."""
    name, path = task.topic_partition, task.replica.place
    try:
        with Path(task.part).open("xb") as file:
            records = _write_part(task, file)
            size = file.tell()
    except (KafkaLogError, OSError) as error:
        return task, DigestedPartition(name, path, FAILED, str(error))
    done = DigestedPartition(
        name, path, DIGESTED, "", records, task.replica.size_in_bytes, digest_bytes=size
    )
    return task, done


def digest_died(task: DigestTask) -> tuple[DigestTask, DigestedPartition]:
    """The result of a task whose worker process died."""
    reason = "the worker process died (killed, or out of memory)"
    return task, DigestedPartition(task.topic_partition, task.replica.place, FAILED, reason)


def _write_part(task: DigestTask, file: BinaryIO) -> int:
    facts = replica_facts(task.replica)
    secret = np.frombuffer(task.secret, np.uint64)
    rows = RecordStream(task.replica.partition, facts.log_end_offset, secret, task.max_batch_bytes)
    file.write(digest_format.pack_json(digest_format.PARTITION, facts_to_json(facts)))
    records, told = 0, 0
    for block in _blocks(rows):
        told = _write_damage(rows, told, file)
        file.write(digest_format.pack_rows(block, rows.cleaned_end_offset))
        records += block.size
    _write_damage(rows, told, file)
    file.write(digest_format.pack_partition_end(rows.cleaned_end_offset, records))
    return records


def _write_damage(rows: RecordStream, told: int, file: BinaryIO) -> int:
    """Write the unreadable ranges from the last one told on, which may have grown since."""
    if len(rows.corrupt) == 0:
        return 0
    first = max(told - 1, 0)
    ranges = [each.to_row() for each in rows.corrupt[first:]]
    file.write(digest_format.pack_json(digest_format.DAMAGE, {"first": first, "ranges": ranges}))
    return len(rows.corrupt)


def _blocks(source: Iterable[Facts]) -> Iterator[Facts]:
    """The same rows in blocks as large as they may be."""
    most = digest_format.BLOCK_ROWS
    held: list[Facts] = []
    count = 0
    for rows in source:
        held.append(rows)
        count += rows.size
        if count < most:
            continue
        joined = np.concatenate(held) if len(held) > 1 else rows
        whole = count // most * most
        for start in range(0, whole, most):
            yield joined[start : start + most]
        held, count = [joined[whole:]], count - whole
    if count:
        yield np.concatenate(held)
