"""Compaction that knows the other replicas: what a replica comes back to is what it would have got
without the compaction.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.record_batch import parse_header
from kafkalog.operations.compact import CompactionRun, plan_run
from kafkalog.requests.run_request import CompactionRequest
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
from tests.support.log_builder import START_MS

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
    assert f"from offset {end} on stay: node 2 ({tmp_path / '2'}) ends there" in plan.reason
    (refused,) = planned(tmp_path / "1", tmp_path / "2", requires=True).plans
    assert refused.status == "refused"
    assert "no cluster metadata tells" in refused.reason
    (away / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    (other,) = planned(tmp_path / "1", tmp_path / "2").plans
    assert (other.status, "of another topic" in other.reason) == ("refused", True)


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
    assert ends[str(tmp_path / "2/orders-0")] == log.next_offset
