"""Which rule keeps a partition, a segment or a record, and when it goes: the answer of `why`.

The rules are walked in the order in which a broker applies them; each says what it looked at and
whether it decides. What a record's next round of cleaning makes of it is decided by the cleaner's
own code (`cleaning.record_outcomes`), as of the moment at which that round begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafkalog.auditing.missing_findings import lost_ranges
from kafkalog.auditing.partition_audit import audit_closely
from kafkalog.auditing.remote_part import remote_verdict
from kafkalog.auditing.request import AuditTask
from kafkalog.cleaning.record_outcomes import (
    ABORTED,
    EXPIRED,
    MARKER,
    NO_KEY,
    STAYS,
    RecordOutcome,
    record_outcomes,
)
from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import JsonFacts
from kafkalog.planning.compaction import CLEAN, plan_compaction
from kafkalog.planning.retention_forecast import NEVER, SegmentForecast
from kafkalog.reading.tables import read_records
from kafkalog.texts import format_bytes, format_timestamp

# Of one key: the latest ones tell everything.
MOST_RECORDS = 20


@dataclass(frozen=True, slots=True)
class Step(JsonFacts):
    """A rule, what it says, and whether it decides: it takes or keeps what was asked about."""

    rule: str
    text: str
    decides: bool = False


@dataclass(frozen=True, slots=True)
class Explanation(JsonFacts):
    """`offset` None: of the partition. `kept_by`: the rule that keeps it now; `goes_ms`: when it
    goes if nothing is appended, -1 for never or unknown; `goes_by`: by which rule.
    """

    topic: str
    partition: int
    path: str
    offset: int | None
    segment_base_offset: int | None
    steps: tuple[Step, ...]
    kept_by: str
    goes_ms: int
    goes_by: str

    def lines(self) -> list[str]:
        """For people."""
        where = f"{self.topic}-{self.partition}"
        if self.offset is not None:
            where = f"{where} offset {self.offset} (segment {self.segment_base_offset})"
        width = max(len(step.rule) for step in self.steps)
        steps = [
            f"  {'*' if s.decides else ' '} {s.rule.ljust(width)}  {s.text}" for s in self.steps
        ]
        if self.goes_ms != NEVER:
            end = f"goes {format_timestamp(self.goes_ms)} by {self.goes_by}"
        else:
            end = f"stays: {self.kept_by}" if self.kept_by else "stays"
        return [where, *steps, f"  → {end}"]


class Explainer:
    """Of one partition directory, read once."""

    def __init__(self, task: AuditTask) -> None:
        self.audited, self._facts = audit_closely(task)
        self._task = task
        self._partition = task.loaded
        self._lost = lost_ranges(self._partition, self._facts, self.audited.config)

    def partition(self) -> Explanation:
        """What keeps the partition's oldest segment, and what compaction waits for."""
        segments = self.audited.retention.segments
        first = segments[0] if segments else None
        steps = [*self._settings(), *self._bounds()]
        if first is not None:
            steps.append(self._retention_step(first))
        steps += self._compaction_steps()
        kept_by = "" if first is None else first.rule
        return self._explanation(None, None, steps, kept_by=kept_by, goes=_ends(first, None))

    def at(self, offset: int) -> Explanation:
        """What keeps the record at an offset. InvalidConfigError if the log has none there."""
        local_start = self._local_start
        if self.audited.log_start_offset <= offset < local_start:
            return self._in_remote(offset)
        lost = next((m for m in self._lost if m.start_offset <= offset < m.end_offset), None)
        if lost is not None:
            raise InvalidConfigError(f"{self.audited.name} once had offset {offset}: {lost}")
        if not self._has_record(offset):
            raise InvalidConfigError(
                f"{self.audited.name} has no record at offset {offset}: the log has "
                f"{self.audited.log_start_offset} to {self.audited.log_end_offset} (end excluded), "
                "without what compaction has taken"
            )
        return self._record(offset, dict(self._outcomes([offset])).get(offset))

    def with_key(self, key: bytes) -> list[Explanation]:
        """The same of the latest records of a key, in offset order. InvalidConfigError if there is
        none.
        """
        found: list[int] = []
        start = {self._partition.topic_partition: self._local_start}
        for batch in read_records(
            self.audited.path,
            columns=["offset"],
            keys=[key],
            starting_offsets=start,
            fail_on_data_loss=False,
            max_batch_bytes=self._task.max_batch_bytes,
        ):
            found = [*found, *batch.column(0).to_pylist()][-MOST_RECORDS:]
        if not found:
            raise InvalidConfigError(f"{self.audited.name} has no record with this key")
        outcomes = dict(self._outcomes(found))
        latest = found[-1]
        return [self._record(offset, outcomes.get(offset), latest) for offset in found]

    def _in_remote(self, offset: int) -> Explanation:
        """Of an offset in front of the first segment here: the segment in remote storage that has
        it, by its record; its own records are not read."""
        known = remote_verdict(self.audited, offset)
        if known is None:
            raise InvalidConfigError(
                f"{self.audited.name}: offset {offset} lies in front of the first segment here, "
                f"{self._local_start}: {self._in_front()}; no record of remote storage has it"
            )
        verdict, goes_ms = known
        step = Step(f"remote retention: {verdict.rule}", verdict.reason, goes_ms != NEVER)
        return self._explanation(
            offset,
            verdict.segment.start_offset,
            [*self._settings(), *self._bounds(), step],
            kept_by="" if goes_ms == self.audited.retention.now_ms else verdict.rule,
            goes=(goes_ms, "" if goes_ms == NEVER else verdict.rule),
        )

    @property
    def _local_start(self) -> int:
        """Where the log begins on this disk: of a tiered one above its own start."""
        bases = [s.base_offset for s in self.audited.retention.segments]
        return max([self.audited.log_start_offset, *bases[:1]])

    def _in_front(self) -> str:
        """Where the records are that lie in front of the first segment."""
        uploaded = self._task.uploaded_offset
        if uploaded is not None and uploaded >= self._local_start - 1:
            return f"in remote storage, which has offsets up to {uploaded}"
        return "in remote storage, or nowhere"

    def outcomes(self) -> list[RecordOutcome]:
        """Of all records that the next round reads; none where no round ever begins."""
        return [outcome for _, outcome in self._outcomes(None)]

    def _has_record(self, offset: int) -> bool:
        if not self.audited.log_start_offset <= offset < self.audited.log_end_offset:
            return False
        batches = read_records(
            self.audited.path,
            columns=["offset"],
            starting_offsets={self._partition.topic_partition: offset},
            ending_offsets={self._partition.topic_partition: offset + 1},
            include_control=True,
            fail_on_data_loss=False,
            max_batch_bytes=self._task.max_batch_bytes,
        )
        return any(batch.num_rows for batch in batches)

    # -- steps -----------------------------------------------------------------------------------

    def _settings(self) -> Iterator[Step]:
        config = self.audited.config
        policy = ",".join(config.cleanup_policy) or "empty"
        yield Step("cleanup.policy", f"{policy} (from {config.source('cleanup.policy')})")
        for difference in self._task.resolved.differences:
            yield Step("policy drift", str(difference))
        if self._task.resolved.unreliable is not None:
            yield Step("settings unknown", self._task.resolved.unreliable)

    def _bounds(self) -> Iterator[Step]:
        audited = self.audited
        yield Step("log start", f"offset {audited.log_start_offset}")
        if self._local_start > audited.log_start_offset:
            yield Step(
                "local log start",
                f"offset {self._local_start}: what lies in front of it is {self._in_front()}",
            )
        yield Step(
            "high watermark", f"offset {audited.high_watermark}, log end {audited.log_end_offset}"
        )
        if audited.last_stable_offset < audited.high_watermark:
            yield Step(
                "last stable offset",
                f"offset {audited.last_stable_offset}: a transaction is open there, or its marker "
                "is not replicated yet",
            )
        for missing in self._lost:
            yield Step("missing", str(missing))

    def _retention_step(self, segment: SegmentForecast) -> Step:
        when = (
            f"goes at {format_timestamp(segment.due_ms)}"
            if segment.due_ms != NEVER
            else "never goes by retention as it lies"
        )
        held = f", held back: {segment.blocked_by}" if segment.blocked_by else ""
        return Step(
            f"retention: {segment.rule}",
            f"segment {segment.base_offset} ({format_bytes(segment.size_in_bytes)}): "
            f"{segment.text}; {when}{held}",
            decides=segment.due_ms != NEVER,
        )

    def _compaction_steps(self) -> Iterator[Step]:
        verdict = self.audited.compaction
        if not self.audited.config.is_compacted:
            yield Step("compaction", "cleanup.policy does not have compact: nothing is cleaned")
            return
        yield Step("first dirty offset", f"{verdict.first_dirty_offset}")
        yield Step(
            "first uncleanable offset",
            f"{verdict.first_uncleanable_offset}: {verdict.uncleanable_reason}",
        )
        begins = (
            f"a round begins at {format_timestamp(verdict.cleanable_at_ms)}"
            if verdict.cleanable_at_ms != NEVER
            else "no round begins as the log lies"
        )
        yield Step("compaction", f"{verdict.status}: {verdict.reason}; {begins}")

    # -- records ---------------------------------------------------------------------------------

    def _outcomes(self, offsets: Sequence[int] | None) -> Iterator[tuple[int, RecordOutcome]]:
        begins_ms = self.audited.compaction.cleanable_at_ms
        if begins_ms == NEVER or not self.audited.config.is_compacted:
            return
        plan = plan_compaction(
            self._partition,
            self.audited.config,
            self._facts,
            now_ms=begins_ms,
            high_watermark=self.audited.high_watermark,
            kafka_version=self._task.kafka_version,
        )
        if plan.status != CLEAN:
            return
        first, end = (0, None) if offsets is None else (min(offsets), max(offsets) + 1)
        for outcome in record_outcomes(
            plan, self._partition, first, end, self._task.max_batch_bytes
        ):
            if offsets is None or outcome.offset in offsets:
                yield outcome.offset, outcome

    def _record(
        self, offset: int, outcome: RecordOutcome | None, latest: int | None = None
    ) -> Explanation:
        audited = self.audited
        segment = next(s for s in reversed(audited.retention.segments) if s.base_offset <= offset)
        cleaning = self._cleaning_step(offset, outcome, latest)
        steps = [*self._settings(), *self._bounds(), self._retention_step(segment)]
        steps += [*self._compaction_steps(), *([cleaning] if cleaning else [])]
        kept_by = segment.rule
        if audited.config.is_compacted:
            kept_by = cleaning.text if cleaning else "compaction"
        goes = _ends(segment, self._ends_by(outcome))
        return self._explanation(offset, segment.base_offset, steps, kept_by=kept_by, goes=goes)

    def _cleaning_step(
        self, offset: int, outcome: RecordOutcome | None, latest: int | None
    ) -> Step | None:
        verdict = self.audited.compaction
        if not self.audited.config.is_compacted:
            return None
        if outcome is None:
            if offset >= verdict.first_uncleanable_offset:
                why = f"it lies behind the first uncleanable offset: {verdict.uncleanable_reason}"
            elif verdict.cleanable_at_ms == NEVER:
                why = "no round begins as the log lies"
            else:
                why = "the round does not reach it, or there is no record at this offset"
            return Step("uncleanable", why)
        by_latest = f", the latest is at {latest}" if latest is not None else ""
        texts = {
            STAYS: "the latest of its key in the log's clean and dirty part: it stays",
            NO_KEY: "it has no key: a broker drops it",
            EXPIRED: "a tombstone whose delete horizon has passed: it goes",
            ABORTED: "of an aborted transaction: it goes",
            MARKER: "a marker with nothing left to mark, its horizon has passed: it goes",
        }
        text = texts.get(outcome.outcome, f"a later record has its key{by_latest}: it goes")
        if outcome.outcome == STAYS and (outcome.is_tombstone or outcome.is_control):
            what = "a marker" if outcome.is_control else "a tombstone"
            if outcome.horizon_ms is not None:
                text = (
                    f"{what}: it stays in this round, and goes in one after its delete horizon "
                    f"{format_timestamp(outcome.horizon_ms)}"
                )
            else:
                text = f"{what} without a delete horizon yet: it stays in this round"
        return Step(f"record: {outcome.outcome}", text, decides=outcome.outcome != STAYS)

    def _ends_by(self, outcome: RecordOutcome | None) -> tuple[int, str] | None:
        if outcome is None or outcome.outcome == STAYS:
            return None
        return self.audited.compaction.cleanable_at_ms, f"compaction ({outcome.outcome})"

    def _explanation(
        self,
        offset: int | None,
        base_offset: int | None,
        steps: Sequence[Step],
        *,
        kept_by: str,
        goes: tuple[int, str],
    ) -> Explanation:
        return Explanation(
            topic=self.audited.topic,
            partition=self.audited.partition,
            path=self.audited.path,
            offset=offset,
            segment_base_offset=base_offset,
            steps=tuple(steps),
            kept_by=kept_by,
            goes_ms=goes[0],
            goes_by=goes[1],
        )


def _ends(segment: SegmentForecast | None, cleaning: tuple[int, str] | None) -> tuple[int, str]:
    """The earlier of retention and compaction."""
    ends = [] if cleaning is None else [cleaning]
    if segment is not None and segment.due_ms != NEVER:
        ends.append((segment.due_ms, segment.rule))
    return min(ends, default=(NEVER, ""))
