"""What holds of every log: what is left is what the plain reference leaves, and the laws."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings

from kafkalog.format.offset_index import parse_offset_index
from kafkalog.log.log_dir import open_log_dir
from kafkalog.operations.compact import CompactionRun, apply_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import CompactionRequest
from tests.cleaning.logs import NOW_MS, Batch, LogSpec, log_specs, read_partition, read_segment
from tests.operations.faults.logs import contents
from tests.support.log_builder import BuiltSegment
from tests.support.reference.clean import as_cleaned, clean
from tests.support.topics import topics_of

RETENTION_MS = 60_000
CONFIG = LogConfig.from_overrides(
    [
        "cleanup.policy=compact",
        "min.cleanable.dirty.ratio=0",
        f"delete.retention.ms={RETENTION_MS}",
        "index.interval.bytes=100",
        "producer.id.expiration.ms=86400000",
    ]
)
EXAMPLES = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def compact(log_dir: Path, *force: str, now_ms: int = NOW_MS) -> CompactionRun:
    request = CompactionRequest(
        (str(log_dir),), now_ms, CONFIG, topics=topics_of(log_dir), force=frozenset(force)
    )
    return apply_run(request, clean_pack)


@contextmanager
def written(spec: LogSpec) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kafkalog-", dir=MEMORY) as directory:
        yield spec.build(Path(directory)).write()


def active_log(partition: Path) -> Path:
    return max(partition.glob("*.log"))


def last_offsets_kept(batches: list[Batch], end_offset: int) -> set[int]:
    """The last batch of each producer that is not forgotten, and the one that ends the round."""
    producers: dict[int, tuple[int, int]] = {}
    for header, _ in batches:
        if header.producer_id >= 0:
            producers[header.producer_id] = header.last_offset, header.max_timestamp
    alive = {last for last, time in producers.values() if NOW_MS - time < 86_400_000}
    return alive | {end_offset - 1}


@given(log_specs(keyless=True))
@EXAMPLES
def test_what_is_left_is_what_the_reference_leaves(spec: LogSpec) -> None:
    with written(spec) as partition:
        active = int(active_log(partition).stem)
        before = read_partition(partition)
        run = compact(partition.parent, "null-keys")
        (plan,) = run.plans
        cleanable = [batch for batch in before if batch[0].base_offset < active]
        rest = [as_cleaned(*batch) for batch in before if batch[0].base_offset >= active]
        if plan.status == "skip":
            wanted = [as_cleaned(*batch) for batch in cleanable]
        else:
            assert [result.status for result in run.results] == ["compacted"], run.results
            assert plan.end_offset == active
            wanted = clean(
                cleanable,
                first_dirty_offset=plan.first_dirty_offset,
                last_offsets_kept=last_offsets_kept(before, active),
                now_ms=NOW_MS,
                delete_retention_ms=RETENTION_MS,
            )
            stats = run.results[0].stats
            kept = sum(len(batch.records) for batch in wanted)
            read = sum(len(records) for _, records in cleanable)
            assert (stats.records_read, stats.records_retained) == (read, kept)
            assert stats.superseded + stats.tombstone + stats.no_key == read - kept
            assert (stats.batches_read, stats.batches_retained) == (len(cleanable), len(wanted))
        assert [as_cleaned(*batch) for batch in read_partition(partition)] == wanted + rest


@given(log_specs())
@EXAMPLES
def test_no_last_value_is_lost_offsets_rise_and_the_end_stays(spec: LogSpec) -> None:
    # A checkpoint that calls a superseded record clean would bring its value back, at Kafka's, too.
    with written(replace(spec, cleaner_offset=None)) as partition:
        before = read_partition(partition)
        active, active_bytes = active_log(partition), active_log(partition).read_bytes()
        stat = active.stat()
        run = compact(partition.parent)
        after = read_partition(partition)
        old, new = ({r.key: r.value for _, rs in log for r in rs} for log in (before, after))
        assert {k: v for k, v in new.items() if v is not None} == {
            k: v for k, v in old.items() if v is not None
        }
        expired = {
            record.key
            for header, records in before
            for record in records
            if record.value is None and as_cleaned(header, records).horizon is not None
        }
        assert old.keys() - new.keys() <= expired  # no tombstone goes before its time
        offsets = [r.offset for _, records in after for r in records]
        assert offsets == sorted(set(offsets))
        ends = [(header.base_offset, header.last_offset) for header, _ in after]
        assert all(a[1] < b[0] for a, b in itertools.pairwise(ends))
        assert active.read_bytes() == active_bytes
        assert active.stat().st_mtime_ns == stat.st_mtime_ns
        assert active.stat().st_ino == stat.st_ino
        (partition_now,) = open_log_dir(str(partition)).partitions
        assert partition_now.log_end_offset == run.plans[0].log_end_offset


@given(log_specs())
@EXAMPLES
def test_a_second_run_changes_nothing_even_without_the_checkpoint(spec: LogSpec) -> None:
    with written(spec) as partition:
        compact(partition.parent)
        once = contents(partition.parent)
        assert compact(partition.parent).results == ()
        assert contents(partition.parent) == once
        (partition.parent / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        first = contents(partition.parent)
        shutil.copytree(partition.parent, again := partition.parent / "copy")
        try:
            compact(again)
            (again / "cleaner-offset-checkpoint").unlink(missing_ok=True)
            found = contents(again)
        finally:
            shutil.rmtree(again)
        # Keys that a checkpoint kept apart meet now; but where it did not, nothing changes.
        if spec.cleaner_offset in (None, 0):
            assert found == first


@given(log_specs())
@EXAMPLES
def test_indexes_are_those_of_one_pass_over_the_new_segment(spec: LogSpec) -> None:
    with written(spec) as partition:
        old = {path.name for path in partition.glob("*.log")}
        run = compact(partition.parent)
        if not run.results:
            return
        assert {path.name for path in partition.glob("*.log")} <= old
        for path in sorted(partition.glob("*.log"))[:-1]:
            base = int(path.stem)
            built = BuiltSegment(base)
            position = 0
            for header, _ in read_segment(path):
                built.batches.append((position, header))
                position += header.size_in_bytes
            offset_index, time_index = built.packed_indexes(100)
            assert path.with_suffix(".index").read_bytes() == offset_index
            assert path.with_suffix(".timeindex").read_bytes() == time_index
            index = parse_offset_index(offset_index, base)
            assert np.all(np.diff(index.offsets) > 0)
