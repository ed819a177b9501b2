"""What is found of a partition's contents: promise against disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.checking.finding import Finding
from kafkalog.contents.header_contents import TimeSlice
from kafkalog.contents.latest_keys import Estimate
from kafkalog.contents.log_contents import Contents
from kafkalog.format.topics import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC
from kafkalog.texts import format_bytes, format_setting_ms, format_timestamp

LARGE_LOAD_BYTES = 1 << 30
COORDINATED = (OFFSETS_TOPIC, TRANSACTION_TOPIC)

Maker = Callable[[str, str], Finding]


def find_in_contents(
    audited: AuditedPartition,
    alive_ms: int,
    has_tombstone: Callable[[int], bool],
    *,
    are_times_right: bool,
) -> Iterator[Finding]:
    """The findings of one partition, with its name. What is too old was so while a broker lived:
    nobody deletes what a stopped one has. `has_tombstone`: whether a batch with a delete horizon up
    to this time still holds one, which headers do not tell. Without `are_times_right` (they are of
    seconds) nothing is said of ages.
    """
    make = audited.finding
    contents = audited.contents
    if audited.topic in COORDINATED and audited.log_bytes > LARGE_LOAD_BYTES:
        fix = audited.compaction.advice.text("find out why it is not compacted (`kafkalog why`)")
        yield replace(make("coordinator-load", _load(audited)), fix=fix)
    if contents is None:
        return
    if are_times_right:
        yield from _ages(audited, contents, alive_ms, make)
    if audited.config.is_compacted:
        yield from _tombstones(audited, contents, alive_ms, has_tombstone, make)
        yield from _keys(audited, contents, make)
    if contents.problem:
        yield make("contents-unread", contents.problem)
    for finding in contents.unloadable:
        yield replace(
            finding,
            text=f"{audited.name}: offset {finding.offset}: {finding.text}",
            log_dir=audited.log_dir,
            topic=audited.topic,
            partition=audited.partition,
        )
    for busy in contents.commits.busy if contents.commits else ():
        share = busy.size_in_bytes / max(audited.log_bytes, 1)
        yield make(
            "busy-committer",
            f"group {busy.group} has committed {busy.commits} times for {busy.partitions} "
            f"partitions of {busy.topic} from {format_timestamp(busy.first_ms)} to "
            f"{format_timestamp(busy.last_ms)}, {busy.commits_per_second:.1f} a second: "
            f"{format_bytes(busy.size_in_bytes)}, {share:.0%} of {audited.name}",
        )
    for copies in contents.remote_copies:
        if copies.unfinished:
            total = copies.finished_bytes + copies.unfinished_bytes
            yield make(
                "unfinished-remote-copies",
                f"{copies.topic}-{copies.partition}: {copies.unfinished} copies "
                f"({format_bytes(copies.unfinished_bytes)}) were begun since "
                f"{format_timestamp(copies.begun_ms)} and not finished; "
                f"{format_bytes(copies.finished_bytes)} of {copies.finished} finished ones count "
                "for "
                f"retention.bytes, not {format_bytes(total)}",
            )


def beyond_policy(audited: AuditedPartition, now_ms: int) -> tuple[int, int, int]:
    """(records, bytes in closed segments, bytes in the active one) that are older than retention.ms
    for certain: times are those of slices.
    """
    retention_ms = audited.config.retention_ms
    if audited.topic == CLUSTER_METADATA_TOPIC:
        return 0, 0, 0  # its snapshots decide
    if (
        audited.contents is None
        or retention_ms < 0
        or "delete" not in audited.config.cleanup_policy
    ):
        return 0, 0, 0
    old = [s for s in audited.contents.headers.slices if _is_older(s, now_ms - retention_ms)]
    return (
        sum(s.records for s in old),
        sum(s.closed_bytes for s in old),
        sum(s.active_bytes for s in old),
    )


def _is_older(times: TimeSlice, limit_ms: int) -> bool:
    return 0 <= times.to_ms < limit_ms


def _ages(
    audited: AuditedPartition, contents: Contents, now_ms: int, make: Maker
) -> Iterator[Finding]:
    config, oldest = audited.config, contents.headers.oldest_timestamp_ms
    records, closed_bytes, active_bytes = beyond_policy(audited, now_ms)
    if not records:
        return
    text = (
        f"at least {records} records ({format_bytes(closed_bytes)} in closed segments, "
        f"{format_bytes(active_bytes)} in the active one) are older than retention.ms "
        f"{format_setting_ms(config.retention_ms)}; the oldest is of {format_timestamp(oldest)}"
    )
    promise_ms = config.retention_ms + config.segment_ms
    if now_ms - oldest > promise_ms:
        since = format_timestamp(oldest + promise_ms)
        segment = format_setting_ms(config.segment_ms)
        text += f", to be gone since {since} even with segment.ms {segment}"
        yield make("age-beyond-promise", text)
    else:
        yield make("readable-beyond-policy", text)


def _tombstones(
    audited: AuditedPartition,
    contents: Contents,
    alive_ms: int,
    has_tombstone: Callable[[int], bool],
    make: Maker,
) -> Iterator[Finding]:
    if audited.compaction.cleanable_at_ms >= 0:
        return  # a round is to come
    expired = [h for h in contents.headers.horizons if h.at_ms <= alive_ms]
    batches = sum(h.batches - h.markers for h in expired)
    if batches and not has_tombstone(max(h.at_ms for h in expired)):
        batches = 0
    endless = contents.records.tombstones_in_clean if contents.records else 0
    if batches or endless:
        parts = []
        if batches:
            since = format_timestamp(min(h.at_ms for h in expired))
            parts.append(f"tombstones in {batches} batches may go since {since}")
        if endless:
            parts.append(
                f"{endless} tombstones below the first dirty offset "
                f"{audited.compaction.first_dirty_offset} have no delete horizon (cleaned before "
                "3.1)"
            )
        found = make("stuck-tombstones", f"{'; '.join(parts)}; {_why_no_round(audited)}")
        yield replace(found, fix=_another_round(audited, in_two=bool(endless)))
    markers = sum(h.markers for h in expired)
    bare = contents.headers.bare_markers
    if markers or bare:
        found = make(
            "stuck-markers",
            f"{markers} markers are past their delete horizon, {bare} of transactions without "
            f"records have none; {_why_no_round(audited)}",
        )
        yield replace(found, fix=_another_round(audited, in_two=bool(bare)))


def _why_no_round(audited: AuditedPartition) -> str:
    return f"no round is to come: {audited.compaction.reason}"


def _another_round(audited: AuditedPartition, *, in_two: bool) -> str:
    """What brings that round about; `in_two`: what has no delete horizon yet gets one in it."""
    write = "write to the topic until the active segment rolls: the next round takes them"
    if not audited.compaction.can_clean_again:
        return write
    advice = audited.compaction.advice
    if not advice.command:
        return f"{write}; {advice.why_not}"
    later = audited.config.delete_retention_ms
    second = f"; those without a delete horizon go in a second such round {later} ms later"
    return f"{advice.command} cleans the log once more{second if in_two else ''}; or {write}"


def _keys(audited: AuditedPartition, contents: Contents, make: Maker) -> Iterator[Finding]:
    records = contents.records
    if records is None:
        return
    if records.keyless_records:
        yield make(
            "keyless-records",
            f"{records.keyless_records} of {records.records} records have no key: compaction drops "
            "them",
        )
    fakes = records.keys.fake_tombstones if records.keys else Estimate(0, 0)
    if fakes.value:
        yield make(
            "fake-tombstones",
            f"of {_number(fakes)} keys the latest value is empty or the text null "
            f"({records.empty_values} empty values, {records.null_text_values} of the text null in "
            "all): they stay for ever",
        )


def _number(estimate: Estimate) -> str:
    if not estimate.error:
        return str(estimate.value)
    return f"about {estimate.value} (give or take {estimate.error})"


def _load(audited: AuditedPartition) -> str:
    text = f"{format_bytes(audited.log_bytes)} and {audited.records_count} records to read"
    keys = audited.contents.records.keys if audited.contents and audited.contents.records else None
    if keys is not None:
        text += f"; compaction would give {format_bytes(keys.gain_bytes.value)} of it back"
    return text
