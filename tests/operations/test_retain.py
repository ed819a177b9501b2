"""Retention over several partitions: what is refused, what fails alone, what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cleaning import new_files
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE, parse_offset_checkpoint
from kafkalog.operations.retain import apply_retention_run, plan_retention_run
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import RunRequest
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.journal import RETAIN, begin_journal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.segment_deletion import retain_partition, trimmed_leader_epochs
from tests.operations.faults.logs import contents
from tests.operations.faults.test_locks import another_process, record_lock
from tests.support.log_builder import START_MS, LogBuilder

NOW_MS = START_MS + 10_000_000
CONFIG = LogConfig.from_overrides(["cleanup.policy=delete", "retention.ms=1000"])
POLICY = "--config=cleanup.policy=delete"
SAID = (POLICY, "--config=retention.ms=1000")


def write_partition(log_dir: Path, name: str, *, segments: int = 3) -> LogBuilder:
    log = LogBuilder(log_dir, name)
    for _ in range(segments):
        log.segment().batch(("a", "1"), timestamp=START_MS)
    log.batch(("a", "new"), timestamp=NOW_MS)
    return log


def request(log_dir: Path, *topics: str) -> RunRequest:
    return RunRequest((str(log_dir),), NOW_MS, CONFIG, topics=topics)


def words(log_dir: Path, *more: str) -> list[str]:
    return ["retain", "--log-dir", str(log_dir), f"--now={NOW_MS}", "--json", *more]


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def bases(path: Path) -> list[int]:
    return sorted(int(file.stem) for file in path.glob("*.log"))


def test_a_plan_changes_nothing_and_tells_every_rule(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(log_dir, "t-0").write()
    before = contents(log_dir)
    assert main(words(log_dir, "--topic=t", *SAID)) == 0
    assert contents(log_dir) == before
    found = document(capsys)
    assert (found["applied"], found["problems"], found["recovered"]) == (False, [], [])
    (partition,) = found["partitions"]
    assert (partition["topic"], partition["partition"], partition["status"]) == ("t", 0, "delete")
    assert (partition["deletedBaseOffsets"], partition["logStartOffset"]) == ([0, 1], 2)
    assert [s["rule"] for s in partition["deleted"]] == ["retention.ms"] * 2
    (kept,) = partition["kept"]
    assert (kept["baseOffset"], kept["timestampMs"], kept["timestampSource"]) == (
        2,
        NOW_MS,
        "records",
    )
    assert kept["rule"] == "retention.ms"
    assert partition["configSources"]["retention.ms"] == {"value": "1000", "source": "option"}


def test_apply_deletes_only_what_is_named_and_says_so(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("t-0", "u-0"):
        write_partition(log_dir, name).write()
    assert main(words(log_dir, "--apply", "--topic=t", *SAID)) == 0
    (partition,) = document(capsys)["partitions"]
    assert partition["status"] == "deleted"
    assert bases(log_dir / "t-0") == [2]
    assert bases(log_dir / "u-0") == [0, 1, 2]


def test_the_table_names_what_keeps_the_log(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(log_dir, "t-0").write()
    assert main([w for w in words(log_dir, "--topic=t", *SAID) if w != "--json"]) == 0
    out, err = capsys.readouterr()
    assert "retention.ms: largest timestamp 2023-11-15T01:00:00.000Z, goes after" in out
    assert "nothing was changed" in err


def test_apply_needs_topics(log_dir: Path) -> None:
    write_partition(log_dir, "t-0").write()
    before = contents(log_dir)
    with pytest.raises(InvalidConfigError, match="--apply needs --topic"):
        apply_retention_run(request(log_dir))
    assert main(words(log_dir, "--apply", "--config=retention.ms=1000")) == 2
    assert contents(log_dir) == before


WEEK_LATER = f"--now={NOW_MS + 604_800_000}"


def test_kafkas_default_alone_deletes_nothing(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(log_dir, "t-0").write()
    before = contents(log_dir)
    for given in ([], ["--config=retention.bytes=100000"]):
        assert main(words(log_dir, "--apply", "--topic=t", WEEK_LATER, POLICY, *given)) == 3
        (partition,) = document(capsys)["partitions"]
        assert "no setting says how long to keep" in partition["reason"]
    assert main(words(log_dir, "--apply", "--topic=t", "--config=cleanup.policy=compact")) == 0
    assert contents(log_dir) == before
    assert main(words(log_dir, "--apply", "--topic=t", POLICY, "--config=retention.bytes=0")) == 0
    assert bases(log_dir / "t-0") == [4]  # by size, which was said; nothing is a week old


def test_the_dry_run_tells_that_new_files_may_not_get_their_owner(
    log_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the new active segment, and of the leader epochs alone where only some segments go."""
    write_partition(log_dir, "t-0").write()
    monkeypatch.setattr(new_files, "can_give_ownership", lambda _: False)
    for size, status in (("0", "refused"), ("150", "refused"), ("100000", "skip")):
        given = ["--topic=t", POLICY, f"--config=retention.bytes={size}"]
        for apply in ([], ["--apply"]):
            main(words(log_dir, *apply, *given))
            (partition,) = document(capsys)["partitions"]
            assert partition["status"] == status, (size, apply)
            assert ("new files must belong to user" in partition["reason"]) == (status != "skip")
    assert bases(log_dir / "t-0")[0] == 0


def test_a_file_says_how_long_to_keep_but_not_of_which_policy_a_copied_topic_is(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_partition(log_dir, "t-0").write()
    file, properties = tmp_path / "topics.toml", tmp_path / "server.properties"
    file.write_text('["*"]\nretention.ms = 1000\n')
    properties.write_text("log.retention.minutes=1\n")
    for given in (f"--config-file={file}", f"--server-properties={properties}"):
        assert main(words(log_dir, "--apply", "--topic=t", given)) == 3
        (partition,) = document(capsys)["partitions"]
        assert "cleanup.policy of t is not known" in partition["reason"]
        assert bases(log_dir / "t-0") == [0, 1, 2]
    assert main(words(log_dir, "--apply", "--topic=t", given, POLICY)) == 0
    found = document(capsys)
    assert bases(log_dir / "t-0") == [2]
    (partition,) = found["partitions"]
    source = partition["configSources"]["retention.ms"]
    assert source == {"value": "60000", "source": "server.properties log.retention.minutes"}
    assert any("no cluster metadata" in note for note in found["notes"])


def test_a_locked_log_dir_is_left_alone(log_dir: Path) -> None:
    write_partition(log_dir, "t-0").write()
    with another_process(log_dir / ".lock", record_lock):
        before = contents(log_dir)
        assert main(words(log_dir, "--apply", "--topic=t", *SAID)) == 3
        assert contents(log_dir) == before
        assert main(words(log_dir, "--topic=t", *SAID)) == 0


def test_what_must_not_be_touched_is_refused_and_the_others_are_done(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a-0", "b-0", "__cluster_metadata-0"):
        write_partition(log_dir, name).write()
    stray = f"c-0.{'0' * 32}-stray"
    write_partition(log_dir, "c-0").write().rename(log_dir / stray)
    (log_dir / "b-0" / "leader-epoch-checkpoint").write_bytes(b"0\n1\nnonsense\n")
    before = {n: c for n, c in contents(log_dir).items() if not n.startswith("a-0/") and "/" in n}
    # The metadata log made here tells nothing of these topics: only force goes on without it.
    topics = ("--topic=*", "--topic=a", "--topic=b")
    given = ("--apply", *topics, *SAID, "--force=config-differs")
    assert main(words(log_dir, *given)) == 1
    found = {Path(p["path"]).name: p for p in document(capsys)["partitions"]}
    statuses = {name: partition["status"] for name, partition in found.items()}
    refused = dict.fromkeys(("b-0", "__cluster_metadata-0", stray), "refused")
    assert statuses == {"a-0": "deleted", **refused}
    assert "line 3" in found["b-0"]["reason"]
    after = contents(log_dir)
    assert {name: after[name] for name in before} == before
    assert bases(log_dir / "a-0") == [2]


def test_all_refused_is_exit_code_3(log_dir: Path) -> None:
    path = write_partition(log_dir, "t-0").write()
    (log_dir / "replication-offset-checkpoint").unlink()
    settings = ("--apply", "--topic=t", *SAID)
    assert main(words(log_dir, *settings)) == 3
    assert bases(path) == [0, 1, 2]
    assert main(words(log_dir, *settings, "--high-watermark=1")) == 0
    assert bases(path) == [1, 2]


def test_a_log_dir_with_a_bad_checkpoint_is_refused(log_dir: Path) -> None:
    path = write_partition(log_dir, "t-0").write()
    (log_dir / "cleaner-offset-checkpoint").write_bytes(b"7\n")
    settings = ("--apply", "--topic=t", *SAID)
    assert main(words(log_dir, *settings)) == 3
    assert bases(path) == [0, 1, 2]


def test_files_other_than_planned_stop_the_partition(log_dir: Path) -> None:
    path = write_partition(log_dir, "t-0").write()
    (plan,) = plan_retention_run(request(log_dir, "t")).plans
    with (path / f"{2:020d}.log").open("ab") as file:
        file.write(b"x")
    before = contents(log_dir)
    journal = begin_journal(request(log_dir, "t"), new_run_id(), RETAIN, [str(log_dir)])
    result = retain_partition(plan, journal, LocalFiles())
    assert result.status == "failed"
    assert "not those the plan was made from" in result.reason
    assert contents(log_dir) == before


def test_log_start_lines_are_those_a_broker_writes(log_dir: Path) -> None:
    write_partition(log_dir, "t-0").log_start_offset(1).write()
    write_partition(log_dir, "t-1", segments=2).high_watermark(1).log_start_offset(1).write()
    log = LogBuilder(log_dir, "t-2").segment()
    log.batch(("a", "1"), ("b", "2"), timestamp=NOW_MS).log_start_offset(1).write()
    assert not apply_retention_run(request(log_dir, "t")).problems
    lines = parse_offset_checkpoint((log_dir / LOG_START_OFFSET_FILE).read_bytes())
    assert lines == {("t", 2): 1}


def test_segments_a_broker_would_repair_go_by_their_headers(log_dir: Path) -> None:
    """After a crash the open indexes lie: the last entry is older than the last record."""
    log = LogBuilder(log_dir, "t-0")
    log.segment().batch(("a", "1"), timestamp=START_MS)
    log.segment().batch(("a", "2"), timestamp=START_MS).batch(("b", "3"), timestamp=NOW_MS)
    path = log.torn(20).write(clean_shutdown=False)
    run = apply_retention_run(request(log_dir, "t"))
    assert [verdict.base_offset for verdict in run.plans[0].deleted] == [0]
    assert run.plans[0].kept[0].timestamp_ms == NOW_MS
    assert bases(path) == [1]


@pytest.mark.parametrize(
    ("start", "wanted"),
    [
        (0, [(0, 0), (2, 10), (5, 20)]),
        (9, [(0, 9), (2, 10), (5, 20)]),
        (10, [(2, 10), (5, 20)]),
        (99, [(5, 99)]),
    ],
)
def test_leader_epochs_keep_the_newest_below_the_start(
    start: int, wanted: list[tuple[int, int]]
) -> None:
    assert trimmed_leader_epochs([(0, 0), (2, 10), (5, 20)], start) == wanted
    assert trimmed_leader_epochs([], start) == []
    assert trimmed_leader_epochs([(1, 200)], start) == [(1, 200)]
