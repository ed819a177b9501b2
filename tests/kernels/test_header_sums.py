"""Sums over headers, against columns of numpy and Python's integers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.log.header_sums import header_sums, time_slices

_TIMES = st.one_of(
    st.integers(-1, 3),
    st.integers(1_700_000_000_000, 1_700_000_000_100),
    st.sampled_from([-(2**63), -2, 2**62, 2**63 - 1]),
)
_BATCHES = st.lists(
    st.fixed_dictionaries(
        {
            "base_offset": st.integers(5, 40),
            "last_offset": st.integers(5, 45),
            "base_timestamp": _TIMES,
            "max_timestamp": _TIMES,
            "producer_id": st.integers(-1, 1),
            "size_in_bytes": st.integers(26, 10_000),
            "records_count": st.integers(-1, 50),
            "attributes": st.integers(0, 127),
            "magic": st.integers(0, 2),
        }
    ),
    min_size=1,
    max_size=12,
)


def _rows(batches: list[dict[str, int]]) -> np.ndarray[Any, Any]:
    rows = np.zeros(len(batches), BATCH_ROW)
    for b, batch in enumerate(batches):
        for name, value in batch.items():
            rows[b][name] = value
        rows[b]["position"] = 1000 * b
    return rows


def _smallest(batch: dict[str, int]) -> int:
    """As Kafka's header tells: with a delete horizon or log-append time the largest alone."""
    largest, base = batch["max_timestamp"], batch["base_timestamp"]
    only_largest = batch["attributes"] & (64 | 8) or base == -1
    return largest if only_largest else min(base, largest)


@given(_BATCHES)
def test_sums_are_those_of_each_batch(batches: list[dict[str, int]]) -> None:
    sums = header_sums(_rows(batches), 7)
    assert sums is not None
    largest = [batch["max_timestamp"] for batch in batches]
    known = [ms for ms in largest if ms != -1]
    smallest = [ms for ms in map(_smallest, batches) if ms != -1]
    codecs: Counter[int] = Counter()
    for batch in batches:
        codecs[batch["attributes"] & 7] += batch["size_in_bytes"]
    ends = [6, *(batch["last_offset"] for batch in batches)]
    disorder = [
        b
        for b, batch in enumerate(batches)
        if batch["base_offset"] <= ends[b] or batch["last_offset"] < batch["base_offset"]
    ]
    control = [batch["size_in_bytes"] for batch in batches if batch["attributes"] & 32]
    assert sums._asdict() == {
        "records": sum(max(batch["records_count"], 0) for batch in batches),
        "size_in_bytes": sum(batch["size_in_bytes"] for batch in batches),
        "largest_batch_bytes": max(batch["size_in_bytes"] for batch in batches),
        "last_offset": max(batch["last_offset"] for batch in batches),
        "smallest_timestamp_ms": min(smallest, default=-1),
        "largest_timestamp_ms": max(known, default=-1),
        "first_largest_ms": largest[0],
        "smallest_largest_ms": min(known, default=-1),
        "largest_at": largest.index(max(largest)),
        "attributes": int(np.bitwise_or.reduce([batch["attributes"] for batch in batches])),
        "magics": tuple(sorted({batch["magic"] for batch in batches})),
        "has_producer_ids": any(batch["producer_id"] >= 0 for batch in batches),
        "transactional_bytes": sum(
            batch["size_in_bytes"] for batch in batches if batch["attributes"] & 16
        ),
        "control_batches": len(control),
        "control_bytes": sum(control),
        "disorder": disorder[0] if disorder else None,
        "codec_bytes": dict(sorted(codecs.items())),
    }


@given(_BATCHES)
def test_slices_hold_each_batch_once_and_none_is_wider_than_an_eighth(
    batches: list[dict[str, int]],
) -> None:
    rows = _rows(batches)
    sums = header_sums(rows)
    assert sums is not None
    slices = time_slices(rows, sums)
    width = (sums.largest_timestamp_ms - sums.smallest_largest_ms) // 8 + 1
    parts: dict[int, list[int]] = {}
    for batch in batches:
        ms, records = batch["max_timestamp"], max(batch["records_count"], 0)
        # The doubles of numpy: far apart times are rounded, and so is the part.
        part = -1
        if ms != -1:
            part = int((np.float64(ms) - float(sums.smallest_largest_ms)) // float(width))
        found = parts.setdefault(part, [ms, ms, 0, 0])
        found[0], found[1] = min(found[0], ms), max(found[1], ms)
        found[2] += batch["size_in_bytes"]
        found[3] += records
    assert [list(each) for each in slices] == [parts[part] for part in sorted(parts)]


def test_no_batch_has_no_sums() -> None:
    assert header_sums(np.zeros(0, BATCH_ROW)) is None
