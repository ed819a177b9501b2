"""The pictures of `kafkalog.plots`, asked for what they drew."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from data.copy_samples import SAMPLES
from kafkalog import plots
from kafkalog.errors import InvalidConfigError
from kafkalog.log.log_dir import open_log_dir
from kafkalog.reading.tables import read_batches

matplotlib.use("agg")
BROKER = SAMPLES / "broker"


def axes() -> matplotlib.axes.Axes:
    return Figure().add_subplot()


def test_bytes_by_topic_draws_the_largest_on_top() -> None:
    inventory = open_log_dir(BROKER)
    drawn = plots.bytes_by_topic(inventory, topics=3, ax=axes())
    widths = [bar.get_width() for bar in drawn.patches]
    assert widths == sorted(widths)
    assert len(widths) == 3
    sizes: dict[str, int] = {}
    for partition in inventory:
        topic = partition.topic_partition.topic
        sizes[topic] = sizes.get(topic, 0) + partition.size_in_bytes
    assert widths[-1] * 1024 * 1024 == pytest.approx(max(sizes.values()))


def test_segments_draws_a_bar_a_segment_over_its_offsets() -> None:
    partition = next(p for p in open_log_dir(BROKER) if p.path.endswith("/orders-0"))
    bars = plots.segments(partition, ax=axes()).patches
    assert [bar.get_x() for bar in bars] == [s.base_offset for s in partition.segments]
    assert bars[-1].get_x() + bars[-1].get_width() == partition.log_end_offset
    assert bars[-1].get_facecolor() != bars[0].get_facecolor()


def test_records_over_time_counts_each_data_record_once() -> None:
    drawn = plots.records_over_time(BROKER, topics=["orders", "compacted"], bins=7, ax=axes())
    batches = read_batches(BROKER, topics=["orders", "compacted"]).to_pylist()
    data = [batch for batch in batches if not batch["isControl"]]
    for line in drawn.get_lines():
        own = sum(b["recordsCount"] for b in data if b["topic"] == line.get_label())
        assert sum(line.get_ydata()) == own > 0
    assert len(drawn.get_lines()) == 2


def test_records_over_time_of_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty-0").mkdir()
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(InvalidConfigError, match="no batch with a timestamp"):
        plots.records_over_time(tmp_path)
