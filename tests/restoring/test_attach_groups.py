"""`attach BUCKET --into LOGDIR --groups`: what groups had committed goes into the new cluster's
`__consumer_offsets`, up to what the bucket has, or into files; and who has none is told so.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from kafkalog.format.file_names import log_file_name
from kafkalog.log.log_dir import open_log_dir
from kafkalog.reading.function_views.group_offsets import commits_in_force
from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads
from kafkalog.restoring.groups import GroupOffset, GroupScript
from kafkalog.restoring.offsets_topic import offsets_partition, offsets_topic
from tests.operations.undo.trees import differences, tree
from tests.restoring.fresh import fields_of
from tests.restoring.test_attach_bucket import END, NOW_MS, TOPIC, Tiered

COMMITTED = {"behind": 100, "ahead": END + 118, "café": END}


@pytest.fixture
def tiered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiered:
    """Its old log dir has groups; one of them has read another topic, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Tiered(tmp_path, 3)
    scripts = [
        GroupScript(group, (GroupOffset(TOPIC, 0, offset, 0, "note"), *others), 0, 0)
        for group, offset in COMMITTED.items()
        for others in [(GroupOffset("other", 4, 9, -1, ""),) * (group == "behind")]
    ]
    written = offsets_topic(scripts, open_log_dir(made.old), None, tmp_path / "made", NOW_MS - 5)
    for each in written.partitions:
        log = made.old / str(each.topic_partition) / log_file_name(0)
        shutil.copy(Path(each.path, log.name), log)
    return made


def words_of(tiered: Tiered, *words: str) -> list[str]:
    into = [word for path in tiered.dirs for word in ("--into", str(path))]
    runs = ["--run-dir", str(tiered.path / "runs"), "--now", str(NOW_MS), "--topic", "*"]
    return ["attach", str(tiered.bucket), *into, *runs, *words]


def run_json(capsys: pytest.CaptureFixture[str], words: list[str]) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize("count", [None, pytest.param(7, marks=pytest.mark.thorough)])
def test_groups_go_into_the_new_offsets_topic(
    tiered: Tiered, count: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [tree(path) for path in tiered.dirs]
    words = words_of(tiered, "--metadata-from", str(tiered.old), "--groups", "*")
    words += [] if count is None else ["--offsets-partitions", str(count)]
    planned = run_json(capsys, words)
    assert not any(differences(b, tree(path)) for b, path in zip(before, tiered.dirs, strict=True))
    run = run_json(capsys, [*words, "--apply"])
    assert run["groups"] == planned["groups"]
    partitions = count or 3
    assert {each["group"]: each for each in run["groups"]} == {
        group: {
            "group": group, "file": None, "offsets": 1, "clamped": int(offset > END),
            "offsetsPartition": offsets_partition(group, partitions),
            "leftOut": int(group == "behind"),
        }
        for group, offset in COMMITTED.items()
    }  # fmt: skip
    for path in tiered.dirs:  # three replicas
        reads = SharedReads([str(path)], FunctionOptions())
        rows = commits_in_force(reads).to_pylist()
        assert {row["group"]: (row["topic"], row["partition"], row["offset"]) for row in rows} == {
            group: (TOPIC, 0, min(offset, END)) for group, offset in COMMITTED.items()
        }
        assert {row["commitTimestampMs"] for row in rows} == {NOW_MS}
        assert len(list(path.glob("__consumer_offsets-*"))) == partitions
    configs = {
        each["name"]: each["value"]
        for each in fields_of(tiered.dirs[0], "ConfigRecord")
        if each["resourceName"] == "__consumer_offsets"
    }
    assert configs["cleanup.policy"] == "compact"
    assert not any("offsets that groups" in text for text in run["lost"])
    assert main(["undo", run["runId"], "--run-dir", str(tiered.path / "runs")]) == 0
    assert not any(differences(b, tree(path)) for b, path in zip(before, tiered.dirs, strict=True))


def test_groups_as_files(tiered: Tiered, capsys: pytest.CaptureFixture[str]) -> None:
    output = tiered.path / "out"
    words = words_of(tiered, "--metadata-from", str(tiered.old), "--groups", "*e*", "--apply")
    run = run_json(capsys, [*words, "--output", str(output)])
    assert [(each["group"], each["file"]) for each in run["groups"]] == [
        ("ahead", "ahead.csv"), ("behind", "behind.csv"),
    ]  # fmt: skip
    assert (output / "ahead.csv").read_text() == f"{TOPIC},0,{END}\n"
    assert not list(tiered.dirs[0].glob("__consumer_offsets-*"))


def test_partitions_that_nobody_tells_of_are_named(
    tiered: Tiered, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(tiered.old / "__consumer_offsets-1")
    words = words_of(tiered, "--metadata-from", str(tiered.old), "--groups", "*")
    run = run_json(capsys, words)
    assert any("__consumer_offsets: partitions 1 are not in" in text for text in run["warnings"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--groups", "*"], "a bucket has no __consumer_offsets"),
        (["--groups", "nobody", "--metadata-from", "OLD"], "not in the source: nobody"),
        (["--output", "out"], "--output is for the files of --groups"),
        (["--offsets-partitions", "3"], "--offsets-partitions is for the topic"),
    ],
)
def test_what_cannot_be_is_refused(
    tiered: Tiered, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(tiered.old) if word == "OLD" else word for word in words]
    assert main(words_of(tiered, *words)) == 2
    assert told in capsys.readouterr().err


def test_it_is_said_where_offsets_come_from(
    tiered: Tiered, capsys: pytest.CaptureFixture[str]
) -> None:
    by_bucket = run_json(capsys, words_of(tiered))
    assert any("a bucket has no __consumer_offsets" in text for text in by_bucket["lost"])
    by_disk = run_json(capsys, words_of(tiered, "--metadata-from", str(tiered.old)))
    assert any("--groups takes them from __consumer_offsets" in text for text in by_disk["lost"])
    for path in list(tiered.old.glob("__consumer_offsets-*")):
        shutil.rmtree(path)
    words = words_of(tiered, "--metadata-from", str(tiered.old), "--groups", "*")
    assert main(words) == 2
    assert "--metadata-from have no __consumer_offsets" in capsys.readouterr().err
