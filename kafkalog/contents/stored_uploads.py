"""Segments in remote storage as their objects are: what they take there, and what is known of them
where no record of `__remote_log_metadata` is.

Objects are listed and manifests read; no segment is. A manifest is the last object of an upload, so
what has one is whole; whether a broker has begun to delete it since no object tells.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace

from kafkalog.contents.uploads import Place
from kafkalog.errors import KafkaLogError
from kafkalog.planning.remote_retention import RemoteSegment
from kafkalog.remote.layouts import find_directories
from kafkalog.remote.paths import RemoteStorage
from kafkalog.remote.segment import look_at_manifest, read_manifest
from kafkalog.remote.stored_segments import MANIFEST, StoredSegment, stored_segments

Uploads = Mapping[Place, tuple[RemoteSegment, ...]]

_logger = logging.getLogger(__name__)


def with_stored(
    uploads: Uploads | None, storage: RemoteStorage, topic_ids: Collection[str]
) -> Uploads | None:
    """The segments of each partition with the bytes of their objects; of partitions without a
    record those that have a manifest, which Aiven's layout has. Raises as `find_directories`."""
    if not storage.places:
        return uploads
    found = [
        directory
        for place in storage.places
        for directory in find_directories(place, storage.layout, topic_ids.__contains__)
    ]
    by_place: dict[Place, list[StoredSegment]] = {}
    for stored in stored_segments(found):
        if stored.topic_id in topic_ids:
            by_place.setdefault((stored.topic_id or "", stored.partition), []).append(stored)
    result = {}
    for place in {*by_place, *(uploads or {})}:
        own, known = by_place.get(place, []), (uploads or {}).get(place)
        sizes = {stored.segment_id: stored.size_in_bytes for stored in own}
        if known is None:
            result[place] = tuple(s for s in map(_by_manifest, own) if s is not None)
        else:
            result[place] = tuple(
                replace(s, stored_bytes=sizes.get(s.segment_id, 0)) for s in known
            )
    return result


def _by_manifest(stored: StoredSegment) -> RemoteSegment | None:
    """None where no manifest says what it is; one that cannot be read is a warning."""
    manifest = stored.find(MANIFEST)
    if manifest is None or stored.missing:
        return None
    try:
        found = read_manifest(look_at_manifest(manifest.path))
    except (KafkaLogError, OSError) as error:
        _logger.warning("not counted: %s", error)
        return None
    if found.copied is None or found.copied.segment_id != stored.segment_id:
        return None
    own = found.copied
    return RemoteSegment(
        own.segment_id, own.start_offset, own.end_offset, found.chunks.segment_bytes,
        own.max_timestamp_ms, own.leader_epochs, stored_bytes=stored.size_in_bytes,
    )  # fmt: skip
