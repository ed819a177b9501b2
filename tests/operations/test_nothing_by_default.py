"""A log dir without its cluster's metadata, as people copy them: what nobody says is not deleted
by, and neither is what the disk contradicts.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import kafkalog
from kafkalog.cli.main import main
from kafkalog.log.retention_facts import scan_retention_facts
from kafkalog.planning.log_config import LogConfig
from tests.auditing.documents import audited_document
from tests.operations.faults.logs import contents
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.metadata_builder import (
    MetadataBuilder,
    config,
    new_leader,
    partition,
    topic,
)

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"
LATER = "2031-01-01"
DESPITE = ("--force", "clock-differs")
DAY = "--config=retention.ms=86400000"
DELETE = "--config=cleanup.policy=delete"


def retain(
    log_dir: Path, *words: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, dict[str, Any]]]:
    capsys.readouterr()
    code = main(["retain", "--log-dir", str(log_dir), "--now", LATER, *DESPITE, "--json", *words])
    document = json.loads(capsys.readouterr().out)
    return code, {Path(p["path"]).name: p for p in document["partitions"]}


def copied(tmp_path: Path, sample: str) -> Path:
    """A sample's log dir without the metadata log."""
    ignored = shutil.ignore_patterns("__cluster_metadata-0")
    return Path(shutil.copytree(SAMPLES / sample, tmp_path / "copy", ignore=ignored))


def logs_of(log_dir: Path) -> dict[str, Any]:
    return {name: data for name, data in contents(log_dir).items() if name.endswith(".log")}


@pytest.mark.parametrize("sample", ["broker", "groups/data", "share", "tiered/data"])
@pytest.mark.parametrize("said", [[DAY], [DAY, DELETE], [DAY, DELETE, "--force=config-differs"]])
def test_of_a_copied_log_dir_a_glob_deletes_nothing(
    tmp_path: Path, sample: str, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copied(tmp_path, sample)
    before = contents(copy)
    code, partitions = retain(copy, "--topic=*", *said, "--apply", capsys=capsys)
    assert code == 3
    assert {p["status"] for p in partitions.values()} == {"refused"}
    after = contents(copy)
    after.pop(".lock", None)
    assert after == before
    planned, _ = retain(copy, "--topic=*", *said, capsys=capsys)
    assert planned == 1


def test_what_is_said_of_a_topic_by_name_counts_unless_the_disk_contradicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copied(tmp_path, "broker")
    said = (DAY, DELETE, "--topic=orders", "--topic=compacted", "--topic-partition=orders-1",
            "--topic-partition=compacted-0")  # fmt: skip
    code, partitions = retain(copy, *said, capsys=capsys)
    assert code == 1
    assert partitions["orders-1"]["deletedBaseOffsets"]
    assert partitions["compacted-0"]["status"] == "refused"
    assert "cleaner-offset-checkpoint has it compacted" in partitions["compacted-0"]["reason"]
    # a table of the topic's own says it as well
    tables = tmp_path / "topics.toml"
    tables.write_text('["orders"]\ncleanup.policy = "delete"\n["*"]\nretention.ms = 1000\n')
    code, partitions = retain(copy, "--topic=*", f"--config-file={tables}", capsys=capsys)
    deleting = {name for name, p in partitions.items() if p["deletedBaseOffsets"]}
    assert deleting == {"orders-0", "orders-1", "orders-2"}
    # and force goes on against the evidence
    code, partitions = retain(copy, *said, "--force=config-differs", capsys=capsys)
    assert (code, bool(partitions["compacted-0"]["deletedBaseOffsets"])) == (0, True)


@pytest.mark.parametrize("remains", ["checkpoint", "batches"])
def test_connectors_topics_are_known_by_what_compaction_left(
    tmp_path: Path, remains: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their names are anybody's choice: a copy of a partition may have its batches alone."""
    log = LogBuilder(tmp_path, "connect-offsets-0")
    log.segment()
    if remains == "batches":
        log.batch(("a", "1"), timestamp=START_MS)
        log.segments[-1].log.clear()  # superseded: the first batch is gone
        log.segments[-1].batches.clear()
        log.batch(("b", "1"), timestamp=START_MS)
        log.next_offset += 5
    log.batch(("c", "1"), timestamp=START_MS)
    log.segment().batch(("a", "2"), timestamp=START_MS)
    if remains == "checkpoint":
        log.cleaner_offset(1)
    path = log.write()
    words = ("--topic=connect-offsets", DELETE, DAY, "--apply")
    code, partitions = retain(tmp_path, *words, capsys=capsys)
    assert code == 3
    reason = partitions["connect-offsets-0"]["reason"]
    assert "compact" in reason
    assert "--force config-differs" in reason
    assert len(list(path.glob("*.log"))) == 2
    assert retain(tmp_path, *words, "--force=config-differs", capsys=capsys)[0] == 0
    assert [file.name for file in path.glob("*.log")] == [f"{log.next_offset:020d}.log"]


@pytest.mark.parametrize(
    ("own", "line", "status"),
    [
        (None, None, "deleted"),  # no policy of its own, and nothing against Kafka's default
        (None, 1, "refused"),
        ("delete", 1, "deleted"),  # it was compacted once: the cluster says what it is now
        ("compact,delete", 1, "deleted"),
        ("compact", None, "skip"),
    ],
)
def test_the_clusters_word_is_stronger_than_a_line_and_its_silence_is_not(
    log_dir: Path,
    own: str | None,
    line: int | None,
    status: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = LogBuilder(log_dir, "orders-0")
    for _ in range(3):
        log.segment().batch(("a", "1"), timestamp=START_MS)
    if line is not None:
        log.cleaner_offset(line)
    log.write()
    said = [config("orders", "retention.ms", "1000")]
    said += [config("orders", "cleanup.policy", own)] if own else []
    MetadataBuilder(log_dir).batch(topic("orders"), *said).write()
    _, partitions = retain(log_dir, "--topic=*", "--apply", capsys=capsys)
    assert partitions["orders-0"]["status"] == status


@pytest.mark.parametrize("topic_id", ["5L6g3nShT-eMCtK--X86sw", None])
def test_a_topic_that_was_created_anew_or_came_later_is_not_the_metadatas(
    log_dir: Path, topic_id: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The metadata log is older than the partition, or the partition than the topic."""
    LogBuilder(log_dir, "orders-0").segment().batch(("a", "1"), timestamp=START_MS).write()
    known = topic("orders" if topic_id else "others", *([topic_id] if topic_id else []))
    short = config("orders" if topic_id else "others", "retention.ms", "1")
    MetadataBuilder(log_dir).batch(known, short).write()
    for more in ([], [DELETE], ["--force=config-differs"]):
        code, partitions = retain(log_dir, "--topic=orders", "--apply", *more, capsys=capsys)
        assert (code, partitions["orders-0"]["status"]) == (3, "refused")


@pytest.mark.parametrize(
    ("metadata_epoch", "changes", "is_older"),
    [(4, 0, False), (5, 0, False), (3, 0, True), (3, 1, False), (1, 2, True), (-1, 0, False)],
)
def test_metadata_that_is_older_than_the_log_says_nothing_of_its_policy(
    log_dir: Path,
    metadata_epoch: int,
    changes: int,
    is_older: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A leader has the epoch that the metadata gave it: a later one came after this metadata."""
    log = LogBuilder(log_dir, "orders-0").epoch(4)
    path = log.segment().batch(("a", "1"), timestamp=START_MS).write()
    own = config("orders", "retention.ms", "1000"), config("orders", "cleanup.policy", "delete")
    epochs = partition([1], leader_epoch=metadata_epoch), *[new_leader(1)] * changes
    MetadataBuilder(log_dir).batch(topic("orders"), *own, *epochs).write()
    for words in ([], [DELETE], ["--force=config-differs"]):
        _, partitions = retain(log_dir, "--topic=orders", *words, capsys=capsys)
        assert partitions["orders-0"]["status"] == ("refused" if is_older else "delete")
        assert ("is older than the log" in partitions["orders-0"]["reason"]) == is_older
    words = [DELETE, "--force=config-differs", "--apply"]
    code, partitions = retain(log_dir, "--topic=orders", *words, capsys=capsys)
    assert (code, partitions["orders-0"]["status"]) == (0, "deleted")
    assert [file.name for file in path.glob("*.log")] == [f"{1:020d}.log"]


def test_an_audit_advises_no_deletion_that_nobody_says(tmp_path: Path) -> None:
    copy = copied(tmp_path, "broker")
    document = audited_document(copy, now_ms=1_924_992_000_000)
    advised = {"retention-due", "retention-overdue", "consumed-by-all", "age-beyond-promise"}
    found = {(f["id"], f["topic"]) for f in document["findings"] if f["id"] in advised}
    assert found == set()
    topics = {row["topic"]: row for row in document["topics"]}
    assert topics["orders"]["cleanupPolicy"] == ""
    assert topics["orders"]["configSources"]["cleanup.policy"] == "unknown"
    for name in ("__consumer_offsets", "compacted"):
        assert topics[name]["cleanupPolicy"] == "compact"
    # supposed of all topics by an option: judged by it, but for what the disk contradicts
    supposed = audited_document(
        copy, now_ms=1_924_992_000_000, config=["cleanup.policy=delete", "retention.ms=1000"]
    )
    due = {f["topic"] for f in supposed["findings"] if f["id"].startswith("retention-")}
    assert "orders" in due
    assert not due & {"__consumer_offsets", "__transaction_state", "compacted"}


def test_a_plan_in_python_asks_for_the_same(tmp_path: Path) -> None:
    copy = copied(tmp_path, "broker")
    inventory = kafkalog.open_log_dir(copy)
    by_name = {str(p.topic_partition): p for p in inventory.partitions}
    for name, settings, wanted in (
        ("orders-0", ["retention.ms=1000"], "refused"),
        ("orders-0", ["retention.ms=1000", "cleanup.policy=delete"], "delete"),
        ("__consumer_offsets-0", ["retention.ms=1000", "cleanup.policy=delete"], "refused"),
        ("compacted-0", ["retention.ms=1000", "cleanup.policy=delete"], "refused"),
    ):
        partition = by_name[name]
        plan = kafkalog.plan_retention(
            partition,
            LogConfig.from_overrides(settings),
            scan_retention_facts(partition),
            now_ms=1_924_992_000_000,
        )
        assert plan.status == wanted, (name, settings, plan.reason)


def test_no_share_or_remote_state_is_compacted_for_a_glob(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copied(tmp_path, "share")
    state = {name: data for name, data in logs_of(copy).items() if "__share" in name}
    words = ["--topic=*", "--config=cleanup.policy=compact", "--apply", "--workers=1"]
    main(["compact", "--log-dir", str(copy), "--now", LATER, *DESPITE, "--json", *words])
    found = json.loads(capsys.readouterr().out)["partitions"]
    refused = {p["topic"] for p in found if "reads all of it" in p["reason"]}
    assert refused == {"__share_group_state"}
    assert {n: d for n, d in logs_of(copy).items() if "__share" in n} == state


@pytest.mark.parametrize("forced", [(), DESPITE], ids=["not forced", "forced"])
@pytest.mark.parametrize("verb", ["retain", "compact"])
def test_a_time_far_ahead_changes_nothing_unless_forced(
    log_dir: Path, verb: str, forced: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogBuilder(log_dir, "orders-0")
    for number in range(3):
        log.segment().batch(("k", str(number)))
    log.write()
    policy = "delete" if verb == "retain" else "compact"
    words = [verb, "--log-dir", str(log_dir), "--topic=orders", f"--config=cleanup.policy={policy}"]
    words += ["--config=retention.ms=1000", "--now=2200-01-01", "--apply", "--json", *forced]
    before = logs_of(log_dir)
    main(words)
    (found,) = json.loads(capsys.readouterr().out)["partitions"]
    assert (logs_of(log_dir) == before) == (not forced)
    assert ("days ahead of this machine's clock" in found["reason"]) == (not forced)
