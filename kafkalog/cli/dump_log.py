"""A `.log` file, or a KRaft snapshot, which has the same batches: batch by batch, record by record.

What is wrong with a batch is said on stderr, and the dump goes on behind it where that can be
found; Kafka's own tool gives up there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import codecs, is_legacy, verify_checksums
from kafkalog.batches.record_areas import iterate_record_areas
from kafkalog.batches.spans import decode_spans
from kafkalog.cli.dump_hex import annotated_batch
from kafkalog.cli.dump_json import json_lines
from kafkalog.cli.dump_lines import batch_lines, record_lines
from kafkalog.cli.dump_options import TEXT, DumpOptions
from kafkalog.cli.output import say, write_bytes
from kafkalog.columns.arrow_arrays import number_array
from kafkalog.columns.batches import BatchArrays, build_batches
from kafkalog.columns.column import arrow_schema
from kafkalog.columns.places import SegmentPlace
from kafkalog.columns.records import RecordArrays, build_records
from kafkalog.columns.schemas import BATCHES, RECORDS
from kafkalog.columns.texts import lines_of
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import CompressionType
from kafkalog.format.file_names import LogFileKind, parse_file_name
from kafkalog.format.legacy_record import inner_checksums, open_wrapper
from kafkalog.log.damage import Damage, FileRange
from kafkalog.log.listing import path_text
from kafkalog.log.metadata_records import BOOTSTRAP_FILE
from kafkalog.log.past_damage import DamageWalk
from kafkalog.log.segment_file import Chunk
from kafkalog.log.segment_tail import SegmentEnds
from kafkalog.log.storage import identity_of
from kafkalog.log.topic_partition import TopicPartition, parse_partition_dir_name
from kafkalog.reading.split_chunks import BAD_BATCH
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.segment import ChunkedSegment
from kafkalog.remote.stores import bucket_uri

Rows = npt.NDArray[np.void]
Mask = npt.NDArray[np.bool_]

# About as many decompressed bytes make one piece of output.
_ARENA_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 4 * 1024 * 1024

_BATCH_NAMES = [column.name for column in BATCHES]
_BATCH_SCHEMA = arrow_schema(BATCHES)


def dump_log(path: Path, options: DumpOptions) -> bool:
    """Print a file's batches; whether something is wrong with it."""
    return _LogDump(path_text(path), _place_of(path), _title(path), options).run()


def dump_remote_log(path: ManifestPath, options: DumpOptions) -> bool:
    """The same of a segment in remote storage."""
    copied = ChunkedSegment(path).manifest.copied
    name = TopicPartition(copied.topic if copied else "", copied.partition if copied else -1)
    return dump_remote_segment(path, name, int(Path(path).name[:20]), options)


def dump_remote_segment(
    path: str, name: TopicPartition, base_offset: int, options: DumpOptions
) -> bool:
    """The same of one whose partition is known, of any layout."""
    place = SegmentPlace(name.topic, name.partition, base_offset, path)
    return _LogDump(path, place, f"Log starting offset: {base_offset}\n", options).run()


class _LogDump:
    def __init__(self, path: str, place: SegmentPlace, title: str, options: DumpOptions) -> None:
        self._path = path
        self._options = options
        self._place = place
        self._title = title
        self._arena = Arena()
        self._is_wrong = False
        self._last_offset = -1
        self._gaps: list[tuple[int, int]] = []
        hidden = () if options.contents else ("key", "value", "headers")
        self._columns = tuple(column for column in RECORDS if column.name not in hidden)
        self._schema = arrow_schema(self._columns)

    def run(self) -> bool:
        """The whole file, or its first `max_bytes`."""
        if not self._options.as_json:
            write_bytes(self._title.encode())
        end = self._options.max_bytes
        size = identity_of(self._path).size
        base_offset = max(self._place.segment_base_offset, 0)
        # Nothing tells whether others follow it; a snapshot is named by its end.
        ends = SegmentEnds(base_offset if self._path.endswith(".log") else 0, None, is_last=True)
        wanted = FileRange(self._path, 0, size if end is None else min(end, size), ends)
        limit = self._options.max_batch_bytes
        walk = DamageWalk(wanted, chunk_bytes=_CHUNK_BYTES, max_batch_bytes=limit)
        for found in walk:
            if isinstance(found, Damage):
                self._wrong(found.error)
            else:
                self._dump_chunk(found)
        if walk.position < size and end is None:
            name = Path(self._path).name
            text = f"Found {size - walk.position} invalid bytes at the end of {name}"
            if self._options.as_json:
                say(text)
            else:
                write_bytes(f"{text}\n".encode())
            self._is_wrong = True
        self._say_gaps()
        return self._is_wrong

    def _say_gaps(self) -> None:
        """Where offsets do not follow each other: nothing wrong, compaction leaves gaps."""
        if self._gaps:
            lines = [f"  {one} is followed by {other}" for one, other in self._gaps]
            where = bucket_uri(self._path) or Path(self._path).absolute()
            say("\n".join([f"Non-consecutive offsets in {where}", *lines]))

    def _note_gaps(self, offsets: npt.NDArray[np.int64]) -> None:
        if not offsets.size:
            return
        before = np.concatenate([[self._last_offset], offsets[:-1]])
        at = np.flatnonzero(offsets != before + 1)
        self._gaps += zip(before[at].tolist(), offsets[at].tolist(), strict=True)
        self._last_offset = int(offsets[-1])

    def _wrong(self, error: KafkaLogError) -> None:
        self._is_wrong = True
        say(str(error))

    def _dump_chunk(self, chunk: Chunk) -> None:
        is_valid = verify_checksums(chunk.buf, chunk.position, chunk.rows)
        self._is_wrong = self._is_wrong or not is_valid.all()
        if self._options.annotated:
            for row in chunk.rows:
                start = int(row["position"]) - chunk.position
                data = chunk.buf[start : start + int(row["size_in_bytes"])].tobytes()
                text = annotated_batch(data, int(row["position"]), redact=self._options.redact)
                write_bytes(text.encode())
        elif not self._options.records:
            self._put(self._batch_lines(chunk.rows, is_valid))
        else:
            for lines in self._deep_lines(chunk, is_valid, 0, chunk.rows.size):
                self._put(lines)

    def _put(self, lines: pa.Array) -> None:
        data = lines_of(lines)
        if self._options.binary_format == TEXT:
            try:
                str(data, "utf-8")
            except UnicodeDecodeError:
                how = "replace" if self._options.as_json else "backslashreplace"
                data = memoryview(str(data, "utf-8", how).encode())
        write_bytes(data)

    def _batch_lines(self, rows: Rows, is_valid: Mask) -> pa.Array:
        if not self._options.as_json:
            return batch_lines(rows, is_valid)
        arrays = BatchArrays(self._place, rows, is_valid)
        return json_lines("batch", build_batches(arrays, _BATCH_SCHEMA, _BATCH_NAMES), _PLAIN)

    def _deep_lines(
        self, chunk: Chunk, is_valid: Mask, first: int, stop: int
    ) -> Iterator[pa.Array]:
        """Lines of the batches first to stop, each batch's records behind it."""
        done = first
        try:
            parts = iterate_record_areas(
                chunk.buf,
                chunk.position,
                chunk.rows[first:stop],
                self._arena,
                path=self._path,
                max_bytes=self._options.max_batch_bytes,
                arena_bytes=_ARENA_BYTES,
            )
            for part, areas in parts:
                these = slice(first + part.start, first + part.stop)
                spans = decode_spans(areas, areas.rows, self._path)
                arrays = RecordArrays(self._place, areas.buf, areas.rows, spans)
                lines = self._record_lines(arrays, chunk, these, is_valid)
                batches = self._batch_lines(chunk.rows[these], is_valid[these])
                counts = areas.rows["records_count"].astype(np.int64)
                yield _interleaved(batches, lines, counts, arrays.batch_indexes)
                self._note_gaps(arrays.of_record("offsets"))
                done = these.stop
        except BAD_BATCH as error:
            bad = done + int(np.argmax(chunk.rows["position"][done:stop] == error.position))
            if chunk.rows["position"][bad] != error.position:
                raise
            if bad > done:
                yield from self._deep_lines(chunk, is_valid, done, bad)
            yield self._batch_lines(chunk.rows[bad : bad + 1], is_valid[bad : bad + 1])
            self._wrong(error)
            if bad + 1 < stop:
                yield from self._deep_lines(chunk, is_valid, bad + 1, stop)

    def _record_lines(
        self, arrays: RecordArrays, chunk: Chunk, these: slice, is_valid: Mask
    ) -> pa.Array:
        if self._options.as_json:
            names = [column.name for column in self._columns]
            return json_lines("record", build_records(arrays, self._schema, names), self._options)
        checksums = None
        if is_legacy(arrays.rows).any():
            checksums = _legacy_checksums(
                chunk,
                chunk.rows[these],
                is_valid[these],
                self._path,
                self._options.max_batch_bytes,
            )
        return record_lines(arrays, self._options, checksums)


_PLAIN = DumpOptions(as_json=True)


def _interleaved(
    batches: pa.Array, records: pa.Array, counts: npt.NDArray[np.int64], indexes: npt.NDArray[Any]
) -> pa.Array:
    """Each batch's line, then those of its records."""
    ends = np.cumsum(counts)
    order = np.empty(len(batches) + len(records), np.int64)
    order[np.arange(len(batches)) + ends - counts] = np.arange(len(batches))
    order[np.arange(len(records)) + indexes + 1] = len(batches) + np.arange(len(records))
    return pa.concat_arrays([batches, records]).take(number_array(order))


def _legacy_checksums(
    chunk: Chunk, rows: Rows, is_valid: Mask, path: str, max_batch_bytes: int
) -> list[tuple[int, bool]]:
    """(stored CRC, is valid) of every message, those in wrappers by their own."""
    found: list[tuple[int, bool]] = []
    for row, valid, codec in zip(rows, is_valid.tolist(), codecs(rows).tolist(), strict=True):
        if codec == CompressionType.NONE:
            found.append((int(row["crc"]), valid))
            continue
        start = int(row["position"]) - chunk.position
        entry = chunk.buf[start : start + int(row["size_in_bytes"])].data
        content = open_wrapper(
            entry, int(row["magic"]), codec, max_bytes=max_batch_bytes, path=path
        )
        found += [(stored, stored == computed) for stored, computed in inner_checksums(content)]
    return found


def _title(path: Path) -> str:
    if path.name == BOOTSTRAP_FILE:
        return "KRaft bootstrap snapshot\n"
    name = parse_file_name(path.name)
    if name is None:
        return ""
    if name.kind is LogFileKind.METADATA_SNAPSHOT:
        return f"Snapshot end offset: {name.offset}, epoch: {name.epoch}\n"
    return f"Log starting offset: {name.offset}\n"


def _place_of(path: Path) -> SegmentPlace:
    """Topic and partition by the directory's name; empty and -1 where it is no partition's."""
    directory = parse_partition_dir_name(path.resolve().parent.name)
    name = parse_file_name(path.name)
    partition = directory.topic_partition if directory else None
    return SegmentPlace(
        partition.topic if partition else "",
        partition.partition if partition else -1,
        name.offset if name else -1,
        path_text(path),
    )
