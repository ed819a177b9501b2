"""`restore --compact`: what is put in place is what Kafka's cleaner makes of the restored log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.control_record import ControlRecordType
from tests.oracle.kafka import Kafka
from tests.restoring.fresh import fields_of, fresh_node
from tests.restoring.target import empty_target
from tests.support.log_builder import START_MS, LogBuilder

NOW_MS = START_MS + 10 * 86_400_000
SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
CLEANED = (".log", ".index", ".timeindex", ".txnindex")


def updated(log_dir: Path) -> Path:
    """Keys again and again, tombstones, an aborted transaction and one that committed, in three
    segments, of leader epoch 2.
    """
    log = LogBuilder(log_dir, "orders-0").segment().epoch(2)
    log.batch(("a", "1"), ("b", "1"), ("c", "1")).batch(("a", "2"), ("d", "1"))
    log.batch(("a", "no"), ("e", "no"), producer_id=5, is_transactional=True)
    log.marker(ControlRecordType.ABORT, 5).segment().batch(("b", None), ("a", "3"))
    log.batch(("c", "2"), producer_id=6, is_transactional=True)
    log.marker(ControlRecordType.COMMIT, 6).segment().batch(("a", "4"), ("f", "1")).write()
    return log_dir


def files_of(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(directory.iterdir()) if p.suffix in CLEANED}


def restored(source: Path, target: Path, *words: str) -> int:
    args = ["restore", str(source), "--into", str(target), "--topic", "orders", *words]
    return main([*args, "--now", str(NOW_MS), "--apply"])


@pytest.mark.oracle
@pytest.mark.parametrize("target_is_new", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_compacted_on_the_way_is_what_kafkas_cleaner_makes_of_it(
    target_is_new: bool, log_dir: Path
) -> None:
    source = updated(log_dir / "source")
    targets = [log_dir / name for name in ("by-kafka", "target")]
    for target in targets:
        fresh_node(target) if target_is_new else empty_target(target, configs=SETTINGS)
    by_kafka, target = targets
    assert restored(source, by_kafka) == 0
    assert restored(source, target, "--compact") == 0
    whole = files_of(by_kafka / "orders-0")
    marks = pack_offset_checkpoint({("orders", 0): 14})
    (by_kafka / HIGH_WATERMARK_FILE).write_bytes(marks)
    for path in (by_kafka / "orders-0").glob("kafkalog-*"):
        path.unlink()
    with Kafka() as kafka:
        answer = kafka.clean(by_kafka, "orders-0", now_ms=NOW_MS, config=SETTINGS)
    assert "skipped" not in answer or not answer["skipped"], answer
    cleaned = files_of(by_kafka / "orders-0")
    assert cleaned != whole
    assert files_of(target / "orders-0") == cleaned
    assert _first_dirty(target) == _first_dirty(by_kafka) == {("orders", 0): 12}


def _first_dirty(log_dir: Path) -> dict[tuple[str, int], int]:
    path = log_dir / CLEANER_OFFSET_FILE
    return dict(parse_offset_checkpoint(path.read_bytes(), str(path))) if path.exists() else {}


@pytest.mark.parametrize("target_is_new", [True, False])
def test_undo_takes_a_compacted_restore_back(
    target_is_new: bool, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = updated(log_dir / "source"), log_dir / "target"
    if target_is_new:
        fresh_node(target)
    else:
        empty_target(target, configs=SETTINGS)
        lines = pack_offset_checkpoint({("orders", 0): 0})
        (target / CLEANER_OFFSET_FILE).write_bytes(lines)
    before = shutil.copytree(target, log_dir / "before")
    assert restored(source, target, "--compact", "--json") == 0
    run_id = json.loads(capsys.readouterr().out)["runId"]
    assert _first_dirty(target) == {("orders", 0): 12}
    assert (target / "orders-0").exists()
    assert main(["undo", run_id]) == 0
    names = {path.relative_to(target) for path in target.rglob("*")} - {Path(".lock")}
    assert names == {path.relative_to(before) for path in before.rglob("*")} - {Path(".lock")}
    assert _first_dirty(target) == _first_dirty(before)
    if not target_is_new:
        assert files_of(target / "orders-0") == files_of(before / "orders-0")


def test_what_is_not_compacted_gets_no_cleaner_checkpoint(log_dir: Path) -> None:
    target = fresh_node(log_dir / "target")
    assert restored(updated(log_dir / "source"), target) == 0
    assert _first_dirty(target) == {}


def test_only_topics_that_are_compacted_are(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = updated(log_dir / "source")
    whole, target = empty_target(log_dir / "whole"), empty_target(log_dir / "target")
    assert restored(source, whole) == 0
    assert main(["restore", str(source), "--into", str(target), "--compact"]) == 0
    assert "is not compacted, since its cleanup.policy is delete" in capsys.readouterr().err
    assert restored(source, target, "--compact") == 0
    assert files_of(target / "orders-0") == files_of(whole / "orders-0")


def test_policy_that_nothing_tells_is_what_a_named_topic_gets(log_dir: Path) -> None:
    source = updated(log_dir / "source")
    named, by_glob = fresh_node(log_dir / "named"), fresh_node(log_dir / "by-glob")
    for target, topic in ((named, "orders"), (by_glob, "*")):
        words = ["--into", str(target), "--topic", topic, "--compact", "--apply"]
        assert main(["restore", str(source), *words, "--now", str(NOW_MS)]) == 0
    settings = [
        {str(each["name"]): each["value"] for each in fields_of(target, "ConfigRecord")}
        for target in (named, by_glob)
    ]
    assert settings == [
        {"cleanup.policy": "compact"}, {"retention.ms": "-1", "retention.bytes": "-1"}
    ]  # fmt: skip
    logs = [sorted((path / "orders-0").glob("*.log")) for path in (source, named, by_glob)]
    sizes = [sum(path.stat().st_size for path in paths) for paths in logs]
    assert sizes[1] < sizes[0] == sizes[2]


def test_what_settings_forbid_to_clean_stays_and_is_said(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = copy_sample("cleaning/before", log_dir / "source")
    target = fresh_node(log_dir / "target")
    words = [str(source), "--into", str(target), "--topic", "accounts", "--compact", "--apply"]
    assert main(["restore", *words, "--now", str(NOW_MS), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["partitions"]
    assert {row["reason"][:22] for row in rows} == {"nothing was compacted:"}
    logs = [sorted((path / "accounts-0").glob("*.log")) for path in (source, target)]
    assert [p.read_bytes() for p in logs[0]] == [p.read_bytes() for p in logs[1]]


def test_records_without_a_key_are_refused(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = log_dir / "source"
    log = LogBuilder(source, "orders-0").segment().batch(("a", "1"), (None, "2"))
    log.segment().batch(("a", "2")).write()
    target = empty_target(log_dir / "target", configs=SETTINGS)
    before = files_of(target / "orders-0")
    assert restored(source, target, "--compact") in (1, 3)
    assert "cannot be compacted" in "".join(capsys.readouterr())
    assert files_of(target / "orders-0") == before
    assert list((target / "orders-0").glob("kafkalog-*")) == []
