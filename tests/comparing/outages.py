"""A replica that was away while the leader compacted: the same partition on two nodes, of which one
has the first batches only, and then fetches the rest of what the leader has kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, pack_meta_properties
from kafkalog.format.record_batch import parse_header
from kafkalog.operations.compact import CompactionRun, apply_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.planning.log_config import LogConfig
from kafkalog.reading.tables import read_records
from kafkalog.requests.run_request import CompactionRequest
from tests.support.log_builder import META, START_MS, LogBuilder

DAY_MS = 86_400_000
SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "60000",
}
CONFIG = LogConfig.from_overrides([f"{name}={value}" for name, value in SETTINGS.items()])
KEYS = [f"k{n}" for n in range(6)]
COMMIT, ABORT = ControlRecordType.COMMIT, ControlRecordType.ABORT
# Cleans the leader's log dir to the end, given it and that of the replica that is away.
Clean = Callable[[Path, Path], object]


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


def comes_back(work: Path, seed: int, clean: Clean) -> tuple[Path, Path]:
    """The partition on a replica that was away while the leader compacted, and on the leader."""
    rng = random.Random(seed)
    leader = written_on(1, random_log(work / "1", seed))
    whole = batches_in(segments_of(leader))
    away = written_on(2, copied(work / "2", whole[: rng.randrange(1, len(whole))]))
    clean(leader.parent, away.parent)
    had = batches_in(segments_of(away))
    end = parse_header(had[-1]).last_offset
    fetched = [b for b in batches_in(segments_of(leader)) if parse_header(b).last_offset > end]
    return written_on(2, copied(work / "back", had + fetched)), leader


def compact_knowing_it(leader: Path, away: Path) -> None:
    """Our compaction that is given the other replica."""
    compact_to_the_end(leader, away)


def compact_by_time_alone(leader: Path, away: Path) -> None:
    """Our compaction that is not."""
    compact_to_the_end(leader)
