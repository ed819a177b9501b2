"""Columns as text, whole columns at a time: numbers, escaped bytes, hex, base64, JSON, and rows
joined into lines.

Everything here takes and gives Arrow arrays of bytes (`binary`), so that text which is no UTF-8
goes through; no Python object is made per row.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_arrays import bool_array, bytes_array, bytes_scalar, number_array
from kafkalog.errors import RecordTooLargeError
from kafkalog.format.constants import MAX_INT32
from kafkalog.format.redaction import redacted

Bytes = npt.NDArray[np.uint8]

_EMPTY = bytes_scalar(b"")
_BACKSLASH = ord("\\")
_BLANK = ord(" ")
_FEW_KINDS = 6


@dataclass(frozen=True)
class Escapes:
    """What stands for each byte: widths uint8[256], characters uint8[256, widest]. All bytes below
    a blank are special, and `others`.
    """

    widths: Bytes
    characters: Bytes
    others: tuple[int, ...]

    @classmethod
    def of(cls, special: Mapping[int, bytes]) -> Escapes:
        """A table that leaves all bytes but `special` as they are, the control characters among
        them.
        """
        widths = np.ones(256, np.uint8)
        characters = np.zeros((256, max(map(len, special.values()))), np.uint8)
        characters[:, 0] = np.arange(256)
        for byte, text in special.items():
            widths[byte] = len(text)
            characters[byte, : len(text)] = np.frombuffer(text, np.uint8)
        return cls(widths, characters, tuple(byte for byte in special if byte >= _BLANK))

    def find(self, data: Bytes) -> npt.NDArray[np.int64]:
        """Where the special bytes are; comparisons are quicker than a look-up a byte."""
        found = data < _BLANK
        for byte in self.others:
            found |= data == byte
        return np.flatnonzero(found)

    def text(self, byte: int) -> bytes:
        """What stands for a byte."""
        return self.characters[byte, : self.widths[byte]].tobytes()


_NAMED = {ord("\n"): b"\\n", ord("\r"): b"\\r", ord("\t"): b"\\t", ord("\\"): b"\\\\"}
_CONTROL = [*range(_BLANK), 127]
# What would end a line, move a terminal, or be mistaken for an escape.
TEXT_ESCAPES = Escapes.of({byte: b"\\x%02x" % byte for byte in _CONTROL} | _NAMED)
JSON_ESCAPES = Escapes.of(
    {byte: b"\\u%04x" % byte for byte in _CONTROL} | _NAMED | {ord('"'): b'\\"'}
)


def number_text(values: npt.NDArray[np.generic] | pa.Array) -> pa.Array:
    """Integers in decimal; nulls stay."""
    array = values if isinstance(values, pa.Array) else number_array(values)
    return array.cast(pa.string()).cast(pa.binary())


def bool_text(values: npt.NDArray[np.bool_] | pa.Array) -> pa.Array:
    """`true` and `false`; nulls stay."""
    array = values if isinstance(values, pa.Array) else bool_array(values)
    return pc.if_else(array, bytes_scalar(b"true"), bytes_scalar(b"false"))


def choice_text(texts: list[str], indexes: npt.NDArray[np.integer]) -> pa.Array | pa.Scalar:
    """texts[i] for each index; one scalar where all are the same."""
    if len(set(texts)) == 1:
        return bytes_scalar(texts[0].encode())
    return bytes_array([text.encode() for text in texts]).take(number_array(indexes))


def join(*parts: pa.Array | pa.Scalar | bytes) -> pa.Array:
    """The parts of each row one behind the other, a null as nothing."""
    return _join(parts, "replace")


def join_unless_null(*parts: pa.Array | pa.Scalar | bytes) -> pa.Array:
    """The same; null where a part is null."""
    return _join(parts, "emit_null")


def quoted(text: pa.Array) -> pa.Array:
    """Each text between double quotes; null stays null."""
    return join_unless_null(b'"', text, b'"')


def join_lists(items: pa.Array, list_offsets: npt.NDArray[np.int32]) -> pa.Array:
    """Items of each list with commas between them."""
    lists = pa.ListArray.from_arrays(number_array(list_offsets), items)
    return pc.binary_join(lists, bytes_scalar(b","))


def escape(array: pa.Array, escapes: Escapes) -> pa.Array:
    """Bytes with the special ones replaced."""
    offsets, data, validity = _parts(array)
    special = escapes.find(data)
    if not special.size:
        return array
    added = np.cumsum(escapes.widths[data[special]] - 1, dtype=np.int64)
    before = np.concatenate([[0], added])[np.searchsorted(special, offsets)]
    kinds = np.unique(data[special]).tolist()
    replaced = _replace_all if len(kinds) <= _FEW_KINDS else _scatter
    return _array(offsets + before, replaced(data, kinds, escapes), validity)


def _replace_all(data: Bytes, kinds: list[int], escapes: Escapes) -> Bytes:
    """One pass a kind of byte: quick where there are few kinds."""
    text = data.tobytes()
    # what the others are replaced by has backslashes
    for kind in sorted(kinds, key=lambda kind: kind != _BACKSLASH):
        text = text.replace(bytes([kind]), escapes.text(kind))
    return np.frombuffer(text, np.uint8)


def _scatter(data: Bytes, _: list[int], escapes: Escapes) -> Bytes:
    """One pass over all bytes, however many kinds there are."""
    widths = escapes.widths[data]
    ends = np.cumsum(widths, dtype=np.int64)
    starts = ends - widths
    out = np.empty(int(ends[-1]), np.uint8)
    out[starts] = data
    for width in np.unique(widths).tolist():
        if width > 1:
            chosen = np.flatnonzero(widths == width)
            places = starts[chosen][:, None] + np.arange(width)
            out[places] = escapes.characters[data[chosen], :width]
    return out


def hex_text(array: pa.Array) -> pa.Array:
    """Two digits a byte."""
    offsets, data, validity = _parts(array)
    text = np.frombuffer(binascii.hexlify(data.data), np.uint8)
    return _array(offsets.astype(np.int64) * 2, text, validity)


def base64_text(array: pa.Array) -> pa.Array:
    """Each row in base64, padded. All rows are encoded at once, each from a multiple of three bytes
    on.
    """
    offsets, data, validity = _parts(array)
    lengths = np.diff(offsets)
    starts = np.concatenate([[0], np.cumsum((lengths + 2) // 3 * 3)]).astype(np.int64)
    padded = np.zeros(int(starts[-1]), np.uint8)
    padded[np.arange(data.size) + np.repeat(starts[:-1] - offsets[:-1], lengths)] = data
    text = np.frombuffer(binascii.b2a_base64(padded.data, newline=False), np.uint8).copy()
    ends = starts // 3 * 4
    for left, missing in ((1, 2), (2, 1)):
        short = ends[1:][lengths % 3 == left]
        for back in range(1, missing + 1):
            text[short - back] = ord("=")
    return _array(ends, text, validity)


def digest_text(array: pa.Array) -> pa.Array:
    """A short digest of each row's bytes (SHA-256), the same for the same bytes."""
    encoded = array.dictionary_encode()
    digests = [redacted(data).encode() for data in encoded.dictionary.to_pylist()]
    return bytes_array(digests).take(encoded.indices)


def lines_of(array: pa.Array) -> memoryview:
    """All rows one behind the other, as they lie in the array's buffer."""
    offsets, data, _ = _parts(array)
    lines: memoryview = data[: int(offsets[-1])].data
    return lines


def _join(parts: tuple[Any, ...], null_handling: str) -> pa.Array:
    arguments = [bytes_scalar(p) if isinstance(p, bytes) else p for p in parts]
    return pc.binary_join_element_wise(
        *arguments, _EMPTY, null_handling=null_handling, null_replacement=b""
    )


def _parts(array: pa.Array) -> tuple[npt.NDArray[np.int32], Bytes, pa.Buffer | None]:
    """Offsets from 0 on, the bytes they point into, and the validity bitmap."""
    if array.offset:
        array = pa.concat_arrays([array])
    validity, offsets_buffer, data_buffer = array.buffers()
    if not len(array):
        return np.zeros(1, np.int32), np.empty(0, np.uint8), None
    offsets = np.frombuffer(offsets_buffer, np.int32, len(array) + 1)
    data = np.frombuffer(data_buffer or b"", np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]], validity


def _array(offsets: npt.NDArray[np.integer], data: Bytes, validity: pa.Buffer | None) -> pa.Array:
    if int(offsets[-1]) > MAX_INT32:
        raise RecordTooLargeError(f"{offsets[-1]} bytes of text, the limit is {MAX_INT32}")
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
