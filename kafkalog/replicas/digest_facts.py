"""The facts of a copy as a digest has them: JSON in, values out whose types and ranges were looked
at, since a digest may come from anywhere.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NoReturn

from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.topic_partition import parse_topic_partition
from kafkalog.replicas.corrupt_range import CorruptRange
from kafkalog.replicas.replica import OpenProducers, ReplicaFacts

_MOST_TEXT = 4096
_TEXTS = ("name", "place", "log_dir")
_TEXTS_OR_NONE = ("cluster_id", "directory_id", "topic_id")
_OFFSETS = ("log_start_offset", "log_end_offset", "sound_end_offset", "size_in_bytes")
_OFFSETS_OR_NONE = ("high_watermark", "cleaner_offset", "node_id")
_LISTS = ("leader_epochs", "snapshots", "problems")
_FIELDS = {"topic_partition", *_TEXTS, *_TEXTS_OR_NONE, *_OFFSETS, *_OFFSETS_OR_NONE, *_LISTS}


def facts_to_json(facts: ReplicaFacts) -> dict[str, Any]:
    """What `facts_from_json` reads."""
    return {**facts.to_json(), "topic_partition": str(facts.topic_partition)}


def facts_from_json(values: Any) -> ReplicaFacts:
    """CorruptRecordError for anything that is not what `facts_to_json` gives."""
    if not isinstance(values, dict) or set(values) != _FIELDS:
        _refuse("facts of a copy", sorted(values) if isinstance(values, dict) else values)
    found: dict[str, Any] = {name: _text(name, values[name]) for name in _TEXTS}
    for name in _TEXTS_OR_NONE:
        found[name] = None if values[name] is None else _text(name, values[name])
    for name in _OFFSETS:
        found[name] = _number(name, values[name])
    for name in _OFFSETS_OR_NONE:
        found[name] = None if values[name] is None else _number(name, values[name])
    if found["log_end_offset"] < found["log_start_offset"]:
        _refuse("log_end_offset below log_start_offset", found["log_end_offset"])
    found["leader_epochs"] = _pairs("leader_epochs", values["leader_epochs"])
    for one, other in pairwise(found["leader_epochs"]):
        if one[0] >= other[0] or one[1] >= other[1]:
            _refuse("leader_epochs that do not rise", (one, other))
    found["snapshots"] = tuple(_snapshot(each) for each in _list("snapshots", values["snapshots"]))
    found["problems"] = tuple(
        _text("problems", each) for each in _list("problems", values["problems"])
    )
    name = _text("topic_partition", values["topic_partition"])
    found["topic_partition"] = parse_topic_partition(name)
    if found["topic_partition"] is None:
        _refuse("topic_partition", name)
    return ReplicaFacts(**found)


def ranges_from_json(values: Any) -> tuple[int, list[CorruptRange]]:
    """(which is the first of them, unreadable ranges)."""
    if not isinstance(values, dict) or set(values) != {"first", "ranges"}:
        _refuse("unreadable ranges", values)
    ranges = []
    for each in _list("ranges", values["ranges"]):
        row = _list("range", each)
        if len(row) != 6:
            _refuse("range", row)
        start, end, position, unread = (_number("range", row[n]) for n in (0, 1, 3, 5))
        if end <= start or unread < start:
            _refuse("range", row)
        ranges.append(
            CorruptRange(
                start, end, _text("path", row[2]), position, _text("reason", row[4]), unread
            )
        )
    return _number("first", values["first"]), ranges


def _snapshot(value: Any) -> OpenProducers:
    if not isinstance(value, dict) or set(value) != {"offset", "open"}:
        _refuse("snapshot", value)
    return OpenProducers(_number("offset", value["offset"]), _pairs("open", value["open"]))


def _pairs(name: str, value: Any) -> tuple[tuple[int, int], ...]:
    found = []
    for each in _list(name, value):
        pair = _list(name, each)
        if len(pair) != 2:
            _refuse(name, pair)
        found.append((_number(name, pair[0]), _number(name, pair[1])))
    return tuple(found)


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        _refuse(name, value)
    return value


def _number(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_INT64:
        _refuse(name, value)
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        _refuse(name, value)
    return value


def _refuse(what: str, found: object) -> NoReturn:
    raise CorruptRecordError(f"{what}: {str(found)[:80]!r} is no such thing")
