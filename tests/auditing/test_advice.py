"""A command that an audit advises does what it is for: it is printed if, and only if, it would.
What is printed is run as it stands.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from kafkalog.format.checkpoints import pack_leader_epoch_checkpoint
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from kafkalog.log.log_dir import open_log_dir
from kafkalog.messages.transaction_records import TRANSACTION_LOG, TransactionState
from tests.auditing.disks import DAY_MS, HOUR_MS, NOW_MS, ORDERS_ID, Disk
from tests.auditing.documents import audited_document, findings_of
from tests.support.log_builder import LogBuilder
from tests.support.message_encoder import encode_key, encode_value

WEEK = {"cleanup_policy": "delete", "retention_ms": 7 * DAY_MS}
ALL = "`kafkalog retain --log-dir {} --topic orders --topic-partition orders-0"
Change = Callable[[Disk], object]
DUE_KINDS = ("retention-due", "retention-overdue", "below-log-start")


def command(fix: str) -> list[str] | None:
    """The words of the command that changes a log; None if none is advised."""
    found = re.search(r"`kafkalog ([^`]*--apply)`", fix)
    return shlex.split(found[1]) if found else None


def bases(disk: Disk) -> list[int]:
    (orders,) = (p for p in open_log_dir(disk.log_dir) if p.topic_partition.topic == "orders")
    return [segment.base_offset for segment in orders.segments]


def run(disk: Disk, words: list[str]) -> int:
    return main([*words, "--now", str(NOW_MS), "--run-dir", str(disk.log_dir.parent / "runs")])


def due_disk(log_dir: Path, **settings: object) -> Disk:
    disk = Disk(log_dir, **(settings or WEEK))
    for age in (20, 12, 1):
        disk.segment(age * DAY_MS, modified_age_ms=age * DAY_MS)
    return disk


def the_fix(disk: Disk, *kinds: str, **options: Any) -> str:
    document = disk.audit(**options)
    (found,) = (f for kind in kinds for f in findings_of(document, kind))
    return str(found["fix"])


@pytest.mark.parametrize("alive_age_ms", [None, 3 * DAY_MS])
def test_what_is_advised_for_segments_that_are_due_deletes_them(
    tmp_path: Path, alive_age_ms: int | None
) -> None:
    disk = due_disk(tmp_path / "data").write(alive_age_ms=alive_age_ms)
    fix = the_fix(disk, *DUE_KINDS)
    assert ALL.format(disk.log_dir) + f" --now {NOW_MS} --apply` while the broker does not" in fix
    words = command(fix)
    assert words is not None
    assert run(disk, words) == 0
    assert bases(disk) == [2]
    assert not [kind for kind in DUE_KINDS if findings_of(disk.audit(), kind)]


def test_the_settings_that_were_given_are_in_the_command(tmp_path: Path) -> None:
    """Of a copy without the cluster's metadata."""
    disk = due_disk(tmp_path / "data")
    disk.log.write()
    config = ["cleanup.policy=delete", f"retention.ms={7 * DAY_MS}"]
    fix = the_fix(disk, *DUE_KINDS, config=config, topics=["orders"], high_watermark=3)
    words = command(fix)
    assert words is not None
    assert {*words} >= {*config, "--high-watermark", "3"}
    assert run(disk, words) == 0
    assert bases(disk) == [2]


def write_later_epoch(disk: Disk) -> None:
    """The metadata knows of leader epoch 0 only."""
    path = disk.log.path / LEADER_EPOCH_CHECKPOINT_FILE
    path.write_bytes(pack_leader_epoch_checkpoint([(0, 0), (9, 2)]))


def forget_high_watermark(disk: Disk) -> None:
    (disk.log_dir / "replication-offset-checkpoint").unlink()


# What stands in retain's way: its doing, the audit's options, and what is said instead.
REFUSED: dict[str, tuple[Change, dict[str, Any], str]] = {
    "the policy of this topic is not given": (
        lambda disk: disk.log.write(),
        {"config": ["cleanup.policy=delete", f"retention.ms={7 * DAY_MS}"]},
        "cleanup.policy of orders is not known",
    ),
    "no setting says how long to keep": (
        lambda disk: disk.log.write(),
        {"config": ["cleanup.policy=delete"], "topics": ["orders"]},
        "no setting says how long to keep",
    ),
    "the high watermark is not known": (forget_high_watermark, {}, "high watermark unknown"),
    "the leader epochs cannot be read": (
        lambda disk: (disk.log.path / LEADER_EPOCH_CHECKPOINT_FILE).write_bytes(b"0\nx\n"),
        {},
        LEADER_EPOCH_CHECKPOINT_FILE,
    ),
    "the metadata is older than the log": (write_later_epoch, {}, "is older than the log"),
    "the option says otherwise than the cluster": (
        lambda _: None,
        {"config": ["retention.ms=1000"], "topics": ["orders"]},
        f"retention.ms is {7 * DAY_MS}",
    ),
    "an interrupted cleaning": (
        lambda disk: (disk.log.path / f"{0:020d}.log.cleaned").write_bytes(b""),
        {},
        "leftovers of an interrupted cleaning",
    ),
}


WITHOUT_METADATA = ("the policy of this topic is not given", "no setting says how long to keep")
# With --apply that is resolved first.
AT_ONCE = "an interrupted cleaning"


@pytest.mark.parametrize("what", REFUSED)
def test_what_retain_refuses_is_not_advised(tmp_path: Path, what: str) -> None:
    change, options, said = REFUSED[what]
    disk = due_disk(tmp_path / "data")
    if what not in WITHOUT_METADATA:
        disk.write()
    change(disk)
    fix = the_fix(disk, *DUE_KINDS, **options)
    assert command(fix) is None
    assert "`kafkalog retain` deletes nothing here" in fix
    assert said in fix
    # It is so: what is not advised would delete nothing.
    given = [f"--config={each}" for each in options.get("config", ())]
    topic = "orders" if "topics" in options else "*"
    words = ["retain", "--log-dir", str(disk.log_dir), "--topic", topic, *given]
    before = bases(disk)
    run(disk, words if what == AT_ONCE else [*words, "--apply"])
    assert bases(disk) == before


def test_below_the_log_start_of_a_topic_that_is_proven_to_be_compacted(tmp_path: Path) -> None:
    """Nobody says its policy; the command says it, and nothing else is deleted by it."""
    log = LogBuilder(tmp_path / "data").cleaner_offset(2).log_start_offset(1)
    for number in range(3):
        log.segment(modified_ms=NOW_MS).batch(("k", str(number)), timestamp=NOW_MS - 90 * DAY_MS)
    log.write()
    document = audited_document(log.log_dir, now_ms=NOW_MS)
    (found,) = findings_of(document, "below-log-start")
    words = command(found["fix"])
    assert words is not None
    assert "cleanup.policy=compact" in words
    disk = Disk(log.log_dir)
    assert run(disk, words) == 0
    assert bases(disk) == [1, 2]


def future_disk(log_dir: Path, *ages: int, **settings: object) -> Disk:
    """Days; the first segment is of next year."""
    disk = Disk(log_dir, **(settings or WEEK)).segment(-365 * DAY_MS)
    for age in ages:
        disk.segment(age * DAY_MS)
    return disk


@pytest.mark.parametrize(
    ("ages", "end"),
    [
        ((10, 9, 1, 0), 3),  # what is due ends at 3
        ((10, 9), 3),
        ((1, 10, 9), None),  # younger records are in front of what is due
        ((1, 0), None),
        ((10, -30, 9, 1), 4),
    ],
)
def test_records_are_deleted_as_far_as_they_are_due(
    tmp_path: Path, ages: tuple[int, ...], end: int | None
) -> None:
    disk = future_disk(tmp_path, *ages).write()
    (found, *_) = findings_of(disk.audit(), "future-timestamp")
    if end is None:
        assert "delete" not in found["fix"]
    else:
        said = f"`kafka-delete-records.sh` up to offset {end} of orders, partition 0"
        assert said in found["fix"]


def test_records_are_not_deleted_past_the_high_watermark(tmp_path: Path) -> None:
    disk = future_disk(tmp_path, 10, 9, 1)
    disk.log.high_watermark(2)
    (found,) = findings_of(disk.write().audit(), "future-timestamp")
    assert "up to offset 2 of orders" in found["fix"]


def test_a_broker_refuses_to_delete_records_of_a_compacted_topic(tmp_path: Path) -> None:
    settings = {"cleanup_policy": "compact", "min_compaction_lag_ms": 1000}
    disk = future_disk(tmp_path, 10, 9, 1, **settings).write()
    (found,) = findings_of(disk.audit(), "future-timestamp")
    assert "delete" not in found["fix"]


DIRTY = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0.01}


def dirty_disk(log_dir: Path) -> Disk:
    disk = Disk(log_dir, **DIRTY)
    return disk.segment(20 * DAY_MS, 20 * DAY_MS).segment(10 * DAY_MS).segment(DAY_MS)


def test_what_is_advised_for_a_dirty_log_cleans_it(tmp_path: Path) -> None:
    disk = dirty_disk(tmp_path / "data").write()
    words = command(the_fix(disk, "compaction-due", "compaction-overdue"))
    assert words is not None
    assert words[:4] == ["compact", "--log-dir", str(disk.log_dir), "--topic"]
    assert run(disk, words) == 0
    assert not findings_of(disk.audit(), "compaction-due")
    assert not findings_of(disk.audit(), "compaction-overdue")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (forget_high_watermark, "high watermark unknown"),
        (write_later_epoch, "is older than the log"),
    ],
)
def test_what_compact_refuses_is_not_advised(tmp_path: Path, change: Change, said: str) -> None:
    disk = dirty_disk(tmp_path / "data").write()
    change(disk)
    fix = the_fix(disk, "compaction-due", "compaction-overdue")
    assert command(fix) is None
    assert "`kafkalog compact` does nothing here" in fix
    assert said in fix


def test_an_audit_by_the_clock_advises_no_time(tmp_path: Path) -> None:
    disk = due_disk(tmp_path / "data").write()
    words = command(the_fix(disk, *DUE_KINDS, now_ms=None))
    assert words is not None
    assert "--now" not in words


def stray_disk(log_dir: Path) -> tuple[Disk, Path]:
    """`orders-0` twice: as it is served, and one that a broker has set aside."""
    disk = Disk(log_dir, **WEEK).segment(DAY_MS, DAY_MS, 0).write()
    shutil.copytree(disk.log.path, stray := log_dir / f"orders-0.{'a' * 32}-stray")
    return disk, stray


def make_empty(stray: Path) -> None:
    for log in stray.glob("*.log"):
        log.write_bytes(b"")


def make_longer(stray: Path) -> None:
    longer = LogBuilder(stray.parent / "other", "orders-0", topic_id=ORDERS_ID).segment()
    for _ in range(4):
        longer.batch(("k", "v"), timestamp=NOW_MS)
    longer.write()
    for file in longer.path.iterdir():
        shutil.copy(file, stray)
    shutil.rmtree(longer.path.parent)


def make_another_topic(stray: Path) -> None:
    (stray / "partition.metadata").write_text("version: 0\ntopic_id: 5L6g3nShT-eMCtK--X86sw\n")


STRAYS: list[tuple[Callable[[Path], object], bool, str]] = [
    (lambda _: None, True, "has all its offsets"),
    (make_empty, True, "holds no record"),
    (make_longer, False, "find out why a broker has set it aside"),
    (make_another_topic, False, "keep it until its records are known to be elsewhere"),
    # the topic is there and this directory is all there is of it
    (
        lambda stray: shutil.rmtree(stray.parent / "orders-0"),
        False,
        "no other directory here has its offsets 0 to 2",
    ),
]


@pytest.mark.parametrize(("change", "is_removed", "said"), STRAYS)
def test_a_directory_is_removed_only_if_nothing_is_lost(
    tmp_path: Path, change: Callable[[Path], object], *, is_removed: bool, said: str
) -> None:
    disk, stray = stray_disk(tmp_path / "data")
    change(stray)
    (found,) = findings_of(disk.audit(), "stray-replica")
    assert (f"`rm -r {stray}`" in found["fix"]) == is_removed
    assert said in found["fix"]


def test_of_older_metadata_every_directory_is_a_stray_and_none_is_removed(tmp_path: Path) -> None:
    """A topic that was made after the copy of the metadata log."""
    disk = Disk(tmp_path / "data", **WEEK).segment(DAY_MS).write()
    LogBuilder(disk.log_dir, "new-0", topic_id="5L6g3nShT-eMCtK--X86sw").segment().batch(
        ("k", "v"), timestamp=NOW_MS
    ).write()
    (found,) = findings_of(disk.audit(), "stray-replica")
    assert "rm -r" not in found["fix"]
    assert "see whether the metadata here is as new as the directory" in found["fix"]


PRODUCER, TXN_ID = 7, "payments-1"


def transaction_disk(log_dir: Path, state: str | None, topic: str) -> Disk:
    """A transaction that is open in `orders-0`; its coordinator has it in this state, with what it
    wrote to this topic.
    """
    disk = Disk(log_dir, cleanup_policy="compact").segment(9 * DAY_MS)
    disk.log.batch(
        ("k", "v"), timestamp=NOW_MS - 9 * DAY_MS, producer_id=PRODUCER, is_transactional=True
    )
    disk.segment(0).write()
    if state is not None:
        value = {
            "producerId": PRODUCER, "producerEpoch": 0, "transactionTimeoutMs": 60_000,
            "transactionStatus": TransactionState[state],
            "transactionPartitions": [{"topic": topic, "partitionIds": [0]}] if topic else [],
            "transactionLastUpdateTimestampMs": NOW_MS - 9 * DAY_MS,
            "transactionStartTimestampMs": NOW_MS - 9 * DAY_MS,
        }  # fmt: skip
        key = encode_key(TRANSACTION_LOG.key, {"transactionalId": TXN_ID})
        packed = encode_value(TRANSACTION_LOG.value, 0, value)
        LogBuilder(log_dir, "__transaction_state-0").segment().batch((key, packed)).write()
    return disk


@pytest.mark.parametrize(
    ("state", "topic", "said"),
    [
        ("ONGOING", "orders", "aborts it when transaction.timeout.ms is past"),
        ("PREPARE_COMMIT", "orders", "an abort would lose records that are committed"),
        ("PREPARE_ABORT", "orders", "aborts it"),
        ("COMPLETE_COMMIT", "", None),
        (
            "ONGOING",
            "payments",
            None,
        ),  # of another transaction, which this record came too late for
    ],
)
def test_a_transaction_is_aborted_by_hand_only_if_its_coordinator_does_not_know_of_it(
    tmp_path: Path, state: str, topic: str, said: str | None
) -> None:
    disk = transaction_disk(tmp_path / "data", state, topic)
    fix = the_fix(disk, "open-transaction")
    assert ("kafka-transactions.sh" in fix) == (said is None)
    assert (said or "--topic orders --partition 0 --start-offset 1`") in fix


@pytest.mark.parametrize(
    ("settings", "declared", "said", "is_command"),
    [
        ({"retention_ms": DAY_MS}, {"retention.ms": 2 * DAY_MS}, "or declare 86400000", True),
        (WEEK, {"retention.ms": HOUR_MS}, "of this partition go at the next check, or decl", True),
        (WEEK, {"cleanup.policy": "compact,delete"}, "records without a key go when", True),
        ({"cleanup_policy": "compact"}, {"cleanup.policy": "delete"}, "if records are", False),
        (WEEK, {"segment.bytes": 5_000_000}, "--add-config segment.bytes=5000000`, or", True),
    ],
)  # fmt: skip
def test_a_setting_is_put_right_with_what_goes_by_it(
    tmp_path: Path, settings: dict[str, Any], declared: dict[str, Any], said: str, *,
    is_command: bool,
) -> None:  # fmt: skip
    disk = due_disk(tmp_path / "data", **settings).write()
    file = tmp_path / "declared.toml"
    lines = (f'"{key}" = "{value}"\n' for key, value in declared.items())
    file.write_text("[orders]\n" + "".join(lines))
    fix = the_fix(disk, "policy-drift", config_file=str(file))
    assert said in fix
    assert ("`kafka-configs.sh --bootstrap-server HOST:PORT --alter" in fix) == is_command
    if "compact,delete" in declared.values():
        assert "--add-config 'cleanup.policy=[compact,delete]'`" in fix


def test_a_small_segment_ms_is_not_advised_where_it_is_small_already(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **WEEK, segment_ms=HOUR_MS).segment(9 * DAY_MS, 0).write()
    assert (
        the_fix(disk, "active-never-rolls") == "append a record: the segment rolls in front of it"
    )
    other = Disk(tmp_path / "other", **WEEK, segment_ms=30 * DAY_MS)
    fix = the_fix(other.segment(9 * DAY_MS, 0).write(), "active-never-rolls")
    assert fix.startswith(f"set segment.ms to at most 84 h ({7 * DAY_MS // 2})")
