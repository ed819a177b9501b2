"""Text of an option → value. ValueError says what was expected; the parser puts the option in
front.
"""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta

from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_INT16, MAX_INT64
from kafkalog.log.topic_partition import TopicPartition, parse_topic_partition
from kafkalog.planning.kafka_version import parse_kafka_version
from kafkalog.planning.setting_units import DURATIONS, SIZES, parse_quantity
from kafkalog.remote.paths import RemoteStorage
from kafkalog.resources.memory import check_memory

_MINUTES = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_now(text: str) -> int:
    """Milliseconds since 1970, or ISO 8601 (UTC if it names no zone), as milliseconds."""
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 19 and int(digits) <= MAX_INT64:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither milliseconds nor ISO 8601") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def parse_at(text: str) -> tuple[bool, int]:
    """(True, ms from now) of `+7d`, (False, ms since 1970) of what `parse_now` takes."""
    if not text.startswith("+"):
        try:
            return False, parse_now(text)
        except ValueError as error:
            raise ValueError(f"{error}, nor a time ahead, as +7d") from None
    ahead_ms = parse_quantity(text[1:], DURATIONS)
    if ahead_ms is None or ahead_ms > MAX_INT64:
        raise ValueError(f"{text!r} is no time ahead, as +7d or +12h ({', '.join(DURATIONS)})")
    return True, ahead_ms


def parse_count(text: str) -> int:
    """A whole number of at least 1."""
    return _parse_number(text, 1, 1_000_000)


def parse_metadata_partitions(text: str) -> int:
    """How many partitions `__remote_log_metadata` has."""
    return _parse_number(text, 1, 10_000)


def parse_offset(text: str) -> int:
    """An offset: a whole number of at least 0."""
    return _parse_number(text, 0, MAX_INT64)


def parse_bytes(text: str) -> int:
    """A number of bytes, at least 1: 1048576, 512KiB, 1GiB."""
    number = parse_quantity(text, SIZES)
    if number is not None and 1 <= number <= MAX_INT64:
        return number
    try:
        return _parse_number(text, 1, MAX_INT64)
    except ValueError:
        raise ValueError(f"{text!r} is no size from 1 byte on, as 1048576 or 1GiB") from None


def parse_size(text: str) -> int:
    """The same, or 0."""
    return 0 if text == "0" else parse_bytes(text)


def parse_capacity(text: str) -> tuple[str, int]:
    """`500GiB`, or `/var/lib/kafka/data-1=500GiB`: (path or "", bytes)."""
    path, _, size = text.rpartition("=")
    number = int(size) if size.isascii() and size.isdigit() and len(size) <= 19 else None
    number = parse_quantity(size, SIZES) if number is None else number
    if number is None or not 0 < number <= MAX_INT64:
        raise ValueError(f"{size!r} is no size, as 500GiB")
    return path, number


def parse_memory(text: str) -> int:
    """A number of bytes, or with a unit: 536870912, 512m, 2g, 2GiB."""
    try:
        return check_memory(parse_bytes(text))
    except InvalidConfigError as error:
        raise ValueError(error.reason) from None


def parse_minutes(text: str) -> float:
    """Minutes above 0, fractions too, or with a unit: 90, 0.5, 2h."""
    in_ms = parse_quantity(text, DURATIONS)
    if in_ms:
        return in_ms / DURATIONS["min"]
    if _MINUTES.fullmatch(text) and float(text) > 0:
        return float(text)
    raise ValueError(
        f"{text!r} is not a number of minutes above 0, as 90 or 0.5, or a duration as 2h"
    )


def parse_duration(text: str) -> int:
    """Milliseconds with a unit: 24h, 7d; or 0."""
    number = 0 if text == "0" else parse_quantity(text, DURATIONS)
    if number is None or number > MAX_INT64:
        raise ValueError(f"{text!r} is no duration, as 24h or 7d ({', '.join(DURATIONS)})")
    return number


def parse_price(text: str) -> float:
    """A price, at least 0."""
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if not 0 <= price < 1_000_000:
        raise ValueError(f"{text!r} is no price, as 0.023")
    return price


def parse_source_option(text: str) -> tuple[str, str]:
    """`NAME=VALUE` of the data source; it knows the names."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return name, value


def parse_feature(text: str) -> tuple[str, int]:
    """`metadata.version=30`."""
    name, separator, level = text.partition("=")
    if not separator or not name:
        raise ValueError(f"{text!r} is not NAME=LEVEL, as metadata.version=30")
    return name, _parse_number(level, 0, MAX_INT16)


def parse_partition_name(text: str) -> TopicPartition:
    """`orders-3`."""
    parsed = parse_topic_partition(text)
    if parsed is None:
        raise ValueError(f"{text!r} is not TOPIC-PARTITION, as orders-3")
    return parsed


def parse_version(text: str) -> str:
    """`4.1` to `4.4`."""
    try:
        parse_kafka_version(text)
    except InvalidConfigError as error:
        raise ValueError(error.reason) from None
    return text


def _parse_number(text: str, smallest: int, largest: int) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 19 and smallest <= int(text) <= largest:
        return int(text)
    raise ValueError(f"{text!r} is not a whole number from {smallest} to {largest}")


def parse_key_file(text: str) -> tuple[str, str]:
    """`ID=FILE` → both."""
    key_id, equals, file = text.partition("=")
    if not equals or not key_id or not file:
        raise ValueError(f"{text!r} is not ID=FILE")
    return key_id, file


def remote_storage(args: argparse.Namespace) -> RemoteStorage:
    """What `--remote-dir`, `--remote-layout` and `--remote-key` name; a layout alone says what DIR
    is."""
    if not args.remote_dir and not args.remote_layout and args.remote_key:
        raise InvalidConfigError("--remote-key is for --remote-dir, or --remote-layout of DIR")
    return RemoteStorage(tuple(args.remote_dir), args.remote_layout, tuple(args.remote_key))
