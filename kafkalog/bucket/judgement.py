"""What each segment of the storage is: wanted, whole, another cluster's, or to be deleted.

A segment comes onto the delete list only if all of these hold:

- its topic id is one that this cluster's own logs have;
- the partition of `__remote_log_metadata` that has its records is here, read to its high watermark
  from its beginning, and without an error;
- that says that it was never copied, that its copy did not end, that it was deleted, or its topic
  is gone from the cluster's metadata;
- all of its objects, and the last record about it, are older than the newest record of that
  partition and than the least age: a broker announces a copy before it writes its first object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafkalog.bucket.finding import BucketFinding, Place
from kafkalog.bucket.knowledge import ClusterKnowledge
from kafkalog.checking.finding_kind import Severity
from kafkalog.messages.remote_log_records import RemoteLogSegmentState
from kafkalog.reading.remote_copies import SegmentCopy
from kafkalog.remote.stored_segments import StoredSegment
from kafkalog.texts import format_timestamp

_STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED


# Kinds of findings whose segments may be deleted.
DELETABLE = frozenset({"half-upload", "orphan", "topic-gone"})


@dataclass(frozen=True, slots=True)
class Deletion:
    """A segment whose objects may be deleted, and the finding that says why."""

    segment: StoredSegment
    kind: str
    topic: str


@dataclass(slots=True)
class Judgement:
    """wanted: whole segments that are to be looked at, with what is known of them."""

    findings: list[BucketFinding] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    wanted: list[tuple[StoredSegment, SegmentCopy | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Judge:
    """With what is known, for one moment."""

    known: ClusterKnowledge
    now_ms: int
    min_age_ms: int

    def judge(self, segments: Iterable[StoredSegment]) -> Judgement:
        """All segments of the storage."""
        found = Judgement()
        finished = {
            (copy.topic_id, copy.partition, copy.start_offset): copy
            for copy in self.known.copies.values()
            if copy.is_finished
        }
        groups: dict[tuple[str, str, str], list[StoredSegment]] = {}
        for segment in segments:
            kind, text = self._grouped(segment)
            if kind:
                groups.setdefault((kind, text, _group_of(segment)), []).append(segment)
            if kind == "topic-gone":
                self._delete(found, segment, kind)
            elif kind == "not-judged" and not segment.missing and not segment.is_twice:
                # Whether it is wanted is not known; whether it can be read is worth a look.
                found.wanted.append((segment, self.copy_of(segment)))
            elif not kind:
                self._one(found, segment, finished)
        for (kind, text, path), own in groups.items():
            found.findings.append(self._group(kind, text, path, own))
        return found

    def _grouped(self, segment: StoredSegment) -> tuple[str, str]:
        """A kind that is said once for all segments of a partition, with its text; empty for
        others."""
        topic_id = segment.topic_id
        if topic_id is None or segment.segment_id is None:
            return "not-judged", "copies without ids: nothing tells whose they are"
        if topic_id not in self.known.had:
            return "foreign", "the cluster never had this topic id"
        is_gone, at_ms = self.known.gone_since(topic_id)
        copy = self.copy_of(segment)
        if is_gone:
            kind, text = self._why_not(segment, copy)
            if kind:
                return kind, text
            since = "" if at_ms is None else f" at {format_timestamp(at_ms)}"
            told = self.known.deletion_of(topic_id, segment.partition)
            begun = f"; of its segments' deletion the last record is {told}" if told else ""
            return "topic-gone", f"the topic was deleted{since}{begun}"
        if copy is None or not copy.is_finished:
            return self._why_not(segment, copy)
        # It may have been deleted since, in records that are not here.
        _, why = self.known.metadata_of(topic_id, segment.partition)
        return ("not-judged", why) if why and segment.missing else ("", "")

    def _why_not(self, segment: StoredSegment, copy: SegmentCopy | None) -> tuple[str, str]:
        """Why nothing can be said against a segment, as a kind and its text; empty if it can."""
        if segment.is_twice:
            return "not-judged", "objects of a segment lie under two prefixes"
        metadata, why = self.known.metadata_of(segment.topic_id or "", segment.partition)
        if metadata is None or why:
            return "not-judged", why
        newest_ms = max(segment.newest_ms, -1 if copy is None else copy.changed_ms)
        if newest_ms > self.now_ms - self.min_age_ms:
            return "too-young", "younger than --min-age"
        if segment.newest_ms >= metadata.newest_ms:
            at = format_timestamp(metadata.newest_ms) if metadata.newest_ms >= 0 else "never"
            return "too-young", f"younger than the newest record of {metadata.path} ({at})"
        return "", ""

    def _one(
        self,
        found: Judgement,
        segment: StoredSegment,
        finished: Mapping[tuple[str, int, int | None], SegmentCopy],
    ) -> None:
        copy = self.copy_of(segment)
        place = self.place_of(segment)
        if copy is not None and copy.is_finished:
            if segment.missing:
                names = ", ".join(f".{suffix}" for suffix in segment.missing)
                found.findings.append(place.finding("object-missing", f"{names} is not there"))
            elif segment.is_twice:
                found.findings.append(
                    place.finding("not-judged", "objects of a segment lie under two prefixes")
                )
            else:
                found.wanted.append((segment, copy))
            return
        kind, text = _against(segment, copy)
        same = finished.get((str(segment.topic_id), segment.partition, segment.base_offset))
        if same is not None:
            text += (
                f"; segment {same.segment_id} has offsets {same.start_offset} to"
                f" {same.end_offset} and is the one that counts"
            )
        found.findings.append(place.finding(kind, text))
        self._delete(found, segment, kind)

    def _delete(self, found: Judgement, segment: StoredSegment, kind: str) -> None:
        topic = self.known.had[str(segment.topic_id)]
        found.deletions.append(Deletion(segment, kind, topic))

    def copy_of(self, segment: StoredSegment) -> SegmentCopy | None:
        """What is known of a segment; of one under another topic's name nothing."""
        copy = self.known.copies.get(segment.segment_id or "")
        if copy is None or (copy.topic_id, copy.partition) != (segment.topic_id, segment.partition):
            return None
        return copy

    def place_of(self, segment: StoredSegment) -> Place:
        """Where it is."""
        return Place(
            segment.place,
            self.known.had.get(segment.topic_id or "", segment.name),
            segment.partition,
            segment.topic_id,
            segment.segment_id,
            segment.base_offset,
            segment.size_in_bytes,
        )

    def _group(self, kind: str, text: str, path: str, own: list[StoredSegment]) -> BucketFinding:
        first = own[0]
        is_copy = kind == "not-judged" and first.topic_id is None
        made = self.place_of(first).finding(
            kind, text, path=path, severity=Severity.INFO if is_copy else None
        )
        return BucketFinding(
            made.kind,
            made.severity,
            made.text,
            path,
            made.topic,
            made.partition,
            made.topic_id,
            first.segment_id if len(own) == 1 else None,
            first.base_offset,
            segments=len(own),
            size_in_bytes=sum(segment.size_in_bytes for segment in own),
        )


def _against(segment: StoredSegment, copy: SegmentCopy | None) -> tuple[str, str]:
    """What speaks against a segment that is known well enough."""
    names = ", ".join(f".{suffix}" for suffix in segment.missing)
    without = f", {names} is not there" if names else ""
    if copy is None:
        kind = "half-upload" if names else "orphan"
        return kind, f"no record of __remote_log_metadata has this segment{without}"
    at = format_timestamp(copy.changed_ms)
    if copy.state is _STARTED:
        return "half-upload", f"the upload was begun at {at} and did not end{without}"
    if copy.state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED:
        return "orphan", f"its deletion was begun at {at} and did not end{without}"
    return "orphan", f"it was deleted at {at}, and is still there{without}"


def _group_of(segment: StoredSegment) -> str:
    return segment.place.rpartition("/")[0]
