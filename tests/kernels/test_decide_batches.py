from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.format.constants import DELETE_HORIZON_FLAG_MASK
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.decide_batches import (
    CONTROL,
    COPY,
    DISCARD,
    DROP,
    EMPTY,
    EMPTY_TRANSACTION,
    LEGACY_EXPIRED,
    NO_HORIZON,
    REBUILD,
    REENCODE,
    REMOVED_ABORTED,
    REMOVED_MARKER,
    REMOVED_NO_KEY,
    REMOVED_REASONS,
    REMOVED_SUPERSEDED,
    REMOVED_TOMBSTONE,
    RETAIN_EMPTY,
    decide_batches,
)
from kafkalog.kernels.hash_keys import FOREIGN, KEYLESS, PAST_MAP, SUPERSEDED, TOMBSTONE

NOW, NEW_HORIZON = 1000, 5000


@dataclass
class Batch:
    flags: list[int]
    horizon: int | None
    rules: int
    magic: int


# what is past the map's end is superseded by nothing
flag_bytes = st.integers(0, 31).filter(lambda f: not (f & SUPERSEDED and f & PAST_MAP))
batches = st.builds(
    Batch,
    st.lists(flag_bytes, max_size=5),
    st.none() | st.sampled_from([-1, 0, NOW - 1, NOW, NOW + 1]),
    st.integers(0, 31),
    st.sampled_from([0, 1, 2, 2, 2]),
)


def decided(batch: Batch) -> tuple[int, int, int, list[bool], list[int]]:
    """(action, horizon, retained, which stay, removed by reason), in plain words."""
    expired = batch.horizon is not None and batch.horizon <= NOW
    expired = expired or bool(batch.rules & LEGACY_EXPIRED)
    removed = [0] * REMOVED_REASONS
    stay = []
    for flag in batch.flags:
        reason = None
        if batch.rules & DISCARD:
            reason = REMOVED_MARKER if batch.rules & CONTROL else REMOVED_ABORTED
        elif flag & PAST_MAP:
            pass
        elif flag & KEYLESS:
            reason = REMOVED_NO_KEY
        elif flag & SUPERSEDED:
            reason = REMOVED_SUPERSEDED
        elif flag & TOMBSTONE and expired:
            reason = REMOVED_TOMBSTONE
        stay.append(reason is None)
        if reason is not None:
            removed[reason] += 1
    kept = [flag for flag, stays in zip(batch.flags, stay, strict=True) if stays]
    if not kept:
        action = EMPTY if batch.rules & RETAIN_EMPTY else DROP
        return action, NO_HORIZON, 0, stay, removed
    asks = bool(batch.rules & EMPTY_TRANSACTION) or any(flag & TOMBSTONE for flag in kept)
    stamps = batch.horizon is None and asks
    horizon = NEW_HORIZON if stamps else NO_HORIZON if batch.horizon is None else batch.horizon
    if horizon < 0:  # Kafka never writes such a one
        horizon = NO_HORIZON
    if batch.magic < 2:
        action = REENCODE
    elif all(stay) and not stamps:
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
        row["magic"] = batch.magic
        if batch.horizon is not None:
            row["attributes"] = DELETE_HORIZON_FLAG_MASK
            row["base_timestamp"] = batch.horizon
        else:
            row["base_timestamp"] = 1  # a timestamp, not a horizon
    flags = np.array([0] * before + [flag for batch in log for flag in batch.flags], np.uint8)
    actions = np.full(len(log), 77, np.uint8)
    horizons = np.full(len(log), 77, np.int64)
    retained = np.full(len(log), 77, np.int32)
    removed = np.arange(REMOVED_REASONS)
    end = decide_batches(
        rows,
        flags,
        before,
        np.array([batch.rules for batch in log], np.uint8),
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
    discarded = [bool(batch.rules & DISCARD) for batch in log for _ in batch.flags]
    for flag, is_discarded, stays_in in zip(flags[before:], discarded, stays, strict=True):
        # the rewrite asks SUPERSEDED alone, and nothing of batches that go as a whole
        assert is_discarded or (not flag & SUPERSEDED) == stays_in
    sums = [sum(column) for column in zip(*(w[4] for w in wanted), strict=True)]
    expected = [n + count for n, count in enumerate(sums or [0] * REMOVED_REASONS)]
    assert removed.tolist() == expected
