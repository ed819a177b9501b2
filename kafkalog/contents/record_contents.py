"""What the records of a log are, for the parts of an audit that headers do not tell: tombstones and
what looks like one, records without a key, keys, and what compaction would give back.

One pass over all records, by whole columns; memory does not grow with the log. Records count if
compaction would meet them: no markers, no data of aborted transactions.

The gain is that of one compaction of all that may be cleaned now, with the map large enough: what
is superseded, aborted, or has no key, and the batches that lose all their records. A compressed
batch is taken to shrink with its records. What stays as an empty batch for its producer is not
counted, nor tombstones, which go a delete.retention.ms later. So it is never exact: the error says
by how much a rewritten record may grow (its timestamp is stored as a delta against another one),
what empty batches take, and that few records compress worse than many.

Source: Kafka Cleaner.shouldRetainRecord.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import has_delete_horizon, is_control
from kafkalog.batches.record_areas import RecordAreas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.cleaning.key_map import KeySecret
from kafkalog.contents.latest_keys import KEY_ROW, MOST_KEYS, Estimate, LatestKeys
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import MAX_INT64, RECORD_BATCH_OVERHEAD
from kafkalog.kernels.encode_records import RECORD_GROWTH_BYTES
from kafkalog.kernels.hash_keys import (
    DATA,
    ENTRIES,
    ENTRY_WORDS,
    MAP_STATE_SIZE,
    MARKER,
    PREVIOUS_OFFSET,
    map_records,
)
from kafkalog.kernels.status import OK, STATUS_TEXT
from kafkalog.log.json_facts import JsonFacts

Int64s = NDArray[np.int64]
Mask = NDArray[np.bool_]

NULL_TEXT = b"null"

# flags of a key's latest record
_TOMBSTONE, _EMPTY_VALUE, _NULL_TEXT_VALUE = 1, 2, 4


@dataclass(frozen=True, slots=True)
class KeyContents(JsonFacts):
    """What is known of a log's keys. `fake_tombstones`: keys whose latest value is empty or the
    text null. `gain_bytes`: see the module's text; its error includes what is not known of batches.
    """

    distinct_keys: Estimate
    fake_tombstones: Estimate
    gain_bytes: Estimate


@dataclass(frozen=True, slots=True)
class RecordContents(JsonFacts):
    """Counts of records. `tombstones_in_clean`: below the first dirty offset without a delete
    horizon. `keys` None where nobody asked.
    """

    records: int
    tombstones: int
    tombstones_with_horizon: int
    tombstones_in_clean: int
    empty_values: int
    null_text_values: int
    keyless_records: int
    keys: KeyContents | None


class RecordContentsScan:
    """Add the records of all segments in offset order, then `finish`."""

    def __init__(
        self,
        *,
        first_dirty_offset: int,
        end_offset: int,
        with_keys: bool,
        most_keys: int = MOST_KEYS,
    ) -> None:
        """`end_offset`: where a round of cleaning would end."""
        self._first_dirty_offset = first_dirty_offset
        self._end_offset = end_offset
        self._latest = LatestKeys(most_keys) if with_keys else None
        self._hasher = KeyHasher()
        self._spans: RecordSpans | None = None
        self._counts: dict[str, int] = dict.fromkeys(_COUNTED, 0)
        self._batches = 0
        self._cleanable_bytes = 0
        self._cleanable_batches = 0
        self._producers: set[int] = set()
        self._opened_bytes = self._stored_bytes = 0
        self._gain: Estimate | None = None

    def add(self, areas: RecordAreas, path: str, is_aborted: Mask) -> None:
        """The records of some batches; bool[b]: which of them belong to aborted transactions.

        CorruptRecordError for a batch whose records cannot be understood.
        """
        rows = areas.rows
        if self._latest is not None and self._gain is None and rows["base_offset"].size:
            # The gain is that of what may be cleaned: taken when the last such batch is in, while
            # keys go on to be counted behind it.
            split = int(np.searchsorted(rows["base_offset"], self._end_offset))
            if split < rows.size:
                self._add(_part(areas, slice(0, split)), path, is_aborted[:split])
                self._gain = self._gain_so_far()
                self._add(_part(areas, slice(split, rows.size)), path, is_aborted[split:])
                return
        self._add(areas, path, is_aborted)

    def finish(self) -> RecordContents:
        """What all records were."""
        keys = None
        if self._latest is not None:
            gain = self._gain_so_far() if self._gain is None else self._gain
            latest = self._latest.latest()
            is_fake = (latest["flags"] & (_EMPTY_VALUE | _NULL_TEXT_VALUE)) != 0
            keys = KeyContents(
                distinct_keys=self._latest.total(np.ones(latest.size)),
                fake_tombstones=self._latest.total(is_fake.astype(np.float64)),
                gain_bytes=gain,
            )
        return RecordContents(**self._counts, keys=keys)

    def _add(self, areas: RecordAreas, path: str, is_aborted: Mask) -> None:
        rows = areas.rows
        if not rows.size:
            return
        spans = self._spans = decode_spans(areas, rows, path, self._spans)
        is_data = ~(is_control(rows) | is_aborted)
        batch = spans.batch_indexes
        counts = is_data[batch]
        tombstone = counts & (spans.value_lengths < 0)
        empty = counts & (spans.value_lengths == 0)
        null_text = counts & _is_null_text(areas.buf, spans)
        stamped = has_delete_horizon(rows)[batch]
        in_clean = spans.offsets < self._first_dirty_offset
        for name, mask in {
            "records": counts,
            "tombstones": tombstone,
            "tombstones_with_horizon": tombstone & stamped,
            "tombstones_in_clean": tombstone & ~stamped & in_clean,
            "empty_values": empty,
            "null_text_values": null_text,
            "keyless_records": counts & (spans.key_lengths < 0),
        }.items():
            self._counts[name] += int(np.count_nonzero(mask))
        if self._latest is not None:
            self._add_keys(areas, spans, path, is_data, (tombstone, empty, null_text))
        self._batches += rows.size

    def _add_keys(
        self,
        areas: RecordAreas,
        spans: RecordSpans,
        path: str,
        is_data: Mask,
        kinds: tuple[Mask, Mask, Mask],
    ) -> None:
        rows = areas.rows
        hashes, records = self._hasher.hash_keys(areas, np.where(is_data, DATA, MARKER), path)
        tombstone, empty, null_text = (kind[records].astype(np.uint8) for kind in kinds)
        found = np.empty(records.size, KEY_ROW)
        found["key"] = hashes
        found["bytes"] = _stored_bytes(areas, spans)[records]
        found["batch"] = self._batches + spans.batch_indexes[records]
        found["flags"] = (
            tombstone * _TOMBSTONE + empty * _EMPTY_VALUE + null_text * _NULL_TEXT_VALUE
        )
        assert self._latest is not None  # noqa: S101
        self._latest.add(found)
        if self._gain is None:
            data = ~is_control(rows)
            self._producers.update(
                np.unique(rows["producer_id"][rows["producer_id"] >= 0]).tolist()
            )
            self._opened_bytes += int((areas.ends - areas.starts)[data].sum())
            self._stored_bytes += int((rows["size_in_bytes"][data] - RECORD_BATCH_OVERHEAD).sum())
            self._cleanable_bytes += int(rows["size_in_bytes"][data].sum(dtype=np.int64))
            self._cleanable_batches += int(np.count_nonzero(data))

    def _gain_so_far(self) -> Estimate:
        assert self._latest is not None  # noqa: S101
        latest = self._latest.latest()
        kept = self._latest.total(latest["bytes"].astype(np.float64))
        if self._latest.is_exact:
            batches = np.unique(latest["batch"]).size
            kept_bytes = kept.value + batches * RECORD_BATCH_OVERHEAD
            off = self._growth_bytes(latest.size, kept.value)
            return Estimate(max(self._cleanable_bytes - kept_bytes, 0), off)
        # Of a sample it is not known how many batches keep a record: between none and all that can.
        keys = self._latest.total(np.ones(latest.size)).value
        headers = min(self._cleanable_batches, keys) * RECORD_BATCH_OVERHEAD
        gain = self._cleanable_bytes - kept.value - headers // 2
        off = self._growth_bytes(keys, kept.value)
        return Estimate(max(gain, 0), kept.error + headers // 2 + 1 + off)

    def _growth_bytes(self, records: int, kept_bytes: int) -> int:
        """What so many records of so many bytes may take more than that, and empty batches."""
        empty = (len(self._producers) + 1) * RECORD_BATCH_OVERHEAD
        opened = self._opened_bytes / max(self._stored_bytes, 1)
        return empty + records * RECORD_GROWTH_BYTES + int(kept_bytes * max(opened - 1, 0))


_COUNTED = (
    "records", "tombstones", "tombstones_with_horizon", "tombstones_in_clean", "empty_values",
    "null_text_values", "keyless_records",
)  # fmt: skip


class KeyHasher:
    """Hashes of the keys of records, with a secret of its own."""

    def __init__(self) -> None:
        self._k0, self._k1 = KeySecret().words
        self._entries = np.empty(0, np.uint64)

    def hash_keys(
        self, areas: RecordAreas, roles: Int64s, path: str
    ) -> tuple[NDArray[np.uint64], Int64s]:
        """(uint64[k] hashes, int64[k] numbers among the records of these batches, ascending) of the
        records that have a key, in batches of role DATA.
        """
        rows = areas.rows
        count = int(rows["records_count"].sum(dtype=np.int64))
        # One more than all records can fill: the kernel never stops for want of room.
        if self._entries.size < (count + 1) * ENTRY_WORDS:
            self._entries = np.empty((count + 1) * ENTRY_WORDS, np.uint64)
        state = np.zeros(MAP_STATE_SIZE, np.int64)
        state[PREVIOUS_OFFSET] = int(rows["base_offset"][0]) - 1
        _, status, position, b = map_records(
            areas.buf, rows, areas.starts, areas.ends, roles.astype(np.uint8), self._k0, self._k1,
            0, MAX_INT64, state, self._entries, np.empty(count, np.uint8),
        )  # fmt: skip
        if status != OK:
            raise CorruptRecordError(
                f"{STATUS_TEXT[status]}, {position - int(areas.starts[b])} bytes into its records",
                path=path,
                position=int(rows["position"][b]),
                offset=int(rows["base_offset"][b]),
            )
        entries = self._entries[: int(state[ENTRIES]) * ENTRY_WORDS].reshape(-1, ENTRY_WORDS)
        return entries[:, 0].copy(), entries[:, 2].astype(np.int64)


def _part(areas: RecordAreas, which: slice) -> RecordAreas:
    return RecordAreas(areas.buf, areas.starts[which], areas.ends[which], areas.rows[which])


def _is_null_text(buf: NDArray[np.uint8], spans: RecordSpans) -> Mask:
    found = spans.value_lengths == len(NULL_TEXT)
    which = np.flatnonzero(found)
    text = buf[spans.value_starts[which, None] + np.arange(len(NULL_TEXT))]
    found[which] = (text == np.frombuffer(NULL_TEXT, np.uint8)).all(axis=1)
    result: Mask = found
    return result


def _stored_bytes(areas: RecordAreas, spans: RecordSpans) -> NDArray[np.float64]:
    """float64[n]: what each record takes of its batch in the file, the batch's header apart.

    From key to key: records of a batch together take exactly what they take, one alone may be some
    bytes off. Compressed ones take their share.
    """
    starts = spans.key_starts[: spans.n]
    batch = spans.batch_indexes
    is_last = np.append(batch[1:] != batch[:-1], True)
    is_first = np.append(True, is_last[:-1])
    ends = np.append(starts[1:], 0)
    ends[is_last] = areas.ends[batch[is_last]]
    sizes = (ends - starts).astype(np.float64)
    sizes[is_first] += starts[is_first] - areas.starts[batch[is_first]]
    stored = areas.rows["size_in_bytes"] - RECORD_BATCH_OVERHEAD
    shares = stored / np.maximum(areas.ends - areas.starts, 1)
    result: NDArray[np.float64] = sizes * shares[batch]
    return result
