"""Checkpoints: small text files, one entry a line.

 0            version, always 0
 2            number of entries
 orders 0 881204
 orders 1 17      topic partition offset      (four files of a log dir)

 0
 1
 5 881204         epoch start_offset          (leader-epoch-checkpoint of a partition)

UTF-8, no checksum. An empty file and a lone version line hold no entries. Fields may be separated
by any blanks, but a blank in front of an entry, an empty line, a wrong count or version is an
error, and Kafka takes the whole log dir offline for it. A partition that is not listed has offset
0, in the cleaner file its log start offset.

Source: Kafka CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile, LeaderEpochFileCache.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.constants import MAX_INT32, MAX_INT64

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
LOG_START_OFFSET_FILE = "log-start-offset-checkpoint"
CLEANER_OFFSET_FILE = "cleaner-offset-checkpoint"

CHECKPOINT_VERSION = 0

TopicPartitionKey = tuple[str, int]
EpochEntry = tuple[int, int]

# Java's readLine and \s, which know fewer separators than Python's splitlines and split.
_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = re.compile(r"[ \t\n\x0b\f\r]+")
_NUMBER = re.compile(r"[+-]?[0-9]+")
# A line as brokers write it, with numbers that are small enough without a look.
_PLAIN_HEAD = re.compile(rb"0\n([0-9]{1,9})\n")
_PLAIN_LINE = re.compile(rb"^([A-Za-z0-9._-]+) ([0-9]{1,9}) ([0-9]{1,18})\n", re.MULTILINE)


def parse_offset_checkpoint(data: bytes, path: str | None = None) -> dict[TopicPartitionKey, int]:
    """(topic, partition) → offset; of two entries for a partition the last one counts.

    Raises CorruptCheckpointError naming the line.
    """
    # Thousands of partitions make this file large: one regular expression takes a file that is as
    # brokers write it, and all else goes line by line, where an error can name its line.
    plain = _plain_entries(data)
    if plain is not None:
        return plain
    entries: dict[TopicPartitionKey, int] = {}
    for line, (topic, partition, offset) in _parse_lines(data, 3, path):
        key = topic, _number(partition, line, MAX_INT32, path)
        entries[key] = _number(offset, line, MAX_INT64, path)
    return entries


def _plain_entries(data: bytes) -> dict[TopicPartitionKey, int] | None:
    """Those of a file in which each line is as brokers write it, six times as fast; None of others,
    which have to be looked at line by line.
    """
    head = _PLAIN_HEAD.match(data)
    if head is None:
        return None
    # All of the file must be such lines: as many matches as line ends, as many as the file
    # announces, and nothing behind the last one. Anything else is judged line by line.
    lines = _PLAIN_LINE.findall(data, head.end())
    if not len(lines) == int(head[1]) == data.count(b"\n", head.end()) or data[-1:] != b"\n":
        return None
    return {(topic.decode(), int(partition)): int(offset) for topic, partition, offset in lines}


def pack_offset_checkpoint(entries: Mapping[TopicPartitionKey, int]) -> bytes:
    """The file's bytes; entries in the order of the mapping."""
    return _pack_lines(
        f"{topic} {partition} {offset}" for (topic, partition), offset in entries.items()
    )


def parse_leader_epoch_checkpoint(data: bytes, path: str | None = None) -> list[EpochEntry]:
    """(epoch, start offset) in rising order of both, as Kafka holds them after loading the file.

    Raises CorruptCheckpointError naming the line.
    """
    return rising_leader_epochs(leader_epoch_lines(data, path))


def leader_epoch_lines(data: bytes, path: str | None = None) -> list[EpochEntry]:
    """(epoch, start offset) of each line as it stands; CorruptCheckpointError naming the line."""
    lines: list[EpochEntry] = []
    for line, (epoch_text, offset_text) in _parse_lines(data, 2, path):
        epoch = _number(epoch_text, line, MAX_INT32, path)
        start_offset = _number(offset_text, line, MAX_INT64, path)
        if epoch < 0 or start_offset < 0:
            raise CorruptCheckpointError(
                f"line {line}: epoch {epoch} from offset {start_offset}", path=path
            )
        lines.append((epoch, start_offset))
    return lines


def rising_leader_epochs(lines: Iterable[EpochEntry]) -> list[EpochEntry]:
    """The entries in rising order of both, repaired as Kafka does it: a later one removes those
    before it that it contradicts.
    """
    entries: list[EpochEntry] = []
    for epoch, start_offset in lines:
        if entries and entries[-1][0] == epoch and entries[-1][1] <= start_offset:
            continue
        # A later line counts: what it contradicts in front of it goes, as in Kafka.
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
    return entries


def pack_leader_epoch_checkpoint(entries: Iterable[EpochEntry]) -> bytes:
    """The file's bytes; `entries` in rising order."""
    return _pack_lines(f"{epoch} {start_offset}" for epoch, start_offset in entries)


def _parse_lines(data: bytes, fields_count: int, path: str | None) -> list[tuple[int, list[str]]]:
    """(line number from 1, fields) of every entry."""
    lines = _LINE_END.split(data.decode("utf-8", errors="replace"))
    if lines[-1] == "":  # what follows the last line end is no line
        lines.pop()
    if not lines:
        return []
    version = _number(lines[0], 1, MAX_INT32, path)
    if version != CHECKPOINT_VERSION:
        raise CorruptCheckpointError(f"line 1: version {version}, not 0", path=path)
    if len(lines) == 1:
        return []
    # A negative count has no entries to a broker, whatever lines follow.
    count = _number(lines[1], 2, MAX_INT32, path)
    if count < 0:
        return []
    entries: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines[2:], start=3):
        entry = _BLANKS.split(line)
        while len(entry) > 1 and entry[-1] == "":  # Java's split drops empty fields at the end
            entry.pop()
        if len(entry) != fields_count or "" in entry:
            raise CorruptCheckpointError(
                f"line {number}: {_shortened(line)} does not have {fields_count} fields", path=path
            )
        entries.append((number, entry))
    if len(entries) != count:
        raise CorruptCheckpointError(
            f"line 2: {count} entries are announced, {len(entries)} are there", path=path
        )
    return entries


def _number(text: str, line: int, largest: int, path: str | None) -> int:
    # 20 characters hold every 64-bit number with its sign; longer ones are not handed to int().
    value = int(text) if len(text) <= 20 and _NUMBER.fullmatch(text) else None
    if value is None or not -largest - 1 <= value <= largest:
        raise CorruptCheckpointError(f"line {line}: {_shortened(text)} is no number", path=path)
    return value


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _pack_lines(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in (CHECKPOINT_VERSION, len(entries), *entries)).encode()
