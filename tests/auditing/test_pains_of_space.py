"""What fills a disk, as scenarios: each makes such a disk and shows what tells it. A number is that
of the list of pains in the issue tracker's words; and the list is complete.
"""

from __future__ import annotations

import re
from pathlib import Path

from kafkalog.report.treemap import treemap
from tests.auditing.disks import DAY_MS, NOW_MS, Disk
from tests.auditing.documents import audited_document
from tests.support.log_builder import LogBuilder

TESTS = Path(__file__).parent
PAINS = (
    *range(1, 16), *range(17, 20), *range(28, 35), *range(40, 43), 46, 49, 50, 52, 56,
)  # fmt: skip


def test_a_disk_that_fills_is_told_by_topic_and_kind(tmp_path: Path) -> None:
    """17: an idle cluster whose indexes and leftovers are larger than its records."""
    disk = Disk(tmp_path, cleanup_policy="delete", retention_ms=7 * DAY_MS)
    disk.segment(DAY_MS).segment(0).write()
    noise = LogBuilder(tmp_path, "noise-0").segment()
    noise.batch(("k", "v" * 5000)).segment().batch(("k", "v")).write()
    (tmp_path / "orders-0" / "00000000000000000000.log.deleted").write_bytes(bytes(70_000))
    (tmp_path / "orders-0" / "00000000000000000001.index").write_bytes(bytes(40_000))
    document = audited_document(tmp_path, now_ms=NOW_MS, config=["cleanup.policy=delete"])
    topics = {row["topic"]: row for row in document["topics"]}
    kinds = topics["orders"]["bytesByKind"]
    assert (kinds["leftover"], kinds["index"]) >= (70_000, 40_000)
    assert kinds["log"] < kinds["index"]
    largest, *_ = treemap(document["topics"])
    assert (largest.name, largest.parts[0].kind) == ("orders", "leftover")
    assert largest.figure.value == topics["orders"]["bytes"] > topics["noise"]["bytes"]


def test_every_pain_has_its_scenario() -> None:
    """By the numbers with which a scenario's text begins, or that its name has."""
    named: set[int] = set()
    for path in TESTS.glob("test_*.py"):
        text = path.read_text("utf-8")
        for numbers in re.findall(r'def test_\w+\([^"]*?"""(\d[\d, and]*)[:.]?', text):
            named |= {int(number) for number in re.findall(r"\d+", numbers)}
        named |= {int(number) for number in re.findall(r"def test_(\d+)_", text)}
    assert sorted(set(PAINS) - named) == []
