"""The treemap: a rectangle a topic, as large as its bytes, and in it one for each kind of bytes.

Coordinates are percent of the chart's box. Squarified layout: Bruls, Huizing, van Wijk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import squarify

from kafkalog.report.figures import Figure, bytes_figure, condition

KINDS = ("log", "index", "snapshot", "leftover", "undo", "other")
# More of them are specks.
MOST_TILES = 48
# The shape rectangles are laid out for: about that of the box.
_WIDTH, _HEIGHT = 200.0, 100.0
# Where a name still can be read.
_LABEL_WIDTH, _LABEL_HEIGHT = 7.0, 7.0


@dataclass(frozen=True, slots=True)
class Part:
    """A kind's share of a tile, in percent of the tile."""

    kind: str
    figure: Figure
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Tile:
    """A topic, or the rest of them. In percent of the chart."""

    name: str
    figure: Figure
    x: float
    y: float
    width: float
    height: float
    parts: tuple[Part, ...]

    @property
    def has_label(self) -> bool:
        """Whether there is room for its name."""
        return self.width >= _LABEL_WIDTH and self.height >= _LABEL_HEIGHT


def treemap(topics: Sequence[Mapping[str, Any]]) -> tuple[Tile, ...]:
    """The largest topics and one tile for the others; topics without a byte have no area."""
    kinds = [{kind: topic["bytesByKind"].get(kind, 0) for kind in KINDS} for topic in topics]
    sizes = [sum(each.values()) for each in kinds]
    order = [n for n in sorted(range(len(topics)), key=lambda n: -sizes[n]) if sizes[n] > 0]
    shown = order if len(order) <= MOST_TILES + 1 else order[:MOST_TILES]
    named = [(topics[n]["topic"], f"topics.{n}", kinds[n]) for n in shown]
    rest = order[len(shown) :]
    if rest:
        others = "".join(condition("topic", "!=", topics[n]["topic"]) for n in shown)
        summed = {kind: sum(kinds[n][kind] for n in rest) for kind in KINDS}
        named.append((f"{len(rest)} other topics", f"topics{others}", summed))
        named.sort(key=lambda each: -sum(each[2].values()))
    boxes = _boxes([sum(each[2].values()) for each in named])
    return tuple(_tile(*each, box) for each, box in zip(named, boxes, strict=True))


def _tile(
    name: str, at: str, kinds: Mapping[str, int], box: tuple[float, float, float, float]
) -> Tile:
    present = [kind for kind in KINDS if kinds.get(kind, 0) > 0]
    present.sort(key=lambda kind: -kinds[kind])
    boxes = _boxes([kinds[kind] for kind in present], box[2] * _WIDTH, box[3] * _HEIGHT)
    parts = tuple(
        Part(kind, bytes_figure(kinds[kind], f"{at}.bytesByKind.{kind}"), *part)
        for kind, part in zip(present, boxes, strict=True)
    )
    whole = bytes_figure(sum(kinds[kind] for kind in present), f"{at}.bytesByKind.*")
    return Tile(name, whole, *box, parts)


def _boxes(
    areas: Sequence[int], width: float = _WIDTH, height: float = _HEIGHT
) -> list[tuple[float, float, float, float]]:
    """Of areas in falling order x, y, width and height in percent."""
    if not areas:
        return []
    # Thinner than this the layout divides by zero.
    least = sum(areas) / 100_000
    sizes = squarify.normalize_sizes([max(area, least) for area in areas], width, height)
    return [
        (
            round(100 * box["x"] / width, 3),
            round(100 * box["y"] / height, 3),
            round(100 * box["dx"] / width, 3),
            round(100 * box["dy"] / height, 3),
        )
        for box in squarify.squarify(sizes, 0.0, 0.0, width, height)
    ]
