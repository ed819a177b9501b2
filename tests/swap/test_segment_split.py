"""Segments whose offsets lie too far apart for their indexes are split; against Kafka in
tests/oracle/test_overflowing_segments.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkalog.format.control_record import ControlRecordType
from kafkalog.operations.recover import look_run, recover_in_processes, recover_run
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import REFUSED
from kafkalog.repair.recover_result import SPLIT
from kafkalog.requests.run_request import RunRequest
from tests.conformance.rounds import (
    NOW_MS,
    aborted,
    bases,
    batches,
    cleaner_offset,
    compact,
    compacted,
    directory_bytes,
    offsets,
)
from tests.support.log_builder import START_MS, LogBuilder

FAR = 2**31 + 100


def joined(path: Path, base: int, other: int) -> Path:
    """One segment of two, which reaches further than its indexes can say."""
    for suffix in (".log", ".txnindex"):
        if (source := path / f"{other:020d}{suffix}").exists():
            with (path / f"{base:020d}{suffix}").open("ab") as file:
                file.write(source.read_bytes())
    for file in path.glob(f"{other:020d}.*"):
        file.unlink()
    os.utime(path / f"{base:020d}.log", ns=(START_MS * 1_000_000,) * 2)
    return path


def overflowing(log_dir: Path) -> Path:
    """An aborted transaction near the base, another one far away, and one that stays open."""
    log = LogBuilder(log_dir).segment(modified_ms=START_MS).batch(("a", "1"))
    log.batch(("x", "1"), producer_id=5, is_transactional=True)
    log.marker(ControlRecordType.ABORT, 5)
    log.segment(FAR, modified_ms=START_MS).batch(("b", "1"))
    log.batch(("x", "2"), producer_id=5, is_transactional=True)
    log.marker(ControlRecordType.ABORT, 5).batch(("c", "1"), producer_id=5)
    return joined(log.segment().batch(("a", "2")).write(), 0, FAR)


def recover(log_dir: Path, *, apply: bool):  # type: ignore[no-untyped-def]
    request = RunRequest((str(log_dir),), NOW_MS, LogConfig(), topics=("*",))
    run = recover_run if apply else look_run
    (result,) = run(request, lambda tasks: recover_in_processes(tasks, 1)).results
    return result


def test_a_segment_with_far_apart_offsets_is_split_and_cleaned(log_dir: Path) -> None:
    path = overflowing(log_dir)
    stats = compacted(log_dir)
    assert stats.segments_split == 1
    assert bases(path) == [0, FAR, FAR + 4]
    assert offsets(path)[:2] == [0, 2], "the aborted record is gone, the marker is not"
    keys = [
        record.key for header, found in batches(path) if not header.is_control for record in found
    ]
    assert keys == [b"a", b"b", b"c", b"a"]
    assert cleaner_offset(path) == FAR + 4
    assert not list(path.glob("*.tmp"))


def test_the_parts_share_the_transaction_index(log_dir: Path) -> None:
    path = overflowing(log_dir)
    before, known = (path / f"{0:020d}.log").read_bytes(), aborted(path)
    result = recover(log_dir, apply=True)
    assert result.files[0].action == SPLIT
    assert bases(path) == [0, FAR, FAR + 4]
    parts = [(path / f"{base:020d}.log").read_bytes() for base in (0, FAR)]
    assert b"".join(parts) == before
    assert aborted(path) == known
    for base in (0, FAR):
        assert (path / f"{base:020d}.txnindex").stat().st_size == 34
        assert (path / f"{base:020d}.log").stat().st_mtime_ns == START_MS * 1_000_000


def test_a_dry_run_says_so_and_changes_nothing(log_dir: Path) -> None:
    path = overflowing(log_dir)
    before = directory_bytes(path)
    (finding,) = recover(log_dir, apply=False).files
    assert finding.action == SPLIT
    assert f"offsets {FAR} to {FAR} is more than 2147483647 behind" in finding.reason
    assert directory_bytes(path) == before


def test_a_torn_tail_behind_far_offsets_is_refused(log_dir: Path) -> None:
    """The active segment is the only one that may have one; a broker fails over it, too."""
    log = LogBuilder(log_dir).segment().batch(("a", "1")).segment(FAR).batch(("b", "1")).torn(30)
    path = joined(log.write(), 0, FAR)
    before = directory_bytes(path)
    result = recover(log_dir, apply=True)
    assert result.status == REFUSED
    assert "bytes after the last whole batch of a segment that must be split" in result.reason
    assert directory_bytes(path) == before


def test_a_split_with_a_wrong_checksum_in_it_leaves_the_log_alone(log_dir: Path) -> None:
    path = overflowing(log_dir)
    file = path / f"{0:020d}.log"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    before = directory_bytes(path)
    (result,) = compact(log_dir).results
    assert result.status == "failed"
    assert "CRC" in result.reason
    assert directory_bytes(path) == before


@pytest.mark.parametrize("span", [2**31 - 1, 2**31])
def test_the_last_offset_that_fits_is_2147483647_above_the_base(log_dir: Path, span: int) -> None:
    log = LogBuilder(log_dir).segment(10).batch(("a", "1")).segment(10 + span).batch(("b", "1"))
    path = joined(log.segment().batch(("x", "1")).write(), 10, 10 + span)
    split = span > 2**31 - 1
    assert compacted(log_dir).segments_split == split
    assert bases(path) == ([10, 10 + span, 11 + span] if split else [10, 11 + span])
