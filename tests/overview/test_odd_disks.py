"""On a log dir with one thing wrong or odd `info` says something, and cries no error where `verify`
has none."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from kafkalog.overview import heads
from kafkalog.overview.overview import read_overview
from tests.overview.test_cheap import commit_key, commit_value
from tests.starts.rows import read_rows
from tests.starts.states import STATES
from tests.support.log_builder import LogBuilder
from tests.test_sample_findings import NOW_MS, copied

ROWS = read_rows()
# All of them take two minutes.
SOME = STATES[::12]


def complaints(name: str, root: Path) -> list[str]:
    """What `info` has that `verify` has not, as errors; empty where it refuses the path."""
    state = next(state for state in STATES if state.name == name)
    root.mkdir()
    disk = state.make(root)
    try:
        found = read_overview(disk.log_dirs, NOW_MS)
    except InvalidConfigError as error:  # a second log dir that was lost: no verb looks further
        return [] if "the directory is empty" in str(error) else [str(error)]
    errors = {notice.id for notice in found.notices if notice.severity == "error"}
    return sorted(errors - {"unreadable"}) if ROWS[name].verdict != "error" else []


def test_a_disk_with_something_odd_has_an_overview(tmp_path: Path) -> None:
    found = {s.name: complaints(s.name, tmp_path / str(n)) for n, s in enumerate(SOME)}
    assert {name: errors for name, errors in found.items() if errors} == {}


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(8))
def test_every_disk_with_something_odd_has_an_overview(part: int, tmp_path: Path) -> None:
    found = {s.name: complaints(s.name, tmp_path / str(n)) for n, s in enumerate(STATES[part::8])}
    assert {name: errors for name, errors in found.items() if errors} == {}


def test_a_link_in_a_circle_is_no_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LogBuilder(tmp_path, "a-0").batch(("k", "v")).write()
    (tmp_path / "b-0").symlink_to(tmp_path / "b-0")
    (tmp_path / "other").symlink_to(tmp_path / "other")
    assert [each.name for each in read_overview([str(tmp_path)], NOW_MS).topics] == ["a"]
    assert main(["verify", str(tmp_path)]) == 1
    assert "1 partition," in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["random", "zeros", "cut"])
def test_damaged_files_of_any_kind_leave_an_overview(damage: str, tmp_path: Path) -> None:
    log_dir = LogBuilder(tmp_path, "a-0").batch(("k", "v")).segment().batch(("k", "w")).write()
    offsets = LogBuilder(tmp_path, "__consumer_offsets-0").batch(("k", "v")).write()
    metadata = LogBuilder(tmp_path, "__cluster_metadata-0").batch(("k", "v")).write()
    files = [p for d in (log_dir, offsets, metadata, tmp_path) for p in d.iterdir() if p.is_file()]
    assert len(files) > 10
    for path in files:
        data = path.read_bytes()
        bad = {"random": bytes((i * 37) % 251 for i in range(len(data))), "zeros": bytes(len(data)),
               "cut": data[: len(data) // 2]}  # fmt: skip
        path.write_bytes(bad[damage])
    found = read_overview([tmp_path], NOW_MS)
    assert {topic.name for topic in found.topics} >= {"a", "__consumer_offsets"}
    assert [n.id for n in found.notices if n.id in ("checkpoint-unreadable", "metadata-unreadable")]


def test_a_path_that_is_no_log_dir_is_refused_with_what_is_there(tmp_path: Path) -> None:
    LogBuilder(tmp_path / "kafka" / "data-1", "a-0").batch(("k", "v")).write()
    wrong = {
        tmp_path / "kafka": "one level too high: did you mean",
        tmp_path / "nowhere": "no such file",
        "ftp://server/kafka": "ftp:// is not read here",
        Path(__file__): "neither a directory nor a .log file",
        Path(__file__).parents[2] / "data/samples/zookeeper/ensemble": "a ZooKeeper's dataDir",
    }
    for path, reason in wrong.items():
        with pytest.raises(InvalidConfigError, match=reason):
            read_overview([path], NOW_MS)


def test_a_partition_directory_or_a_log_file_stands_for_its_partition(tmp_path: Path) -> None:
    LogBuilder(tmp_path, "b-0").batch(("k", "v")).write()
    directory = LogBuilder(tmp_path, "a-0").batch(("k", "v")).write()
    for path in (directory, next(directory.glob("*.log"))):
        found = read_overview([path], NOW_MS)
        assert [(topic.name, topic.partitions) for topic in found.topics] == [("a", 1)]


def test_records_of_the_future_are_named_where_time_decides(tmp_path: Path) -> None:
    """`odd-timestamps` has no end of retention, and the audit says nothing of it."""
    (log_dir,) = copied("broker", tmp_path)
    for path in log_dir.glob("*-[0-9]"):
        if path.name not in ("__cluster_metadata-0", "orders-0", "odd-timestamps-0"):
            shutil.rmtree(path)
    before_ms = 1_790_000_000_000  # two months before `orders` was written
    assert ahead_of(log_dir, before_ms) == ["orders-0: records of the future"]
    assert ahead_of(log_dir, NOW_MS) == []
    shutil.rmtree(log_dir / "__cluster_metadata-0")
    assert ahead_of(log_dir, NOW_MS) == ["odd-timestamps-0: records of the future"]


def ahead_of(log_dir: Path, now_ms: int) -> list[str]:
    found = read_overview([log_dir], now_ms)
    return [notice.text for notice in found.notices if notice.id == "future-timestamp"]


def test_the_command_prints_a_screen_and_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LogBuilder(tmp_path, "orders-0").batch(("k", "v")).write()
    (tmp_path / "lost+found").mkdir()
    assert main(["info", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) <= 40
    assert err == ""
    assert "error foreign-directory: lost+found" in out
    assert f"kafkalog verify {tmp_path}" in out
    assert main(["info", "--log-dir", str(tmp_path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["findings"][0]["id"] == "foreign-directory"
    assert [topic["topic"] for topic in document["topics"]] == ["orders"]


def test_segments_that_the_system_does_not_let_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a-0", "b-0", "b-1"):
        LogBuilder(tmp_path, name).batch(("k", "v")).write()
    read = heads.read_bytes

    def refused(path: str, size: int, position: int = 0) -> bytes:
        if "/b-" in path:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return read(path, size, position)

    monkeypatch.setattr(heads, "read_bytes", refused)
    (found,) = [n for n in read_overview([tmp_path], NOW_MS).notices if n.id == "unreadable"]
    first, _, others = found.text.partition(", ")
    assert first.endswith("/00000000000000000000.log: Permission denied")
    assert others == "and of 1 more partitions"
    assert found.severity.is_failure


def test_groups_without_the_commits_behind_a_damaged_batch_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = LogBuilder(tmp_path, "__consumer_offsets-0")
    for offset in (3, 7):
        builder.batch((commit_key("group"), commit_value(offset)))
    path = builder.write() / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    main(["info", str(tmp_path)])
    said = " ".join(capsys.readouterr().out.split())
    assert f"without the commits behind {path} @ {len(data) // 2}: CRC differs" in said
    assert "kafkalog lag reads all" in said
    assert "error crc-mismatch: __consumer_offsets-0/" in said


def test_damage_and_times_of_seconds_are_findings(tmp_path: Path) -> None:
    """A segment that begins with no batch, and times that retention takes for ones of 1970; what a
    crash may have left at the end of a log is none."""
    LogBuilder(tmp_path, "good-0").batch(("k", "v")).write()
    LogBuilder(tmp_path, "old-0").batch(("k", "v"), timestamp=NOW_MS // 1000).write()
    builder = LogBuilder(tmp_path, "bad-0").batch(("k", "v")).segment().batch(("k", "w"))
    first, last = sorted(builder.write().glob("*.log"))
    for path, ids in (
        (last, ["batch-unreadable", "second-timestamps"]),
        (first, ["batch-unreadable", "second-timestamps"]),
    ):
        good = path.read_bytes()
        path.write_bytes(good[:8] + bytes(4) + good[12:])
        found = read_overview([tmp_path], NOW_MS).notices
        assert [n.id for n in found if n.id != "metadata-log-missing"] == ids
        assert next(n.text for n in found if n.id == "batch-unreadable").startswith("bad-0/")
        path.write_bytes(good)
    assert [n.text for n in found if n.id == "second-timestamps"] == [
        "old-0: times of seconds, which as ms are of 1970"
    ]
    last.write_bytes(bytes(100))  # preallocated
    ids = [n.id for n in read_overview([tmp_path], NOW_MS).notices]
    assert "batch-unreadable" not in ids


def test_a_directory_with_the_name_of_a_partition_makes_no_log_dir(tmp_path: Path) -> None:
    (tmp_path / "etc" / "gtk-3").mkdir(parents=True)
    with pytest.raises(InvalidConfigError) as raised:
        read_overview([tmp_path], NOW_MS)
    assert "did you mean" not in str(raised.value)
