"""Runs over several partitions: what is refused, what fails alone, what is written at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, parse_offset_checkpoint
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.compact import apply_run
from kafkalog.operations.compact_document import run_document
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.operations.worker_processes import clean_in_processes
from kafkalog.requests.run_request import CompactionRequest
from tests.cleaning.test_laws import CONFIG, compact
from tests.operations.faults.logs import contents
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.topics import topics_of

NOW_MS = START_MS + 10_000_000


def write_partition(log_dir: Path, name: str, *, keyless: int = 0) -> Path:
    log = LogBuilder(log_dir, name)
    log.segment(modified_ms=START_MS).batch(("a", "1"), ("b", "1"))
    log.segment(modified_ms=START_MS).batch(("a", "2"), *[(None, "v")] * keyless)
    log.segment(modified_ms=START_MS).batch(("a", "3"))
    return log.write()


def partition_contents(log_dir: Path, name: str) -> dict[str, tuple[bytes, int]]:
    return {n: c for n, c in contents(log_dir).items() if n.startswith(f"{name}/")}


def checkpoint(log_dir: Path) -> dict[tuple[str, int], int]:
    path = log_dir / CLEANER_OFFSET_FILE
    return dict(parse_offset_checkpoint(path.read_bytes(), str(path))) if path.exists() else {}


def test_keyless_records_are_refused_unless_forced(log_dir: Path) -> None:
    write_partition(log_dir, "t-0", keyless=3)
    before = contents(log_dir)
    (result,) = compact(log_dir).results
    assert result.status == "refused"
    assert "3 records have no key" in result.reason
    assert "--force null-keys" in result.reason
    assert contents(log_dir) == before
    (result,) = compact(log_dir, "null-keys").results
    assert result.status == "compacted"
    assert (result.stats.no_key, result.stats.superseded) == (3, 1)


def test_a_dry_run_says_what_it_has_not_looked_at_and_looks_if_asked(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every refusal is in the plan: without a key, and a checksum that is wrong."""
    write_partition(log_dir, "t-0", keyless=3)
    write_partition(log_dir, "t-1")
    write_partition(log_dir, "t-2")
    damaged = log_dir / "t-1" / f"{0:020d}.log"
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    arguments = ["compact", "--log-dir", str(log_dir), "--topic", "t", "--now", str(NOW_MS)]
    for key, value in CONFIG.given().items():
        arguments += ["--config", f"{key}={value}"]
    before = contents(log_dir)
    assert main(arguments) == 0
    assert "records were not looked at: one without a key" in capsys.readouterr().err
    assert main([*arguments, "--estimate", "--json"]) == 1
    out = json.loads(capsys.readouterr().out)["partitions"]
    assert [row["status"] for row in out] == ["refused", "refused", "clean"]
    assert "3 records have no key, compaction would drop them" in out[0]["reason"]
    assert "CRC of the batch" in out[1]["reason"]
    forced = [*arguments, "--estimate", "--force", "null-keys", "--json"]
    assert main(forced) == 1
    out = json.loads(capsys.readouterr().out)["partitions"]
    assert [row["status"] for row in out] == ["clean", "refused", "clean"]
    assert contents(log_dir) == before


@pytest.mark.parametrize("workers", [1, 2])
def test_a_damaged_partition_stays_and_the_others_are_done(log_dir: Path, workers: int) -> None:
    for name in ("t-0", "t-1", "u-0"):
        write_partition(log_dir, name)
    damaged = log_dir / "t-1" / f"{0:020d}.log"
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    before = partition_contents(log_dir, "t-1")
    request = CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=topics_of(log_dir))
    told = list[str]()
    run = apply_run(
        request, lambda plans, run: clean_in_processes(plans, run, workers), told.append
    )
    statuses = {f"{r.topic}-{r.partition}": r.status for r in run.results}
    assert statuses == {"t-0": "compacted", "t-1": "failed", "u-0": "compacted"}
    (failed,) = (r for r in run.results if r.status == "failed")
    assert f"{damaged} @ 0 (offset 0): CRC of the batch" in failed.reason
    assert partition_contents(log_dir, "t-1") == before
    assert checkpoint(log_dir) == {("t", 0): 3, ("u", 0): 3}
    assert len(told) == 3
    document = json.loads(json.dumps(run_document(run, 1.0)))
    assert [p["status"] for p in document["partitions"]] == ["compacted", "failed", "compacted"]


def test_a_damaged_partition_makes_the_exit_code_1(log_dir: Path) -> None:
    write_partition(log_dir, "t-0")
    path = log_dir / "t-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    words = ["compact", "--log-dir", str(log_dir), "--topic", "t", "--apply", "--now", str(NOW_MS)]
    assert main([*words, "--config", "cleanup.policy=compact"]) == 1


def test_apply_needs_topics(log_dir: Path) -> None:
    write_partition(log_dir, "t-0")
    before = contents(log_dir)
    with pytest.raises(InvalidConfigError, match="--apply needs --topic"):
        apply_run(CompactionRequest((str(log_dir),), NOW_MS, CONFIG), clean_pack)
    assert contents(log_dir) == before


def test_only_what_is_named_is_changed(log_dir: Path) -> None:
    for name in ("t-0", "t-1", "u-0"):
        write_partition(log_dir, name)
    before = {name: partition_contents(log_dir, name) for name in ("t-1", "u-0")}
    request = CompactionRequest(
        (str(log_dir),),
        NOW_MS,
        CONFIG,
        topics=("t",),
        topic_partitions=(TopicPartition("t", 0),),
    )
    run = apply_run(request, clean_pack)
    assert [(r.topic, r.partition) for r in run.results] == [("t", 0)]
    assert {name: partition_contents(log_dir, name) for name in before} == before
    assert checkpoint(log_dir) == {("t", 0): 3}


def test_a_checkpoint_outside_the_log_is_corrected_without_cleaning(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "t-0").segment(10).batch(("a", "1")).cleaner_offset(3)
    log.log_start_offset(10)
    log.write()
    run = compact(log_dir)
    assert run.results == ()
    assert run.plans[0].checkpoint_reset == 10
    assert checkpoint(log_dir) == {("t", 0): 10}


def test_an_unknown_rule_to_force_is_an_error(log_dir: Path) -> None:
    write_partition(log_dir, "t-0")
    with pytest.raises(InvalidConfigError, match="unknown rule to force: everything"):
        compact(log_dir, "everything")


def test_an_index_that_would_overflow_refuses_the_partition_and_leaves_it(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "t-0", index_interval_bytes=10**6)
    for i in range(2):
        log.segment(modified_ms=START_MS)
        for j in range(4):
            log.batch((f"{i}{j}", "v" * 100))
    log.segment().batch(("x", "1"))
    log.write()
    before = contents(log_dir)
    words = ["compact", "--log-dir", str(log_dir), "--topic", "t", "--apply", "--now", str(NOW_MS)]
    words += ["--config=cleanup.policy=compact", "--config=min.cleanable.dirty.ratio=0"]
    words += ["--config=segment.index.bytes=48", "--config=index.interval.bytes=0"]
    assert main(words) == 3
    assert contents(log_dir) == before
    assert main([*words[:-2], "--config=index.interval.bytes=0"]) == 0
