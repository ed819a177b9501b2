"""No worker holds more than `--memory`, whatever the keys, the batches and the codec."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkalog.cleaning.run_map import KEY_BYTES
from kafkalog.cli.main import main
from kafkalog.format.constants import CompressionType
from kafkalog.resources.memory import (
    DEFAULT_MEMORY_BYTES,
    LEAST_MEMORY_BYTES,
    largest_batch,
    memory_budget,
)
from tests.benchmarks.generate import LogSpec, write_log
from tests.support.peak_memory import run_measured
from tests.support.topics import topic_words

MIB = 1024 * 1024
LEAST = LEAST_MEMORY_BYTES // MIB
DEFAULT = DEFAULT_MEMORY_BYTES // MIB
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def compact(log_dir: Path, mib: int, *more: str) -> tuple[int, str, float]:
    return run_measured(
        "compact", "--log-dir", str(log_dir), *topic_words(log_dir), "--apply", "--json",
        "--config", "cleanup.policy=compact", "--workers", "1", "--memory", f"{mib}m",
        *more,
    )  # fmt: skip


def check(log_dir: Path, spec: LogSpec, mib: int, distinct: int) -> None:
    write_log(log_dir, "t", spec)
    code, said, peak = compact(log_dir, mib)
    assert code == 0, said
    (partition,) = json.loads(said)["partitions"]
    assert (partition["status"], partition["recordsRetained"]) == ("compacted", distinct)
    assert peak < mib, f"peak {peak:.0f} MiB"


def many_keys(records: int) -> LogSpec:
    return LogSpec(records=records, keys=records, value_bytes=0, distinct=True)


def large_batches(mib: int, codec: str, count: int = 3) -> LogSpec:
    """Batches of so many MiB of small records, each key twice in a batch and once in each."""
    records = mib * MIB // 20
    return LogSpec(
        records=records * count,
        keys=records // 2,
        key_bytes=8,
        value_bytes=0,
        batch_bytes=records * 18 - 1,
        segment_bytes=MIB,
        codec=CompressionType[codec.upper()],
        distinct=True,
    )


def test_keys_that_do_not_fit_are_spilled(log_dir: Path) -> None:
    count = 2_400_000
    assert memory_budget(LEAST_MEMORY_BYTES).pool_bytes < KEY_BYTES * count
    check(log_dir, many_keys(count), LEAST, count)


@pytest.mark.parametrize("codec", [pytest.param("none", marks=pytest.mark.thorough), "zstd"])
def test_large_batches_stay_within_the_least_memory(log_dir: Path, codec: str) -> None:
    spec = large_batches(12, codec)
    check(log_dir, spec, LEAST, spec.keys)


@pytest.mark.soak
@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_almost_64_mib_stay_within_the_default(log_dir: Path, codec: str) -> None:
    spec = large_batches(63, codec)
    check(log_dir, spec, DEFAULT, spec.keys)


@pytest.mark.soak
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_many_small_batches_stay_within_the_least_memory(log_dir: Path, codec: str) -> None:
    spec = LogSpec(
        records=3_000_000,
        keys=1_000_000,
        value_bytes=10,
        batch_bytes=100,
        segment_bytes=1 << 30,
        codec=CompressionType[codec.upper()],
        distinct=True,
    )
    check(log_dir, spec, LEAST, spec.keys)


@pytest.mark.parametrize("codec", [pytest.param("none", marks=pytest.mark.thorough), "zstd"])
def test_comparing_every_record_stays_within_the_default(log_dir: Path, codec: str) -> None:
    # As many records as a batch may have, and as small as records are.
    spec = large_batches(5, codec, 4)
    write_log(log_dir, "t", spec)
    code, said, peak = compact(log_dir, DEFAULT, "--verify", "deep")
    assert code == 0, said
    assert peak < DEFAULT, f"peak {peak:.0f} MiB"


@pytest.mark.parametrize("codec", [pytest.param("none", marks=pytest.mark.thorough), "zstd"])
def test_a_batch_too_large_to_be_compared_is_refused_by_name(log_dir: Path, codec: str) -> None:
    write_log(log_dir, "t", large_batches(6, codec))
    before = {path.name: path.read_bytes() for path in (log_dir / "t-0").iterdir()}
    code, said, _ = compact(log_dir, DEFAULT, "--verify", "deep")
    assert code == 1, said
    assert "00000.log" in said
    assert "verify deep: batch of" in said
    assert {path.name: path.read_bytes() for path in (log_dir / "t-0").iterdir()} == before


def test_a_batch_above_the_limit_is_refused_by_name(log_dir: Path) -> None:
    write_log(log_dir, "t", large_batches(15, "zstd", 1))
    code, said, _ = compact(log_dir, LEAST)
    assert code == 1, said
    assert "0000.log" in said
    assert f"larger than {largest_batch(LEAST_MEMORY_BYTES)} bytes uncompressed" in said


def test_less_than_a_worker_needs_is_refused(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compact", "--log-dir", str(log_dir), "--memory", "100m"]) == 2
    assert "256.0 MiB is the least, of which the interpreter" in capsys.readouterr().err
