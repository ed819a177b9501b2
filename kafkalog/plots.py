"""Pictures of a log for notebooks, by matplotlib (extra `kafkalog[notebook]`): each function draws
into the axes given, or new ones, and returns them.

Sizes and times are those of files and time indexes; `records_over_time` reads batch headers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.reading.tables import read_batches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIB = 1024 * 1024


def bytes_by_topic(inventory: LogInventory, *, topics: int = 20, ax: Axes | None = None) -> Axes:
    """A bar a topic, in MiB of its `.log` files; the `topics` largest, the largest on top."""
    sizes: Counter[str] = Counter()
    for partition in inventory:
        sizes[partition.topic_partition.topic] += partition.size_in_bytes
    largest = sizes.most_common(topics)[::-1]
    axes = _axes(ax)
    axes.barh([topic for topic, _ in largest], [size / _MIB for _, size in largest])
    axes.set_xlabel("MiB")
    axes.set_title("Bytes by topic")
    return axes


def segments(partition: PartitionInventory, *, ax: Axes | None = None) -> Axes:
    """A bar a segment, where its offsets are and as high as its size in MiB; the active segment in
    another colour.
    """
    found = partition.segments
    starts = [segment.base_offset for segment in found]
    ends = [*starts[1:], partition.log_end_offset]
    axes = _axes(ax)
    axes.bar(
        starts,
        [segment.size_in_bytes / _MIB for segment in found],
        width=[max(1, end - start) for start, end in zip(starts, ends, strict=True)],
        align="edge",
        edgecolor="white",
        color=["C2" if segment.is_active else "C0" for segment in found],
    )
    axes.set_xlabel("offset")
    axes.set_ylabel("MiB")
    axes.set_title(f"Segments of {partition.topic_partition}")
    return axes


def records_over_time(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    topics: str | Iterable[str] | None = None,
    bins: int = 50,
    ax: Axes | None = None,
) -> Axes:
    """How many records were written when, a line a topic: each batch counts at its largest
    timestamp. `bins`: into how many equal spans the whole time is cut. InvalidConfigError where no
    batch has a timestamp.
    """
    columns = ["topic", "recordsCount", "maxTimestampMs", "isControl"]
    table = read_batches(path, columns=columns, topics=topics)
    is_data = pc.and_(
        pc.greater_equal(table["maxTimestampMs"], 0), pc.invert(table["isControl"].fill_null(False))
    )
    table = table.filter(is_data)
    if not table.num_rows:
        raise InvalidConfigError("no batch with a timestamp", path=str(path))
    times = table["maxTimestampMs"].to_numpy()
    counts = table["recordsCount"].to_numpy()
    names = np.asarray(table["topic"].to_pylist())
    edges = np.linspace(times.min(), max(times.max(), times.min() + 1), bins + 1)
    starts = edges[:-1].astype("datetime64[ms]")
    axes = _axes(ax)
    for topic in sorted(set(names.tolist())):
        own = names == topic
        axes.step(
            starts, np.histogram(times[own], edges, weights=counts[own])[0], where="post",
            label=topic,
        )  # fmt: skip
    axes.set_ylabel("records")
    axes.set_title("Records over time (UTC)")
    axes.legend()
    return axes


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise InvalidConfigError("plots need matplotlib: pip install 'matplotlib>=3.9'") from None
    return pyplot.subplots()[1]
