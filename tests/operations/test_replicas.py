"""Compaction that knows the other replicas: what a replica comes back to is what it would have got
without the compaction.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, pack_meta_properties
from kafkalog.format.record_batch import parse_header
from kafkalog.operations.compact import CompactionRun, apply_run, plan_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.planning.log_config import LogConfig
from kafkalog.reading.tables import read_records
from kafkalog.requests.run_request import CompactionRequest
from tests.support.log_builder import META, START_MS, LogBuilder

DAY_MS = 86_400_000
CONFIG = LogConfig.from_overrides(
    ["cleanup.policy=compact", "min.cleanable.dirty.ratio=0", "delete.retention.ms=60000"]
)
KEYS = [f"k{n}" for n in range(6)]
SEEDS = 6
COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT


def random_log(log_dir: Path, seed: int) -> LogBuilder:
    """Values, tombstones, and transactions that commit or abort, over few keys; the last segment
    has a key of its own."""
    rng = random.Random(seed)
    log = LogBuilder(log_dir)
    is_open = {1: False, 2: False}
    for _ in range(60):
        kind = rng.random()
        producer = rng.choice([1, 2])
        if kind < 0.12:
            log.segment()
        elif kind < 0.55:
            value = None if rng.random() < 0.4 else f"v{log.next_offset}"
            log.batch((rng.choice(KEYS), value))
        elif kind < 0.8 or not is_open[producer]:
            is_open[producer] = True
            record = (rng.choice(KEYS), f"t{log.next_offset}")
            log.batch(record, producer_id=producer, is_transactional=True)
        else:
            is_open[producer] = False
            log.marker(rng.choice([COMMIT, ABORT]), producer)
    for producer, still in is_open.items():
        if still:
            log.marker(rng.choice([COMMIT, ABORT]), producer)
    return log.segment().batch(("last", "v"))


def batches_in(paths: list[bytes]) -> list[bytes]:
    found = []
    for data in paths:
        position = 0
        while position < len(data):
            size = parse_header(data[position:]).size_in_bytes
            found.append(data[position : position + size])
            position += size
    return found


def written_on(node: int, log: LogBuilder) -> Path:
    path = log.write()
    meta = pack_meta_properties(replace(META, node_id=node))
    (path.parent / META_PROPERTIES_FILE).write_bytes(meta)
    return path


def copied(log_dir: Path, batches: list[bytes]) -> LogBuilder:
    log = LogBuilder(log_dir)
    for batch in batches:
        log.append(batch)
    return log


def compact_to_the_end(log_dir: Path, *replicas: Path) -> list[CompactionRun]:
    """As often as there is something left that time lets go."""
    runs = []
    for day in (1, 2, 3):
        (log_dir / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        request = CompactionRequest(
            (str(log_dir),), START_MS + day * DAY_MS, CONFIG, topics=("orders",),
            replicas=tuple(map(str, replicas)), verify_deep=True,
        )  # fmt: skip
        runs.append(apply_run(request, clean_pack))
        assert {result.status for result in runs[-1].results} == {"compacted"}, runs[-1].results
    return runs


def served(path: Path) -> dict[bytes, bytes]:
    """The last committed value of each key."""
    table = read_records(path, columns=["key", "value"], read_committed=True).read_all()
    last = dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
    return {key: value for key, value in last.items() if value is not None}


def segments_of(path: Path) -> list[bytes]:
    return [segment.read_bytes() for segment in sorted(path.glob("*.log"))]


def comes_back(work: Path, seed: int, *, told: bool) -> tuple[dict[bytes, bytes], ...]:
    """What consumers of committed records get of a replica that was away while the leader
    compacted, and of the leader."""
    rng = random.Random(seed)
    leader = written_on(1, random_log(work / "1", seed))
    whole = batches_in(segments_of(leader))
    away = written_on(2, copied(work / "2", whole[: rng.randrange(1, len(whole))]))
    compact_to_the_end(leader.parent, *([away.parent] if told else []))
    had = batches_in(segments_of(away))
    end = parse_header(had[-1]).last_offset
    fetched = [b for b in batches_in(segments_of(leader)) if parse_header(b).last_offset > end]
    back = written_on(2, copied(work / "back", had + fetched))
    return served(back), served(leader)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in (100, 200, 300))]
)
def test_a_replica_that_was_away_serves_nothing_that_was_deleted(
    first: int, tmp_path: Path
) -> None:
    for seed in range(first, first + SEEDS):
        back, leader = comes_back(tmp_path / str(seed), seed, told=True)
        assert back == leader, seed
    blind = [
        comes_back(tmp_path / f"{s}-blind", s, told=False) for s in range(first, first + SEEDS)
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
