"""What forbids to restore into a stopped cluster, or a new one: no room, another topic of the same
name, fewer partitions, log dirs of two clusters. Nothing of them is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.restoring import space
from tests.restoring.fresh import fresh_node
from tests.restoring.target import TARGET_ID, contents, empty_target, restore, served
from tests.support.log_builder import TOPIC_ID, LogBuilder
from tests.support.metadata_builder import MetadataBuilder, partition, topic


@pytest.mark.parametrize("make", [empty_target, fresh_node])
def test_disk_without_room_is_refused_and_says_how_much_it_takes(
    make: Callable[[Path], Path], source: Path, log_dir: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    target = make(log_dir / "target")
    before = contents(target)
    monkeypatch.setattr(space, "free_bytes", lambda _: 1000)
    assert restore(source, target) == 3
    assert "no space: it takes 1177 bytes" in "".join(capsys.readouterr())
    assert contents(target) == before


def test_replica_of_a_topic_that_was_deleted_is_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = log_dir / "target"
    MetadataBuilder(target).batch(topic("orders", TARGET_ID), partition([1], TARGET_ID)).write()
    LogBuilder(target, "orders-0", topic_id=TOPIC_ID).segment().write()
    before = contents(target)
    assert restore(source, target) == 3
    assert f"of another topic id than the target's {TARGET_ID}" in "".join(capsys.readouterr())
    assert contents(target) == before


def test_partitions_that_the_target_lacks_are_refused_and_the_others_restored(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = log_dir / "source"
    for number in range(3):
        LogBuilder(source, f"orders-{number}").segment().batch((f"k{number}", "v")).write()
    target = empty_target(log_dir / "target", {"orders": 2})
    assert restore(source, target) == 1
    assert "the target's orders has 2 partitions" in "".join(capsys.readouterr())
    for number in range(2):
        assert served(target / f"orders-{number}") == served(source / f"orders-{number}")
    assert not (target / "orders-2").exists()


def test_log_dirs_of_two_clusters_are_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = empty_target(log_dir / "target")
    other = empty_target(log_dir / "other", {"others": 1})
    meta = (other / "meta.properties").read_text().splitlines()
    changed = [line if "cluster.id" not in line else f"cluster.id={TARGET_ID}" for line in meta]
    (other / "meta.properties").write_text("\n".join(changed))
    before = contents(target), contents(other)
    assert restore(source, target, other) == 3
    assert "log dirs of more than one cluster" in "".join(capsys.readouterr())
    assert (contents(target), contents(other)) == before


def test_one_partition_is_given_by_its_directory(log_dir: Path) -> None:
    source = log_dir / "source"
    for number in range(2):
        LogBuilder(source, f"orders-{number}").segment().batch((f"k{number}", "v")).write()
    target = empty_target(log_dir / "target", {"orders": 2})
    assert restore(source / "orders-1", target) == 0
    assert served(target / "orders-1") == served(source / "orders-1")
    assert served(target / "orders-0")[0] == []
