"""Runs: what is read again, what is carried over, where it is kept; exit codes and the document."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import copy_sample
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.run import VerifyRun, verify_run
from kafkalog.checking.segment import check_segment
from kafkalog.checking.segment_report import SegmentTask
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.runs.run_dir import begin_run, default_run_dir, find_run
from tests.checking.damages import ORDERS, TRANSACTIONS, no_transaction_index, segments
from tests.checking.running import verify
from tests.damage.doors import run_json
from tests.support.log_builder import LogBuilder


@pytest.fixture
def sample(log_dir: Path) -> Path:
    return copy_sample("broker", log_dir / "broker")


class Counting:
    """An executor that remembers what it was asked to read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, tasks: Sequence[SegmentTask]) -> Any:
        self.read += [task.path for task in tasks]
        return map(check_segment, tasks)


def run(log_dir: Path, run_dir: Path, since: str | None = None) -> tuple[VerifyRun, list[str]]:
    executor = Counting()
    request = VerifyRequest((str(log_dir),), run_dir=str(run_dir), since=since)
    return verify_run(request, executor, lambda _: None), executor.read


def summary_of(done: VerifyRun) -> list[tuple[Any, ...]]:
    return [(f.kind, f.severity, f.path, f.position, f.offset, f.text) for f in done.findings]


def test_since_reads_only_what_has_changed_and_carries_the_rest(
    sample: Path, tmp_path: Path
) -> None:
    no_transaction_index(sample)
    broken, grown = segments(sample / ORDERS)[1], segments(sample / ORDERS)[-1]
    broken.write_bytes(broken.read_bytes()[:-1] + b"\x77")
    first, read = run(sample, tmp_path)
    assert len(read) == sum(len(segments(d)) for d in sample.iterdir() if d.is_dir()) - 1

    again, read = run(sample, tmp_path, since=first.run_id)
    assert read == []
    assert summary_of(again) == summary_of(first)

    # grown, an index made anew with the same bytes, and a file of the same size and times
    grown.write_bytes(grown.read_bytes() + b"\0")
    index = segments(sample / "orders-1")[0].with_suffix(".index")
    index.write_bytes(index.read_bytes())
    replaced = segments(sample / ORDERS)[0]
    before = replaced.stat()
    shutil.copy(replaced, replaced.with_name("x"))
    replaced.with_name("x").replace(replaced)
    os.utime(replaced, ns=(before.st_atime_ns, before.st_mtime_ns))
    third, read = run(sample, tmp_path, since=again.run_id)
    assert set(read) == {str(grown), str(index.with_suffix(".log")), str(replaced)}
    kinds = {finding.kind for finding in third.findings}
    assert kinds == {"transaction-index-missing", "crc-mismatch", "torn-tail"}
    counts = [(p.segments_read, p.segments_carried) for p in third.partitions]
    assert sum(read for read, _ in counts) == 3
    assert sum(carried for _, carried in counts) > 50


def test_partitions_are_judged_anew_though_no_segment_was_read(
    sample: Path, tmp_path: Path
) -> None:
    """What lies beside segments, and how they follow each other, is no segment's own."""
    first, _ = run(sample, tmp_path)
    for path in (sample / TRANSACTIONS).glob("*.snapshot"):
        path.unlink()
    middle = segments(sample / ORDERS)[1]
    for path in middle.parent.glob(f"{middle.stem}.*"):
        path.unlink()
    again, read = run(sample, tmp_path, since=first.run_id)
    assert read == []
    kinds = {finding.kind for finding in again.findings}
    assert kinds == {"open-transaction-forgotten", "segment-missing"}


def test_a_run_of_another_version_is_not_carried_over(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, read = run(sample, tmp_path)
    monkeypatch.setattr("kafkalog.checking.run_records.__version__", "9.9")
    _, again = run(sample, tmp_path, since=first.run_id)
    assert again == read


def test_a_run_is_kept_with_who_was_read_and_what_was_found(sample: Path, tmp_path: Path) -> None:
    no_transaction_index(sample)
    done, _ = run(sample, tmp_path)
    facts = json.loads((tmp_path / done.run_id / "run.json").read_text())
    assert (facts["kind"], facts["runId"], facts["schema"]) == ("verify", done.run_id, 1)
    assert facts["options"]["logDirs"] == [str(sample)]
    assert facts["started"] <= facts["finished"]
    lines = (tmp_path / done.run_id / "segments.jsonl").read_text().splitlines()
    reports = {line["task"]["path"]: line for line in map(json.loads, lines)}
    assert facts["segments"] == len(reports)
    log = segments(sample / ORDERS)[0]
    files = {file["suffix"]: file for file in reports[str(log)]["task"]["files"]}
    stat = log.stat()
    assert files[".log"]["size"] == stat.st_size
    assert files[".log"]["mtime_ns"] == stat.st_mtime_ns
    assert files[".log"]["inode"] == stat.st_ino


@pytest.mark.parametrize("since", ["0123456789ab", "../../etc", ""])
def test_a_run_that_is_not_there_is_refused(sample: Path, tmp_path: Path, since: str) -> None:
    with pytest.raises(InvalidConfigError):
        run(sample, tmp_path, since=since)


def test_an_unfinished_run_and_one_of_another_kind_are_refused(tmp_path: Path) -> None:
    begin_run(tmp_path, "a1", "verify", version="0", started_ms=0, options={})
    begin_run(tmp_path, "b2", "compact", version="0", started_ms=0, options={})
    with pytest.raises(InvalidConfigError, match="its end"):
        find_run(tmp_path, "a1", "verify")
    with pytest.raises(InvalidConfigError, match="of compact"):
        find_run(tmp_path, "b2", "verify")


def test_a_run_dir_in_a_log_dir_is_refused(sample: Path) -> None:
    with pytest.raises(InvalidConfigError, match="lies in the log dir"):
        run(sample, sample / "runs")
    assert not (sample / "runs").exists()


def test_a_run_that_cannot_be_kept_is_done_nevertheless(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    request = VerifyRequest((str(sample),), run_dir=str(tmp_path / "file"))
    done = verify_run(request, lambda tasks: map(check_segment, tasks), said.append)
    assert not done.is_kept
    assert "not kept" in said[0]


def test_the_state_directory_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_run_dir() == tmp_path / "kafkalog" / "runs"
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert default_run_dir() == Path.home() / ".local" / "state" / "kafkalog" / "runs"


def test_nothing_below_a_log_dir_changes(sample: Path) -> None:
    def state() -> dict[str, tuple[int, int, int]]:
        stats = {str(path): path.stat() for path in sample.rglob("*")}
        return {path: (s.st_size, s.st_mtime_ns, s.st_ino) for path, s in stats.items()}

    no_transaction_index(sample)
    before = state()
    verify(sample)
    assert state() == before


# -- the command line ------------------------------------------------------------------------------


def test_findings_make_exit_code_1_and_information_does_not(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["verify", "--log-dir", str(sample), "--run-dir", str(tmp_path), "--workers", "2"]
    assert main(arguments) == 0
    segments(sample / ORDERS)[0].with_suffix(".index").unlink()
    assert main(arguments) == 0
    no_transaction_index(sample)
    capsys.readouterr()
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert "transaction-index-missing" in said.out
    assert "read_committed" in said.err  # what a broker makes of it
    assert "1 error, 0" not in said.err


def test_processes_begin_only_where_they_are_worth_it(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def in_processes(tasks: Any, work: Any, workers: int, _died: Any) -> Any:
        asked.append(workers)
        return map(work, tasks)

    monkeypatch.setattr("kafkalog.cli.verify.in_processes", in_processes)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    arguments = ["verify", "--log-dir", str(sample), "--run-dir", str(tmp_path)]
    assert main(arguments) == 0
    assert main([*arguments, "--workers", "2"]) == 0
    monkeypatch.setattr("kafkalog.cli.verify._SHORT_BYTES", 1024 * 1024)
    assert main(arguments) == 0
    assert asked == [1, 2, 4]


def test_the_document_tells_partitions_findings_and_kinds(sample: Path, tmp_path: Path) -> None:
    no_transaction_index(sample)
    code, document = run_json(
        ["verify", "--log-dir", str(sample), "--topic", "transactions", "--run-dir", str(tmp_path)]
    )
    assert code == 1
    (partition,) = document["partitions"]
    assert (partition["topic"], partition["segmentsRead"]) == ("transactions", 3)
    assert {f["id"] for f in document["findings"]} == {"transaction-index-missing"}
    (first, *_) = document["findings"]
    assert (first["topic"], first["partition"], first["severity"]) == ("transactions", 0, "error")
    assert first["segmentBaseOffset"] == 0
    assert document["kinds"].keys() == {"transaction-index-missing"}
    assert (tmp_path / document["runId"] / "run.json").exists()
    same = ["--topic-partition", "transactions-0", "--run-dir", str(tmp_path)]
    code, later = run_json(
        ["verify", "--log-dir", str(sample), *same, "--since", document["runId"]]
    )
    assert code == 1
    assert later["findings"] == document["findings"]
    assert later["partitions"][0]["segmentsCarried"] == 3


def test_a_run_or_partition_that_is_not_there_is_a_wrong_usage(sample: Path) -> None:
    assert main(["verify", "--log-dir", str(sample), "--since", "0123"]) == 2
    assert main(["verify", "--log-dir", str(sample), "--topic", "nobody"]) == 2


def test_only_the_chosen_partitions_are_read(sample: Path) -> None:
    done = verify(sample, topic_partitions=(TopicPartition("orders", 1),))
    assert [str(p.partition.topic_partition) for p in done.partitions] == ["orders-1"]


def test_indexes_of_segments_beside_the_one_that_is_named_are_no_orphans(sample: Path) -> None:
    first, _, last = segments(sample / "orders-1")
    assert verify(first).findings == ()
    first.unlink()
    lost = {(f.kind, f.offset) for f in verify(last).findings}
    assert lost == {("orphan-index", 0)}


def test_a_partition_directory_alone_is_judged_as_a_copy(log_dir: Path) -> None:
    """No meta.properties, no settings: gaps in a log that shows no compaction are found."""
    log = LogBuilder(log_dir).segment().batch(("a", "1"), ("b", "1"))
    log.segment(7).batch(("a", "2")).write()
    for name in ("meta.properties", "recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        (log_dir / name).unlink()
    done = verify(log.path)
    assert {f.kind for f in done.findings} == {"segment-missing"}
