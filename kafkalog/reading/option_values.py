"""How the text of a data source option is read. ValueError says what is wrong in it, where that is
more than that it is not what the option takes.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.kafka_version import parse_kafka_version
from kafkalog.reading.selection import (
    EARLIEST,
    EARLIEST_OFFSET,
    HIGH_WATERMARK,
    LATEST,
)


def parse_directory(text: str) -> str:
    """A path as every process has it, wherever it was started; ValueError for none."""
    if not text:
        raise ValueError
    return os.path.abspath(text)  # noqa: PTH100 - without a look at the disk


def parse_text(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text.strip()


def parse_names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise ValueError("an empty name")
    return names


def parse_name_set(text: str) -> frozenset[str]:
    return frozenset(parse_names(text))


def parse_json_paths(text: str) -> tuple[str, ...]:
    paths = _json(text)
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError
    return tuple(paths)


def parse_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(str(error)) from None
    return text


def parse_bytes(text: str) -> int:
    """A number of bytes, from 0 on."""
    if text == "0":
        return 0
    return parse_count(text)


def parse_count(text: str) -> int:
    """A whole number from 1 on."""
    number = _whole(text)
    if number is None or number < 1:
        raise ValueError
    return number


def parse_timestamp(text: str) -> int:
    """Milliseconds since the epoch, as Spark's Kafka source takes them."""
    number = _whole(text)
    if number is None or number < 0:
        raise ValueError
    return number


def parse_numbers(text: str) -> frozenset[int]:
    numbers = [_whole(part) for part in text.split(",")]
    chosen = frozenset(number for number in numbers if number is not None and number >= 0)
    if len(chosen) < len(set(numbers)):
        raise ValueError
    return chosen


def parse_version(text: str) -> str:
    try:
        parse_kafka_version(text.strip())
    except InvalidConfigError:
        raise ValueError from None
    return text.strip()


def parse_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text.strip().removeprefix("0x"))
    except ValueError:
        raise ValueError from None


def _whole(text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if abs(number) <= MAX_INT64 else None


def parse_assign(text: str) -> frozenset[TopicPartition]:
    topics = _json(text)
    if not isinstance(topics, dict):
        raise ValueError
    chosen: set[TopicPartition] = set()
    for topic, partitions in topics.items():
        if not isinstance(partitions, list) or not all(_is_number(p) for p in partitions):
            raise ValueError(f"partitions of {topic}")
        if not partitions:
            raise ValueError(f"no partition of {topic} is named")
        chosen.update(TopicPartition(topic, partition) for partition in partitions)
    if not chosen:
        raise ValueError("no topic is named")
    return frozenset(chosen)


def _offsets(
    text: str, words: tuple[str, ...], refused: int | None = None
) -> str | dict[TopicPartition, int]:
    """One of the words, or offsets by topic and partition; a number that means the other end is
    refused, as Spark does."""
    for word in words:
        if text.strip().lower() == word.lower():
            return word
    topics = _json(text)
    if not isinstance(topics, dict):
        raise ValueError
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise ValueError(f"partitions of {topic}")
        for partition, offset in partitions.items():
            if (
                not partition.isdecimal()
                or not _is_number(offset)
                or not EARLIEST_OFFSET <= offset <= MAX_INT64
            ):
                raise ValueError(f"{topic}-{partition}")
            if offset == refused:
                raise ValueError(f"{offset} has no meaning at this end")
            offsets[TopicPartition(topic, int(partition))] = offset
    return offsets


def parse_starting(text: str) -> str | dict[TopicPartition, int]:
    return _offsets(text, (EARLIEST, LATEST))


def parse_ending(text: str) -> str | dict[TopicPartition, int]:
    return _offsets(text, (LATEST, HIGH_WATERMARK), refused=EARLIEST_OFFSET)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError from None


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def parse_key_files(text: str) -> tuple[tuple[str, str], ...]:
    """`k1=/keys/k1.pem,k2=…` → (key id, file)."""
    found = []
    for part in parse_names(text):
        key_id, equals, file = part.partition("=")
        if not equals or not key_id or not file:
            raise ValueError(f"{part!r} is not ID=FILE")
        found.append((key_id, file))
    return tuple(found)
