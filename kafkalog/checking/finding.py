"""One thing that is not as it should be, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kafkalog.checking.finding_kinds import KIND, Severity
from kafkalog.errors import (
    CorruptRecordError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkalog.log.json_facts import JsonFacts
from kafkalog.remote.stores import bucket_uri

# What one bad batch can raise when it is opened.
BAD_BATCH = (CorruptRecordError, RecordTooLargeError, UnsupportedCompressionTypeError)

# Of one kind in one file: what follows is counted, not listed.
MAX_PER_KIND = 16

# Where one of these is, what the records say of each other is not known.
HIDING = frozenset({"crc-mismatch", "batch-unreadable", "offset-order", "control-record"})


@dataclass(frozen=True, slots=True)
class Finding(JsonFacts):
    """`kind` is an id of `finding_kinds`; place as far as it is known, path of the file or
    directory it is about. `more`: how many like it in the same file are not listed. `fix`: what to
    do in this very case, empty where the kind's remedy says it.
    """

    kind: str
    severity: Severity
    text: str
    path: str
    position: int | None = None
    offset: int | None = None
    log_dir: str = ""
    topic: str | None = None
    partition: int | None = None
    segment_base_offset: int | None = None
    more: int = 0
    fix: str = ""

    @property
    def order(self) -> tuple[object, ...]:
        """Findings are listed by partition, then worst first, then by place."""
        return (
            self.log_dir,
            self.topic or "",
            -1 if self.partition is None else self.partition,
            self.severity.rank,
            -1 if self.segment_base_offset is None else self.segment_base_offset,
            self.path,
            -1 if self.position is None else self.position,
            self.kind,
        )


class FindingList:
    """Findings about one file, bounded: damage may repeat in every batch."""

    def __init__(self, path: str, segment_base_offset: int | None = None) -> None:
        self.path = bucket_uri(path) or path
        self._base_offset = segment_base_offset
        self._found: list[Finding] = []
        self._counts: Counter[str] = Counter()

    def add(
        self,
        kind: str,
        text: str,
        *,
        severity: Severity | None = None,
        path: str | None = None,
        position: int | None = None,
        offset: int | None = None,
    ) -> None:
        """Note one; past MAX_PER_KIND only its number. The severity is the kind's if none is
        given.
        """
        self._counts[kind] += 1
        if self._counts[kind] <= MAX_PER_KIND:
            self._found.append(
                Finding(
                    kind,
                    severity or KIND[kind].severity,
                    text,
                    self.path if path is None else bucket_uri(path) or path,
                    None if position is None else int(position),  # numpy's are no JSON
                    None if offset is None else int(offset),
                    segment_base_offset=self._base_offset,
                )
            )

    def extend(self, findings: Iterable[Finding]) -> None:
        """Take over what was noted elsewhere, as it is."""
        self._found.extend(findings)

    def findings(self) -> tuple[Finding, ...]:
        """What was noted; the last one listed of a kind says how many more there are."""
        left = {k: count - MAX_PER_KIND for k, count in self._counts.items()}
        result: list[Finding] = []
        for finding in reversed(self._found):
            more = left.pop(finding.kind, 0)
            result.append(replace(finding, more=more) if more > 0 else finding)
        return tuple(reversed(result))
