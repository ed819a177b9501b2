"""How the text of a data source option is read. Every refusal says what the option takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.kafka_version import parse_kafka_version
from kafkalog.reading.request import ReadMode
from kafkalog.reading.selection import (
    EARLIEST,
    EARLIEST_OFFSET,
    HIGH_WATERMARK,
    LATEST,
    LATEST_OFFSET,
)


@dataclass(frozen=True, slots=True)
class Option:
    """One option; `parse` turns its text into a value or raises InvalidConfigError with what it
    takes."""

    name: str
    takes: str
    meaning: str
    parse: Callable[[Option, str], Any]

    def refuse(self, text: str, why: str = "") -> InvalidConfigError:
        because = f": {why}" if why else ""
        return InvalidConfigError(f"option {self.name} takes {self.takes}, not '{text}'{because}")


def parse_text(option: Option, text: str) -> str:
    if not text.strip():
        raise option.refuse(text)
    return text.strip()


def parse_names(option: Option, text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise option.refuse(text, "an empty name")
    return names


def parse_name_set(option: Option, text: str) -> frozenset[str]:
    return frozenset(parse_names(option, text))


def parse_json_paths(option: Option, text: str) -> tuple[str, ...]:
    paths = _json(option, text)
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise option.refuse(text)
    return tuple(paths)


def parse_flag(option: Option, text: str) -> bool:
    flags = {"true": True, "false": False}
    if text.strip().lower() not in flags:
        raise option.refuse(text)
    return flags[text.strip().lower()]


def parse_mode(option: Option, text: str) -> ReadMode:
    try:
        return ReadMode(text.strip().upper())
    except ValueError:
        raise option.refuse(text) from None


def parse_pattern(option: Option, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise option.refuse(text, str(error)) from None
    return text


def parse_count(option: Option, text: str) -> int:
    """A whole number from 1 on."""
    number = _whole(text)
    if number is None or number < 1:
        raise option.refuse(text)
    return number


def parse_timestamp(option: Option, text: str) -> int:
    """Milliseconds since the epoch, as Spark's Kafka source takes them."""
    number = _whole(text)
    if number is None or number < 0:
        raise option.refuse(text)
    return number


def parse_numbers(option: Option, text: str) -> frozenset[int]:
    numbers = [_whole(part) for part in text.split(",")]
    chosen = frozenset(number for number in numbers if number is not None and number >= 0)
    if len(chosen) < len(set(numbers)):
        raise option.refuse(text)
    return chosen


def parse_version(option: Option, text: str) -> str:
    try:
        parse_kafka_version(text.strip())
    except InvalidConfigError:
        raise option.refuse(text) from None
    return text.strip()


def parse_key(option: Option, text: str) -> bytes:
    return text.encode()


def parse_hex(option: Option, text: str) -> bytes:
    try:
        return bytes.fromhex(text.strip().removeprefix("0x"))
    except ValueError:
        raise option.refuse(text) from None


def parse_replicas(option: Option, text: str) -> bool:
    """Whether all of them are read: `all`, the only word."""
    if text.strip().lower() != "all":
        raise option.refuse(text)
    return True


def parse_isolation(option: Option, text: str) -> bool:
    """Whether it is read_committed."""
    levels = {"read_uncommitted": False, "read_committed": True}
    if text.strip().lower() not in levels:
        raise option.refuse(text)
    return levels[text.strip().lower()]


def _whole(text: str) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if abs(number) <= MAX_INT64 else None


def parse_assign(option: Option, text: str) -> frozenset[TopicPartition]:
    topics = _json(option, text)
    if not isinstance(topics, dict):
        raise option.refuse(text)
    chosen: set[TopicPartition] = set()
    for topic, partitions in topics.items():
        if not isinstance(partitions, list) or not all(_is_number(p) for p in partitions):
            raise option.refuse(text, f"partitions of {topic}")
        if not partitions:
            raise option.refuse(text, f"no partition of {topic} is named")
        chosen.update(TopicPartition(topic, partition) for partition in partitions)
    if not chosen:
        raise option.refuse(text, "no topic is named")
    return frozenset(chosen)


def _offsets(
    option: Option, text: str, words: tuple[str, ...], refused: int
) -> str | dict[TopicPartition, int]:
    """One of the words, or offsets by topic and partition; a word of the other end is refused, as
    Spark does."""
    for word in words:
        if text.strip().lower() == word.lower():
            return word
    topics = _json(option, text)
    if not isinstance(topics, dict):
        raise option.refuse(text)
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise option.refuse(text, f"partitions of {topic}")
        for partition, offset in partitions.items():
            if (
                not partition.isdecimal()
                or not _is_number(offset)
                or not EARLIEST_OFFSET <= offset <= MAX_INT64
            ):
                raise option.refuse(text, f"{topic}-{partition}")
            if offset == refused:
                raise option.refuse(text, f"{offset} has no meaning at this end")
            offsets[TopicPartition(topic, int(partition))] = offset
    return offsets


def parse_starting(option: Option, text: str) -> str | dict[TopicPartition, int]:
    return _offsets(option, text, (EARLIEST,), refused=LATEST_OFFSET)


def parse_ending(option: Option, text: str) -> str | dict[TopicPartition, int]:
    return _offsets(option, text, (LATEST, HIGH_WATERMARK), refused=EARLIEST_OFFSET)


def _json(option: Option, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise option.refuse(text) from None


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
