"""A run says how long it will take, then how long it took; the next one goes by that."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.compact import apply_run, plan_run
from kafkalog.operations.compact_document import run_document
from kafkalog.operations.compact_output import output_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.operations.estimates import earlier_runs
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.resources.memory import page_cache_bytes
from tests.cleaning.test_laws import CONFIG
from tests.operations.test_compact import NOW_MS, write_partition


def request_of(log_dir: Path, run_dir: Path, **changes: Any) -> CompactionRequest:
    return CompactionRequest(
        (str(log_dir),), NOW_MS, CONFIG, topics=("t",), run_dir=str(run_dir), **changes
    )


def write_run(run_dir: Path, name: str, at: int, **changes: Any) -> None:
    """A finished run of compaction; `at`: when it ended."""
    facts: dict[str, Any] = {
        "schema": 1, "kind": "compact", "runId": name, "finished": "2026-11-30T10:00:00.000Z",
        "partitions": {"compacted": 3},
        "estimate": {"reference_seconds": 10.0, "taken_seconds": 30.0},
    }  # fmt: skip
    path = run_dir / name
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps(facts | changes))
    os.utime(path, (at, at))


def test_a_run_has_both_times_in_its_document_and_in_its_journal(
    log_dir: Path, tmp_path: Path
) -> None:
    write_partition(log_dir, "t-0")
    request = request_of(log_dir, tmp_path / "runs")
    planned = run_document(plan_run(request), 0.0)["estimate"]
    assert planned["takenSeconds"] is None
    assert planned["basis"] == "reference-machine"
    assert planned["seconds"] > 0
    run = apply_run(request, clean_pack)
    done = run_document(run, 0.0)["estimate"]
    assert done == planned | {"takenSeconds": done["takenSeconds"]}
    assert isinstance(done["takenSeconds"], float)
    facts = json.loads((tmp_path / "runs" / run.run_id / "run.json").read_text())
    assert facts["estimate"]["taken_seconds"] == done["takenSeconds"]
    assert list(earlier_runs(tmp_path / "runs")) == [
        (done["referenceSeconds"], done["takenSeconds"])
    ]


def test_the_page_cache_is_most_of_what_is_available_or_none_where_nobody_says(
    tmp_path: Path,
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 24731648 kB\nMemAvailable:    1000 kB\n")
    assert page_cache_bytes(meminfo) == pytest.approx(0.9 * 1000 * 1024)
    for text in ("", "MemAvailable:\n", "MemAvailable: many kB\n"):
        meminfo.write_text(text)
        assert page_cache_bytes(meminfo) == 0
    assert page_cache_bytes(tmp_path / "none") == 0


def test_an_output_has_both_times_too_and_nothing_to_do_has_none(
    log_dir: Path, tmp_path: Path
) -> None:
    write_partition(log_dir, "t-0")
    beside = request_of(log_dir, tmp_path / "runs", output=str(tmp_path / "out"))
    estimate = output_run(beside, clean_pack).estimate
    assert estimate is not None
    assert estimate.taken_seconds is not None
    nothing = request_of(
        log_dir, tmp_path / "runs", topic_partitions=(TopicPartition("t", 0),), high_watermark=0
    )
    assert run_document(plan_run(nothing), 0.0)["estimate"] is None


def test_a_plan_goes_by_runs_that_did_all_of_their_partitions(
    log_dir: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    write_run(runs, "a", 1)
    write_run(runs, "b", 2, estimate={"reference_seconds": 10.0, "taken_seconds": 50.0})
    write_run(runs, "c", 3, partitions={"compacted": 3, "failed": 1})
    write_run(runs, "d", 4, kind="retain")
    write_run(runs, "e", 5, estimate=None)
    write_run(runs, "f", 6, estimate={"reference_seconds": "10", "taken_seconds": None})
    write_run(runs, "g", 7, schema=2)
    (runs / "h").mkdir()
    (runs / "i").write_text("no directory")
    write_run(runs, "anaudit", 9, kind="audit", partitions=20)
    assert list(earlier_runs(runs)) == [(10.0, 50.0), (10.0, 30.0)]
    assert list(earlier_runs(tmp_path / "none")) == []
    write_partition(log_dir, "t-0")
    estimate = plan_run(request_of(log_dir, runs)).estimate
    assert estimate is not None
    assert (estimate.basis, estimate.runs) == ("earlier-runs", 2)
    assert round(estimate.seconds / estimate.reference_seconds, 2) == 4.0
