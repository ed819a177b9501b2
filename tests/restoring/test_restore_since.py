"""A part of a topic restored: some of its partitions, and a log from a time or an offset on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.format.checkpoints import parse_offset_checkpoint
from tests.restoring.fresh import fresh_node
from tests.restoring.target import contents, empty_target, restore, served
from tests.restoring.test_restore import busy
from tests.support.log_builder import START_MS

ORDERS = ("orders", 0)


@pytest.fixture(params=["existing", pytest.param("fresh", marks=pytest.mark.thorough)])
def target(request: pytest.FixtureRequest, log_dir: Path) -> Path:
    make = {"existing": empty_target, "fresh": fresh_node}[request.param]
    return make(log_dir / "target")


@pytest.mark.parametrize(
    ("since", "start", "first_segment"),
    [
        (str(START_MS + 7), 6, 0),  # the batch of 6 and 7 is taken whole
        (str(START_MS + 8), 8, 0),
        ("orders-0=9", 9, 0),  # within a batch
        ("orders-0=14", 14, 14),
        ("orders-0=15", 15, 14),  # a record of a transaction that was aborted
        ("orders-0=18", 18, 17),
        ("orders-0=19", 19, 19),  # nothing
        (str(START_MS * 2), 19, 19),
    ],
)
def test_nothing_earlier_than_since_is_there(
    since: str, start: int, first_segment: int, source: Path, target: Path
) -> None:
    assert restore(source, target, words=("--since", since)) == 0
    assert served(target / "orders-0") == [
        [row for row in rows if int(str(row[0])) >= start] for rows in served(source / "orders-0")
    ]
    segments = sorted(path.name for path in (target / "orders-0").glob("*.log"))
    assert segments[0] == f"{first_segment:020d}.log"
    starts = (target / "log-start-offset-checkpoint").read_bytes() if start > first_segment else b""
    assert parse_offset_checkpoint(starts) == {ORDERS: start} if starts else start == first_segment
    assert main(["recover", str(target), "--topic", "orders"]) == 0  # all beside it is right


def test_range_of_time_is_restored_and_undone(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(target)
    words = ("--since", "orders-0=4", "--until", str(START_MS + 9), "--json")
    before.pop("replication-offset-checkpoint", None)  # `served` takes it away
    assert restore(source, target, words=words) == 0
    run = json.loads(capsys.readouterr().out)
    (plan,) = run["partitions"]
    assert "all in front of offset 4 is left out" in plan["warnings"]
    offsets = [row[0] for row in served(target / "orders-0")[0]]
    assert (offsets[0], offsets[-1]) == (4, 9)
    assert main(["undo", run["runId"]]) == 0
    assert contents(target) == before


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("--since", "orders-0=20"), 3, "is to begin at offset 20, and ends at 19"),
        (("--since", "orders-7=1"), 2, "not in the source: orders-7"),
        (("--since", "orders-0=x"), 2, "--since 'orders-0=x': a time"),
        (("--since", "2026-11-30", "--until", "2026-11-29"), 2, "is later than --until"),
        (("--topic-partition", "orders-7"), 2, "not in the source: orders-7"),
    ],
)
def test_what_is_not_there_is_refused(
    words: tuple[str, ...], code: int, why: str, source: Path, target: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    before = contents(target)
    assert restore(source, target, words=words) == code
    assert why in "".join(capsys.readouterr())
    assert contents(target) == before


def test_only_partitions_that_are_named_are_restored(log_dir: Path) -> None:
    for name in ("orders-0", "orders-1"):
        busy(log_dir / "source", name).write()
    target = empty_target(log_dir / "target", {"orders": 2})
    before = contents(target)["orders-0/00000000000000000000.log"]
    words = ("--topic-partition", "orders-1")
    assert restore(log_dir / "source", target, words=words) == 0
    assert served(target / "orders-1") == served(log_dir / "source/orders-1")
    assert contents(target)["orders-0/00000000000000000000.log"] == before


def test_topic_that_is_made_has_all_of_its_partitions(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("orders-0", "orders-1"):
        busy(log_dir / "source", name).write()
    target = fresh_node(log_dir / "target")
    assert restore(log_dir / "source", target, words=("--topic-partition", "orders-1")) == 3
    assert "orders has 2 partitions, and 0 is not asked for" in capsys.readouterr().err
    assert list(target.glob("*-*")) == []
