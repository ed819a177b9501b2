"""One partition compared: its copies' facts and rows in, what differs and who loses what out."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from kafkalog.comparing.difference import ComparedPartition, Difference, ReplicaResult
from kafkalog.comparing.evidence import Evidence, RowSource, gather
from kafkalog.comparing.record_key import key_at
from kafkalog.comparing.record_stream import RecordStream
from kafkalog.comparing.request import CompareTask
from kafkalog.comparing.verdicts import Judge
from kafkalog.errors import KafkaLogError
from kafkalog.replicas.copies import Copy, why_unlike
from kafkalog.replicas.corrupt_range import CorruptRange
from kafkalog.replicas.digested import DigestedReplica
from kafkalog.replicas.hash_key import SECRET_BYTES
from kafkalog.replicas.replica import ReplicaFacts, replica_facts
from kafkalog.resources.memory import memory_budget

COMPARED, SINGLE, FAILED = "compared", "single", "failed"
_OF_A_KEY = ("resurrected-key", "record-differs", "missing-range", "aborted-served-as-committed")


def compare_partition(task: CompareTask) -> ComparedPartition:
    """Compare the copies of a task; what cannot be read at all makes it `failed`, with a reason."""
    name = task.topic_partition
    if task.problem:
        return ComparedPartition(name, FAILED, task.problem)
    if len(task.replicas) < 2:
        return ComparedPartition(name, SINGLE, "one copy is here")
    # Each with each: of one without an id nobody knows of which topic it is.
    for one, other in combinations(task.replicas, 2):
        unlike = why_unlike(one, other)
        if unlike is not None:
            return ComparedPartition(name, FAILED, f"the copy in {other.place} {unlike}")
    # Nobody who writes records can aim at a hash whose secret is drawn for the run.
    secret = task.secret or secrets.token_bytes(SECRET_BYTES)
    try:
        budget = memory_budget(task.memory_bytes, task.max_batch_bytes)
        facts, sources = [], list[RowSource]()
        for each in task.replicas:
            own, rows = opened(each, secret, budget.max_batch_bytes)
            facts.append(own)
            sources.append(rows)
        compared = compare_facts(facts, sources, budget.pool_bytes // 2)
    except (KafkaLogError, OSError) as error:
        return ComparedPartition(name, FAILED, str(error))
    return with_keys(compared, task.replicas)


def opened(copy: Copy, secret: bytes, max_batch_bytes: int) -> tuple[ReplicaFacts, RowSource]:
    """The facts and the rows of a copy. Errors as from reading it."""
    if isinstance(copy, DigestedReplica):
        return copy.facts, copy.rows()
    facts = replica_facts(copy)
    words = np.frombuffer(secret, np.uint64)
    return facts, RecordStream(copy.partition, facts.log_end_offset, words, max_batch_bytes)


def compare_died(task: CompareTask) -> ComparedPartition:
    """The result of a task whose worker process died."""
    return ComparedPartition(
        task.topic_partition, FAILED, "the worker process died (killed, or out of memory)"
    )


def compare_facts(
    facts: Sequence[ReplicaFacts], sources: Sequence[RowSource], pool_bytes: int
) -> ComparedPartition:
    """Compare copies of one partition, wherever their facts and rows come from. Errors as from the
    sources."""
    found = gather(facts, sources, pool_bytes)
    return conclude(facts, [each.corrupt for each in sources], found)


def conclude(
    facts: Sequence[ReplicaFacts], corrupt: Sequence[Sequence[CorruptRange]], found: Evidence
) -> ComparedPartition:
    """What all that was found of the copies comes to. `corrupt`: the unreadable ranges of each."""
    judge = Judge(facts, corrupt, found)
    differences = judge.differences()
    results = tuple(_results(facts, found, judge))
    best = min(
        results,
        key=lambda each: (
            each.lost_records, each.wrong, -_last_epoch(each), -each.log_end_offset, each.name,
        ),
    )  # fmt: skip
    return ComparedPartition(
        facts[0].topic_partition,
        COMPARED,
        replicas=results,
        best=best.name,
        differences=tuple(differences),
    )


def with_keys(compared: ComparedPartition, copies: Sequence[Copy]) -> ComparedPartition:
    """With the keys of the records that differences are about."""
    named = tuple(_with_key(each, copies) for each in compared.differences)
    return replace(compared, differences=named)


def _results(
    facts: Sequence[ReplicaFacts], found: Evidence, judge: Judge
) -> Iterator[ReplicaResult]:
    for n, own in enumerate(facts):
        missing = found.missing[n].totals(found.cleaned_end_offset)
        others = [tail for m, tail in enumerate(found.tails) if m != n]
        lost = [found.beyond[n], found.unreadable[n], *others]
        yield ReplicaResult(
            name=own.name,
            place=own.place,
            node_id=own.node_id,
            directory_id=own.directory_id,
            log_start_offset=own.log_start_offset,
            log_end_offset=own.log_end_offset,
            high_watermark=own.high_watermark,
            cleaned_end_offset=found.cleaned[n],
            leader_epochs=own.leader_epochs,
            records=found.held[n].records,
            size_in_bytes=own.size_in_bytes,
            behind_records=found.beyond[n].records,
            behind_bytes=found.beyond[n].size_in_bytes,
            lost_records=sum(each.records for each in lost) + missing[0],
            lost_bytes=sum(each.size_in_bytes for each in lost) + missing[1],
            wrong=judge.wrong[n],
        )


def _last_epoch(result: ReplicaResult) -> int:
    return result.leader_epochs[-1][0] if result.leader_epochs else -1


def _with_key(difference: Difference, replicas: Sequence[Copy]) -> Difference:
    """With the record's key, read from a copy that has it; of digests its hash."""
    if difference.kind not in _OF_A_KEY or (difference.records or 1) > 1:
        return difference
    hashed = difference
    for each in replicas:
        if each.name in (*difference.wrong, *difference.right):
            try:
                found = _key_of(each, difference)
            except (KafkaLogError, OSError):
                continue
            if found.key is not None:
                return found
            hashed = found if found.key_hash is not None else hashed
    return hashed


def _key_of(copy: Copy, difference: Difference) -> Difference:
    if isinstance(copy, DigestedReplica):
        words = copy.key_hash_at(difference.offset)
        return replace(difference, key_hash=None if words is None else words.hex())
    key = key_at(copy.partition, difference.offset)
    return replace(difference, key=None if key is None else base64.b64encode(key).decode())
