"""What is made of sources from the last part to the first is what is made of them in order."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.cleaning import (
    finished_parts,
    indexed_chunks,
    joined_sources,
    key_map,
    reverse_pass,
    run_map,
)
from kafkalog.cleaning.finished_parts import FinishedParts
from kafkalog.cleaning.reverse_map import ReverseMap
from kafkalog.cleaning.reverse_pass import ReversePass
from kafkalog.format.checksum import crc32c
from kafkalog.format.constants import RECORD_BATCH_OVERHEAD
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.record import Record
from kafkalog.format.record_batch import CRC_POSITION, CRC_START, pack_batch
from kafkalog.operations import compact_partition
from kafkalog.operations.compact import CompactionRun
from kafkalog.resources.memory import MemoryBudget, memory_budget
from tests.cleaning.logs import LogSpec, log_specs
from tests.cleaning.test_laws import EXAMPLES, compact, contents, written
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries

EVERYTHING = 1 << 40


@dataclass(frozen=True, slots=True)
class Way:
    """How a pass is made to go: sizes of what is read, decompressed, kept and held at once."""

    chunk_bytes: int = 300
    arena_bytes: int = 200
    kept_bytes: int = EVERYTHING
    pool_bytes: int = EVERYTHING
    most_keys: int = 256
    falls_to: int = EVERYTHING


WAYS = {
    "all is kept": Way(),
    "large chunks": Way(chunk_bytes=1 << 20, arena_bytes=1 << 20),
    "a chunk a batch": Way(chunk_bytes=1, arena_bytes=1),
    "what falls": Way(kept_bytes=3000, falls_to=1),
    "little is kept": Way(kept_bytes=250, falls_to=4),
    "kept until the map needs it": Way(pool_bytes=400),
    "nothing is kept": Way(kept_bytes=0),
    "a map of a few keys": Way(most_keys=5),
    "a map of no key": Way(most_keys=0),
}


@dataclass(slots=True)
class Passes:
    """What passes gave: the flags or None, and the parts that were ready."""

    answers: list[Any]
    parts: list[FinishedParts]


@contextmanager
def going(way: Way) -> Iterator[Passes]:
    """Small partitions go this way, too."""

    def budget(*arguments: int) -> MemoryBudget:
        usual = memory_budget(*arguments)
        return replace(usual, pool_bytes=way.pool_bytes, finished_bytes=way.kept_bytes)

    passes = Passes([], [])
    run = ReversePass.run

    def noted(reverse: ReversePass) -> Any:
        answer = run(reverse)
        passes.answers.append(answer)
        passes.parts.append(reverse.finished)
        return answer

    make_map = run_map.RunMap.__init__

    def small_map(self: run_map.RunMap, pool_bytes: int, expected_keys: int = 0) -> None:
        make_map(self, min(pool_bytes, way.most_keys * run_map.KEY_BYTES), expected_keys)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joined_sources, "JOINED_BYTES", 0)
        patch.setattr(compact_partition, "memory_budget", budget)
        patch.setattr(indexed_chunks, "CLEANER_CHUNK_BYTES", way.chunk_bytes)
        patch.setattr(reverse_pass, "CLEANER_ARENA_BYTES", way.arena_bytes)
        patch.setattr(indexed_chunks, "_MOST_CHUNK_BYTES", 1 << 30)
        patch.setattr(finished_parts, "_BLOCK_BYTES", 200)
        patch.setattr(finished_parts, "_FALLS_TO", way.falls_to)
        patch.setattr(run_map, "_LEAST_KEYS", max(way.most_keys, 1))
        patch.setattr(run_map.RunMap, "__init__", small_map)
        patch.setattr(key_map, "STAGED_ENTRIES", 3)
        # Tables have a least size, which is more than all of these logs.
        patch.setattr(ReverseMap, "used_bytes", property(lambda self: 24 * self.distinct_keys))
        patch.setattr(ReversePass, "run", noted)
        yield passes


@contextmanager
def in_order() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joined_sources, "JOINED_BYTES", 0)
        patch.setattr(ReversePass, "run", lambda _: None)
        yield


def compared(log_dir: Path, way: Way) -> tuple[Passes, CompactionRun]:
    """One log both ways: the passes of the one, and its run, which is like the other's."""
    other = log_dir.with_name(f"{log_dir.name}-in-order")
    shutil.copytree(log_dir, other)
    try:
        with going(way) as passes:
            found = compact(log_dir)
        with in_order():
            expected = compact(other)
        assert contents(log_dir) == contents(other)
    finally:
        shutil.rmtree(other)
    for one, two in zip(found.results, expected.results, strict=True):
        reasons = [each.reason.replace(str(other), str(log_dir)) for each in (one, two)]
        assert reasons[0] == reasons[1]
        assert (one.status, one.stats) == (two.status, two.stats)
        files = [each.replaced.every_file if each.replaced else () for each in (one, two)]
        assert [file.checksum for file in files[0]] == [file.checksum for file in files[1]]
    return passes, found


@given(log_specs(), st.sampled_from(list(WAYS)))
@settings(EXAMPLES, max_examples=60)
def test_any_log_becomes_what_it_becomes_in_order(spec: LogSpec, way: str) -> None:
    with written(spec) as partition:
        compared(partition.parent, WAYS[way])


def updates(log_dir: Path, *, codec: int = 0, batches: int = 40) -> LogBuilder:
    """Two segments, in which few records of the first batches stay, and all of the last ones."""
    log = LogBuilder(log_dir, index_interval_bytes=100)
    for segment in range(2):
        log.segment()
        for b in range(batches):
            number = segment * batches + b
            keys = [b"hot", b"%d" % (number % 30), b"once %d" % number]
            base = log.next_offset
            value = b"%d" % number * 10
            records = [Record(base + i, START_MS, key, value) for i, key in enumerate(keys)]
            log.batch(*records, codec=codec)
    return log


@pytest.mark.parametrize("codec", [0, 1, 3, 4])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_updates_become_what_they_become_in_order(log_dir: Path, way: Way, codec: int) -> None:
    log = updates(log_dir, codec=codec)
    log.segment().batch(("z", "1")).write()
    passes, run = compared(log_dir, way)
    assert [result.status for result in run.results] == ["compacted"]
    assert passes.answers[0] is not None


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_clean_records_go_for_dirty_ones_behind_them(log_dir: Path, way: Way) -> None:
    log = updates(log_dir)
    log.segment().batch(("z", "1"))
    log.cleaner_offset(90).write()
    _, run = compared(log_dir, way)
    assert [result.stats.superseded > 100 for result in run.results] == [True]


def kept(log_dir: Path, way: Way) -> list[list[bool]]:
    """Of each source of the updates, which of its ranges were ready."""
    log = updates(log_dir)
    log.segment().batch(("z", "1")).write()
    sizes = {str(path): path.stat().st_size for path in sorted(log_dir.glob("*/*.log"))[:-1]}
    passes, _ = compared(log_dir, way)
    (parts,) = passes.parts
    return [
        [part is not None for start, _, part in parts.ranges(path) if start < size]
        for path, size in sizes.items()
    ]


def test_all_parts_are_kept_where_there_is_room(log_dir: Path) -> None:
    first, second = kept(log_dir, WAYS["all is kept"])
    assert len(first) > 5
    assert all(first)
    assert all(second)


def test_the_last_parts_of_which_most_stays_are_left_to_the_second_pass(log_dir: Path) -> None:
    first, second = kept(log_dir, WAYS["what falls"])
    assert second[-1] is False
    assert True in first


def test_room_that_ends_within_a_segment_leaves_the_rest_of_it(log_dir: Path) -> None:
    first, second = kept(log_dir, Way(kept_bytes=3000))
    ranges = [*first, *second]
    assert True in ranges
    assert False in ranges


def test_parts_go_when_the_map_needs_their_memory(log_dir: Path) -> None:
    # Of the second segment's parts all fit beside the map that there is by then; in the end it has
    # 30 + 1 + 80 keys of 24 bytes.
    first, second = kept(log_dir, Way(pool_bytes=4000))
    assert True not in second
    assert first[0] is True


def test_a_map_that_is_full_within_a_segment_leaves_what_was_made_behind(log_dir: Path) -> None:
    # The second segment has 30 + 1 + 40 keys.
    first, second = kept(log_dir, Way(most_keys=60))
    assert not any(first)
    assert second[0] is False
    assert second[-1] is True


def index_of(log_dir: Path) -> Path:
    """That of the first source."""
    return min(log_dir.glob("*/*.index"))


def nested(log_dir: Path) -> None:
    """An entry that leads to a batch that is the value of a record."""
    log = LogBuilder(log_dir, index_interval_bytes=100).segment()
    inner = pack_batch([Record(1, START_MS, b"inner", b"value")], base_offset=1)
    log.batch(("a", "1"), ("b", "1"))
    base = log.next_offset
    start = len(log.segments[-1].log)
    log.batch(*[Record(base + i, START_MS, b"%d" % i, inner * 3) for i in range(4)])
    place = start + bytes(log.segments[-1].log[start:]).index(inner)
    log.batch(("a", "2")).segment().batch(("z", "1")).write()
    index_of(log_dir).write_bytes(pack_offset_index([base], [place], 0))


def without_index(log_dir: Path) -> None:
    updates(log_dir).segment().batch(("z", "1")).write()
    index_of(log_dir).unlink()


def damaged_index(log_dir: Path) -> None:
    updates(log_dir).segment().batch(("z", "1")).write()
    data = index_of(log_dir).read_bytes()
    index_of(log_dir).write_bytes(data[8:16] + data[:8] + data[16:])


def legacy_in_front(log_dir: Path) -> None:
    log = LogBuilder(log_dir, index_interval_bytes=100).segment()
    log.raw(pack_legacy_entries([Record(0, START_MS, b"hot", b"3")], 1))
    log.next_offset += 1
    for number in range(9):
        log.batch(("hot", f"{number}"), (f"{number}", "x"))
    log.segment().batch(("z", "1")).write()


def wrong_checksums(log_dir: Path) -> None:
    """In two batches: the first one is told."""
    log = updates(log_dir)
    for segment in log.segments:
        segment.log[-1] ^= 1
    log.segment().batch(("z", "1")).write()


def damage_behind_a_right_checksum(log_dir: Path) -> None:
    """In two batches: the first one is told."""
    log = LogBuilder(log_dir, index_interval_bytes=100)
    for _ in range(2):
        log.segment().batch(("a", "1"))
        batch = bytearray(pack_batch([Record(log.next_offset, START_MS, b"key", b"value")]))
        batch[RECORD_BATCH_OVERHEAD + 4] = 0x7E  # a key of 63 bytes
        struct.pack_into(">I", batch, CRC_POSITION, crc32c(batch[CRC_START:]))
        log.append(bytes(batch))
    log.segment().batch(("z", "1")).write()


# Whether there is an answer, and what the run says of the partition.
ODD_LOGS: dict[str, tuple[Callable[[Path], None], bool, str]] = {
    "an index that leads into a value": (nested, False, "compacted"),
    "an index that is not there": (without_index, True, "compacted"),
    "an index whose entries do not rise": (damaged_index, True, "compacted"),
    "legacy entries in front": (legacy_in_front, True, "compacted"),
    "two wrong checksums": (wrong_checksums, False, "failed"),
    "records that are none": (damage_behind_a_right_checksum, False, "failed"),
}


@pytest.mark.parametrize("name", ODD_LOGS)
def test_what_is_odd_is_found_as_in_order(log_dir: Path, name: str) -> None:
    make, answers, status = ODD_LOGS[name]
    make(log_dir)
    passes, run = compared(log_dir, WAYS["all is kept"])
    assert [result.status for result in run.results] == [status]
    assert [answer is not None for answer in passes.answers] == [answers]
