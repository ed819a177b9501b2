"""`--verify deep`: an honest run passes, and whatever is broken in decisions, state or encoder is
found before anything is swapped.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from kafkalog.cleaning.decisions import Decider, Decisions
from kafkalog.cleaning.output_segment import OutputSegment
from kafkalog.cleaning.producers import BatchRetention
from kafkalog.cleaning.record_flags import RecordFlags
from kafkalog.cleaning.survivor_keys import SurvivorKeys
from kafkalog.cleaning.transactions import CleanedTransactionMetadata
from kafkalog.cli.main import main
from kafkalog.format.checksum import crc32c
from kafkalog.format.constants import CONTROL_FLAG_MASK, CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.kernels.decide_batches import COPY, DROP, REBUILD
from kafkalog.kernels.hash_keys import SUPERSEDED, TOMBSTONE
from kafkalog.operations.compact import CompactionRun, apply_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.planning.compaction_plan import ACROSS_TASKS
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, memory_budget
from tests.cleaning.logs import NOW_MS as SPEC_NOW_MS
from tests.cleaning.logs import LogSpec, log_specs
from tests.cleaning.test_laws import CONFIG as SPEC_CONFIG
from tests.cleaning.test_laws import EXAMPLES, written
from tests.conftest import NOW_MS
from tests.operations.faults.logs import CONFIG, NAME, SETTINGS, contents, write_fault_log
from tests.operations.faults.test_split_kills import write_log as write_split_log
from tests.support.log_builder import LogBuilder
from tests.support.small_budgets import small_budget
from tests.support.topics import topic_words, topics_of

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def write_log(log_dir: Path) -> Path:
    """Superseded records, tombstones with and without a horizon that passed, producers, headers,
    transactions of both ends, batches that stay whole.
    """
    log = LogBuilder(log_dir, NAME, index_interval_bytes=100)
    log.segment(0).batch(("a", "1"), ("b", "1"), ("c", "value of c"), ("d", None))
    headed = Record(log.next_offset, NOW_MS - 5, b"h", b"v", ((b"one", b"1"), (b"none", None)))
    log.batch(headed, Record(log.next_offset + 1, NOW_MS - 4, b"a", b"2"))
    log.batch(("p", "1"), ("q", "1"), producer_id=7, codec=CompressionType.ZSTD)
    log.batch(("q", "0"), producer_id=11, timestamp=NOW_MS - 1000)  # stays without its record
    log.batch(("a", "3"), ("gone", None), delete_horizon_ms=NOW_MS - 1)
    log.segment(100).batch(("x", "1"), ("y", "1"), producer_id=8, is_transactional=True)
    log.batch(("c2", "1"), producer_id=9, is_transactional=True)
    log.marker(ABORT, 8).marker(COMMIT, 9)
    log.batch(("whole", "stays"), ("too", "stays"), producer_id=7, timestamp=NOW_MS - 3)
    log.segment(200).batch(("b", "2"), ("q", "2")).segment().batch(("z", "active"))
    return log.write()


def compact(log_dir: Path, **more: Any) -> CompactionRun:
    request = CompactionRequest(
        (str(log_dir),), NOW_MS, CONFIG, topics=topics_of(log_dir), verify_deep=True, **more
    )
    return apply_run(request, clean_pack)


@pytest.mark.parametrize("write", [write_log, write_fault_log, write_split_log])
@pytest.mark.parametrize("more", [{}, {"strategy": ACROSS_TASKS}], ids=["within", "across"])
def test_an_honest_run_passes_and_writes_the_same(
    log_dir: Path, write: Callable[[Path], object], more: dict[str, Any]
) -> None:
    write(log_dir / "deep")
    write(log_dir / "plain")
    words = [
        *("compact", *topic_words(log_dir / "deep"), "--apply", "--no-undo", "--now", str(NOW_MS))
    ]
    words += ["--workers", "1", *(f"--config={key}={value}" for key, value in SETTINGS.items())]
    words += [f"--strategy={value}" for value in more.values()]
    assert main([*words, "--log-dir", str(log_dir / "deep"), "--verify", "deep"]) == 0
    assert main([*words, "--log-dir", str(log_dir / "plain")]) == 0
    bytes_of = {
        name: {path: data for path, (data, _) in contents(log_dir / name).items()}
        for name in ("deep", "plain")
    }
    assert bytes_of["deep"] == bytes_of["plain"]


def test_groups_that_are_swapped_one_by_one_are_compared_before(log_dir: Path) -> None:
    write_fault_log(log_dir)
    assert [r.status for r in compact(log_dir, swap_per_group=True).results] == ["compacted"]


@settings(EXAMPLES, max_examples=20)
@given(log_specs(keyless=True))
def test_no_random_log_is_found_wrong(spec: LogSpec) -> None:
    with written(spec) as path:
        request = CompactionRequest(
            (str(path.parent),), SPEC_NOW_MS, SPEC_CONFIG, topics=topics_of(path.parent),
            verify_deep=True, force=frozenset({"null-keys"}),
        )  # fmt: skip
        run = apply_run(request, clean_pack)
    assert all(result.status == "compacted" for result in run.results), run.results


# -- faults ----------------------------------------------------------------------------------------


def of_decisions(
    change: Callable[[Any, Decisions], None],
) -> Callable[[pytest.MonkeyPatch], None]:
    """Break what was decided of a chunk."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        decide = Decider._decide

        def broken(self: Decider, chunk: Any, *arguments: Any) -> Decisions:
            decisions = decide(self, chunk, *arguments)
            change(chunk.rows, decisions)
            return decisions

        patch.setattr(Decider, "_decide", broken)

    return inject


def drop_a_record(rows: Any, decisions: Decisions) -> None:
    for b in np.flatnonzero((decisions.actions == COPY) & (rows["records_count"] > 1)):
        decisions.flags[decisions.first_records[b]] |= SUPERSEDED
        decisions.actions[b] = REBUILD
        decisions.retained[b] -= 1


def drop_a_batch(rows: Any, decisions: Decisions) -> None:
    decisions.actions[decisions.actions == COPY] = DROP


def drop_markers(rows: Any, decisions: Decisions) -> None:
    decisions.actions[(rows["attributes"] & CONTROL_FLAG_MASK) != 0] = DROP


def set_no_horizon(rows: Any, decisions: Decisions) -> None:
    decisions.horizons[:] = -(2**63)


def another_horizon(rows: Any, decisions: Decisions) -> None:
    decisions.horizons[decisions.horizons > 0] += 1


def of_flags(mask: int) -> Callable[[pytest.MonkeyPatch], None]:
    """Forget something that was known of records."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        take = RecordFlags.take

        def broken(self: RecordFlags, count: int) -> Any:
            return take(self, count) & np.uint8(~mask & 0xFF)

        patch.setattr(RecordFlags, "take", broken)

    return inject


def of_bytes(
    change: Callable[[bytearray], object], fields: Sequence[str] = ()
) -> Callable[[pytest.MonkeyPatch], None]:
    """Break written batches, with checksums and rows to match, as a wrong encoder would."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        append = OutputSegment.append

        def broken(self: OutputSegment, parts: Any, rows: Any, **words: Any) -> None:
            data, changed = bytearray(b"".join(parts)), rows.copy()
            for row in changed:
                at = int(row["position"]) - self.position
                batch = data[at : at + int(row["size_in_bytes"])]
                change(batch)
                row["crc"] = crc32c(bytes(batch[21:]))
                batch[17:21] = struct.pack(">I", row["crc"])
                data[at : at + len(batch)] = batch
                row["base_timestamp"], row["max_timestamp"], row["producer_id"] = (
                    struct.unpack_from(">qqq", batch, 27)
                )
                row["producer_epoch"], row["base_sequence"] = struct.unpack_from(">hi", batch, 51)
                (row["partition_leader_epoch"],) = struct.unpack_from(">i", batch, 12)
            append(self, [memoryview(bytes(data))], changed, **words)

        patch.setattr(OutputSegment, "append", broken)

    return inject


def add_at(position: int, layout: str, only: bytes = b"") -> Callable[[bytearray], object]:
    def change(batch: bytearray) -> None:
        if only not in batch:
            return
        (value,) = struct.unpack_from(layout, batch, position)
        struct.pack_into(layout, batch, position, value + 1)

    return change


def replaced(old: bytes, new: bytes) -> Callable[[bytearray], object]:
    def change(batch: bytearray) -> None:
        batch[:] = batch.replace(old, new)

    return change


def no_data_is_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CleanedTransactionMetadata, "add_aborted", lambda *_: None)


def index_entries_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CleanedTransactionMetadata, "take_kept_entries", lambda _: [])


def producers_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BatchRetention, "retain_empty", lambda _, rows: np.zeros(rows.size, np.uint8))


FAULTS = {
    "a record is dropped": (of_decisions(drop_a_record), "record that has to stay is not"),
    "a batch is dropped": (of_decisions(drop_a_batch), "batch that has to stay is not"),
    "markers are lost": (of_decisions(drop_markers), "has to stay is not there"),
    "no horizon is set": (of_decisions(set_no_horizon), "attributes is"),
    "another horizon is set": (of_decisions(another_horizon), "base_timestamp is"),
    "superseded records are kept": (of_flags(SUPERSEDED), "has to go is there"),
    "tombstones are values": (of_flags(TOMBSTONE), "has to go is there"),
    "a value is altered": (of_bytes(replaced(b"value of c", b"value of d")), "record's value"),
    "a key is altered": (of_bytes(replaced(b"whole", b"whale")), "record's key"),
    "a header is altered": (of_bytes(replaced(b"one\x02", b"two\x02")), "record's headers"),
    "timestamps are moved": (of_bytes(add_at(27, ">q", b"whole")), "record's timestamp"),
    "the largest timestamp is wrong": (of_bytes(add_at(35, ">q")), "max_timestamp is"),
    "the producer id is wrong": (of_bytes(add_at(43, ">q")), "producer_id is"),
    "the producer epoch is wrong": (of_bytes(add_at(51, ">h")), "producer_epoch is"),
    "the sequence is wrong": (of_bytes(add_at(53, ">i")), "base_sequence is"),
    "the leader epoch is wrong": (of_bytes(add_at(12, ">i")), "partition_leader_epoch is"),
    "aborted data is kept": (no_data_is_aborted, "has to go is there"),
    "the transaction index is empty": (index_entries_are_lost, "0 aborted transactions are"),
    "last batches of producers go": (producers_are_forgotten, "has to stay is not there"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_name_and_nothing_is_swapped(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    write_log(log_dir)
    before = contents(log_dir)
    inject, named = FAULTS[fault]
    inject(monkeypatch)
    (result,) = compact(log_dir).results
    assert result.status == "failed"
    assert "verify deep: " in result.reason
    assert named in result.reason
    assert contents(log_dir) == before


@pytest.mark.parametrize("fault", ["a record is dropped", "markers are lost"])
def test_without_it_such_a_fault_goes_unnoticed(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """So the faults are not found by the checks that are always made."""
    write_log(log_dir)
    FAULTS[fault][0](monkeypatch)
    request = CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=topics_of(log_dir))
    (result,) = apply_run(request, clean_pack).results
    assert result.status == "compacted"


# -- who supersedes --------------------------------------------------------------------------------


def test_superseded_records_are_those_a_dictionary_finds() -> None:
    """Buckets, windows and pieces of any size; keys long, empty, null."""
    random = np.random.default_rng(7)
    pool = [b"", b"k" * 1024, b"k" * 1025, b"l" * 3000, *(b"%d" % n for n in range(40))]
    keys = [None if n % 17 == 0 else pool[random.integers(len(pool))] for n in range(1000)]
    is_data, is_mapped = random.random((2, 1000)) < [[0.9], [0.8]]
    survivors = SurvivorKeys(10**9, small_budget(DEFAULT_MEMORY_BYTES))
    for first in range(0, 1000, 130):
        piece = slice(first, first + 130)
        # not all from the front of their buffers
        column = pa.array([b"other", *keys[piece]], pa.binary())[1:]
        survivors.add(column, is_data[piece], is_mapped[piece] & is_data[piece])
    survivors.close()
    latest = {
        key: number for number, key in enumerate(keys) if is_mapped[number] and is_data[number]
    }
    wanted = [
        bool(is_data[number]) and key is not None and latest.get(key, -1) > number
        for number, key in enumerate(keys)
    ]
    for _ in range(2):
        survivors.rewind()
        taken = [survivors.take(count) for count in (1, 7, 0, 492, 500)]
        assert np.concatenate(taken).tolist() == wanted
    assert sum(wanted) > 300


def test_keys_are_told_apart_by_place_length_and_value() -> None:
    budget = memory_budget(DEFAULT_MEMORY_BYTES)
    keys = [b"ab", b"ba", b"a", b"", b"\0", b"\0\0", b"a\0", b"\xff" * 1024, b"\xff" * 1025]
    hashes = SurvivorKeys(1, budget)._hashes(pa.array(keys, pa.binary()))
    assert len({tuple(row) for row in hashes.tolist()}) == len(keys)
    assert (SurvivorKeys(1, budget)._hashes(pa.array(keys, pa.binary())) != hashes).all()


def test_a_key_has_one_hash_among_keys_of_its_length_and_among_others() -> None:
    hashes = SurvivorKeys(1, memory_budget(DEFAULT_MEMORY_BYTES))._hashes
    alike = [b"%04d" % number for number in range(100)]
    mixed = [key for pair in zip(alike, [b"", b"k", b"longer"] * 34, strict=False) for key in pair]
    apart = hashes(pa.array(mixed, pa.binary()))
    assert (hashes(pa.array(alike, pa.binary())) == apart[::2]).all()


def test_hashes_that_share_their_first_word_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashes = np.array([[5, 1], [3, 9], [5, 2], [5, 1], [3, 9], [5, 2], [5, 3]], np.uint64)
    monkeypatch.setattr(SurvivorKeys, "_hashes", lambda self, keys: hashes)
    survivors = SurvivorKeys(7, memory_budget(DEFAULT_MEMORY_BYTES))
    every = np.ones(7, np.bool_)
    survivors.add(pa.array([b"k"] * 7, pa.binary()), every, every)
    survivors.close()
    assert survivors.take(7).tolist() == [True, True, True, False, False, False, False]


def test_pandas_is_not_imported(log_dir: Path) -> None:
    """pyarrow imports it, where it is installed, to hand numpy an array: 0.4 s of CPU."""
    write_log(log_dir)
    words = ["compact", *topic_words(log_dir), "--apply", "--no-undo", "--now", str(NOW_MS)]
    words += ["--workers", "1", *(f"--config={key}={value}" for key, value in SETTINGS.items())]
    words += ["--verify", "deep", "--log-dir", str(log_dir)]
    code = (
        f"import sys\nfrom kafkalog.cli.main import main\nassert main({words!r}) == 0\n"
        "assert 'kafkalog.cleaning.deep_verify' in sys.modules\n"
        "assert 'pandas' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 partitions compacted" in done.stdout + done.stderr
