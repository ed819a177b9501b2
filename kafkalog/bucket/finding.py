"""One thing that is not as it should be in remote storage, and where."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.bucket.bucket_kinds import BUCKET_KIND
from kafkalog.checking.finding import Finding
from kafkalog.checking.finding_kind import FindingKind, Severity
from kafkalog.checking.finding_kinds import KIND


def kind_named(kind: str) -> FindingKind:
    """Of the table of `bucket`, or of `verify`."""
    return BUCKET_KIND.get(kind) or KIND[kind]


@dataclass(frozen=True, slots=True)
class BucketFinding:
    """`kind` is an id of `bucket_kinds`, or of `finding_kinds` for what is in a batch; path: of an
    object, or of what all objects it is about lie below; size_in_bytes: of these objects, segments:
    how many these are. offset: the first it is about. more: how many like it in one object are not
    listed."""

    kind: str
    severity: Severity
    text: str
    path: str
    topic: str
    partition: int | None = None
    topic_id: str | None = None
    segment_id: str | None = None
    offset: int | None = None
    position: int | None = None
    segments: int = 1
    size_in_bytes: int = 0
    more: int = 0

    @property
    def order(self) -> tuple[object, ...]:
        """Findings are listed by partition, then worst first, then by place."""
        return (
            self.topic,
            self.topic_id or "",
            -1 if self.partition is None else self.partition,
            self.severity.rank,
            -1 if self.offset is None else self.offset,
            self.path,
            -1 if self.position is None else self.position,
            self.kind,
            self.text,
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a finding about a segment is."""

    path: str
    topic: str
    partition: int
    topic_id: str | None = None
    segment_id: str | None = None
    base_offset: int | None = None
    size_in_bytes: int = 0

    def finding(
        self,
        kind: str,
        text: str,
        *,
        path: str | None = None,
        position: int | None = None,
        severity: Severity | None = None,
    ) -> BucketFinding:
        """One here; `severity` is the kind's where none is given."""
        return BucketFinding(
            kind,
            severity or kind_named(kind).severity,
            text,
            path or self.path,
            self.topic,
            self.partition,
            self.topic_id,
            self.segment_id,
            self.base_offset,
            position,
            size_in_bytes=self.size_in_bytes,
        )

    def of_check(self, found: Finding) -> BucketFinding:
        """What the check of a segment found in its records or indexes."""
        # What cannot be read here is an object: of a file's owner and mode nobody has to think.
        is_object = found.kind == "unreadable"
        return BucketFinding(
            "object-damaged" if is_object else found.kind,
            found.severity,
            found.text,
            found.path,
            self.topic,
            self.partition,
            self.topic_id,
            self.segment_id,
            self.base_offset if found.offset is None else found.offset,
            found.position,
            size_in_bytes=self.size_in_bytes,
            more=found.more,
        )
