"""A log start line below the first segment: tiered storage, or what a broker that died left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE, parse_offset_checkpoint
from tests.operations.faults.logs import contents
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.metadata_builder import MetadataBuilder, config, topic

NOW = ["--now", str(START_MS + 10_000)]
COMPACT = ["compact", "--config=cleanup.policy=compact", "--config=min.cleanable.dirty.ratio=0"]
RETAIN = ["retain", "--config=cleanup.policy=delete", "--config=retention.ms=1000"]
TIERED = "remote.storage.enable"


def write_log(log_dir: Path, log_start: int | None) -> Path:
    log = LogBuilder(log_dir, "orders-0")
    for number in range(3):
        log.segment(40 + 2 * number, modified_ms=START_MS)
        log.batch(("a", str(number)), ("b", str(number)), timestamp=START_MS)
    if log_start is not None:
        log.log_start_offset(log_start)
    return log.write()


def run(
    log_dir: Path, verb: list[str], *words: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    where = ["--log-dir", str(log_dir), "--topic", "orders", "--apply", "--json", *NOW]
    code = main([verb[0], *where, *verb[1:], *words])
    (partition,) = json.loads(capsys.readouterr().out)["partitions"]
    return code, partition


@pytest.mark.parametrize("verb", [COMPACT, RETAIN], ids=["compact", "retain"])
def test_without_the_topics_own_word_nothing_is_touched(
    log_dir: Path, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(log_dir, 7)
    before = contents(log_dir)
    code, partition = run(log_dir, verb, capsys=capsys)
    assert (code, partition["status"]) == (3, "refused")
    assert partition["reason"] == (
        "the log start offset 7 is not above segment 40, the first: there are remote segments, or "
        "the line is stale; --config remote.storage.enable=false says that it is"
    )
    assert contents(log_dir) == before
    code, partition = run(log_dir, verb, f"--config={TIERED}=false", capsys=capsys)
    assert (code, partition["status"]) == (0, "compacted" if verb is COMPACT else "deleted")


@pytest.mark.parametrize("verb", [COMPACT, RETAIN], ids=["compact", "retain"])
def test_the_clusters_word_makes_it_stale_and_the_log_starts_with_its_segment(
    log_dir: Path, tmp_path: Path, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    policy = config("orders", "cleanup.policy", "compact" if verb is COMPACT else "delete")
    plain = tmp_path / "plain"
    for where, line in ((log_dir, 7), (plain, None)):
        write_log(where, line)
        MetadataBuilder(where).batch(topic("orders"), policy).write()
    (code, stale), (_, sound) = (run(d, verb, capsys=capsys) for d in (log_dir, plain))
    assert code == 0
    assert stale["logStartOffset"] == sound["logStartOffset"]
    # Kept as it is by a compaction, settled by retention as a broker does it.
    file = log_dir / LOG_START_OFFSET_FILE
    left = {} if verb is RETAIN else {("orders", 0): 7}
    assert dict(parse_offset_checkpoint(file.read_bytes())) == left
    names = {n: c for n, c in contents(log_dir).items() if n.startswith("orders-0/")}
    wanted = {n: c for n, c in contents(plain).items() if n.startswith("orders-0/")}
    assert {n: c[0] for n, c in names.items()} == {n: c[0] for n, c in wanted.items()}


def test_a_tiered_topic_keeps_its_line_and_everything_else(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(log_dir, 7)
    MetadataBuilder(log_dir).batch(topic("orders"), config("orders", TIERED, "true")).write()
    before = contents(log_dir)
    code, partition = run(log_dir, RETAIN, capsys=capsys)
    assert (code, partition["status"]) == (3, "refused")
    code, partition = run(log_dir, RETAIN, f"--config={TIERED}=false", capsys=capsys)
    assert (code, partition["status"]) == (3, "refused")
    assert contents(log_dir) == before
