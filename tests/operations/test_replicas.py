"""Compaction that knows the other replicas: what a replica comes back to is what it would have got
without the compaction.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.errors import CorruptRecordError
from kafkalog.format.checkpoints import pack_offset_checkpoint
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch, parse_header
from kafkalog.log.log_dir import open_log_dir
from kafkalog.operations.compact import CompactionRun, plan_run
from kafkalog.reading.tables import read_records
from kafkalog.requests.run_request import CompactionRequest
from tests.comparing.comparing import digest
from tests.comparing.outages import (
    CONFIG,
    DAY_MS,
    Clean,
    batches_in,
    comes_back,
    compact_by_time_alone,
    compact_knowing_it,
    compact_to_the_end,
    copied,
    random_log,
    segments_of,
    served,
    written_on,
)
from tests.support.log_builder import START_MS, LogBuilder

SEEDS = 6


def served_after(work: Path, seed: int, clean: Clean) -> tuple[dict[bytes, bytes], ...]:
    """What consumers of committed records get of a replica that came back, and of the leader."""
    back, leader = comes_back(work, seed, clean)
    return served(back), served(leader)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in (100, 200, 300))]
)
def test_a_replica_that_was_away_serves_nothing_that_was_deleted(
    first: int, tmp_path: Path
) -> None:
    for seed in range(first, first + SEEDS):
        back, leader = served_after(tmp_path / str(seed), seed, compact_knowing_it)
        assert back == leader, seed
    blind = [
        served_after(tmp_path / f"{seed}-blind", seed, compact_by_time_alone)
        for seed in range(first, first + SEEDS)
    ]
    assert any(back != leader for back, leader in blind), "by time alone it does"


def test_what_all_replicas_have_goes_as_by_time_alone(tmp_path: Path) -> None:
    for name, replicas in (("a", ()), ("b", (tmp_path / "other",))):
        written_on(1, random_log(tmp_path / name, 5))
        if replicas:
            written_on(2, random_log(tmp_path / "other", 5))
        compact_to_the_end(tmp_path / name, *replicas)
    assert segments_of(tmp_path / "a/orders-0") == segments_of(tmp_path / "b/orders-0")


def planned(log_dir: Path, *replicas: Path, requires: bool = False) -> CompactionRun:
    return plan_run(
        CompactionRequest(
            (str(log_dir),), START_MS + DAY_MS, CONFIG, topics=("orders",),
            replicas=tuple(map(str, replicas)), requires_replicas=requires,
        )
    )  # fmt: skip


def test_a_plan_says_what_it_knows_of_other_replicas(tmp_path: Path) -> None:
    log = random_log(tmp_path / "1", 5)
    whole = batches_in([bytes(segment.log) for segment in log.segments])
    written_on(1, log)
    (blind,) = planned(tmp_path / "1").plans
    assert blind.replicated_end_offset is None
    assert any("by time alone" in note for note in planned(tmp_path / "1").notes)
    away = written_on(2, copied(tmp_path / "2", whole[:7]))
    (plan,) = planned(tmp_path / "1", tmp_path / "2").plans
    end = parse_header(whole[6]).last_offset + 1
    assert plan.replicated_end_offset == end
    assert (
        f"from offset {end} on stay: node 2 ({tmp_path / '2'}) has this log up to there"
        in plan.reason
    )
    (refused,) = planned(tmp_path / "1", tmp_path / "2", requires=True).plans
    assert refused.status == "refused"
    assert "no cluster metadata tells" in refused.reason
    (away / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    (other,) = planned(tmp_path / "1", tmp_path / "2").plans
    assert (other.status, "of another topic" in other.reason) == ("refused", True)


def with_an_index_into_a_value(path: Path, end_offset: int) -> None:
    """A last batch whose value ends with a whole batch, and an index entry that leads there: to a
    header and a right checksum, of a log that goes to `end_offset`.
    """
    log = path / "00000000000000000000.log"
    last = batches_in([log.read_bytes()])[-1]
    inner = pack_batch([Record(end_offset - 1, START_MS, b"k", b"v")], base_offset=0)
    offset = parse_header(last).next_offset
    outer = pack_batch([Record(offset, START_MS, b"own", inner)], base_offset=offset)
    content = log.read_bytes() + outer
    log.write_bytes(content)
    index = pack_offset_index([offset], [content.rindex(inner)], 0)
    log.with_suffix(".index").write_bytes(index)


def test_a_replica_ends_at_its_batches_though_its_index_says_more(tmp_path: Path) -> None:
    """The inventory goes by the index as a broker does; a tombstone that this replica has not got
    would go.
    """
    whole = [Record(n, START_MS, b"key", None if n == 20 else b"v") for n in range(21)]
    leader = LogBuilder(tmp_path / "1").segment().batch(*whole).segment().batch(("last", "v"))
    path = written_on(1, leader)
    away = written_on(2, LogBuilder(tmp_path / "2").segment().batch(*whole[:10]))
    with_an_index_into_a_value(away, 1000)
    damaged = open_log_dir(tmp_path / "2").partitions[0]
    assert (damaged.log_end_offset, damaged.problems) == (1000, ())
    (plan,) = planned(tmp_path / "1", tmp_path / "2").plans
    assert plan.replicated_end_offset == 11
    compact_to_the_end(tmp_path / "1", tmp_path / "2")
    kept = read_records(path, columns=["offset", "value"]).read_all()
    assert kept.to_pylist()[0] == {"offset": 20, "value": None}


def test_a_digest_tells_of_a_replica_as_its_log_dir_does(tmp_path: Path) -> None:
    log = random_log(tmp_path / "1", 5)
    whole = batches_in([bytes(segment.log) for segment in log.segments])
    written_on(1, log)
    written_on(2, copied(tmp_path / "2", whole[:7]))
    key = tmp_path / "hash.key"
    key.write_bytes(bytes(32))
    by_digest = digest(tmp_path / "2", tmp_path / "2.digest", key)
    plans = [planned(tmp_path / "1", path).plans[0] for path in (tmp_path / "2", Path(by_digest))]
    assert plans[0] == plans[1]
    assert plans[0].replicated_end_offset == parse_header(whole[6]).last_offset + 1
    (tmp_path / "cut").write_bytes(Path(by_digest).read_bytes()[:-5])
    with pytest.raises(CorruptRecordError, match="3 are left"):
        planned(tmp_path / "1", tmp_path / "cut")


def test_a_replica_ends_before_a_batch_that_a_recovery_would_cut(tmp_path: Path) -> None:
    """What lies behind the recovery point was never known to be on the disk."""
    log = LogBuilder(tmp_path / "2").segment().batch(("a", "1")).batch(("a", "2")).batch(("a", "3"))
    away = written_on(2, log) / "00000000000000000000.log"
    content = bytearray(away.read_bytes())
    content[log.segments[0].batches[1][0] + 65] ^= 1
    away.write_bytes(content)
    written_on(1, random_log(tmp_path / "1", 5))
    points = tmp_path / "2" / "recovery-point-offset-checkpoint"
    for recovery_point, end in ((3, 3), (1, 1), (0, 1)):
        points.write_bytes(pack_offset_checkpoint({("orders", 0): recovery_point}))
        (plan,) = planned(tmp_path / "1", tmp_path / "2").plans
        assert plan.replicated_end_offset == end


def test_log_dirs_of_one_run_are_replicas_of_each_other(tmp_path: Path) -> None:
    log = random_log(tmp_path / "1", 5)
    whole = batches_in([bytes(segment.log) for segment in log.segments])
    written_on(1, log)
    written_on(2, copied(tmp_path / "2", whole[:-2]).segment().batch(("own", "end")))
    request = CompactionRequest(
        (str(tmp_path / "1"), str(tmp_path / "2")), START_MS + DAY_MS, CONFIG, topics=("orders",)
    )
    ends = {plan.path: plan.replicated_end_offset for plan in plan_run(request).plans}
    end = parse_header(whole[-3]).last_offset + 2
    assert ends[str(tmp_path / "1/orders-0")] == end
    # As node 2's follower node 1 would cut its log to where that one ends.
    assert ends[str(tmp_path / "2/orders-0")] == end < log.next_offset


def test_what_a_replica_got_from_another_leader_it_has_not_got_from_this_one(
    tmp_path: Path,
) -> None:
    """An unclean election: both logs are as long, and part at offset 3."""
    both = [("a", "1"), ("b", "1"), ("c", "1")]
    leader = LogBuilder(tmp_path / "1").batch(*both).epoch(2).batch(("a", None), ("b", None))
    written_on(1, leader.segment().batch(("last", "v")))
    away = LogBuilder(tmp_path / "2").batch(*both).epoch(1).batch(("c", "2"), ("d", "2"))
    written_on(2, away.segment().batch(("own", "v")))
    (plan,) = planned(tmp_path / "1", tmp_path / "2").plans
    assert plan.replicated_end_offset == 3
    assert plan.end_offset == 5
    compact_to_the_end(tmp_path / "1", tmp_path / "2")
    kept = read_records(tmp_path / "1", columns=["offset", "value"]).read_all().to_pylist()
    assert [row["offset"] for row in kept if row["value"] is None] == [3, 4]
