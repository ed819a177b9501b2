"""delete.retention.ms so large that now + it passes 64 bits: Kafka stamps no horizon, ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.constants import CompressionType
from kafkalog.operations.compact import apply_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.planning.log_config import MAX_LONG, LogConfig
from kafkalog.requests.run_request import CompactionRequest
from tests.cleaning.logs import NOW_MS, read_partition
from tests.support.log_builder import START_MS, LogBuilder

CONFIG = LogConfig.from_overrides(
    ["cleanup.policy=compact", f"delete.retention.ms={MAX_LONG}", "min.cleanable.dirty.ratio=0"]
)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_tombstones_stay_for_ever_and_have_no_horizon(
    log_dir: Path, codec: CompressionType
) -> None:
    log = LogBuilder(log_dir)
    log.segment(modified_ms=START_MS).batch(("a", "1"), ("b", None), codec=codec)
    log.segment(modified_ms=START_MS).batch(("a", "2"), codec=codec)
    path = log.segment().batch(("c", "1")).write()
    for later_ms in (0, 10**10, 10**12):
        (log_dir / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        request = CompactionRequest((str(log_dir),), NOW_MS + later_ms, CONFIG, topics=("orders",))
        run = apply_run(request, clean_pack)
        assert [result.status for result in run.results] == ["compacted"]
        kept = [(header, r) for header, records in read_partition(path) for r in records]
        assert [(r.key, r.value) for _, r in kept] == [(b"b", None), (b"a", b"2"), (b"c", b"1")]
        assert not any(header.has_delete_horizon for header, _ in kept)
