"""A topic restored into a stopped cluster: what consumers get, what is refused, undone, killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from kafkalog.format.checkpoints import parse_leader_epoch_checkpoint, parse_offset_checkpoint
from kafkalog.format.constants import CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_file import Chunk
from kafkalog.reading.tables import read_batches
from kafkalog.restoring import segments
from tests.restoring.target import contents, empty_target, restore, served
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.metadata_builder import MetadataBuilder, partition, topic

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
FIRST_ID = 1 << 62


def transactional(log: LogBuilder, producer_id: int, *keys: str) -> LogBuilder:
    records = [(key, f"of {producer_id}", ((b"h", b"1"),)) for key in keys]
    return log.batch(*records, producer_id=producer_id, is_transactional=True)


def busy(log_dir: Path, name: str = "orders-0") -> LogBuilder:
    """Several epochs, codecs, producers and ended transactions, over three segments."""
    log = LogBuilder(log_dir, name).segment()
    for n, codec in enumerate(CompressionType):
        log.epoch(n).batch((f"k{n}", "v" * 50), (None, None), codec=codec, producer_id=n)
    transactional(log, 10, "a", "b").batch(("plain", "1"))
    log.marker(ABORT, 10, coordinator_epoch=3).segment().epoch(7)
    transactional(log, 11, "c")
    transactional(log, 12, "d").marker(COMMIT, 11).segment().epoch(9)
    return log.marker(ABORT, 12).batch(("last", "2"), producer_id=20)


@pytest.fixture
def target(log_dir: Path) -> Path:
    return empty_target(log_dir / "target")


def test_consumers_get_what_they_got_under_ids_that_the_target_cannot_meet(
    source: Path, target: Path
) -> None:
    topic_id = (target / "orders-0/partition.metadata").read_bytes()
    assert restore(source, target) == 0
    assert served(target / "orders-0") == served(source / "orders-0")
    batches = read_batches(target / "orders-0")
    before = read_batches(source / "orders-0")
    assert set(batches["leaderEpoch"].to_pylist()) == {0}
    assert max(before["leaderEpoch"].to_pylist()) == 9
    assert batches["producerId"].to_pylist() == [
        FIRST_ID + n if n >= 0 else n for n in before["producerId"].to_pylist()
    ]
    assert (target / "orders-0/partition.metadata").read_bytes() == topic_id
    epochs = (target / "orders-0/leader-epoch-checkpoint").read_bytes()
    assert parse_leader_epoch_checkpoint(epochs) == [(0, 0)]
    assert main(["recover", str(target), "--topic", "orders"]) == 0  # all beside it is right


def test_dry_run_changes_nothing_and_shows_the_plan(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(target), contents(source)
    assert restore(source, target, words=("--json",), apply=False) == 0
    (plan,) = json.loads(capsys.readouterr().out)["partitions"]
    assert (plan["status"], plan["cutOffset"], plan["highestLeaderEpoch"]) == ("restore", 19, 9)
    assert plan["highestProducerId"] == 20
    assert (contents(target), contents(source)) == before


def test_undo_brings_every_byte_back(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(target)
    assert restore(source, target, words=("--json",)) == 0
    run_id = json.loads(capsys.readouterr().out)["runId"]
    assert contents(target) != before
    assert main(["undo", run_id]) == 0
    assert contents(target) == before
    assert restore(source, target) == 0


def open_at_the_end(log_dir: Path) -> Path:
    """Producer 5's transaction is open, producer 6's ends behind where that began."""
    log = LogBuilder(log_dir, "orders-0").segment().batch(("a", "1"))
    transactional(log, 6, "b")
    transactional(log, 5, "c").marker(COMMIT, 6, coordinator_epoch=2).batch(("d", "1"))
    log.write()
    return log_dir


def test_open_transaction_is_refused_and_named(
    log_dir: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(target)
    assert restore(open_at_the_end(log_dir / "source"), target) == 3
    shown = "".join(capsys.readouterr())
    assert "producer 5 from offset 2 on" in shown
    assert contents(target) == before


def test_open_transaction_is_aborted_by_a_marker(log_dir: Path, target: Path) -> None:
    source = open_at_the_end(log_dir / "source")
    assert restore(source, target, words=("--end-transactions", "abort")) == 0
    everything, committed = served(source / "orders-0")
    restored = served(target / "orders-0")
    assert restored[0] == everything
    # The last stable offset was 2; what lies behind it and is of nobody's transaction is served.
    assert restored[1][:2] == committed[:2]
    assert [row[0] for row in restored[1]] == [0, 1, 4]
    last = read_batches(target / "orders-0").to_pylist()[-1]
    assert (last["baseOffset"], last["producerId"], last["producerEpoch"]) == (5, FIRST_ID + 5, 1)
    assert last["isControl"]
    assert last["isTransactional"]
    assert main(["recover", str(target), "--topic", "orders"]) == 0


def test_cut_goes_back_until_no_transaction_is_open(log_dir: Path, target: Path) -> None:
    source = open_at_the_end(log_dir / "source")
    assert restore(source, target, words=("--end-transactions", "cut")) == 0
    # In front of producer 5's record at 2 the transaction of 6 is open, which began at 1.
    assert [row[0] for row in served(target / "orders-0")[0]] == [0]


@pytest.mark.parametrize(
    ("until", "last_offset"),
    [(str(START_MS + 7), 7), (str(START_MS + 8), 7), ("orders-0=10", 9), ("orders-0=9", 7)],
)
def test_nothing_later_than_until_is_there(
    until: str, last_offset: int, source: Path, target: Path
) -> None:
    assert restore(source, target, words=("--until", until)) == 0
    served_before, served_now = served(source / "orders-0"), served(target / "orders-0")
    assert served_now[0] == [row for row in served_before[0] if row[0] <= last_offset]


def test_torn_tail_of_a_killed_broker_stays_out(log_dir: Path, target: Path) -> None:
    busy(log_dir / "source").torn(30).write(clean_shutdown=False)
    assert restore(log_dir / "source", target) == 0
    assert served(target / "orders-0") == served(log_dir / "source/orders-0")


def test_damage_is_refused_and_salvage_named(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = source / f"orders-0/{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    before = contents(target)
    assert restore(source, target) == 1
    shown = "".join(capsys.readouterr())
    assert "kafkalog salvage" in shown
    assert path.name in shown
    assert contents(target) == before


def test_log_start_inside_a_segment_stays(source: Path, log_dir: Path, target: Path) -> None:
    busy(log_dir / "deleted").log_start_offset(3).write()
    assert restore(log_dir / "deleted", target) == 0
    found = parse_offset_checkpoint((target / "log-start-offset-checkpoint").read_bytes())
    assert dict(found)["orders", 0] == 3
    assert served(target / "orders-0")[0][0][0] == 3


def test_first_segment_behind_0_takes_the_place_of_the_empty_one(
    log_dir: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LogBuilder(log_dir / "source", "orders-0").segment(500).batch(("a", "1")).write()
    before = contents(target)
    assert restore(log_dir / "source", target, words=("--json",)) == 0
    run_id = json.loads(capsys.readouterr().out)["runId"]
    (partition,) = [p for p in open_log_dir(target) if p.topic_partition.topic == "orders"]
    assert [segment.base_offset for segment in partition.segments] == [500]
    assert main(["undo", run_id]) == 0
    assert contents(target) == before


def refusal(capsys: pytest.CaptureFixture[str], code: int, expected: int = 3) -> str:
    assert code == expected
    return "".join(capsys.readouterr())


def test_target_with_records_is_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = empty_target(log_dir / "target")
    assert restore(source, target) == 0
    capsys.readouterr()
    assert "is not empty" in refusal(capsys, restore(source, target))


def test_topic_that_the_target_lacks_is_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = empty_target(log_dir / "target", {"others": 1})
    assert "has no topic orders" in refusal(capsys, restore(source, target))


def test_topic_gets_another_name(source: Path, log_dir: Path) -> None:
    target = empty_target(log_dir / "target", {"orders": 1, "old-orders": 1})
    words = ["restore", str(source), "--into", str(target), "--topic", "orders=old-orders"]
    assert main([*words, "--apply"]) == 0
    assert served(target / "old-orders-0") == served(source / "orders-0")
    assert served(target / "orders-0")[0] == []


def test_offsets_of_groups_are_clamped_to_what_is_restored(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = copy_sample("groups/data", log_dir / "source")
    target = empty_target(log_dir / "target", {"orders": 4})
    words = ["restore", str(source), "--into", str(target), "--topic", "orders", "--json"]
    words += ["--until", "orders-0=10", "--groups", "mod*", "--output", str(log_dir / "groups")]
    assert main([*words, "--apply"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["groups"]
    assert found == {
        "group": "modern", "file": "modern.csv", "offsetsPartition": None, "offsets": 4,
        "clamped": 1, "leftOut": 0,
    }  # fmt: skip
    # The first batch of orders-0 goes further than 10.
    offsets = "orders,0,0\norders,1,3\norders,2,5\norders,3,40\n"
    assert (log_dir / "groups/modern.csv").read_text() == offsets


def test_replica_that_is_not_given_is_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = MetadataBuilder(log_dir / "target")
    cluster.batch(topic("orders"), partition([1, 2])).write()
    LogBuilder(log_dir / "target", "orders-0").segment().write()
    assert "give the log dirs of all" in refusal(capsys, restore(source, log_dir / "target"))


@pytest.mark.parametrize("what", ["epoch", "producer"])
def test_batch_of_another_epoch_or_producer_is_seen(
    what: str,
    source: Path,
    target: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    give = segments._give_new_ids

    def wrongly(chunk: Chunk, identity: segments.Identity) -> None:
        rows = chunk.rows.copy()
        if what == "producer":
            rows["producer_id"] += rows["producer_id"] >= 0
        give(Chunk(chunk.buf, chunk.position, rows), identity)
        if what == "epoch":  # outside of the checksum
            chunk.buf[int(rows["position"][-1]) - chunk.position + 15] = 1

    monkeypatch.setattr(segments, "_give_new_ids", wrongly)
    before = contents(target)
    assert restore(source, target) == 1
    assert "is not of whom it is to be" in "".join(capsys.readouterr())
    assert contents(target) == before
