"""`audit --since`: what has changed since an earlier audit, whatever has happened to the disk."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.auditing.audit_state import SegmentColumns
from kafkalog.auditing.finding_changes import same_findings
from kafkalog.auditing.partition_audit import audit_partition
from kafkalog.auditing.request import audit_request
from kafkalog.auditing.segment_changes import segment_changes
from kafkalog.auditing.whole import AuditOptions, WholeAudit, whole_audit
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from kafkalog.report.page import render_page
from tests.auditing.documents import validate
from tests.report.evaluate import evaluate, numbers_of
from tests.support.log_builder import START_MS, LogBuilder

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
DELETE = ("cleanup.policy=delete", f"retention.ms={10 * DAY_MS}")


def run(
    log_dir: Path, run_dir: Path, day: int, config: tuple[str, ...] = DELETE, **extras: Any
) -> WholeAudit:
    now_ms = START_MS + day * DAY_MS
    options = {k: extras.pop(k) for k in ("topics", "topic_partitions") if k in extras}
    request = audit_request(
        [str(log_dir)],
        {"now_ms": now_ms, "run_dir": str(run_dir), "config": config, **options},
    )
    execute = lambda tasks: map(audit_partition, tasks)  # noqa: E731
    whole = whole_audit(request, AuditOptions(**extras), execute, lambda: now_ms)
    validate(json.loads(json.dumps(whole.document)))
    return whole


def since(*args: Any, **extras: Any) -> dict[str, Any]:
    section: dict[str, Any] = run(*args, since=extras.pop("since", "last"), **extras).document[
        "since"
    ]
    return section


def write_log(
    log_dir: Path, name: str, days: tuple[int, ...] = (0, 1, 2, 3), more: int = 0
) -> LogBuilder:
    """A segment a day, with a record of its time; the last one has `more` of them."""
    shutil.rmtree(log_dir / name, ignore_errors=True)
    log = LogBuilder(log_dir, name)
    for day in days:
        at_ms = START_MS + day * DAY_MS
        log.segment(modified_ms=at_ms).batch((f"k{day}", "v" * 100), timestamp=at_ms)
    for _ in range(more):
        log.batch(("more", "w" * 50), timestamp=START_MS + days[-1] * DAY_MS)
    log.write()
    return log


def segments_of(log_dir: Path, name: str) -> list[Path]:
    return sorted((log_dir / name).glob("*.log"))


def remove(log: Path) -> int:
    """A segment with its indexes goes; the bytes of its `.log`."""
    size = log.stat().st_size
    for file in log.parent.glob(f"{log.stem}.*"):
        file.unlink()
    return size


def changed(rows: list[Mapping[str, Any]], change: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["change"] == change]


def test_nothing_has_changed(log_dir: Path, tmp_path: Path) -> None:
    write_log(log_dir, "orders-0")
    first = run(log_dir, tmp_path, 12)
    section = since(log_dir, tmp_path, 12)
    assert section["nowMs"] == START_MS + 12 * DAY_MS
    assert section["segments"] == section["settings"] == []
    # The one that is due is still there.
    (row,) = section["partitions"]
    told = {n: v for n, v in row.items() if n.endswith("Segments") and v}
    assert told == {"overdueSegments": 2}
    assert section["totals"]["newFindings"] == section["totals"]["goneFindings"] == 0
    assert section["totals"]["sameFindings"] == len(first.document["findings"]) > 0
    assert [row["bytesPerDay"] for row in section["topics"]] == [None]


def test_what_came_went_and_grew(log_dir: Path, tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "gone-0"):
        write_log(log_dir, name)
    sizes = run(log_dir, tmp_path, 5).document["totals"]["bytes"]
    shutil.rmtree(log_dir / "gone-0")
    write_log(log_dir, "new-0", (0, 4))
    active = segments_of(log_dir, "orders-0")[-1]
    before = active.stat().st_size
    write_log(log_dir, "orders-0", more=1)
    grown = active.stat().st_size - before
    assert grown > 0
    deleted = remove(segments_of(log_dir, "orders-1")[0])
    section = since(log_dir, tmp_path, 7)
    assert [r["path"] for r in changed(section["partitions"], "new")] == [str(log_dir / "new-0")]
    assert [r["path"] for r in changed(section["partitions"], "gone")] == [str(log_dir / "gone-0")]
    rows = {r["path"].rpartition("/")[2]: r for r in changed(section["partitions"], "changed")}
    assert rows.keys() == {"orders-0", "orders-1"}
    assert (rows["orders-0"]["grownSegments"], rows["orders-0"]["grownBytes"]) == (1, grown)
    assert rows["orders-0"]["appendedOffsets"] == 1
    assert (rows["orders-1"]["deletedSegments"], rows["orders-1"]["deletedBytes"]) == (1, deleted)
    # Due on day 10 by the settings of then: nothing but somebody's hand deletes it on day 7.
    assert rows["orders-1"]["unforeseenBytes"] == deleted
    totals = section["totals"]
    assert (totals["bytesBefore"], totals["newPartitions"], totals["gonePartitions"]) == (
        sizes, 1, 1,
    )  # fmt: skip
    (topic,) = [row for row in section["topics"] if row["topic"] == "gone"]
    assert topic["bytesPerDay"] == round(-topic["bytesBefore"] / 2) < 0
    moved = {(r["change"], r["topic"], r["baseOffset"]) for r in section["segments"]}
    assert moved == {
        ("changed", "orders", int(active.stem)), ("gone", "orders", 0), ("new", "new", 0),
        ("new", "new", 1),
    }  # fmt: skip


@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_retention_did_and_did_not(log_dir: Path, tmp_path: Path, is_deleted: bool) -> None:
    """Due on day 10 and on day 11; seen on day 10 and on day 12."""
    write_log(log_dir, "orders-0")
    assert run(log_dir, tmp_path, 10).document["totals"]["dueBytes"] == 0
    run(log_dir, tmp_path, 11)
    first, second, *_ = segments_of(log_dir, "orders-0")
    sizes = first.stat().st_size, second.stat().st_size
    if is_deleted:
        remove(first)
    totals = since(log_dir, tmp_path, 12)["totals"]
    expected = (sizes[0], 0, 0) if is_deleted else (0, 0, sizes[0])
    assert (totals["deletedBytes"], totals["unforeseenBytes"], totals["overdueBytes"]) == expected
    assert (totals["newlyDueSegments"], totals["newlyDueBytes"]) == (1, sizes[1])


def test_a_cleaned_log(log_dir: Path, tmp_path: Path) -> None:
    write_log(log_dir, "orders-0")
    run(log_dir, tmp_path, 5)
    _, second, third, _ = segments_of(log_dir, "orders-0")
    second.write_bytes(b"")
    size = remove(third)
    (row,) = since(log_dir, tmp_path, 6)["partitions"]
    assert (row["removedSegments"], row["removedBytes"]) == (1, size)
    assert row["shrunkSegments"] == 1
    assert row["deletedSegments"] == 0


def test_a_setting_that_changed(log_dir: Path, tmp_path: Path) -> None:
    write_log(log_dir, "orders-0")
    run(log_dir, tmp_path, 5)
    config = ("cleanup.policy=delete", f"retention.ms={3 * DAY_MS}", "segment.ms=7d")
    section = since(log_dir, tmp_path, 5, config)
    assert section["settings"] == [
        {
            "topic": "orders", "key": "retention.ms", "before": str(10 * DAY_MS),
            "now": str(3 * DAY_MS),
        }
    ]  # fmt: skip


def test_findings_are_new_gone_and_still_there_since(log_dir: Path, tmp_path: Path) -> None:
    write_log(log_dir, "orders-0", (0, 1, 2, 12))
    write_log(log_dir, "paid-0")
    run(log_dir, tmp_path, 13)
    run(log_dir, tmp_path, 14)
    for log in segments_of(log_dir, "orders-0")[:-1]:
        remove(log)
    write_log(log_dir, "late-0")
    section = since(log_dir, tmp_path, 16)
    new, gone, same = (
        {(r["id"], r["topic"]) for r in changed(section["findings"], change)}
        for change in ("new", "gone", "same")
    )
    assert ("retention-overdue", "late") in new
    assert ("retention-overdue", "orders") in gone
    assert ("retention-overdue", "paid") in same
    for row in changed(section["findings"], "same"):
        assert row["sinceMs"] == START_MS + 13 * DAY_MS  # the first of three in a row
    for row in changed(section["findings"], "new"):
        assert row["sinceMs"] == START_MS + 16 * DAY_MS
    # The numbers in the words are of another day: the same finding all the same.
    before = {r["text"] for r in run(log_dir, tmp_path / "other", 14).document["findings"]}
    assert any(r["text"] not in before for r in changed(section["findings"], "same"))


def test_a_document_says_what_the_run_says(log_dir: Path, tmp_path: Path) -> None:
    for name in ("orders-0", "paid-0", "paid-1"):
        write_log(log_dir, name)
    document = run(log_dir, tmp_path / "runs", 11).document
    path = tmp_path / "before.json"
    path.write_text(json.dumps(document))
    remove(segments_of(log_dir, "paid-1")[0])
    write_log(log_dir, "new-0")
    own = since(log_dir, tmp_path / "runs", 13)
    # A run of its own, else the first one would be in front of the next.
    (run_dir,) = [each for each in (tmp_path / "runs").iterdir() if each.name == own["run"]]
    for other in (str(path), str(run_dir), own["run"]):
        told = since(log_dir, tmp_path / "runs", 13, since=other)
        assert told["run"] == (own["run"] if other == str(run_dir) else other)
        for name in ("totals", "topics", "partitions", "segments", "settings"):
            assert told[name] == own[name]
    # Where no run is kept, only the document tells.
    alone = since(log_dir, tmp_path / "none", 13, since=str(path), keeps=False)
    assert {**alone, "run": own["run"]} == own
    assert not (tmp_path / "none").exists()


def test_topics_that_are_not_asked_for_are_left_out(log_dir: Path, tmp_path: Path) -> None:
    write_log(log_dir, "orders-0")
    write_log(log_dir, "paid-0")
    first = run(log_dir, tmp_path, 5)
    (run_id,) = (path.name for path in tmp_path.iterdir() if path.is_dir() and path != log_dir)
    section = since(log_dir, tmp_path, 6, topics=("paid",), since=run_id)
    assert section["partitions"] == []
    assert section["totals"]["bytesBefore"] < first.document["totals"]["bytes"]
    # The other way round nothing is known of `orders`.
    narrow = next(p for p in tmp_path.iterdir() if (p / "run.json").exists() and p.name != run_id)
    with pytest.raises(InvalidConfigError, match=r"was an audit of something else: .* paid"):
        since(log_dir, tmp_path, 7, since=narrow.name)


def test_log_dirs_may_be_named_from_here(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(log_dir, "orders-0")
    monkeypatch.chdir(log_dir.parent)
    path = tmp_path / "before.json"
    here = Path(log_dir.name)
    path.write_text(json.dumps(run(here, tmp_path / "runs", 5).document))
    for other in ("last", str(path)):
        assert since(here, tmp_path / "runs", 5, since=other)["partitions"] == []
    assert since(log_dir, tmp_path / "runs", 5, since=str(path))["partitions"] == []
    (log_dir / "other").mkdir()
    write_log(log_dir / "other", "orders-0")
    with pytest.raises(InvalidConfigError, match=f"is of {log_dir}, not of {log_dir}/other"):
        since(log_dir / "other", tmp_path / "runs", 5, since=str(path))


@pytest.mark.parametrize("name", ["abc", "last", "../x", "later", "old", "other", "cut"])
def test_a_run_that_is_not_there(log_dir: Path, tmp_path: Path, name: str) -> None:
    write_log(log_dir, "orders-0")
    runs = tmp_path / "runs"
    if name != "last":
        run(log_dir, runs, 5)
    kept = "" if name == "last" else next(runs.iterdir()).name
    wanted = {
        "abc": f"no audit abc; there are {kept} ", "last": "no earlier audit of the same log dirs",
        "../x": "no audit ../x; there are", "later": "is of a later time",
        "old": "kept no partitions.parquet", "other": "is of compact",
        "cut": "cannot be read",
    }[name]  # fmt: skip
    if name == "old":
        (runs / kept / "partitions.parquet").unlink()
    elif name == "cut":
        path = runs / kept / "partitions.parquet"
        path.write_bytes(path.read_bytes()[:-9])
    elif name == "other":
        facts = json.loads((runs / kept / "run.json").read_text())
        (runs / kept / "run.json").write_text(json.dumps({**facts, "kind": "compact"}))
    asked = name if name in ("abc", "last", "../x") else kept
    with pytest.raises(InvalidConfigError, match=wanted):
        since(log_dir, runs, 4 if name == "later" else 6, since=asked)


@pytest.mark.parametrize("damage", ["text", "list", "segments", "number", "huge", "version"])
def test_a_file_that_is_no_document(log_dir: Path, tmp_path: Path, damage: str) -> None:
    write_log(log_dir, "orders-0")
    document = json.loads(json.dumps(run(log_dir, tmp_path / "runs", 5).document))
    if damage == "segments":
        document["segments"].pop()
    elif damage == "number":
        document["segments"][0]["bytes"] = "many"
    elif damage == "huge":
        document["segments"][0]["bytes"] = 2**70
    elif damage == "version":
        document["schemaVersion"] = 2
    path = tmp_path / "before.json"
    texts = {"text": "no JSON", "list": "[]"}
    path.write_text(texts.get(damage) or json.dumps(document))
    with pytest.raises(InvalidConfigError, match=r"is no document|of another version"):
        since(log_dir, tmp_path / "runs", 6, since=str(path))


def test_the_command_line(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(log_dir, "orders-0")

    def audit(day: int, *more: str) -> int:
        now = str(START_MS + day * DAY_MS)
        config = [word for each in DELETE for word in ("--config", each)]
        return main(
            ["audit", str(log_dir), "--now", now, *config, "--run-dir", str(tmp_path), *more]
        )

    assert audit(15) == 1  # warnings
    capsys.readouterr()
    assert audit(15, "--since", "last") == 1
    assert audit(15, "--since", "last", "--fail-on", "new") == 0
    said = capsys.readouterr()
    assert "still there (since 2023-11-29" in said.err
    write_log(log_dir, "paid-0")  # as late as the other one
    assert audit(16, "--since", "last", "--fail-on", "new") == 1
    said = capsys.readouterr()
    assert "new" in said.out
    assert "paid" in said.out
    assert "1 partition new" in said.err
    assert audit(16, "--since", "last", "--fail-on", "new", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["since"]["totals"]["newFindings"] == 0
    assert audit(16, "--fail-on", "new") == 2
    assert audit(16, "--since", "nothing") == 2
    assert "there are " in capsys.readouterr().err


def test_the_page_has_what_changed(log_dir: Path, tmp_path: Path) -> None:
    write_log(log_dir, "orders-0")
    run(log_dir, tmp_path, 11)
    remove(segments_of(log_dir, "orders-0")[0])
    document = run(log_dir, tmp_path, 13, since="last").document
    page = render_page(document)
    shown = [each for each in numbers_of(page) if each.at.startswith("since.")]
    assert {each.at for each in shown} >= {"since.topics.0.deletedBytes", "since.topics.0.bytes"}
    assert all(each.value == str(evaluate(document, each.at)) for each in shown)


def test_a_run_keeps_little(log_dir: Path, tmp_path: Path) -> None:
    """Lists of numbers, packed: some bytes a segment."""
    for partition in range(4):
        write_log(log_dir, f"orders-{partition}", tuple(range(100)))
    run(log_dir, tmp_path / "runs", 5)
    (kept,) = (tmp_path / "runs").iterdir()
    assert pq.read_metadata(kept / "partitions.parquet").num_rows == 4
    assert (kept / "partitions.parquet").stat().st_size < 12_000


# -- laws ------------------------------------------------------------------------------------------

SIZE_AND_DUE = st.tuples(st.integers(0, 9), st.integers(-1, 9))
LOGS = st.dictionaries(
    st.integers(0, 5),
    st.dictionaries(st.integers(0, 8), SIZE_AND_DUE, max_size=6), max_size=5,
)  # fmt: skip


def columns(logs: dict[int, dict[int, tuple[int, int]]]) -> SegmentColumns:
    rows = [(base, *own[base]) for own in logs.values() for base in sorted(own)]
    numbers = np.array(rows, np.int64).reshape(-1, 3)
    counts = np.array([len(own) for own in logs.values()], np.int64)
    return SegmentColumns(counts, numbers[:, 0], numbers[:, 1], numbers[:, 2])


@given(LOGS, LOGS, st.integers(0, 9), st.integers(0, 9))
def test_columns_say_what_a_walk_says(
    before: dict[int, dict[int, tuple[int, int]]],
    after: dict[int, dict[int, tuple[int, int]]],
    then: int,
    now: int,
) -> None:
    names = list(after)
    places = np.array([names.index(n) if n in after else -1 for n in before], np.int64)
    found = segment_changes(columns(before), columns(after), places, then, max(then, now))
    now = max(then, now)
    for place, name in enumerate(names):
        old, new = before.get(name, {}), after[name]
        first = min(new, default=99)
        due = {b for b, (_, at) in new.items() if 0 <= at <= now}
        was_due = {b for b, (_, at) in old.items() if 0 <= at <= then}
        front = {b for b in old.keys() - new.keys() if b < first}
        both = old.keys() & new.keys()
        expected = {
            "added": [new[b][0] for b in new.keys() - old.keys()],
            "grown": [new[b][0] - old[b][0] for b in both if new[b][0] > old[b][0]],
            "shrunk": [old[b][0] - new[b][0] for b in both if new[b][0] < old[b][0]],
            "deleted": [old[b][0] for b in front],
            "unforeseen": [old[b][0] for b in front if not 0 <= old[b][1] <= now],
            "removed": [old[b][0] for b in old.keys() - new.keys() - front],
            "overdue": [new[b][0] for b in both & due & was_due],
            "newly_due": [new[b][0] for b in due - (both & was_due)],
        }
        for what, sizes in expected.items():
            counts, total = found.sums[what]
            assert (counts[place], total[place]) == (len(sizes), sum(sizes)), what


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 4), max_size=8), st.randoms())
def test_the_same_findings_in_any_order_are_the_same(
    drawn: list[tuple[int, ...]], rnd: random.Random
) -> None:
    rows = [
        {
            "id": f"k{kind}", "logDir": "d", "topic": "t", "partition": 0, "path": f"p{path}",
            "segmentBaseOffset": segment, "text": f"t{text}",
        }
        for kind, path, segment, text in drawn
    ]  # fmt: skip
    shuffled = rnd.sample(rows, len(rows))
    same = same_findings(rows, shuffled)
    assert sorted(at for at in same if at is not None) == list(range(len(rows)))
    assert all(rows[at] == row for at, row in zip(same, shuffled, strict=True) if at is not None)
    other = {**dict.fromkeys(("topic", "partition", "segmentBaseOffset")), "id": "other",
             "logDir": "d", "path": "p", "text": "t"}  # fmt: skip
    assert same_findings(rows, [*rows, other]) == [*same_findings(rows, rows), None]
    fewer = same_findings(rows[:-1], rows)
    assert sum(at is None for at in fewer) == (1 if rows else 0)


def test_another_rule_of_a_policy_is_another_finding() -> None:
    def row(rule: str, days: int) -> dict[str, Any]:
        return {
            "id": "policy-setting", "logDir": "d", "topic": "t", "partition": None, "path": "d",
            "segmentBaseOffset": None, "text": f"t: rule {rule}: {days} days late",
        }  # fmt: skip

    assert same_findings([row("zstd", 1)], [row("zstd", 2)]) == [0]
    assert same_findings([row("zstd", 1)], [row("lz4", 1)]) == [None]
