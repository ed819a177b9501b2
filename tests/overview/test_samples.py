"""What `info` says of the sample log dirs, copied without their modification times, equals a list
that was checked by hand: `samples.txt`.

`python -m tests.overview.test_samples` prints the list as it is now; nothing enters it unread.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import kafkalog
from kafkalog.cli.main import main
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.overview.document import overview_document
from kafkalog.overview.overview import read_overview
from tests.test_sample_findings import GROUPS, NOW_MS, copied

LIST = Path(__file__).with_name("samples.txt")
# Of each log dir; what the disk under the copy says is not among them.
OF_LOG_DIR = (
    "clusterId", "nodeId", "directoryId", "metaPropertiesVersion", "isRunning", "isStoppedInOrder",
    "lastAliveMs", "hasTimesOfACopy", "partitions", "futureDirectories", "deletedDirectories",
    "strayDirectories", "segments", "bytes",
)  # fmt: skip
OF_TOPIC = (
    "isInternal", "partitions", "segments", "bytes", "cleanupPolicy", "isTiered", "codecs",
    "magics", "oldestRecordMs", "newestRecordMs",
)  # fmt: skip


def document(log_dirs: list[Path]) -> dict[str, Any]:
    return overview_document(read_overview(log_dirs, NOW_MS), 0.0)


def said(name: str, folder: Path) -> Iterator[str]:
    """A line a fact: the group, what it is about, the values."""
    log_dirs = copied(name, folder)
    found = document(log_dirs)
    release = f"{found['release']}{'' if found['releaseIsExact'] else ' or later'}"
    yield f"{name} | {found['mode']} | {release} | {'tiered' if found['isTiered'] else 'local'}"
    yield f"{name} | records | {found['oldestRecordMs']} to {found['newestRecordMs']}"
    for row in found["logDirs"]:
        place = Path(row["path"]).relative_to(folder)
        yield f"{name} | {place} | {' '.join(str(row[column]) for column in OF_LOG_DIR)}"
    for row in found["topics"]:
        texts = (",".join(map(str, v)) if isinstance(v, list) else str(v)
                 for v in (row[column] for column in OF_TOPIC))  # fmt: skip
        yield f"{name} | topic {row['topic']} | {' '.join(text or '-' for text in texts)}"
    groups = found["groups"]
    yield f"{name} | groups | whole {groups['isWhole']} of {groups['offsetsBytes']} bytes"
    for row in groups["groups"]:
        numbers = f"{row['partitions']} {row['lag']} {row['partitionsWithoutEnd']}"
        yield f"{name} | group {row['group']} | {','.join(row['topics']) or '-'} {numbers}"
    for row in found["findings"]:
        place = Path(row["logDir"]).relative_to(folder)
        yield f"{name} | {row['severity']} {row['id']} | {place} {row['text']}"


def checked() -> list[str]:
    lines = LIST.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("name", GROUPS)
def test_what_a_sample_is_was_checked_by_hand(name: str, tmp_path: Path) -> None:
    expected = [line for line in checked() if line.split(" | ")[0] == name]
    assert list(said(name, tmp_path)) == expected


def test_the_list_has_nothing_else() -> None:
    assert {line.split(" | ")[0] for line in checked()} == set(GROUPS)


@pytest.mark.parametrize("name", ["broker", "groups", "share", "tiered", "cleaning/after"])
def test_sizes_and_lag_are_those_of_reading_everything(name: str, tmp_path: Path) -> None:
    log_dirs = copied(name, tmp_path)
    found = document(log_dirs)
    inventory = kafkalog.open_log_dir(*log_dirs)
    sizes: dict[str, list[int]] = {}
    ends = {}
    for partition in inventory:
        if partition.kind == "live":
            ends[partition.topic_partition] = partition.checkpoints.high_watermark
            sums = sizes.setdefault(partition.topic_partition.topic, [0, 0, 0])
            for at, value in enumerate((1, len(partition.segments), partition.size_in_bytes)):
                sums[at] += value
    assert {
        row["topic"]: [row["partitions"], row["segments"], row["bytes"]] for row in found["topics"]
    } == sizes
    behind: dict[str, int] = {}
    if "__consumer_offsets" in sizes:
        commits = kafkalog.read_view("offset_commits", log_dirs[0])
        latest: dict[tuple[str, str, int], int | None] = {}
        for row in commits.filter(pc.is_valid(commits["group"])).to_pylist():
            if row["transactionState"] in (None, "committed"):
                key = row["group"], row["topic"], row["partition"]
                latest[key] = None if row["isTombstone"] else row["offset"]
        for (group, topic, number), offset in latest.items():
            if offset is not None:
                end = ends[TopicPartition(topic, number)]
                behind[group] = behind.get(group, 0) + max(0, (end or 0) - offset)
    committed = [row for row in found["groups"]["groups"] if row["partitions"]]
    assert {row["group"]: row["lag"] for row in committed} == behind


def test_group_without_commits_is_not_said_to_be_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log_dir,) = copied("share", tmp_path)
    assert main(["info", str(log_dir), "--now", str(NOW_MS)]) == 0
    nothing = "others - (nothing committed), readers - (nothing committed)"
    assert f"2 groups, records behind: {nothing}" in capsys.readouterr().out


if __name__ == "__main__":
    for group in GROUPS:
        with tempfile.TemporaryDirectory() as temporary:
            sys.stdout.writelines(f"{line}\n" for line in said(group, Path(temporary)))
