from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.cleaning.producers import BatchRetention
from kafkalog.format.constants import CONTROL_FLAG_MASK
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.log.header_facts import ActiveProducer

producers = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2), st.none() | st.integers(0, 6)),
    unique_by=lambda producer: producer[0],
    max_size=4,
)
batches = st.lists(
    st.tuples(st.integers(-1, 5), st.integers(0, 2), st.booleans(), st.integers(0, 6)), max_size=8
)


@given(producers, batches, st.none() | st.integers(1, 7))
def test_kept_are_the_last_batch_of_each_producer_and_of_the_round(
    known: list[tuple[int, int, int | None]],
    log: list[tuple[int, int, bool, int]],
    end_offset: int | None,
) -> None:
    rows = np.zeros(len(log), BATCH_ROW)
    for row, (producer_id, epoch, is_control, last_offset) in zip(rows, log, strict=True):
        row["producer_id"], row["producer_epoch"] = producer_id, epoch
        row["attributes"] = CONTROL_FLAG_MASK if is_control else 0
        row["last_offset"] = last_offset
    active = [ActiveProducer(pid, epoch, last, 0) for pid, epoch, last in known]
    state = {pid: (epoch, last) for pid, epoch, last in known}

    def stays(producer_id: int, epoch: int, is_control: bool, last_offset: int) -> bool:
        if end_offset is not None and last_offset == end_offset - 1:
            return True
        if producer_id not in state:
            return False
        known_epoch, last_data_offset = state[producer_id]
        if last_data_offset is None:
            return is_control and epoch == known_epoch
        return last_offset == last_data_offset

    found = BatchRetention(active, end_offset).retain_empty(rows)
    assert found.tolist() == [stays(*batch) for batch in log]
