"""Benchmarks as one run: what fails or takes too long is said and ended, the others go on; what the
cost model's constants are fitted to gives them back.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog import read_records
from kafkalog.planning.compaction_work import CompactionWork
from kafkalog.planning.cost_model import Rates
from kafkalog.planning.reference_rates import REFERENCE
from tests.benchmarks import bench_all
from tests.benchmarks.cost_fit import audited, fitted, module_text, rounded
from tests.benchmarks.cost_runs import AUDITS, Compared
from tests.benchmarks.generate import LogSpec, write_log
from tests.benchmarks.machine import BETWEEN, QUIET, SLOW, kind_of
from tests.benchmarks.side_by_side import FAST_DIRECTORY
from tests.benchmarks.table import table
from tests.support.process_costs import ProcessCosts

GIB = 1 << 30


def test_a_row_that_fails_says_so() -> None:
    lines, failed = bench_all.run_row(("table", "no-such-file"), 60)
    assert (lines, failed) == ([], "exit code 1")


def test_a_row_that_takes_too_long_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAST_DIRECTORY, str(tmp_path))
    lines, failed = bench_all.run_row(("retain", "--segments", "100000"), 3)
    assert (lines, failed) == ([], "not done within 3 s")
    assert list(tmp_path.iterdir()) == []
    mark = str(tmp_path).encode()
    environments = [path for path in Path("/proc").glob("[0-9]*/environ") if _has(path, mark)]
    assert environments == []


def _has(environment: Path, mark: bytes) -> bool:
    try:
        return f"{FAST_DIRECTORY}=".encode() + mark in environment.read_bytes()
    except OSError:
        return False


def test_rows_are_those_that_hold_all_words_and_have_one_number_each() -> None:
    rows = bench_all.asked_rows([], slow=False) + bench_all.asked_rows([], slow=True)
    assert [number for number, _ in rows] == list(range(1, len(rows) + 1))
    found = bench_all.asked_rows(["compact", "zstd"], slow=False)
    assert [row[0] for _, row in found] == ["compact", "compact"]


def test_the_kind_of_machine_goes_by_kafkas_seconds() -> None:
    assert [kind_of(seconds) for seconds in (11.0, 15.0, 19.4)] == [QUIET, BETWEEN, SLOW]


def test_figures_of_a_row_are_readable_and_a_row_that_ran_again_counts_once() -> None:
    cost = {"wall_seconds": 1.25, "cpu_seconds": 1.5, "peak_mib": 100.0, "system_seconds": 0.5}
    lines = [
        {"bench": "machine", "cores": 2, "load": [0.1]},
        {"row": "retain", "failed": "exit code 1"},
        {"row": "start", "help": cost},
        {"row": "retain", "bench": "retain", "plan": cost, "bytes": 2_500_000, "same": True},
    ]
    said = "1.25 s, 1.50 s of CPU (0.50 the system's), peak 100 MiB"
    assert list(table(lines))[2:] == [
        "retain", f"    plan {said}; bytes 2.50 M; same True", "start", f"    help {said}",
    ]  # fmt: skip


@pytest.mark.parametrize("codec", [0, 4])
def test_generated_logs_have_the_records_that_were_asked_for(tmp_path: Path, codec: int) -> None:
    spec = LogSpec(20_000, 300, batch_bytes=2000, segment_bytes=1 << 18, codec=codec)
    folder = write_log(tmp_path, "t", replace(spec, tombstones=0.25))
    rows = read_records(tmp_path, columns=["key", "value", "offset"]).read_all()
    assert rows["offset"].to_pylist() == list(range(20_000))
    assert {len(key) for key in rows["key"].to_pylist()} == {16}
    assert len(set(rows["key"].to_pylist())) == 300
    assert 4_000 < rows["value"].null_count < 6_000
    assert len(list(folder.glob("*.log"))) > 3


# -- the cost model --------------------------------------------------------------------------------

TRUE = Rates(
    start=0.8, partition=3e-3, segment=0.4e-3, source_byte=0.2e-9, again_byte=0.3e-9,
    cold_byte=0.2e-9, record=90e-9, near_byte=0.5e-9, kept_byte=1.5e-9, entry=40e-9,
    compared_record=500e-9, codecs=(0.0, 30e-9, 4e-9, 2e-9, 8e-9), wait_byte=REFERENCE.wait_byte,
    task=REFERENCE.task, shuffled_byte=REFERENCE.shuffled_byte, first_job=REFERENCE.first_job,
    audit_start=1.1, audited_partition=0.5e-3, audited_segment=0.1e-3, audited_batch=0.5e-6,
    base_bytes=150e6, audit_base_bytes=200e6,
)  # fmt: skip


def run(name: str, count: int = 1, **work: int | bool) -> Compared:
    """A run that takes what the model says with those constants."""
    facts = {"source_bytes": GIB, "records": 8_000_000, "keys": 2_000_000, "kept_bytes": GIB // 4,
             "segments": 4, "groups": 4} | work  # fmt: skip
    each = CompactionWork(dirty_records=int(facts["records"]), **facts)  # type: ignore[arg-type]
    made = Compared(name, (each,) * count, ProcessCosts(0, 0, 0, 0), 0)
    cost = made.cost(TRUE)
    return replace(made, took=ProcessCosts(cost.cpu_seconds, cost.memory_bytes, 0, 0))


RUNS = [
    run("start", source_bytes=0, records=0, keys=0, kept_bytes=0, segments=0),
    run("partitions", 100, source_bytes=1 << 20, records=8_000, keys=2000, kept_bytes=1 << 18),
    run("segments", source_bytes=4096 * 3000, records=96_000, keys=32, kept_bytes=0, segments=3000),
    run("usual"),
    run("all kept", kept_bytes=GIB),
    run("large", records=800_000),
    run("larger", records=80_000, keys=80_000, kept_bytes=GIB),
    run("spilled", records=20_000_000, keys=2**62, kept_bytes=GIB),
    run("compared", is_compared=True),
    run("across", records=800_000, keys=8_000, kept_bytes=GIB // 100, across_tasks=True),
    run("cold", records=800_000, keys=8_000, kept_bytes=GIB // 100, is_cold=True),
    *(run(f"codec {codec}", codec=codec) for codec in range(1, 5)),
]


def test_constants_are_found_again() -> None:
    costs = [audited(each, TRUE) for each in AUDITS]
    audits = [ProcessCosts(cost.cpu_seconds, cost.memory_bytes, 0, 0) for cost in costs]
    # The start of each is that of a run over next to nothing, which is not nothing.
    found = fitted(RUNS, audits)
    for each in RUNS:
        assert each.cost(found).cpu_seconds == pytest.approx(each.took.cpu_seconds, rel=0.02)
    larger = run("not fitted", source_bytes=32 * GIB, records=270_000_000, keys=67_000_000,
                 kept_bytes=8 * GIB, segments=128)  # fmt: skip
    assert larger.cost(found).cpu_seconds == pytest.approx(larger.took.cpu_seconds, rel=0.05)
    assert found.segment == pytest.approx(TRUE.segment, rel=0.1)
    assert found.again_byte == pytest.approx(TRUE.again_byte, rel=0.1)
    assert found.cold_byte == pytest.approx(TRUE.cold_byte, rel=0.1)
    assert found.base_bytes == pytest.approx(TRUE.base_bytes, rel=0.01)
    assert found.audit_base_bytes == pytest.approx(TRUE.audit_base_bytes, rel=0.01)


def test_the_module_that_is_written_has_the_constants() -> None:
    names: dict[str, object] = {}
    exec(module_text(TRUE, "two cores"), names)
    assert names["REFERENCE"] == rounded(TRUE)
    assert json.loads(json.dumps(rounded(TRUE).record)) == 90e-9
