"""What is left on a disk, and what it proves of offsets that are not there any more."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.format.checkpoints import (
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.missing_ranges import missing_ranges
from tests.support.log_builder import LogBuilder

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"
# Five segments of 20 offsets, the last one active.
SEGMENTS, OFFSETS = 5, 20


@pytest.fixture
def partition(log_dir: Path) -> Path:
    return built(log_dir)


def built(log_dir: Path, *, clean_shutdown: bool = True, gap_at: int | None = None) -> Path:
    log = LogBuilder(log_dir)
    for number in range(SEGMENTS):
        log.segment()
        for _ in range(OFFSETS // 2):
            if log.next_offset == gap_at:
                log.next_offset += 2
                continue
            log.batch(("a", "x" * 2000), ("b", "1"), producer_id=number)
    return log.write(clean_shutdown=clean_shutdown)


def remove(partition: Path, base_offset: int, *, only_log: bool = False) -> None:
    for path in partition.glob(f"{base_offset:020d}{'.log' if only_log else '.*'}"):
        path.unlink()


def set_line(partition: Path, name: str, offset: int | None) -> None:
    path = partition.parent / name
    known = parse_offset_checkpoint(path.read_bytes()) if path.exists() else {}
    known.pop(("orders", 0), None)
    if offset is not None:
        known["orders", 0] = offset
    path.write_bytes(pack_offset_checkpoint(known))


def cut_at_batch(log: Path, offset: int) -> None:
    """Cut a `.log` where the batch of an offset begins."""
    data, position = log.read_bytes(), 0
    while int.from_bytes(data[position : position + 8], "big") < offset:
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    os.truncate(log, position)


def found(path: Path, start: int = 0, end: int = 2**62) -> list[tuple[str, int, int, bool]]:
    (partition,) = open_log_dir(path)
    return [
        (r.place, r.start_offset, r.end_offset, r.is_proven)
        for r in missing_ranges(partition, start, end)
    ]


def test_a_whole_log_misses_nothing(partition: Path) -> None:
    assert found(partition) == []


@pytest.mark.parametrize("only_log", [True, False])
@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_in_the_middle(log_dir: Path, *, clean: bool, only_log: bool) -> None:
    partition = built(log_dir, clean_shutdown=clean)
    remove(partition, 40, only_log=only_log)
    assert found(partition) == [("middle", 40, 60, True)]
    assert found(partition, 0, 40) == []
    assert found(partition, 60) == []
    assert found(partition, 59) == [("middle", 40, 60, True)]
    assert found(partition, 10, 41) == [("middle", 40, 60, True)]


def test_two_segments_in_the_middle_are_one_range(partition: Path) -> None:
    remove(partition, 40)
    remove(partition, 60)
    assert found(partition) == [("middle", 40, 80, True)]


def test_a_closed_segment_that_is_empty_or_cut(partition: Path) -> None:
    log = partition / f"{40:020d}.log"
    cut_at_batch(log, 50)
    assert found(partition) == [("middle", 50, 60, True)]
    os.truncate(log, 0)
    assert found(partition) == [("middle", 40, 60, True)]


def test_a_segment_whose_first_batches_are_gone(partition: Path) -> None:
    log = partition / f"{40:020d}.log"
    data, position = log.read_bytes(), 0
    for _ in range(3):
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    log.write_bytes(data[position:])
    remove(partition, 20)
    assert found(partition) == [("middle", 20, 46, True)]


# -- where compaction may have been ----------------------------------------------------------------


def test_gaps_of_a_compacted_log_are_no_loss(partition: Path) -> None:
    remove(partition, 40)
    set_line(partition, "cleaner-offset-checkpoint", 80)
    assert found(partition) == []
    # A round that was interrupted leaves gaps beyond the line.
    set_line(partition, "cleaner-offset-checkpoint", 40)
    assert found(partition) == [("middle", 40, 60, False)]


def test_thinned_batches_make_a_gap_doubtful(log_dir: Path) -> None:
    partition = built(log_dir, gap_at=10)
    remove(partition, 40)
    assert found(partition) == [("middle", 40, 60, False)]


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_an_index_without_its_log_proves_it_in_a_compacted_log(partition: Path, kind: str) -> None:
    set_line(partition, "cleaner-offset-checkpoint", 80)
    kept = partition / f"{40:020d}{kind}"
    kept.rename(partition / "kept")
    remove(partition, 40)
    (partition / "kept").rename(kept)
    assert found(partition) == [("middle", 40, 60, True)]
    (partition / f"{40:020d}.log.deleted").touch()  # an interrupted swap
    assert found(partition) == []


def test_index_entries_behind_the_end_prove_it_in_a_compacted_log(partition: Path) -> None:
    set_line(partition, "cleaner-offset-checkpoint", 80)
    cut_at_batch(partition / f"{40:020d}.log", 50)
    assert found(partition) == [("middle", 50, 60, True)]


# -- in front --------------------------------------------------------------------------------------


def front_gone(log_dir: Path, line: int | None, epochs: int | None, *, clean: bool) -> Path:
    partition = built(log_dir, clean_shutdown=clean)
    remove(partition, 0)
    set_line(partition, LOG_START_OFFSET_FILE, line)
    text = "0\n0\n" if epochs is None else f"0\n1\n0 {epochs}\n"
    (partition / LEADER_EPOCH_CHECKPOINT_FILE).write_text(text)
    return partition


@pytest.mark.parametrize(
    ("line", "epochs", "clean", "expected"),
    [
        (10, 0, True, [("start", 10, 20, True)]),
        (10, 10, False, [("start", 10, 20, True)]),
        (10, None, True, [("start", 10, 20, True)]),
        (10, None, False, [("start", 10, 20, False)]),
        (10, 20, False, [("start", 10, 20, False)]),
        (10, 20, True, [("start", 10, 20, False)]),
        (None, 0, True, [("start", 0, 20, True)]),
        (None, 0, False, [("start", 0, 20, True)]),
        (None, 20, True, []),
        (None, None, True, []),
        (25, 0, True, []),
        (20, 0, True, []),
    ],
)
def test_the_front(
    log_dir: Path,
    line: int | None,
    epochs: int | None,
    clean: bool,
    expected: list[object],
) -> None:
    assert found(front_gone(log_dir, line, epochs, clean=clean)) == expected


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("line", [10, None])
def test_an_index_in_front_proves_it_without_epochs(
    log_dir: Path, line: int | None, *, clean: bool
) -> None:
    partition = built(log_dir, clean_shutdown=clean)
    remove(partition, 20, only_log=True)
    remove(partition, 0, only_log=line is None)
    set_line(partition, LOG_START_OFFSET_FILE, line)
    (partition / LEADER_EPOCH_CHECKPOINT_FILE).unlink()
    assert found(partition) == [("start", line or 0, 40, True)]


def test_segments_that_wait_for_their_deletion_are_not_lost(log_dir: Path) -> None:
    partition = front_gone(log_dir, 0, 0, clean=False)
    (partition / f"{0:020d}.log.deleted").touch()
    assert found(partition) == [("start", 0, 20, False)]


# -- at the end ------------------------------------------------------------------------------------


def drop_active(partition: Path) -> None:
    remove(partition, 80)


def drop_logs(partition: Path) -> None:
    for path in partition.glob("*.log"):
        path.unlink()


def cut_active(partition: Path) -> None:
    cut_at_batch(partition / f"{80:020d}.log", 90)


@pytest.mark.parametrize(("damage", "first"), [(drop_active, 80), (drop_logs, 0), (cut_active, 90)])
@pytest.mark.parametrize("witness", [RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE, "snapshot", "index"])
def test_each_witness_of_the_end(
    partition: Path, damage: Callable[[Path], None], first: int, witness: str
) -> None:
    damage(partition)
    for name in (RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE):
        if name != witness:
            set_line(partition, name, None)
    if witness != "snapshot":
        for path in partition.glob("*.snapshot"):
            path.unlink()
    if witness != "index":
        for path in [*partition.glob("*.index"), *partition.glob("*.timeindex")]:
            path.unlink()
    if witness == "index" and damage is drop_active:
        assert found(partition) == []  # nothing is left of it
        return
    ((place, start, end, is_proven),) = found(partition)
    assert (place, start, is_proven) == ("end", first, True)
    # The last index entry is of the last batch that lies more than 4 KiB behind the one before.
    assert end == 100 or (witness == "index" and first < end <= 100)
    assert found(partition, 0, first) == []


def test_a_line_that_the_last_snapshot_contradicts_is_not_believed_alone(partition: Path) -> None:
    set_line(partition, RECOVERY_POINT_FILE, 900)
    assert found(partition) == [("end", 100, 900, False)]
    set_line(partition, HIGH_WATERMARK_FILE, 800)
    assert found(partition) == [("end", 100, 800, True)]


def test_an_older_snapshot_contradicts_no_line(partition: Path) -> None:
    """The one that the stop in order wrote is gone, and so is what two witnesses knew."""
    remove(partition, 100)
    drop_active(partition)
    set_line(partition, HIGH_WATERMARK_FILE, None)
    set_line(partition, RECOVERY_POINT_FILE, 100)
    (partition / LEADER_EPOCH_CHECKPOINT_FILE).unlink()
    assert found(partition) == [("end", 80, 100, True)]


def test_a_wrong_index_entry_proves_nothing(partition: Path) -> None:
    for ending, entry in ((".timeindex", 12), (".index", 8)):
        path = partition / f"{80:020d}{ending}"
        whole = path.read_bytes()
        data = bytearray(whole)
        data[entry * -1 + (8 if entry == 12 else 0)] = 1  # the offset's highest byte
        path.write_bytes(data)
        assert found(partition) == []
        path.write_bytes(whole)


def test_damage_in_the_last_segment_is_not_its_end(partition: Path) -> None:
    log = partition / f"{80:020d}.log"
    data = bytearray(log.read_bytes())
    data[8] = 0x7F  # the length of the first batch
    log.write_bytes(data)
    assert found(partition) == []


def test_after_a_crash_the_end_may_lie_above_the_recovery_point(log_dir: Path) -> None:
    partition = built(log_dir, clean_shutdown=False)
    assert found(partition) == []
    drop_active(partition)
    assert found(partition) == [("end", 80, 100, True)]


# -- what is not judged ----------------------------------------------------------------------------


def test_named_files_are_not_judged(partition: Path) -> None:
    remove(partition, 40)
    (by_files,) = open_log_dir(*partition.glob("*.log"))
    assert missing_ranges(by_files) == []


def test_a_directory_set_aside_is_judged_by_its_own_files_only(partition: Path) -> None:
    remove(partition, 0)
    remove(partition, 40)
    aside = partition.with_name("orders-0.0123456789abcdef0123456789abcdef-stray")
    shutil.move(partition, aside)
    assert found(aside) == [("middle", 40, 60, True)]


def test_a_loss_that_is_gone_when_looked_at_again_was_none(partition: Path) -> None:
    """A broker that swaps segments while the directory is listed."""
    kept = partition.parent / "kept"
    (partition / f"{40:020d}.log").rename(kept)
    (seen,) = open_log_dir(partition)
    kept.rename(partition / f"{40:020d}.log")
    assert missing_ranges(seen) == []


def test_no_sample_has_lost_anything_but_what_is_in_remote_storage() -> None:
    roots = {p.parent for name in ("meta.properties", RECOVERY_POINT_FILE)
             for p in SAMPLES.rglob(name)}  # fmt: skip
    assert len(roots) > 10
    said = {
        (root.relative_to(SAMPLES).as_posix(), str(p.topic_partition)): str(missing)
        for root in roots
        for p in open_log_dir(root)
        for missing in missing_ranges(p)
    }
    assert list(said) == [("tiered/data", "tiered-0")]
    assert "offsets 0 to 381 are not here" in said["tiered/data", "tiered-0"]
    assert (SAMPLES / "tiered/data" / CLEAN_SHUTDOWN_FILE).exists()
