"""Small segments worked on together become what they become one by one."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from kafkalog.cleaning import joined_sources
from kafkalog.cleaning.joined_sources import JoinedSources, join_sources
from kafkalog.format.checksum import crc32c
from kafkalog.format.constants import MAX_INT32, RECORD_BATCH_OVERHEAD
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import CRC_POSITION, CRC_START, pack_batch
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.operations import compact_partition
from kafkalog.operations.compact import plan_run
from kafkalog.planning.compaction_plan import SegmentGroup
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, memory_budget
from tests.cleaning.logs import NOW_MS, LogSpec, log_specs
from tests.cleaning.test_laws import CONFIG, EXAMPLES, compact, contents, written
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries
from tests.support.topics import topics_of


def planned(log_dir: Path) -> tuple[SegmentGroup, ...]:
    """The groups of the only partition, one."""
    request = CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=topics_of(log_dir))
    (plan,) = plan_run(request).plans
    assert len(plan.groups) == 1, plan.reason
    return plan.groups


def joined(groups: tuple[SegmentGroup, ...]) -> JoinedSources | None:
    """What is joined of them."""
    return join_sources(groups, ChunkBuffers(), memory_budget(DEFAULT_MEMORY_BYTES))


@given(log_specs())
@settings(EXAMPLES, max_examples=12)
def test_segments_together_become_what_they_become_one_by_one(spec: LogSpec) -> None:
    noted: list[bool] = []

    def note(*arguments: Any) -> JoinedSources | None:
        found = join_sources(*arguments)
        noted.append(found is not None)
        return found

    with written(spec) as partition, pytest.MonkeyPatch.context() as patch:
        log_dir = partition.parent
        one_by_one = log_dir.with_name(f"{log_dir.name}-one-by-one")
        shutil.copytree(log_dir, one_by_one)
        try:
            patch.setattr(compact_partition, "join_sources", note)
            together = compact(log_dir)
            were_joined, noted[:] = list(noted), []
            patch.setattr(joined_sources, "JOINED_BYTES", 0)
            singly = compact(one_by_one)
            assert not any(noted)
            assert contents(log_dir) == contents(one_by_one)
        finally:
            shutil.rmtree(one_by_one)
    for one, other in zip(together.results, singly.results, strict=True):
        assert (one.status, one.stats) == (other.status, other.stats)
        assert one.replaced is not None
        assert other.replaced is not None
        checksums = [[f.checksum for f in each.replaced.every_file] for each in (one, other)]
        assert checksums[0] == checksums[1]
        has_one_group = len(together.plans[0].groups) == 1
        holds_records = any(source.size_in_bytes for source in together.plans[0].sources[-1:])
        assert were_joined == [has_one_group and holds_records]


def plain(log_dir: Path) -> LogBuilder:
    log = LogBuilder(log_dir, index_interval_bytes=100)
    return log.segment().batch(("a", "1"), ("b", "1")).segment().batch(("a", "2"), ("c", "1"))


def transaction(log: LogBuilder) -> None:
    log.batch(("a", "3"), producer_id=1, is_transactional=True)
    log.marker(ControlRecordType.COMMIT, 1)


def wrong_checksum(log: LogBuilder) -> None:
    log.segments[-1].log[-1] ^= 1


def legacy(log: LogBuilder) -> None:
    log.raw(pack_legacy_entries([Record(log.next_offset, START_MS, b"a", b"3")], 1))
    log.next_offset += 1


NOT_JOINED: dict[str, Callable[[LogBuilder], None]] = {
    "a transaction": transaction,
    "a wrong checksum": wrong_checksum,
    "a message of magic 1": legacy,
}


@pytest.mark.parametrize("change", NOT_JOINED.values(), ids=NOT_JOINED.keys())
def test_where_it_matters_in_which_segment_a_batch_is_they_are_not_joined(
    log_dir: Path, change: Callable[[LogBuilder], None]
) -> None:
    log = plain(log_dir / "plain")
    log.segment().batch(("z", "1")).write()
    assert joined(planned(log_dir / "plain")) is not None
    log = plain(log_dir / "changed")
    change(log)
    log.segment().batch(("z", "1")).write()
    assert joined(planned(log_dir / "changed")) is None


def test_what_does_not_fit_into_one_segment_is_not_joined(log_dir: Path) -> None:
    plain(log_dir).segment().batch(("z", "1")).write()
    (group,) = planned(log_dir)
    first, *others = group.sources
    for base_offset, fits in ((3 - MAX_INT32, True), (2 - MAX_INT32, False)):
        sources = (replace(first, base_offset=base_offset), *others)
        assert (joined((replace(group, sources=sources),)) is not None) == fits


def test_a_batch_that_goes_on_in_the_next_segment_is_not_joined(log_dir: Path) -> None:
    plain(log_dir).segment().batch(("z", "1")).write()
    groups = planned(log_dir)
    first, second, _ = sorted((log_dir / "orders-0").glob("*.log"))
    data = first.read_bytes() + second.read_bytes()
    assert joined(groups) is not None
    group = groups[0]
    for cut in (10, -10):
        at = group.sources[0].size_in_bytes - cut
        first.write_bytes(data[:at])
        second.write_bytes(data[at:])
        sources = tuple(
            replace(source, size_in_bytes=size)
            for source, size in zip(group.sources, (at, len(data) - at), strict=True)
        )
        assert joined((replace(group, sources=sources),)) is None


def test_damage_behind_a_right_checksum_is_told_with_its_segment(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = plain(log_dir)
    position = len(log.segments[-1].log)
    # Its second segment, so that a position from the start of all bytes would be another.
    batch = bytearray(pack_batch([Record(log.next_offset, START_MS, b"key", b"value")]))
    batch[RECORD_BATCH_OVERHEAD + 4] = 0x7E  # a key of 63 bytes
    struct.pack_into(">I", batch, CRC_POSITION, crc32c(batch[CRC_START:]))
    log.append(bytes(batch))
    log.segment().batch(("z", "1")).write()
    before = contents(log_dir)
    reasons = []
    for most_bytes in (joined_sources.JOINED_BYTES, 0):
        monkeypatch.setattr(joined_sources, "JOINED_BYTES", most_bytes)
        (result,) = compact(log_dir).results
        assert result.status == "failed"
        reasons.append(result.reason)
    assert reasons[0] == reasons[1]
    assert f"{2:020d}.log @ {position}" in reasons[0]
    assert contents(log_dir) == before
