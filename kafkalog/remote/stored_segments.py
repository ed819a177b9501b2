"""The objects of remote storage by the segments they are of, whole or not.

A segment of Aiven's layout has three objects, one of Kafka's five or six; what lies under two
prefixes is brought together by the topic's and the segment's id.

Source: ObjectKeyFactory of tiered-storage-for-apache-kafka; RemoteLogSegmentFileset of
LocalTieredStorage (KIP-405).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kafkalog.remote.layouts import AIVEN, KAFKA, PLAIN, RemoteDirectory
from kafkalog.remote.paths import KeyFiles, ManifestPath
from kafkalog.remote.stores import StoredObject

LOG, MANIFEST, INDEXES = "log", "rsm-manifest", "indexes"

_OBJECT = re.compile(
    r"(?P<base>\d{20})(?:-(?P<id>[A-Za-z0-9_-]{22}))?\.(?P<suffix>log|indexes|rsm-manifest|index"
    r"|timeindex|txnindex|snapshot|leader_epoch_checkpoint)",
    re.ASCII,
)
# Topic id, or the place of copies without one; partition; base offset; segment id.
_Key = tuple[str, int, int, str | None]
# In the order in which they are written: what is missing behind the last one was never there.
_NEEDED = {
    AIVEN: (LOG, INDEXES, MANIFEST),
    KAFKA: (LOG, "index", "timeindex", "snapshot", "leader_epoch_checkpoint"),
    PLAIN: (LOG,),
}
_OPTIONAL = ("txnindex",)


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """The objects of one segment, by suffix. `name`: the topic as the directory has it, perhaps
    with a prefix in front; ids are None where the layout has none. is_twice: an object of it lies
    at two places."""

    layout: str
    name: str
    partition: int
    topic_id: str | None
    base_offset: int
    segment_id: str | None
    objects: tuple[tuple[str, StoredObject], ...]
    is_twice: bool = False

    @property
    def size_in_bytes(self) -> int:
        """Of all its objects."""
        return sum(stored.size for _, stored in self.objects)

    @property
    def newest_ms(self) -> int:
        """When the last of its objects was written, by the store's clock."""
        return max(stored.mtime_ns for _, stored in self.objects) // 1_000_000

    @property
    def missing(self) -> tuple[str, ...]:
        """Suffixes of the objects that a whole segment has and this one has not."""
        own = {suffix for suffix, _ in self.objects}
        return tuple(suffix for suffix in _NEEDED[self.layout] if suffix not in own)

    @property
    def place(self) -> str:
        """The path of its `.log`, or of the first object that is there."""
        return (self.find(LOG) or self.objects[0][1]).path

    def find(self, suffix: str) -> StoredObject | None:
        """The object with a suffix."""
        return next((stored for own, stored in self.objects if own == suffix), None)

    def log_path(self, keys: KeyFiles) -> str:
        """The path that readers of segments take; of a segment whose `.log` is there."""
        manifest = self.find(MANIFEST)
        if manifest is None:
            return self.place
        return ManifestPath(manifest.path, self.place.removesuffix(".log"), keys)


def every_path(segment: StoredSegment) -> list[str]:
    """Of all objects that it may have where it lies, there or not: the manifest first, the `.log`
    last."""
    stems = dict.fromkeys(stored.path.rpartition(".")[0] for _, stored in segment.objects)
    suffixes = {*_NEEDED[segment.layout], *(suffix for suffix, _ in segment.objects), *_OPTIONAL}
    order = sorted(suffixes, key=lambda suffix: (suffix == LOG, suffix != MANIFEST, suffix))
    return [f"{stem}.{suffix}" for stem in stems for suffix in order]


def stored_segments(directories: Iterable[RemoteDirectory]) -> list[StoredSegment]:
    """In the order of topic, partition, base offset. Objects with other names are no segment's, and
    left out."""
    found: dict[_Key, list[tuple[str, StoredObject]]] = {}
    of_key: dict[_Key, RemoteDirectory] = {}
    for directory in directories:
        for name, stored in directory.objects.items():
            match = _OBJECT.fullmatch(name)
            if match is not None:
                topic = directory.topic_id or f"{directory.path}/"
                key = (topic, directory.partition, int(match["base"]), match["id"])
                of_key.setdefault(key, directory)
                found.setdefault(key, []).append((match["suffix"], stored))
    segments = []
    for key, objects in found.items():
        directory = of_key[key]
        suffixes = [suffix for suffix, _ in objects]
        segments.append(
            StoredSegment(
                directory.layout,
                directory.name,
                directory.partition,
                directory.topic_id,
                key[2],
                key[3],
                tuple(sorted(objects, key=lambda each: (each[0], each[1].path))),
                is_twice=len(set(suffixes)) < len(suffixes),
            )
        )
    return sorted(segments, key=lambda s: (s.name, s.partition, s.base_offset, s.place))
