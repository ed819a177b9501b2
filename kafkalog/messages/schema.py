"""What a generated message is: a table of fields, each with the versions it is there in.

A field is encoded in the versions of its `versions` range: in its place on the wire or, with a tag,
in the tagged section that ends every struct of a flexible version. Tables keep the order of Kafka's
message definitions, which is the order on the wire.

Source: the message definitions (`*.json`) of Kafka, and its generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from kafkalog.format.constants import MAX_INT16


class Primitive(StrEnum):
    """Types that are not made of fields."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT16 = "uint16"
    UINT32 = "uint32"
    FLOAT64 = "float64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Versions:
    """A closed range of versions; empty if `last` is below `first`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """`0-2`, `1+`, `3` or `none`, as message definitions write them."""
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), MAX_INT16)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


NONE = Versions.parse("none")
ALL = Versions.parse("0+")


@dataclass(frozen=True, slots=True)
class Array:
    """Items of one type."""

    item: Primitive | Struct


@dataclass(frozen=True)
class Struct:
    """Fields in wire order."""

    fields: tuple[Field, ...]

    def plain_fields(self, version: int) -> Iterator[Field]:
        """The fields of a version that have their place on the wire."""
        return (f for f in self.fields if f.tag is None and version in f.versions)

    @cached_property
    def tagged_fields(self) -> dict[int, Field]:
        """The tagged fields of all versions, by tag."""
        return {field.tag: field for field in self.fields if field.tag is not None}


FieldType = Primitive | Array | Struct


@dataclass(frozen=True)
class Field:
    """One field.

    nullable: the versions in which it may be null. default: the value where it is not on the wire,
    None for what Kafka takes without one (0, empty, false), or with `default_is_null` for null.
    source: a KIP or issue, where there is more to know than the message's own definition.
    """

    name: str
    type: FieldType
    meaning: str
    versions: Versions = ALL
    nullable: Versions = NONE
    tag: int | None = None
    default: Any = None
    default_is_null: bool = False
    source: str = ""


@dataclass(frozen=True)
class Message:
    """A message: its key in the framing, the versions that are known, and its fields.

    flexible: the versions with compact lengths and tagged sections.
    """

    name: str
    api_key: int
    versions: Versions
    flexible: Versions
    body: Struct
    meaning: str
    source: str


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A type without a table here, or (`version` given) a version of one that has none."""

    number: int
    version: int | None = None
