from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.format.constants import DELETE_HORIZON_FLAG_MASK
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.decide_batches import (
    COPY,
    DROP,
    EMPTY,
    NO_HORIZON,
    REBUILD,
    REENCODE,
    decide_batches,
)
from kafkalog.kernels.hash_keys import FOREIGN, KEYLESS, SUPERSEDED, TOMBSTONE

NOW, NEW_HORIZON = 1000, 5000


@dataclass
class Batch:
    flags: list[int]
    horizon: int | None
    retain_empty: bool


batches = st.builds(
    Batch,
    st.lists(st.integers(0, 15), max_size=5),
    st.none() | st.sampled_from([-1, 0, NOW - 1, NOW, NOW + 1]),
    st.booleans(),
)


def decided(batch: Batch) -> tuple[int, int, int, list[bool], list[int]]:
    """(action, horizon, retained, which stay, removed by reason), in plain words."""
    expired = batch.horizon is not None and batch.horizon <= NOW
    removed = [0, 0, 0]
    stay = []
    for flag in batch.flags:
        reasons = [flag & KEYLESS, flag & SUPERSEDED, flag & TOMBSTONE and expired]
        stay.append(not any(reasons))
        if any(reasons):
            removed[[bool(reason) for reason in reasons].index(True)] += 1
    kept = [flag for flag, stays in zip(batch.flags, stay, strict=True) if stays]
    if not kept:
        return EMPTY if batch.retain_empty else DROP, NO_HORIZON, 0, stay, removed
    stamps = batch.horizon is None and any(flag & TOMBSTONE for flag in kept)
    horizon = NEW_HORIZON if stamps else NO_HORIZON if batch.horizon is None else batch.horizon
    if horizon < 0:  # Kafka never writes such a one
        horizon = NO_HORIZON
    if all(stay) and not stamps:
        action = COPY
    else:
        action = REENCODE if any(flag & FOREIGN for flag in kept) else REBUILD
    return action, horizon, len(kept), stay, removed


@given(st.lists(batches, max_size=6), st.integers(0, 3))
@settings(max_examples=150)
def test_decisions_are_those_of_the_rules(log: list[Batch], before: int) -> None:
    rows = np.zeros(len(log), BATCH_ROW)
    for row, batch in zip(rows, log, strict=True):
        row["records_count"] = len(batch.flags)
        if batch.horizon is not None:
            row["attributes"] = DELETE_HORIZON_FLAG_MASK
            row["base_timestamp"] = batch.horizon
        else:
            row["base_timestamp"] = 1  # a timestamp, not a horizon
    flags = np.array([0] * before + [flag for batch in log for flag in batch.flags], np.uint8)
    actions = np.full(len(log), 77, np.uint8)
    horizons = np.full(len(log), 77, np.int64)
    retained = np.full(len(log), 77, np.int32)
    removed = np.array([10, 20, 30], np.int64)
    end = decide_batches(
        rows,
        flags,
        before,
        np.array([batch.retain_empty for batch in log], np.uint8),
        NOW,
        NEW_HORIZON,
        actions,
        horizons,
        retained,
        removed,
    )
    wanted = [decided(batch) for batch in log]
    assert end == flags.size
    assert actions.tolist() == [action for action, *_ in wanted]
    assert horizons.tolist() == [horizon for _, horizon, *_ in wanted]
    assert retained.tolist() == [count for _, _, count, *_ in wanted]
    stays = [stays for *_, stay, _ in wanted for stays in stay]
    assert [not flag & SUPERSEDED for flag in flags[before:]] == stays
    sums = [sum(column) for column in zip(*(w[4] for w in wanted), strict=True)] or [0, 0, 0]
    assert removed.tolist() == [10 + sums[0], 20 + sums[1], 30 + sums[2]]
