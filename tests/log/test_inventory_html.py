"""What a notebook shows of an inventory and of a partition, on a real broker's log dir."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from data.copy_samples import SAMPLES
from kafkalog.log.log_dir import open_log_dir

BROKER = SAMPLES / "broker"


def rows(page: str) -> list[list[str]]:
    return [re.findall(r"<td[^>]*>([^<]*)</td>", line) for line in page.split("<tr>")[2:]]


def test_an_inventory_is_a_row_a_topic_with_its_partitions_and_bytes() -> None:
    inventory = open_log_dir(BROKER)
    found = {row[0]: row[1:] for row in rows(inventory._repr_html_())}
    orders = [p for p in inventory if p.topic_partition.topic == "orders"]
    segments = [segment for partition in orders for segment in partition.segments]
    kib = sum(Path(segment.path).stat().st_size for segment in segments) / 1024
    assert found["orders"][:4] == ["live", str(len(orders)), str(len(segments)), f"{kib:.1f} KiB"]
    assert len(found) == len({p.topic_partition.topic for p in inventory})


def test_what_is_wrong_stands_below_an_inventory(tmp_path: Path) -> None:
    shutil.copytree(BROKER, tmp_path / "broker")
    (tmp_path / "broker" / "no <partition>").mkdir()
    page = open_log_dir(tmp_path / "broker")._repr_html_()
    assert "no &lt;partition&gt;: not a partition&#39;s directory" in page


def test_a_partition_is_a_map_and_a_row_a_segment() -> None:
    partition = next(p for p in open_log_dir(BROKER) if p.path.endswith("/orders-0"))
    page = partition._repr_html_()
    sizes = [segment.size_in_bytes for segment in partition.segments]
    assert [int(weight) for weight in re.findall(r"flex:(\d+) 0", page)] == sizes
    assert [row[1] for row in rows(page)] == [f"{size:,}" for size in sizes]
    assert "offsets 0 to 900 (end excluded); high watermark 900" in page
    assert [row[-1] for row in rows(page)] == [*[""] * (len(sizes) - 1), "active"]


def test_a_partition_without_a_segment_is_shown(tmp_path: Path) -> None:
    (tmp_path / "empty-0").mkdir()
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert "0 B" in open_log_dir(tmp_path).partitions[0]._repr_html_()
