"""What somebody in a hurry gives a restore: sources that lack something, targets that are not what
they seem, words that contradict themselves. Each ends with a clear word, and nothing is touched.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import pytest

from kafkalog.cli.main import main
from kafkalog.format.record_batch import CRC_POSITION, CRC_START, field_position
from tests.restoring.fresh import fresh_node
from tests.restoring.target import contents, empty_target, restore, served
from tests.restoring.test_restore import busy
from tests.support.log_builder import START_MS, LogBuilder

MIDDLE = f"{14:020d}"


@pytest.fixture(params=[pytest.param("existing", marks=pytest.mark.thorough), "fresh"])
def target(log_dir: Path, request: pytest.FixtureRequest) -> Path:
    make: Callable[[Path], Path] = {"existing": empty_target, "fresh": fresh_node}[request.param]
    return make(log_dir / "target")


def said(
    capsys: pytest.CaptureFixture[str], source: Path, target: Path, code: int, *words: str
) -> str:
    """What a restore says that ends with this exit code; nothing of the target changes unless it
    is 0."""
    before = contents(target)
    assert restore(source, target, words=words) == code
    if code:
        assert contents(target) == before
    return "".join(capsys.readouterr())


def test_segment_that_is_gone_is_refused_and_a_salvaged_copy_taken(
    source: Path, target: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (source / f"orders-0/{MIDDLE}.log").unlink()
    shown = said(capsys, source, target, 3)
    assert "offsets 14 to 16 are not here" in shown
    assert "kafkalog salvage" in shown
    rest = log_dir / "rest"
    assert main(["salvage", str(source), "--topic", "orders", "--output", str(rest)]) == 1
    assert "the source has lost records: offsets 14 to 16" in said(capsys, rest, target, 0)


def test_segment_under_the_name_of_a_killed_swap_is_refused_and_taken_once_that_is_finished(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = served(source / "orders-0")
    path = source / f"orders-0/{MIDDLE}.log"
    path.rename(f"{path}.swap")
    shown = said(capsys, source, target, 3)
    assert f"{MIDDLE}.log.swap is the only copy" in shown
    assert "kafkalog recover" in shown
    assert main(["recover", str(source), "--topic", "orders", "--apply"]) == 0
    assert restore(source, target) == 0
    assert served(target / "orders-0") == wanted


def test_copy_with_a_gap_is_left_out_beside_a_whole_one(
    source: Path, target: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = log_dir / "a"
    shutil.copytree(source, other)
    meta = other / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=2"))
    (other / f"orders-0/{MIDDLE}.log").unlink()
    words = ["restore", str(other), str(source), "--into", str(target), "--topic", "orders"]
    assert main([*words, "--apply"]) == 0
    assert "is left out: the source has a gap" in "".join(capsys.readouterr())
    assert served(target / "orders-0") == served(source / "orders-0")


def test_unknown_codec_stays_and_is_said(
    log_dir: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = log_dir / "source"
    LogBuilder(source, "orders-0").segment().batch(("a", "1")).batch(("b", "2")).write()
    path = source / f"orders-0/{0:020d}.log"
    data = bytearray(path.read_bytes())
    start = 12 + struct.unpack_from(">i", data, 8)[0]
    struct.pack_into(">h", data, start + field_position("attributes"), 6)
    checksum = google_crc32c.value(bytes(data[start + CRC_START :]))
    struct.pack_into(">I", data, start + CRC_POSITION, checksum)
    path.write_bytes(data)
    shown = said(capsys, source, target, 0)
    assert "the batch at offset 1 has compression codec 6" in shown
    assert (target / f"orders-0/{0:020d}.log").read_bytes() == bytes(data)


@pytest.mark.parametrize("until", ["1000", "orders-0=0", str(START_MS + 1)])
def test_nothing_is_left_where_all_lies_in_front_of_the_start(
    until: str, log_dir: Path, target: Path
) -> None:
    busy(log_dir / "source").log_start_offset(3).write()
    assert restore(log_dir / "source", target, words=("--until", until)) == 0
    assert [path.name for path in (target / "orders-0").glob("*.log")] == [f"{3:020d}.log"]
    assert served(target / "orders-0") == [[], []]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("orders=__consumer_offsets",), "is Kafka's own"),
        (("orders=__cluster_metadata",), "is Kafka's own"),
        (("orders=a", "orders=b"), "orders goes to a already"),
        (("orders", "orders=b"), "with another name and without one"),
    ],
)
def test_names_that_cannot_be_are_refused(
    words: tuple[str, ...], why: str, source: Path, log_dir: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    target = fresh_node(log_dir / "target")
    topics = [each for word in words for each in ("--topic", word)]
    assert main(["restore", str(source), "--into", str(target), *topics, "--apply"]) == 2
    assert why in capsys.readouterr().err
    assert sorted(path.name for path in target.iterdir()) == [
        "bootstrap.checkpoint", "meta.properties"
    ]  # fmt: skip


def test_offset_that_is_given_twice_is_refused(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = said(capsys, source, target, 2, "--until", "orders-0=1,orders-0=2")
    assert "orders-0 is there twice" in shown


def test_partitions_that_stay_empty_are_said(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LogBuilder(log_dir / "source", "orders-1").segment().batch(("a", "1")).write()
    target = empty_target(log_dir / "target", {"orders": 3})
    shown = said(capsys, log_dir / "source", target, 0)
    assert "orders-0, orders-2: nothing of it is in the source" in shown


def test_log_dir_behind_a_link_is_the_same_log_dir(source: Path, target: Path) -> None:
    link = target.with_name("link")
    link.symlink_to(target)
    assert restore(source, link) == 0
    assert served(target / "orders-0") == served(source / "orders-0")


def test_source_that_is_a_link_to_nothing_is_named(
    target: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = log_dir / "link"
    link.symlink_to(log_dir / "gone")
    assert "a link to what is not there" in said(capsys, link, target, 2)


def test_log_dir_of_nobody_is_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = empty_target(log_dir / "target")
    (target / "meta.properties").write_text("")
    assert "meta.properties does not tell whose log dir" in said(capsys, source, target, 3)


def test_new_log_dir_that_is_a_copy_of_another_is_refused(
    source: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = fresh_node(log_dir / "target")
    copy = shutil.copytree(target, log_dir / "copy")
    assert restore(source, target, copy) == 3
    assert "have the same directory.id" in "".join(capsys.readouterr())


def test_what_stops_a_broker_in_a_new_log_dir_is_said(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = fresh_node(log_dir / "target")
    busy(target / "backup").write()
    assert restore(target / "backup", target) == 1
    shown = "".join(capsys.readouterr())
    assert "backup: not a partition's directory: a broker refuses to start on it" in shown


def test_run_that_fails_prints_its_document(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = source / f"orders-0/{MIDDLE}.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    assert restore(source, target, words=("--json",)) == 1
    out = capsys.readouterr().out
    (partition,) = json.loads(out)["partitions"]
    assert (partition["status"], "kafkalog salvage" in partition["reason"]) == ("failed", True)
