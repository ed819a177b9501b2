"""Kafka's own loader on what was salvaged: it has nothing to repair and reads all that is left."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from kafkalog.log.segment_headers import scan_headers
from tests.oracle.dump_notices import bad_lines
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import work_directory

pytestmark = pytest.mark.oracle

NOW_MS = 1_795_823_000_000
# a topic of each codec, of many segments, of idempotent and transactional producers
PARTITIONS = (
    "orders-0", "codec-none-0", "codec-gzip-0", "codec-lz4-0", "codec-snappy-0", "codec-zstd-0",
    "idempotent-0", "transactions-0", "compacted-0",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_kafka_loads_and_reads_a_salvaged_log(kafka: Kafka, seed: int) -> None:
    with work_directory() as work:
        log_dir = copy_sample("broker", work / "broken")
        for partition in PARTITIONS:
            for log in (log_dir / partition).glob("*.log"):
                _break(log, random.Random(f"{seed} {log.name} {partition}"))
        output = work / "out"
        topics = [word for p in PARTITIONS for word in ("--topic-partition", p)]
        main(["salvage", "--log-dir", str(log_dir), "--output", str(output), *topics])
        manifest = json.loads((output / "salvage.json").read_text())
        assert len(manifest["partitions"]) == len(PARTITIONS)
        left_out = 0
        for partition in manifest["partitions"]:
            assert partition["status"] == "salvaged", partition["reason"]
            left_out += sum(len(segment["leftOut"]) for segment in partition["segments"])
            _check(kafka, partition, work)
        assert left_out > 20


def _check(kafka: Kafka, partition: dict[str, Any], work: Path) -> None:
    copy = Path(partition["output"])
    assert not list(bad_lines(kafka, copy)), partition
    dumped = kafka.dump(copy)["segments"]
    assert all(batch["valid"] for segment in dumped for batch in segment["batches"])
    expected = list(_surviving(partition))
    assert [b["base"] for segment in dumped for b in segment["batches"]] == expected
    # once after a clean stop, and once as after a crash: the loader changes no log file
    for clean in (True, False):
        again = work / f"again-{clean}" / copy.name
        shutil.copytree(copy, again)
        load = kafka.open_once if clean else kafka.recover
        answer = load(again.parent, copy.name, now_ms=NOW_MS, config={})
        assert answer["logEndOffset"] == partition["logEndOffset"]
        for log in copy.glob("*.log"):
            assert (again / log.name).read_bytes() == log.read_bytes()
            index = log.with_suffix(".txnindex").name
            rebuilt = again / index
            found = (copy / index).read_bytes() if (copy / index).exists() else b""
            assert (rebuilt.read_bytes() if rebuilt.exists() else b"") == found, index


def _surviving(partition: dict[str, Any]) -> Iterator[int]:
    """Base offsets of the batches of the undamaged sample that no left-out range touches."""
    for segment in partition["segments"]:
        rows = scan_headers(segment["path"] + ".sound").rows
        gaps = [(gap["position"], gap["position"] + gap["length"]) for gap in segment["leftOut"]]
        for row in rows:
            start, end = int(row["position"]), int(row["position"]) + int(row["size_in_bytes"])
            if not any(start < gap_end and gap_start < end for gap_start, gap_end in gaps):
                yield int(row["base_offset"])


def _break(log: Path, rnd: random.Random) -> None:
    """One or two batches, markers among them, get a flipped bit, a wrong length or random bytes;
    the sound file stays beside it.
    """
    sound = log.read_bytes()
    Path(f"{log}.sound").write_bytes(sound)
    rows = scan_headers(str(log)).rows
    data = bytearray(sound)
    for row in rnd.sample(list(rows), min(rnd.choice((1, 2)), len(rows))):
        start, size = int(row["position"]), int(row["size_in_bytes"])
        how = rnd.randrange(4)
        if how == 0:
            data[start + rnd.randrange(17, size)] ^= 1 << rnd.randrange(8)
        elif how == 1:
            data[start + 8 : start + 12] = rnd.randrange(-100, 5000).to_bytes(4, "big", signed=True)
        elif how == 2:
            data[start : start + size] = rnd.randbytes(size)
        else:
            data[start + 16] = 9
    log.write_bytes(data)
