"""Replicas that were out of sync for longer than delete.retention.ms, as the metadata log has it:
real ones of the samples, and what is none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.texts import format_timestamp
from tests.auditing.disks import DAY_MS, HOUR_MS, NOW_MS, ORDERS_ID
from tests.auditing.documents import audited_document, findings_of
from tests.conftest import SAMPLES_NOW_MS
from tests.support.log_builder import LogBuilder
from tests.support.metadata_builder import (
    MetadataBuilder,
    change_replicas,
    config,
    frame,
    numbers,
    partition,
    remove_topic,
    tags,
    topic,
    uuid,
)

KIND = "replica-away-too-long"
AWAY_MS = NOW_MS - 10 * DAY_MS


def in_sync(*nodes: int) -> bytes:
    """A PartitionChangeRecord with other in-sync replicas."""
    return frame(5, 0, bytes(4) + uuid(ORDERS_ID) + tags((0, numbers(list(nodes)))))


class Cluster:
    """The topic `orders` with replicas on nodes 1 and 2, on node 1's disk; its settings."""

    def __init__(self, log_dir: Path, policy: str = "compact", retention_ms: int = DAY_MS) -> None:
        self.log_dir, self.metadata = log_dir, MetadataBuilder(log_dir)
        self.newest_ms = NOW_MS - HOUR_MS
        settings = {"cleanup.policy": policy, "delete.retention.ms": str(retention_ms)}
        self.first = [topic("orders", ORDERS_ID), partition([1, 2], ORDERS_ID)]
        self.first += [config("orders", name, value) for name, value in settings.items()]
        self.at(AWAY_MS - DAY_MS, *self.first)

    def at(self, time_ms: int, *values: bytes) -> Cluster:
        if not self.metadata.log.segments:
            self.metadata.segment()
        self.metadata.log.batch(
            *((None, value) for value in values), partition_leader_epoch=1, timestamp=time_ms
        )
        return self

    def audit(self) -> dict[str, Any]:
        log = LogBuilder(self.log_dir, "orders-0", topic_id=ORDERS_ID)
        log.segment().batch(("a", "1"), timestamp=AWAY_MS - DAY_MS)
        log.segment().batch(("b", "1"), timestamp=self.newest_ms).write()
        self.metadata.write()
        return audited_document(self.log_dir, now_ms=NOW_MS)

    def found(self) -> list[dict[str, Any]]:
        return findings_of(self.audit(), KIND)


def test_the_absence_of_the_samples_is_named_with_its_setting() -> None:
    document = audited_document(SAMPLES / "replicas" / "node1", now_ms=SAMPLES_NOW_MS)
    found = findings_of(document, KIND)
    assert [(f["topic"], f["partition"], f["severity"]) for f in found] == [
        ("abrt", 0, "warning"), ("tomb", 0, "warning")
    ]  # fmt: skip
    # The times are those of the changes that node 1's metadata log has at offsets 95 and 142.
    away = "node 2 was out of sync from 2026-11-29T03:44:10.003Z to 2026-11-29T03:44:56.309Z"
    for each, what in zip(found, ("tombstones and transaction markers", "tombstones"), strict=True):
        assert each["text"] == (
            f"{away}, 46306 ms: longer than delete.retention.ms 200, after which {what} are "
            "cleaned away that it never got"
        )
        assert "kafkalog compare" in each["fix"]


def test_who_came_back_in_time_or_has_missed_nothing_is_not_named(tmp_path: Path) -> None:
    names = ("in time", "deletes", "moved", "removed", "idle", "late")
    clusters = {name: tmp_path / name for name in names}
    for path in clusters.values():
        path.mkdir()
    back_ms = AWAY_MS + DAY_MS
    in_time = Cluster(clusters["in time"]).at(AWAY_MS, in_sync(1)).at(back_ms, in_sync(1, 2))
    assert in_time.found() == []
    deletes = Cluster(clusters["deletes"], policy="delete").at(AWAY_MS, in_sync(1))
    assert deletes.found() == []
    moved = Cluster(clusters["moved"]).at(AWAY_MS, in_sync(1))
    moved.at(NOW_MS - DAY_MS, change_replicas([1, 3], ORDERS_ID), in_sync(1, 3))
    assert moved.found() == []
    removed = Cluster(clusters["removed"]).at(AWAY_MS, in_sync(1))
    assert removed.at(NOW_MS - HOUR_MS, remove_topic(ORDERS_ID), *removed.first).found() == []
    idle = Cluster(clusters["idle"]).at(AWAY_MS, in_sync(1))
    idle.newest_ms = AWAY_MS - 1
    assert idle.found() == []
    late = Cluster(clusters["late"]).at(AWAY_MS, in_sync(1)).at(back_ms + 1, in_sync(1, 2))
    assert len(late.found()) == 1


def test_an_absence_that_goes_on_counts_to_the_audit(tmp_path: Path) -> None:
    (found,) = Cluster(tmp_path).at(AWAY_MS, in_sync(1)).found()
    now, away = format_timestamp(NOW_MS), format_timestamp(AWAY_MS)
    assert f"node 2 is out of sync from {away} to {now} (now), {10 * DAY_MS} ms" in found["text"]
    assert "delete.retention.ms 1 d (86400000)" in found["text"]
    assert "raise delete.retention.ms of orders before node 2 comes back" in found["fix"]
    assert "compact --replicas" in found["fix"]


def test_of_several_absences_the_longest_is_named(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    for start_ms, days in ((AWAY_MS, 2), (AWAY_MS + 3 * DAY_MS, 4), (AWAY_MS + 8 * DAY_MS, 1)):
        cluster.at(start_ms, in_sync(1)).at(start_ms + days * DAY_MS, in_sync(1, 2))
    (found,) = cluster.found()
    assert f"{4 * DAY_MS} ms" in found["text"]
    assert found["text"].endswith("; 1 more such times")


@pytest.mark.parametrize("is_away", [True, False])
def test_a_snapshot_says_that_it_was_so_before(tmp_path: Path, is_away: bool) -> None:
    cluster = Cluster(tmp_path)
    changes = [in_sync(1)] if is_away else []
    cluster.metadata.log.segments.clear()
    cluster.metadata.snapshot(40, 1, *cluster.first, *changes, contained_ms=AWAY_MS)
    cluster.metadata.segment(40)
    found = cluster.at(NOW_MS - HOUR_MS, in_sync(1)).found()
    # Without the change it is away for an hour only.
    assert [f"{format_timestamp(AWAY_MS)} or before" in each["text"] for each in found] == (
        [True] if is_away else []
    )
