"""What a read_committed consumer reads is the same before and after, round after round.

The consumer is the plain one of tests/support/reference/transactions.py, over batches read by the
plain codec; its list of aborted transactions comes from the indexes on disk.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.planning.log_config import LogConfig
from tests.cleaning.logs import NOW_MS
from tests.cleaning.test_laws import MEMORY
from tests.conformance.rounds import Batch, aborted, batches, compact, continued
from tests.support.log_builder import LogBuilder
from tests.support.reference.transactions import last_stable_offset, read_committed

RETENTION_MS = 1000
DATA, END, ROLL, ROUND = "data", "end", "roll", "round"

producer_ids = st.integers(1, 3)
batch_keys = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["v", "w", None])),
    min_size=1,
    max_size=3,
)
steps = st.one_of(
    st.tuples(st.just(DATA), producer_ids, batch_keys, st.sampled_from([True, True, False])),
    st.tuples(st.just(DATA), producer_ids, batch_keys, st.just(True)),
    st.tuples(
        st.just(END),
        producer_ids,
        st.sampled_from([ControlRecordType.COMMIT, ControlRecordType.ABORT]),
        st.sampled_from([0, 0, 1]),  # epochs by which the marker is ahead
    ),
    st.tuples(st.just(ROLL)),
    st.tuples(st.just(ROUND), st.sampled_from([0, 1, RETENTION_MS]), st.booleans()),
)


def _append(log: LogBuilder, step: tuple[object, ...], in_transaction: set[int]) -> None:
    if step[0] == ROLL:
        if log.next_offset > log.segments[-1].base_offset:
            log.segment()
    elif step[0] == END:
        _, producer_id, kind, ahead = step
        assert isinstance(producer_id, int)
        assert isinstance(kind, ControlRecordType)
        assert isinstance(ahead, int)
        epoch = log.producers.epoch(producer_id) + ahead
        log.marker(kind, producer_id, producer_epoch=epoch)
        in_transaction.discard(producer_id)
    else:
        _, producer_id, specs, transactional = step
        assert isinstance(producer_id, int)
        assert isinstance(specs, list)
        # no producer leaves its transaction without ending it
        transactional = bool(transactional) or producer_id in in_transaction
        log.batch(*specs, producer_id=producer_id, is_transactional=transactional)
        if transactional:
            in_transaction.add(producer_id)


def _check(before: list[Batch], index_before: list[object], path: Path, tombstones: bool) -> None:
    old = read_committed(before, index_before)  # type: ignore[arg-type]
    now, index = batches(path), aborted(path)
    new = read_committed(now, index)
    assert last_stable_offset(now) == last_stable_offset(before)
    # nothing is read that was not: no aborted record, none altered
    known = {record.offset: record for record in old}
    assert [record for record in new if known.get(record.offset) != record] == []
    assert [record.offset for record in new] == sorted({record.offset for record in new})
    # every committed record that is still there is read
    still_there = {r.offset for header, rs in now if not header.is_control for r in rs}
    assert [record for record in old if record.offset in still_there] == new
    # the newest record of each key is read; a tombstone may have gone when its time had come
    newest, newest_now = _newest(old), _newest(new)
    lost = [record for key, record in newest.items() if newest_now.get(key) != record]
    assert all(record.value is None and not tombstones for record in lost)
    assert {k: r.value for k, r in newest.items() if r.value is not None} == {
        k: r.value for k, r in newest_now.items() if r.value is not None
    }
    # and so from wherever one begins to read
    for start in {header.base_offset + 1 for header, _ in now}:
        assert read_committed(now, index, start) == [r for r in new if r.offset >= start]


def _newest(records: list[Record]) -> dict[bytes | None, Record]:
    return {record.key: record for record in records}


@pytest.mark.thorough
@given(st.lists(steps, min_size=4, max_size=40))
@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
def test_a_read_committed_consumer_sees_the_same_over_rounds(
    script: list[tuple[object, ...]],
) -> None:
    retention = f"delete.retention.ms={RETENTION_MS}"
    assert LogConfig.from_overrides([retention]).delete_retention_ms == RETENTION_MS
    with tempfile.TemporaryDirectory(prefix="kafkalog-", dir=MEMORY) as directory:
        log = LogBuilder(Path(directory)).segment()
        in_transaction: set[int] = set()
        now_ms = NOW_MS
        for step in [*script, (ROLL,), (ROUND, 0, False), (ROUND, RETENTION_MS, True)]:
            if step[0] != ROUND:
                _append(log, step, in_transaction)
                continue
            _, wait_ms, from_start = step
            assert isinstance(wait_ms, int)
            now_ms += wait_ms
            path = log.write()
            if from_start:
                (log.log_dir / "cleaner-offset-checkpoint").unlink(missing_ok=True)
            before, index_before = batches(path), aborted(path)
            run = compact(log.log_dir, retention, now_ms=now_ms)
            assert [r.status for r in run.results] in ([], ["compacted"]), run.results
            _check(before, list(index_before), path, tombstones=now_ms < NOW_MS + RETENTION_MS)
            log = continued(path)
