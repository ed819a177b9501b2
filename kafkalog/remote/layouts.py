"""Which objects below a place are whose segments, and how they are laid out.

    aiven    …TOPIC-TOPIC_ID/PARTITION/BASE-SEGMENT_ID.log .indexes .rsm-manifest    Aiven's plug-in
    kafka    TOPIC-PARTITION-TOPIC_ID/BASE[-SEGMENT_ID].log .index …    Kafka's LocalTieredStorage
    plain    TOPIC-PARTITION/BASE.log .index …    copies of segments, as Pinterest's uploader makes

Whatever a prefix put in front, the directories of a layout are looked for below the place that was
named. A topic's directory of Aiven's layout may have a prefix glued to its name, so it is told by
the topic's id. Ids are 22 characters of URL-safe base64: they hold `-` and `_`, and are split off
from the right.

Layouts of which no segment is read are told by what is in them, and refused by name.

Source: ObjectKeyFactory of tiered-storage-for-apache-kafka; RemoteTopicPartitionDirectory and
RemoteLogSegmentFileset of LocalTieredStorage (KIP-405); Utils of pinterest/tiered-storage;
HDFSRemoteStorageManager of Uber; segment.go of KafScale.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kafkalog.errors import InvalidConfigError
from kafkalog.remote.paths import KeyFiles, ManifestPath
from kafkalog.remote.stores import Listing, StoredObject, joined, local_path, store_of

AIVEN, KAFKA, PLAIN = "aiven", "kafka", "plain"
LAYOUTS = (AIVEN, KAFKA, PLAIN)

_ID = r"[A-Za-z0-9_-]{22}"
_AIVEN_TOPIC = re.compile(rf"(?P<topic>.+)-(?P<topic_id>{_ID})", re.ASCII)
_KAFKA_PARTITION = re.compile(rf"(?P<topic>.+)-(?P<partition>\d+)-(?P<topic_id>{_ID})", re.ASCII)
_PLAIN_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)", re.ASCII)
_NUMBER = re.compile(r"\d{1,10}", re.ASCII)
_AIVEN_OBJECT = re.compile(
    rf"(?P<stem>(?P<base>\d{{20}})-{_ID})\.(?P<suffix>log|indexes|rsm-manifest)", re.ASCII
)
_LOG = re.compile(rf"(?P<base>\d{{20}})(?:-{_ID})?\.log", re.ASCII)
# Beside a .log that may be gone.
_KAFKA_OBJECT = re.compile(
    rf"\d{{20}}-{_ID}\.(log|index|timeindex|txnindex|snapshot|leader_epoch_checkpoint)", re.ASCII
)
_KAFSCALE = re.compile(r"segment-\d+\.kfs", re.ASCII)
_PUFFIN = re.compile(rf"{_ID}\.puffin", re.ASCII)
_BARE_ID = re.compile(_ID, re.ASCII)

# Prefixes have a few levels; what is deeper is not a layout's.
_MOST_LEVELS = 12

Wants = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class RemoteDirectory:
    """The objects of one partition at one place. `name`: the topic as the directory has it, of
    Aiven's layout perhaps with a prefix in front; `topic_id` where the layout has it."""

    layout: str
    path: str
    name: str
    partition: int
    topic_id: str | None
    objects: dict[str, StoredObject]

    def is_of(self, topic: str, partition: int, topic_id: str | None) -> bool:
        """Whether the partition's segments lie here, as far as its name and ids tell."""
        if self.partition != partition:
            return False
        if topic_id is not None and self.topic_id is not None:
            # A prefix may be glued to the name, so the id counts, and the name's end.
            return topic_id == self.topic_id and self.name.endswith(topic)
        return self.name == topic


@dataclass(frozen=True, slots=True)
class RemoteLog:
    """One `.log` object: its path, or what its path begins with and the path of its manifest."""

    base_offset: int
    segment_id: str | None
    path: str
    size: int
    manifest: str | None = None


def find_directories(
    place: str, layout: str | None, wants: Wants = lambda _: True
) -> list[RemoteDirectory]:
    """The partitions' directories below a place, those of topic ids that nobody `wants` left out
    unlisted.

    InvalidConfigError for a place that is no directory, that has a layout that is not read, or
    none that is known, or where `layout` is another one.
    """
    if layout is not None and layout not in LAYOUTS:
        raise InvalidConfigError(f"remote layout {layout!r}; there are: {', '.join(LAYOUTS)}")
    place = local_path(place)
    search = _Search(layout, wants)
    # The place itself may be a partition's directory, or a topic's.
    above, name = ["", "", *place.rstrip("/").split("/")][-2:]
    try:
        found = list(search.below(place, above, name, 0))
    except NotADirectoryError:
        raise InvalidConfigError("remote storage is a directory", path=place) from None
    except FileNotFoundError:
        raise InvalidConfigError("remote storage is a directory", path=place) from None
    if not found and not search.has_passed:
        # Nothing to put in front of a log is no answer: the log would look as if it began here.
        what = "any that is read" if layout is None else layout
        raise InvalidConfigError(
            f"the layout of this remote storage is not {what} ({', '.join(LAYOUTS)}):"
            " no directory TOPIC-TOPIC_ID/PARTITION with objects .rsm-manifest, TOPIC-PARTITION-"
            "TOPIC_ID with .log, or TOPIC-PARTITION with .log is in it",
            path=place,
        )
    return found


class _Search:
    """A walk through directories; `has_passed`: some of a known layout were left out."""

    def __init__(self, layout: str | None, wants: Wants) -> None:
        self._layout = layout
        self._wants = wants
        self.has_passed = False

    def below(self, path: str, above: str, name: str, level: int) -> Iterator[RemoteDirectory]:
        """`name` is the directory's own, `above` that of the one it is in."""
        listing = store_of(path).list_directory(path)
        found = self._directory(path, above, name, listing)
        if found is not None:
            yield found
            return
        if level == _MOST_LEVELS:
            return
        for inner in listing.directories:
            if self._is_unwanted(inner):
                self.has_passed = True
            else:
                yield from self.below(joined(path, inner), name, inner, level + 1)

    def _is_unwanted(self, name: str) -> bool:
        """A topic's directory, by an id that nobody wants."""
        match = _AIVEN_TOPIC.fullmatch(name)
        return match is not None and not self._wants(match["topic_id"])

    def _directory(
        self, path: str, above: str, name: str, listing: Listing
    ) -> RemoteDirectory | None:
        objects = listing.objects
        if objects:
            _refuse(path, name, objects)
        aiven = _AIVEN_TOPIC.fullmatch(above)
        if self._asks(AIVEN) and aiven and _NUMBER.fullmatch(name) and _has(_AIVEN_OBJECT, objects):
            return RemoteDirectory(
                AIVEN, path, aiven["topic"], int(name), aiven["topic_id"], objects
            )
        match = _KAFKA_PARTITION.fullmatch(name)
        if match and self._asks(KAFKA) and (_has(_KAFKA_OBJECT, objects) or _has(_LOG, objects)):
            number = int(match["partition"])
            return RemoteDirectory(KAFKA, path, match["topic"], number, match["topic_id"], objects)
        if not _has(_LOG, objects):
            return None
        if self._asks(PLAIN) and (match := _PLAIN_PARTITION.fullmatch(name)):
            number = int(match["partition"])
            return RemoteDirectory(PLAIN, path, match["topic"], number, None, objects)
        return None

    def _asks(self, layout: str) -> bool:
        return self._layout in (None, layout)


def logs_of(directories: Sequence[RemoteDirectory]) -> list[RemoteLog]:
    """The segments of one partition: all that have a `.log` of a plain layout, or a manifest.

    A manifest and its objects may lie under different prefixes, where the prefix was changed. One
    without a `.log` anywhere is there all the same: whoever reads it is told.
    """
    found: list[RemoteLog] = []
    manifests: dict[str, StoredObject] = {}
    stems: dict[str, StoredObject] = {}
    for directory in directories:
        for name, stored in directory.objects.items():
            if directory.layout != AIVEN:
                match = _LOG.fullmatch(name)
                if match is not None:
                    found.append(
                        RemoteLog(int(match["base"]), _id_in(name), stored.path, stored.size)
                    )
            elif match := _AIVEN_OBJECT.fullmatch(name):
                if match["suffix"] == "rsm-manifest":
                    manifests.setdefault(match["stem"], stored)
                elif match["suffix"] == "log":
                    stems.setdefault(match["stem"], stored)
    for stem, manifest in manifests.items():
        log = stems.get(stem)
        own = manifest.path if log is None else log.path
        objects = f"{own.rpartition('/')[0]}/{stem}"
        size = -1 if log is None else log.size
        found.append(RemoteLog(int(stem[:20]), stem[21:], objects, size, manifest.path))
    return found


def path_behind_manifest(path: str, keys: KeyFiles) -> ManifestPath | None:
    """The path of a `.log` object that has its manifest beside it; None for any other file."""
    match = _AIVEN_OBJECT.fullmatch(path.rpartition("/")[2])
    if match is None or match["suffix"] != "log":
        return None
    objects = path.removesuffix(".log")
    manifest = f"{objects}.rsm-manifest"
    try:
        store_of(manifest).look(manifest)
    except FileNotFoundError:
        return None
    return ManifestPath(manifest, objects, keys)


def _id_in(name: str) -> str | None:
    return name[21:43] if name[20] == "-" else None


def _has(pattern: re.Pattern[str], objects: dict[str, StoredObject]) -> bool:
    return any(pattern.fullmatch(name) for name in objects)


def _refuse(path: str, name: str, objects: dict[str, StoredObject]) -> None:
    """InvalidConfigError for a layout that is known and not read."""
    what = None
    if _has(_KAFSCALE, objects):
        what = "KafScale's (segment-….kfs)"
    elif name == "metadata" and _has(_PUFFIN, objects):
        what = "Aiven's Iceberg mode (SEGMENT_ID.puffin beside Parquet files)"
    elif _KAFKA_PARTITION.fullmatch(name) and _has(_BARE_ID, objects):
        what = "Uber's on HDFS (one file SEGMENT_ID a segment)"
    if what is not None:
        raise InvalidConfigError(
            f"the layout of this remote storage is {what}: it is not read", path=path
        )
