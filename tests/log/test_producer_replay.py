"""The replay on any history: as batch by batch, however the batches are cut into chunks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.format.record_batch import parse_batch, parse_header
from kafkalog.format.transaction_index import AbortedTxn
from kafkalog.log.producer_replay import Producer, ProducerReplay, ProducerSink, TransactionEnd
from kafkalog.log.producer_runs import Data, ProducerRuns
from kafkalog.log.recovered_producers import RecoveredProducers
from kafkalog.log.segment_file import Chunk, read_chunks
from tests.support.log_builder import LogBuilder
from tests.support.producer_histories import Step, append
from tests.support.producer_states import ProducerStates
from tests.support.reference.transactions import Batch, last_stable_offset

KINDS = ("data", "txn", "txn", "no_records", "commit", "abort", "empty")
steps_of = st.lists(
    st.builds(Step, st.sampled_from(KINDS), st.integers(-1, 3), st.integers(0, 2), st.just(5)),
    max_size=30,
)


def built(log_dir: Path, steps: list[Step]) -> LogBuilder:
    """Nobody writes outside of a transaction that is open; markers are of producers."""
    log, open_now = LogBuilder(log_dir), set[int]()
    log.segment()
    for step in steps:
        if step.of < 0 and step.kind not in ("data", "txn"):
            continue
        if step.kind == "data" and step.of in open_now:
            continue
        if step.kind in ("txn", "no_records") and step.of >= 0:
            open_now.add(step.of)
        elif step.kind in ("commit", "abort"):
            open_now.discard(step.of)
        append(log, step)
    log.write(clean_shutdown=False)
    return log


def batches_of(log: LogBuilder) -> list[bytes]:
    """Each batch's bytes."""
    (segment,) = log.segments
    data = bytes(segment.log)
    edges = [*(position for position, _ in segment.batches), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def chunk_of(log: LogBuilder) -> Chunk:
    (path,) = log.path.glob("*.log")
    (chunk,) = read_chunks(str(path), chunk_bytes=1 << 20)
    return chunk


@settings(max_examples=60)
@given(steps=steps_of, cuts=st.sets(st.integers(0, 30)))
def test_any_history_is_replayed_as_batch_by_batch(
    steps: list[Step], cuts: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = built(tmp_path_factory.mktemp("log"), steps)
    expected, aborted = ProducerStates(), []
    whole: list[Batch] = []
    for batch in batches_of(log):
        header = parse_header(batch)
        found = expected.update(header, batch)
        aborted += [] if found is None else [AbortedTxn(*found)]
        whole.append(parse_batch(batch))
    replay, ours = RecoveredProducers(0), list[AbortedTxn]()
    if whole:
        chunk = chunk_of(log)
        inner = sorted(cut for cut in cuts if 0 < cut < len(whole))
        for first, end in pairwise([0, *inner, len(whole)]):
            part = Chunk(chunk.buf, chunk.position, chunk.rows[first:end])
            ours += replay.apply(part, "00000000000000000000.log")
    assert ours == aborted
    known = {entry.producer_id: entry for entry in replay.entries()}
    # The builder's own rules know no producer of which only an empty control batch is left.
    assert [entry for entry in known.values() if entry.producer_epoch >= 0] == sorted(
        expected.entries(), key=lambda entry: entry.producer_id
    )
    open_now = [e.current_txn_first_offset for e in known.values()]
    first_open = min((at for at in open_now if at >= 0), default=log.next_offset)
    with_producer = [each for each in whole if each[0].has_producer_id]
    stable = last_stable_offset(with_producer) if first_open < log.next_offset else first_open
    assert first_open == stable


class _Sums(ProducerSink):
    """What a replay tells, with copies."""

    def __init__(self) -> None:
        self.batches: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.ended_batches = 0

    def wrote(self, producer: Producer, data: Data) -> None:
        self.batches[producer.producer_id] = (
            self.batches.get(producer.producer_id, 0) + data.batches
        )
        self.sizes[producer.producer_id] = (
            self.sizes.get(producer.producer_id, 0) + data.size_in_bytes
        )

    def ended(self, producer: Producer, transaction: Data | None, end: TransactionEnd) -> None:
        self.ended_batches += 0 if transaction is None else transaction.batches


@settings(max_examples=40)
@given(steps=steps_of)
def test_what_is_told_adds_up_to_all_batches(
    steps: list[Step], tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = built(tmp_path_factory.mktemp("log"), steps)
    headers = [parse_header(batch) for batch in batches_of(log)]
    if not headers:
        return
    sums = _Sums()
    replay = ProducerReplay(sums)
    rows = chunk_of(log).rows
    replay.apply(rows)
    data = [h for h in headers if h.has_producer_id and not h.is_control]
    for producer_id in {header.producer_id for header in data}:
        own = [header for header in data if header.producer_id == producer_id]
        assert sums.batches[producer_id] == len(own)
        assert sums.sizes[producer_id] == sum(header.size_in_bytes for header in own)
    still_open = sum(data.batches for data in replay.transactions.values())
    assert sums.ended_batches + still_open == sum(header.is_transactional for header in data)
    runs = ProducerRuns.of(rows)
    assert sorted(runs.order.tolist()) == [b for b, h in enumerate(headers) if h.has_producer_id]
    firsts = runs.order[runs.starts]
    assert np.all(np.diff(firsts) > 0)
