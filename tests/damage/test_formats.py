"""Any bytes in place of any file of any format: a value, "need more data" or a KafkaLogError; never
another exception, a hang, or memory above the cap.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from data.copy_samples import SAMPLES
from kafkalog.kernels.status import NEED_MORE, OK
from kafkalog.log.segment_headers import scan_headers
from tests.damage.doors import capped
from tests.damage.formats import (
    MOST_BYTES,
    Format,
    check_damaged,
    damaged,
    formats,
    try_mutations,
)

FORMATS = sorted(formats())
MUTATIONS = 2_000
# Of a format whose every file is replayed into tables one in so many.
ONE_IN = {"ZooKeeper log": 5}
LOGS = sorted(SAMPLES.rglob("*.log")) + sorted(SAMPLES.rglob("*.checkpoint"))
SMALL_FILES = {
    "offset index": "*.index",
    "time index": "*.timeindex",
    "transaction index": "*.txnindex",
    "producer snapshot": "*.snapshot",
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_sound_file_is_a_value(name: str) -> None:
    """Or the mutations would only ever see refusals."""
    for sample in formats()[name].samples:
        formats()[name].read(sample)
        assert formats()[name].with_checksum(sample) == sample


@pytest.mark.parametrize("name", FORMATS)
def test_every_mutation_ends_as_promised(name: str) -> None:
    with capped(120):
        broken = try_mutations(formats()[name], seed=1, count=MUTATIONS // ONE_IN.get(name, 1))
    assert not broken, "\n".join(broken[:5])


@pytest.mark.parametrize("name", FORMATS)
def test_every_prefix_ends_as_promised(name: str) -> None:
    format_ = formats()[name]
    pattern = SMALL_FILES.get(name)
    largest = list(format_.samples)
    if pattern is not None:
        found = (path.read_bytes() for path in SAMPLES.rglob(pattern))
        largest = [max((data for data in found if len(data) <= MOST_BYTES), key=len)]
    with capped(120):
        broken = [
            check_damaged(format_, sample[:length])
            for sample in largest
            for length in range(0, len(sample) + 1, ONE_IN.get(name, 1))
        ]
    assert not any(broken), [text for text in broken if text][:5]


def test_every_prefix_of_a_log_is_its_whole_batches(tmp_path: Path) -> None:
    log = max(
        (path for path in LOGS if path.stat().st_size <= MOST_BYTES), key=lambda p: p.stat().st_size
    )
    whole = scan_headers(str(log)).rows
    ends = (whole["position"] + whole["size_in_bytes"]).tolist()
    assert len(ends) > 10
    with capped(120):
        for length in range(ends[-1] + 1):
            scan = scan_headers(str(log), end=length)
            count = int(np.searchsorted(ends, length, side="right"))
            valid_bytes = ends[count - 1] if count else 0
            assert (scan.rows.size, scan.valid_bytes) == (count, valid_bytes)
            assert scan.error is None
            assert scan.status == (OK if valid_bytes == length else NEED_MORE)


def test_every_batch_boundary_and_a_byte_beside_it_in_every_log() -> None:
    cuts = 0
    with capped(300):
        for log in LOGS:
            rows = scan_headers(str(log)).rows
            for position, size in zip(
                rows["position"].tolist(), rows["size_in_bytes"].tolist(), strict=True
            ):
                for cut in (position + size - 1, position + size, position + size + 1):
                    scan = scan_headers(str(log), start=position, end=cut)
                    assert scan.error is None, (log, cut)
                    assert scan.rows.size == int(cut >= position + size), (log, cut)
                    cuts += 1
    assert cuts > 3_000


def test_a_reader_that_breaks_its_promise_is_seen() -> None:
    """The test of the test: any other exception is told, with the bytes that did it."""

    def careless(data: bytes) -> None:
        data[50]

    broken = try_mutations(Format("careless", (bytes(60),), careless), seed=1, count=200)
    assert broken
    assert all("IndexError" in line for line in broken)


def test_mutations_are_the_same_again() -> None:
    format_ = formats()["producer snapshot"]
    first, again = ([damaged(format_, random.Random(seed)) for seed in range(50)] for _ in (1, 2))
    assert first == again
    assert len(set(first)) > 40
