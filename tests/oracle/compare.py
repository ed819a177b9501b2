"""Is what we wrote what Kafka wrote? `compare_log_dirs(ours, kafkas, partition, source=...)`.

Three copies of one log dir: as it was before the round (`source`), after our cleaner, after
Kafka's. Where all data is uncompressed every file has the same bytes. A compressed batch that was
rebuilt may differ in length, CRC and hence position (another compressor), in nothing else: then
`.log` is compared batch by batch and record by record, and both indexes by the rule that makes
them. Times of modification are compared in ms for every closed segment; the active one's files
are touched by any open.

Own small parsers, so that a mistake of the package's cannot hide itself; records are decoded by
Kafka.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c

from tests.oracle.kafka import Kafka

BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
BATCH_FIELDS = (
    *("base_offset", "length", "partition_leader_epoch", "magic", "crc", "attributes"),
    *("last_offset_delta", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch"),
    *("base_sequence", "records_count"),
)
LEGACY_BYTES = 26
COMPRESSOR_FIELDS = ("length", "crc")
SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
SNAPSHOT_FIELDS = (
    *("producer_id", "producer_epoch", "last_sequence", "last_offset", "offset_delta"),
    *("timestamp", "coordinator_epoch", "current_txn_first_offset"),
)
LIVE_FILE = re.compile(r"\d{20}\.(log|index|timeindex|txnindex|snapshot)")
GONE_FILE = re.compile(r".*\.deleted")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as in Kafka's output. `batch` counts from 0 in its file."""

    file: str
    field: str
    ours: object
    kafka: object
    batch: int | None = None

    def __str__(self) -> str:
        place = self.file if self.batch is None else f"{self.file} batch {self.batch}"
        return f"{place}: {self.field}: ours {_short(self.ours)}, Kafka's {_short(self.kafka)}"


@dataclass(frozen=True, slots=True)
class Batch:
    """A v2 batch as it lies in the file; `header` has BATCH_FIELDS in order. Of a legacy entry only
    offset, length and magic mean something.
    """

    position: int
    header: tuple[int, ...]
    data: bytes

    def get(self, name: str) -> int:
        return self.header[BATCH_FIELDS.index(name)]

    @property
    def codec(self) -> int:
        return self.get("attributes") & 7

    @property
    def last_offset(self) -> int:
        return self.get("base_offset") + self.get("last_offset_delta")


def compare_log_dirs(
    ours: Path,
    kafkas: Path,
    partition: str,
    *,
    source: Path,
    kafka: Kafka,
    index_interval_bytes: int,
    ignored: frozenset[str] = frozenset(),
) -> list[Difference]:
    """Every difference between two cleaned copies of `source`, in the order of the files.

    `ignored` are file names of the partition that need not be there on both sides.
    """
    found = list(_compare_checkpoints(ours, kafkas))
    our_dir, kafka_dir = ours / partition, kafkas / partition
    our_names, kafka_names = (_live_files(d) - ignored for d in (our_dir, kafka_dir))
    found += [Difference(n, "file", "there", "none") for n in sorted(our_names - kafka_names)]
    found += [Difference(n, "file", "none", "there") for n in sorted(kafka_names - our_names)]
    both = our_names & kafka_names
    known: set[bytes] | None = None
    rebuilt_by_other_compressor: set[str] = set()
    # logs first: whether an index has to be the same bytes depends on its log
    for name in sorted(both, key=lambda name: (not name.endswith(".log"), name)):
        one, other = our_dir / name, kafka_dir / name
        if one.read_bytes() == other.read_bytes():
            continue
        if name.endswith(".log"):
            known = _batches(source / partition) if known is None else known
            differences = list(_compare_logs(one, other, known, kafka))
            found += differences
            if not differences:
                rebuilt_by_other_compressor.add(name.removesuffix(".log"))
        elif name.endswith(".snapshot"):
            found += _compare_snapshots(one, other)
        elif not (
            name.endswith((".index", ".timeindex"))
            and name.partition(".")[0] in rebuilt_by_other_compressor
        ):
            found.append(_bytes_differ(name, one.read_bytes(), other.read_bytes()))
    for stem in sorted(rebuilt_by_other_compressor):
        found += _check_indexes(our_dir / stem, index_interval_bytes)
    return found + list(_compare_times(our_dir, kafka_dir, both))


def parse_batches(path: Path) -> list[Batch]:
    """The batches of a whole, undamaged `.log` file."""
    data, position, batches = path.read_bytes(), 0, list[Batch]()
    while position + LEGACY_BYTES <= len(data):
        is_legacy = data[position + 16] < 2
        if not is_legacy and len(data) - position < BATCH_HEADER.size:
            break
        header = BATCH_HEADER.unpack(
            data[position : position + BATCH_HEADER.size].ljust(BATCH_HEADER.size, b"\0")
        )
        end = position + 12 + header[1]
        if header[1] < (LEGACY_BYTES - 12 if is_legacy else 49) or end > len(data):
            raise ValueError(f"{path} @ {position}: length {header[1]}, {len(data)} bytes in all")
        batches.append(Batch(position, header, data[position:end]))
        position = end
    if position != len(data):
        raise ValueError(f"{path} @ {position}: {len(data) - position} bytes left")
    return batches


def expected_indexes(
    base_offset: int, batches: list[Batch], interval_bytes: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Offset and time index of a segment written batch by batch (spec, compaction.md §4.2).

    Entries are (relative offset, position) and (timestamp, relative offset).
    """
    offset_index, time_index = list[tuple[int, int]](), list[tuple[int, int]]()
    largest, largest_at, since_last = -1, base_offset, 0

    def note_time() -> None:
        if largest > (time_index[-1][0] if time_index else -1):
            time_index.append((largest, largest_at - base_offset))

    for batch in batches:
        if batch.get("max_timestamp") > largest:
            largest, largest_at = batch.get("max_timestamp"), batch.last_offset
        if since_last > interval_bytes:
            offset_index.append((batch.last_offset - base_offset, batch.position))
            note_time()
            since_last = 0
        since_last += len(batch.data)
    note_time()
    return offset_index, time_index


# -- the parts -----------------------------------------------------------------------------------


def _batches(directory: Path) -> set[bytes]:
    return {batch.data for path in directory.glob("*.log") for batch in parse_batches(path)}


def _live_files(directory: Path) -> set[str]:
    """Names of all files but those waiting for deletion; a left-over `.cleaned` is seen."""
    return {p.name for p in directory.iterdir() if not GONE_FILE.fullmatch(p.name)}


def _compare_checkpoints(ours: Path, kafkas: Path) -> Iterator[Difference]:
    names = {p.name for d in (ours, kafkas) for p in d.iterdir() if p.is_file()} - {".lock"}
    for name in sorted(names):
        one, other = (_text(d / name) for d in (ours, kafkas))
        if one != other:
            yield Difference(name, "text", one, other)


def _compare_logs(
    our_file: Path, kafka_file: Path, known: set[bytes], kafka: Kafka
) -> Iterator[Difference]:
    name = our_file.name
    try:
        ours = parse_batches(our_file)
    except ValueError as error:
        yield Difference(name, "framing", str(error), "well formed")
        return
    kafkas = parse_batches(kafka_file)
    if len(ours) != len(kafkas):
        yield Difference(name, "number of batches", len(ours), len(kafkas))
    decoded_anew = False
    for number, (one, other) in enumerate(zip(ours, kafkas, strict=False)):
        if one.data == other.data:
            continue
        rebuilt = bool(other.codec) and bool(other.get("records_count")) and other.data not in known
        skip = COMPRESSOR_FIELDS if rebuilt else ()
        for field, a, b in zip(BATCH_FIELDS, one.header, other.header, strict=True):
            if a != b and field not in skip:
                yield Difference(name, field, a, b, number)
        body = BATCH_HEADER.size
        if not rebuilt and one.data[body:] != other.data[body:]:
            yield Difference(name, "record bytes", one.data[body:], other.data[body:], number)
        if google_crc32c.value(one.data[21:]) != one.get("crc"):
            yield Difference(name, "valid CRC", False, True, number)
        decoded_anew = decoded_anew or rebuilt
    if decoded_anew:
        yield from _compare_records(our_file, kafka_file, kafka)


def _compare_records(our_file: Path, kafka_file: Path, kafka: Kafka) -> Iterator[Difference]:
    """Every record of both files as Kafka decodes it."""
    ours, kafkas = kafka.dump_file(our_file), kafka.dump_file(kafka_file)
    for number, (one, other) in enumerate(zip(ours, kafkas, strict=False)):
        for i, (a, b) in enumerate(zip(one["records"], other["records"], strict=False)):
            if a != b:
                yield Difference(our_file.name, f"record {i}", a, b, number)


def _compare_snapshots(our_file: Path, kafka_file: Path) -> Iterator[Difference]:
    ours, kafkas = _parse_snapshot(our_file), _parse_snapshot(kafka_file)
    if isinstance(ours, str) or isinstance(kafkas, str):
        yield Difference(our_file.name, "snapshot", ours, kafkas)
        return
    for producer_id in sorted(ours.keys() | kafkas.keys()):
        one, other = ours.get(producer_id), kafkas.get(producer_id)
        if one is None or other is None:
            yield Difference(our_file.name, f"producer {producer_id}", one, other)
            continue
        for field, a, b in zip(SNAPSHOT_FIELDS, one, other, strict=True):
            if a != b:
                yield Difference(our_file.name, f"producer {producer_id} {field}", a, b)


def _parse_snapshot(path: Path) -> dict[int, tuple[int, ...]] | str:
    """Entries by producer id, or what is wrong with the file."""
    data = path.read_bytes()
    if len(data) < 10:
        return f"{len(data)} bytes"
    version, crc, count = struct.unpack_from(">hIi", data)
    if version != 1 or count < 0 or len(data) != 10 + count * SNAPSHOT_ENTRY.size:
        return f"version {version}, {count} entries in {len(data)} bytes"
    if google_crc32c.value(data[6:]) != crc:
        return "wrong CRC"
    return {entry[0]: entry for entry in SNAPSHOT_ENTRY.iter_unpack(data[10:])}


def _check_indexes(stem: Path, interval_bytes: int) -> Iterator[Difference]:
    batches = parse_batches(stem.with_suffix(".log"))
    expected = expected_indexes(int(stem.name), batches, interval_bytes)
    for suffix, entry, wanted in zip(
        (".index", ".timeindex"), (">ii", ">qi"), expected, strict=True
    ):
        path = stem.with_suffix(suffix)
        packed = b"".join(struct.pack(entry, *one) for one in wanted)
        if path.read_bytes() != packed:
            yield _bytes_differ(path.name, path.read_bytes(), packed)


def _compare_times(ours: Path, kafkas: Path, names: set[str]) -> Iterator[Difference]:
    logs = sorted(name for name in names if name.endswith(".log"))
    for log in logs[:-1]:
        for suffix in (".log", ".index", ".timeindex"):
            name = log.removesuffix(".log") + suffix
            if name not in names:
                continue
            one, other = ((d / name).stat().st_mtime_ns // 1_000_000 for d in (ours, kafkas))
            if one != other:
                yield Difference(name, "modification time in ms", one, other)


def _bytes_differ(name: str, one: bytes, other: bytes) -> Difference:
    """Index entries where the file is an index, else the first byte that differs."""
    entry = {"index": ">ii", "timeindex": ">qi", "txnindex": ">hqqqq"}.get(name.split(".")[-1])
    if entry and not (len(one) % struct.calcsize(entry) or len(other) % struct.calcsize(entry)):
        a, b = (list(struct.iter_unpack(entry, data)) for data in (one, other))
        at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
        if at is None:
            return Difference(name, "number of entries", len(a), len(b))
        return Difference(name, f"entry {at}", a[at], b[at])
    at = next((i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), None)
    if at is None:
        return Difference(name, "size", len(one), len(other))
    return Difference(name, f"bytes at {at}", one[at : at + 16], other[at : at + 16])


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def _short(value: Any) -> str:
    text = value.hex(" ") if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 160 else f"{text[:120]}… ({len(text)} characters)"
