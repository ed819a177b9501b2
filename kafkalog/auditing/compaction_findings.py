"""Why a compacted log is not cleaned, or will not be."""

from __future__ import annotations

from collections.abc import Iterator

from kafkalog.auditing.advised_steps import end_transaction
from kafkalog.auditing.compaction_verdict import NOT_COMPACTED
from kafkalog.auditing.finding_context import FindingContext
from kafkalog.auditing.thresholds import GRACE_MS
from kafkalog.checking.finding import MAX_PER_KIND, Finding
from kafkalog.contents.transactional_ids import transactional_ids
from kafkalog.planning.compaction import CLEAN, REFUSED
from kafkalog.planning.policy_evidence import POLICY, SUGGESTED
from kafkalog.reading.negative_timestamps import find_negative_timestamp
from kafkalog.texts import format_bytes, format_setting_ms, format_timestamp

_DAY_MS = 86_400_000
_MANY_MARKERS = 0.25


def find_compaction(context: FindingContext) -> Iterator[Finding]:
    """The findings about compaction of a live log, and about what its transactions hold."""
    yield from _bad_control(context)
    yield from _open_transactions(context)
    yield from _markers(context)
    verdict = context.audited.compaction
    if verdict.status == NOT_COMPACTED:
        yield from _no_longer_compacted(context)
        return
    if verdict.status == REFUSED:
        yield from _would_fail(context)
        return
    yield from _map(context)
    negative = _negative_timestamps(context)
    if negative is not None:
        yield negative
    elif verdict.status == CLEAN:
        yield _due(context)
    else:
        yield from _waiting(context)


def _no_longer_compacted(context: FindingContext) -> Iterator[Finding]:
    config = context.audited.config
    if config.source(POLICY) in SUGGESTED:
        return  # no other policy is given than the one that its checkpoint shows
    cleaned = context.inventory.checkpoints.cleaner
    if cleaned is not None and cleaned > context.audited.log_start_offset:
        policy = ",".join(config.cleanup_policy) or "empty"
        yield context.say(
            "policy-not-compact",
            f"{context.audited.topic}: it was compacted up to offset {cleaned}; cleanup.policy is "
            f"{policy} (from {config.source('cleanup.policy')})",
            offset=cleaned,
        )


def _would_fail(context: FindingContext) -> Iterator[Finding]:
    """Only what a broker would stumble over: our own caution is no finding."""
    if any(segment.bad_batches for segment in context.audited.segments):
        bad = next(s for s in context.audited.segments if s.bad_batches)
        verdict = context.audited.compaction
        yield context.say(
            "cleaner-would-fail",
            f"{context.audited.topic}: segment {bad.base_offset} @ {bad.first_bad_position}: "
            f"{bad.bad_reason}; {format_bytes(verdict.dirty_bytes)} are dirty since offset "
            f"{verdict.first_dirty_offset}",
            segment=bad.base_offset,
            position=bad.first_bad_position,
            path=bad.path,
        )


def _negative_timestamps(context: FindingContext) -> Finding | None:
    """A batch that the cleaner cannot write anew, of those that a round may rewrite."""
    closed = [segment for segment in context.inventory.segments if not segment.is_active]
    found = find_negative_timestamp(closed, context.facts.segments)
    if found is None:
        return None
    verdict = context.audited.compaction
    return context.say(
        "cleaner-would-fail",
        f"{context.audited.topic}: {found}: the cleaner stops where it has to write such a batch "
        f"anew (Invalid negative timestamp); {format_bytes(verdict.dirty_bytes)} are dirty since "
        f"offset {verdict.first_dirty_offset}",
        segment=found.segment_base_offset,
        position=found.position,
        offset=found.offset,
        path=found.path,
        fix=verdict.advice.text("let the producer send times after 1970")
        + (", which goes further than its cleaner" if verdict.advice.command else ""),
    )


def _bad_control(context: FindingContext) -> Iterator[Finding]:
    """Control batches with which a broker cannot go on: its cleaner, or its loader only."""
    wrong = [segment for segment in context.audited.segments if segment.bad_control]
    is_cleaned = context.audited.compaction.status != NOT_COMPACTED
    for segment in wrong[:MAX_PER_KIND]:
        fails = is_cleaned and segment.bad_control_stops_cleaner and not segment.is_active
        yield context.say(
            "cleaner-would-fail" if fails else "control-record",
            f"{context.audited.topic}: segment {segment.base_offset} @ "
            f"{segment.bad_control_position}: {segment.bad_control}",
            segment=segment.base_offset,
            position=segment.bad_control_position,
            path=segment.path,
            fix="take the partition from another replica: `kafkalog salvage` copies a batch with a "
            "right checksum as it is, this one too",
        )


def _map(context: FindingContext) -> Iterator[Finding]:
    room = context.task.map_entries
    first_dirty = context.audited.compaction.first_dirty_offset
    large = [
        segment
        for segment in context.audited.segments
        if segment.records_count > room
        and segment.next_offset > first_dirty
        and not segment.is_active
    ]
    for segment in large[:MAX_PER_KIND]:
        yield context.say(
            "map-too-small",
            f"{context.audited.topic}: segment {segment.base_offset} has {segment.records_count} "
            f"records, the offset map has room for {room} keys",
            segment=segment.base_offset,
        )


def _due(context: FindingContext) -> Finding:
    verdict = context.audited.compaction
    cleaned = context.inventory.checkpoints.cleaner
    last = "never" if cleaned is None else f"up to offset {cleaned}"
    text = (
        f"{context.audited.topic}: {verdict.reason}; {format_bytes(verdict.dirty_bytes)} dirty "
        f"since offset {verdict.first_dirty_offset}, of "
        f"{format_timestamp(verdict.dirty_since_ms)}; it was cleaned {last}"
    )
    closed = [s for s in context.audited.segments if not s.is_active]
    closed_ms = min(
        (s.effective_timestamp_ms for s in closed if s.next_offset > verdict.first_dirty_offset),
        default=context.now_ms,
    )
    if closed_ms < context.alive_ms - _DAY_MS:
        days = (context.alive_ms - closed_ms) / _DAY_MS
        return context.say(
            "compaction-overdue",
            f"{text}; the broker was alive {days:.0f} days after the first dirty segment",
            offset=verdict.first_dirty_offset,
            fix=verdict.advice.text("look for `log cleaner` in the broker's errors, restart it"),
        )
    fix = verdict.advice.text("nothing")
    return context.say("compaction-due", text, offset=verdict.first_dirty_offset, fix=fix)


def _waiting(context: FindingContext) -> Iterator[Finding]:
    """A closed dirty part that is not cleaned now, and why."""
    audited, verdict = context.audited, context.audited.compaction
    closed_dirty = [
        s for s in audited.segments
        if not s.is_active and s.next_offset > verdict.first_dirty_offset
    ]  # fmt: skip
    if not closed_dirty:
        return
    held = sum(s.size_in_bytes for s in closed_dirty) - verdict.cleanable_bytes
    at = (
        f"from {format_timestamp(verdict.cleanable_at_ms)} on"
        if verdict.cleanable_at_ms >= 0
        else "never, if nothing is appended"
    )
    cleaned = context.inventory.checkpoints.cleaner
    grown = (
        f"{format_bytes(verdict.clean_bytes)} are clean, {format_bytes(verdict.dirty_bytes)} dirty"
    )
    if held > 0 and verdict.uncleanable_reason.startswith("high watermark"):
        yield context.say(
            "awaits-high-watermark",
            f"{audited.topic}: {format_bytes(held)} of closed segments cannot be cleaned: "
            f"{verdict.uncleanable_reason}, the log ends at {audited.log_end_offset}; {grown}",
            offset=verdict.first_uncleanable_offset,
        )
    elif held > 0 and verdict.uncleanable_reason.startswith("min.compaction.lag.ms"):
        yield context.say(
            "compaction-lag",
            f"{audited.topic}: {format_bytes(held)} of closed segments wait for "
            f"min.compaction.lag.ms {format_setting_ms(audited.config.min_compaction_lag_ms)}; a "
            f"round begins {at}; "
            f"{grown}",
            offset=verdict.first_uncleanable_offset,
        )
    elif verdict.cleanable_bytes > 0:
        yield context.say(
            "below-dirty-ratio",
            f"{audited.topic}: {verdict.reason}; a round begins {at}; {grown}, cleaned up to "
            f"offset {'none' if cleaned is None else cleaned}",
            offset=verdict.first_dirty_offset,
        )


def _open_transactions(context: FindingContext) -> Iterator[Finding]:
    audited = context.audited
    open_now = [
        (first, p)
        for p in context.facts.active_producers
        if (first := p.current_txn_first_offset) is not None
        and context.alive_ms - p.last_timestamp_ms > GRACE_MS
    ]
    held = sum(
        s.size_in_bytes for s in audited.segments
        if not s.is_active and s.next_offset > audited.last_stable_offset
    )  # fmt: skip
    hanging = [p.producer_id for _, p in open_now[:MAX_PER_KIND]]
    task = context.task
    owners = (
        transactional_ids(task.transaction_paths, hanging, task.max_batch_bytes) if hanging else {}
    )
    newest_ms = max((s.largest_timestamp_ms for s in audited.segments), default=0)
    for first, producer in open_now[:MAX_PER_KIND]:
        owner = owners.get(producer.producer_id)
        whose = (
            "no transactional id of it is on these disks"
            if owner is None
            else owner.text(redact=context.task.redact)
        )
        age_h = (newest_ms - producer.last_timestamp_ms) / 3_600_000
        yield context.say(
            "open-transaction",
            f"{audited.topic}: producer {producer.producer_id}, epoch {producer.epoch}, has a "
            f"transaction open since offset {first}, its last record is of "
            f"{format_timestamp(producer.last_timestamp_ms)}, {age_h:.1f} h before the log's "
            f"newest; {whose}; the last stable offset is "
            f"{audited.last_stable_offset}, {format_bytes(held)} of closed segments cannot be "
            "cleaned",
            offset=first,
            fix=end_transaction(context, first, owner),
        )


def _markers(context: FindingContext) -> Iterator[Finding]:
    segments = context.audited.segments
    total = sum(s.valid_bytes for s in segments)
    markers = sum(s.control_bytes for s in segments)
    if total and markers / total >= _MANY_MARKERS:
        yield context.say(
            "many-markers",
            f"{context.audited.topic}: {format_bytes(markers)} of {format_bytes(total)} "
            f"({markers / total:.0%}) are transaction markers",
        )
