"""A source of several nodes' log dirs: of each partition the copy that goes furthest is taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE, pack_offset_checkpoint
from kafkalog.log.inventory import PartitionKind
from kafkalog.log.log_dir import open_log_dir
from tests.restoring.fresh import CLUSTER, fresh_node
from tests.restoring.lost import DIRS
from tests.restoring.target import empty_target, served
from tests.support.log_builder import LogBuilder

TOPIC_ID = "7L6g3nShT-eMCtK--X86sw"


def node(log_dir: Path, *epochs: int, topic_id: str = TOPIC_ID) -> Path:
    """A copy with a batch of each of these epochs, two records each; the node is the last digit."""
    log = LogBuilder(log_dir, "orders-0", topic_id=topic_id).segment()
    for number, epoch in enumerate(epochs):
        log.epoch(epoch).batch(("a", f"{epoch} {number}"), ("b", f"{epoch} {number}"))
    log.write()
    identity = f"version=1\ncluster.id={CLUSTER}\nnode.id={log_dir.name[-1]}\n"
    (log_dir / "meta.properties").write_text(identity)
    return log_dir


def rows(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[dict[str, Any]]:
    assert main(["restore", *words, "--json"]) == code
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["partitions"]
    return found


def test_latest_leader_epoch_counts_then_the_length(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    longest = node(log_dir / "1", 0, 1, 1, 1)
    shorter, best = node(log_dir / "2", 0, 1, 2), node(log_dir / "3", 0, 1, 2, 2)
    same = node(log_dir / "4", 0, 1, 2, 2)
    target = empty_target(log_dir / "target")
    dirs = [str(path) for path in (longest, shorter, best, same)]
    (row,) = rows(capsys, *dirs, "--into", str(target), "--topic", "orders", "--apply")
    assert (row["status"], row["endOffset"]) == ("restored", 8)
    assert row["source"] == str(best / "orders-0")
    (said,) = (each for each in row["warnings"] if each.startswith("of 4 copies"))
    assert f"{longest / 'orders-0'} ends at offset 8 of epoch 1" in said
    assert f"{shorter / 'orders-0'} ends at offset 6 of epoch 2" in said
    assert str(same) not in said
    assert served(target / "orders-0") == served(best / "orders-0")


def test_copy_that_is_not_whole_is_left_out_and_said(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, damaged = node(log_dir / "1", 0, 1), node(log_dir / "2", 0, 1, 2)
    above_its_end = pack_offset_checkpoint({("orders", 0): 99})
    (damaged / LOG_START_OFFSET_FILE).write_bytes(above_its_end)
    target = empty_target(log_dir / "target")
    words = [str(whole), str(damaged), "--into", str(target), "--topic", "orders"]
    (row,) = rows(capsys, *words)
    assert row["source"] == str(whole / "orders-0")
    assert any("of 2 copies" in each for each in row["warnings"]), row


def test_copies_under_several_topic_ids_are_refused(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = [node(log_dir / "1", 0), node(log_dir / "2", 0, topic_id="8" + TOPIC_ID[1:])]
    target = empty_target(log_dir / "target")
    found = rows(capsys, *map(str, sources), "--into", str(target), "--topic", "orders", code=1)
    assert found
    assert all("of several clusters or topic ids" in row["reason"] for row in found)


def test_three_real_nodes_are_one_source(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = copy_sample("cluster", log_dir / "nodes")
    dirs = [str(nodes / name) for name in DIRS]
    copies: dict[str, list[Path]] = {}
    for each in open_log_dir(*dirs):
        if each.kind is not PartitionKind.LIVE:
            continue
        copies.setdefault(str(each.topic_partition), []).append(Path(each.path))
    target = fresh_node(log_dir / "target")
    words = ["--into", str(target), "--topic", "*", "--end-transactions", "abort", "--apply"]
    found = rows(capsys, *dirs, *words)
    assert max(len(paths) for paths in copies.values()) == 3
    names = [f"{row['topic']}-{row['partition']}" for row in found]
    assert len(names) == len(set(names)) > 3
    assert {row["status"] for row in found} == {"restored"}
    for name, row in zip(names, found, strict=True):
        ends = [served(path)[0][-1:] for path in copies[name]]
        assert served(target / name)[0][-1:] == max(ends), row
