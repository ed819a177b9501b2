"""Which uploads count where several cover the same offsets: as for a broker's fetch."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog import open_log_dir, read_records
from kafkalog.log.remote_segments import CopyState, with_remote_segments
from kafkalog.remote.paths import RemoteStorage
from tests.support.aiven_store import Plugin
from tests.support.log_builder import LogBuilder

A, B, C = "A" * 22, "B" * 22, "C" * 22


class Tiered:
    """A partition of ten records in segments of two, the first eight only in remote storage."""

    def __init__(self, log_dir: Path, store: Path) -> None:
        self.log_dir, self.store = log_dir, store
        self.directory = log_dir / "orders-0"
        log = LogBuilder(log_dir, "orders-0")
        for offset in range(0, 10, 2):
            log.segment().batch((f"k{offset}", "v")).batch((f"k{offset + 1}", "v"))
        log.write()

    def upload(
        self, base: int, segment_id: str, end: int | None = None, **manifest: object
    ) -> None:
        end_offset = base + 1 if end is None else end
        log = self.directory / f"{base:020d}.log"
        if end is not None and end > base + 1:  # a leader that rolled later
            log = self.store / "orders-0" / log.name
            log.parent.mkdir(parents=True, exist_ok=True)
            parts = range(base, end + 1, 2)
            paths = [self.directory / f"{part:020d}.log" for part in parts]
            log.write_bytes(b"".join(path.read_bytes() for path in paths))
            log.with_suffix(".timeindex").write_bytes(bytes(12))
        place = self.store / "objects"
        Plugin().copy(log, place, segment_id=segment_id, end_offset=end_offset, **manifest)  # type: ignore[arg-type]

    def epochs(self, *entries: tuple[int, int]) -> None:
        lines = "".join(f"{epoch} {start}\n" for epoch, start in entries)
        text = f"0\n{len(entries)}\n{lines}"
        (self.directory / "leader-epoch-checkpoint").write_text(text)

    def drop(self, *bases: int) -> None:
        for base in bases:
            for path in self.directory.glob(f"{base:020d}.*"):
                path.unlink()

    def chosen(self, copies: dict[str, CopyState] | None = None) -> list[tuple[int, str]]:
        (partition,) = with_remote_segments(
            open_log_dir(self.log_dir), RemoteStorage((str(self.store / "objects"),)), copies
        )
        return [
            (s.base_offset, s.path[-26:-25])
            for s in partition.segments
            if s.state == "remote"
        ]  # fmt: skip

    def offsets(self) -> list[int]:
        found = read_records(self.log_dir, columns=["offset"], remote_dirs=self.store / "objects")
        offsets: list[int] = found.read_all()["offset"].to_pylist()
        return offsets


@pytest.fixture
def tiered(log_dir: Path, tmp_path: Path) -> Tiered:
    return Tiered(log_dir, tmp_path)


def test_of_two_uploads_of_one_range_one_is_read(tiered: Tiered) -> None:
    for base in (0, 2, 4, 6):
        tiered.upload(base, A)
        tiered.upload(base, B, event_ms=2)
    tiered.drop(0, 2, 4, 6)
    assert tiered.chosen() == [(0, "B"), (2, "B"), (4, "B"), (6, "B")]
    assert tiered.offsets() == list(range(10))


def test_segments_of_leaders_that_rolled_elsewhere_follow_one_another(tiered: Tiered) -> None:
    tiered.upload(0, A, end=5)
    tiered.upload(2, B)  # all of it is in A
    tiered.upload(4, C, end=7)
    tiered.drop(0, 2, 4, 6)
    assert tiered.chosen() == [(0, "A"), (4, "C")]
    assert tiered.offsets() == list(range(10))


def test_what_the_metadata_has_not_as_finished_does_not_count(tiered: Tiered) -> None:
    tiered.upload(0, A, event_ms=9)
    tiered.upload(0, B)
    states = {A: CopyState(is_finished=False), B: CopyState(is_finished=True)}
    tiered.drop(0)
    assert tiered.chosen() == [(0, "A")]
    assert tiered.chosen(states) == [(0, "B")]
    assert tiered.chosen({A: states[A], B: states[A]}) == []


def test_records_of_a_leader_that_was_replaced_do_not_count(tiered: Tiered) -> None:
    """Epoch 1 ended at offset 4 in the partition; a leader of that time had gone on."""
    tiered.upload(0, A, epochs={0: 0})
    tiered.upload(2, B, end=7, epochs={1: 2}, event_ms=9)
    tiered.upload(2, C, epochs={1: 2})
    tiered.upload(4, A, epochs={3: 4})
    tiered.upload(6, A, epochs={3: 6})
    tiered.epochs((0, 0), (1, 2), (3, 4))
    tiered.drop(0, 2, 4, 6)
    assert tiered.chosen() == [(0, "A"), (2, "C"), (4, "A"), (6, "A")]
    assert tiered.offsets() == list(range(10))


def test_a_segment_goes_as_far_as_the_partition_has_its_epoch(tiered: Tiered) -> None:
    """Where nothing but the longer upload has the range in front of where it departs."""
    tiered.upload(0, A, end=7, epochs={0: 0})
    tiered.upload(4, B, epochs={2: 4})
    tiered.upload(6, B, epochs={2: 6})
    tiered.epochs((0, 0), (2, 4))
    tiered.drop(0, 2, 4, 6)
    assert tiered.chosen() == [(0, "A"), (4, "B"), (6, "B")]
    tiered.epochs((0, 0), (2, 3))  # nobody has offset 3 as the partition has it
    assert tiered.chosen() == [(4, "B"), (6, "B")]


def test_an_epoch_that_the_partition_never_had_does_not_count(tiered: Tiered) -> None:
    tiered.upload(0, A, epochs={7: 0})
    tiered.upload(2, A, epochs={1: 2})
    tiered.epochs((0, 0), (1, 2), (8, 4))
    tiered.drop(0, 2)
    assert tiered.chosen() == [(2, "A")]


def test_epochs_older_than_all_that_the_partition_has_are_not_judged(tiered: Tiered) -> None:
    tiered.upload(0, A, epochs={0: 0})
    tiered.upload(2, A, epochs={0: 2, 1: 3})
    tiered.epochs((1, 4))  # its log start has moved
    tiered.drop(0, 2)
    assert tiered.chosen() == [(0, "A"), (2, "A")]
