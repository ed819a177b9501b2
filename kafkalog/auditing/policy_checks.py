"""A policy against what is on disk and in force: who breaks which rule, by how much, since when.

"Since when" is what the data itself tells where it can: a record is too old since its time plus the
limit, a codec was used since the first batch of it. Where it cannot (a setting, a count of keys),
it is the first run of the history that found the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.policy_file import Policy, PolicyRule, Range, setting_of, setting_text
from kafkalog.checking.finding import Finding
from kafkalog.checking.finding_kind import Severity
from kafkalog.log.inventory import PartitionKind
from kafkalog.texts import format_bytes, format_count, format_setting_ms, format_timestamp

# A rule broken in the same way, whatever the numbers: kind, rule, log dir, topic, partition and
# what of it (a setting, a codec).
ViolationKey = tuple[str, str, str, str, int, str]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that is broken. `since_ms`: None where neither data nor history tell."""

    rule: PolicyRule
    kind: str
    where: AuditedPartition
    partition: int | None
    detail: str
    text: str
    since_ms: int | None
    offset: int | None = None

    @property
    def key(self) -> ViolationKey:
        """Who it is, from run to run."""
        partition = -1 if self.partition is None else self.partition
        where = self.where
        return self.kind, self.rule.name, where.log_dir, where.topic, partition, self.detail

    @property
    def finding(self) -> Finding:
        """As a finding: topic, rule, what was found, since when."""
        name = self.where.topic if self.partition is None else self.where.name
        since = "" if self.since_ms is None else f"; since {format_timestamp(self.since_ms)}"
        return Finding(
            self.kind,
            self.rule.severity,
            f"{name}: rule {self.rule.name}: {self.text}{since}",
            self.where.path if self.partition is not None else self.where.log_dir,
            offset=self.offset,
            log_dir=self.where.log_dir,
            topic=self.where.topic,
            partition=self.partition,
        )


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """What came of a policy: its section of the document, its findings, its violations."""

    section: dict[str, Any]
    findings: tuple[Finding, ...]
    violations: tuple[Violation, ...]


def check_policy(
    policy: Policy,
    partitions: Sequence[AuditedPartition],
    now_ms: int,
    first_seen: Mapping[ViolationKey, int],
) -> PolicyVerdict:
    """Every rule against every topic its patterns name. `first_seen`: from earlier runs."""
    served = [p for p in partitions if p.kind is PartitionKind.LIVE]
    by_topic: dict[tuple[str, str], list[AuditedPartition]] = defaultdict(list)
    for each in served:
        by_topic[each.topic, each.log_dir].append(each)
    violations: list[Violation] = []
    notes: list[Finding] = []
    rows = []
    for rule in policy.rules:
        topics = {topic for topic, _ in by_topic if applies(rule, topic)}
        own = [
            _dated(violation, first_seen, now_ms)
            for (topic, _), found in sorted(by_topic.items())
            if topic in topics
            for violation in _violations(rule, found, now_ms)
        ]
        violations += own
        notes += _notes(policy, rule, [p for p in served if p.topic in topics])
        rows.append(
            {
                "name": rule.name,
                "topics": list(rule.topics),
                "asks": list(rule.asks),
                "severity": str(rule.severity),
                "matchedTopics": len(topics),
                "violations": len(own),
            }
        )
    section = {"file": policy.path, "rules": rows, "violations": len(violations)}
    findings = (*(violation.finding for violation in violations), *notes)
    return PolicyVerdict(section, findings, tuple(violations))


def applies(rule: PolicyRule, topic: str) -> bool:
    """Whether a rule is about a topic."""
    return any(fnmatchcase(topic, pattern) for pattern in rule.topics) and not any(
        fnmatchcase(topic, pattern) for pattern in rule.exceptions
    )


def _dated(violation: Violation, first_seen: Mapping[ViolationKey, int], now_ms: int) -> Violation:
    if violation.since_ms is not None:
        return violation
    seen = first_seen.get(violation.key)
    return replace(violation, since_ms=now_ms if seen is None else min(seen, now_ms))


def _notes(
    policy: Policy, rule: PolicyRule, partitions: Sequence[AuditedPartition]
) -> Iterator[Finding]:
    if not partitions:
        text = f"rule {rule.name}: no topic here is called {' or '.join(rule.topics)}"
        yield Finding("policy-unused", Severity.INFO, text, policy.path)
    unknown = [p for p in partitions if rule.limits.max_keys is not None and keys_of(p) is None]
    if unknown:
        text = (
            f"rule {rule.name}: max-keys: the keys of {len(unknown)} partitions were not counted, "
            f"{unknown[0].name} among them"
        )
        yield Finding("policy-unchecked", Severity.INFO, text, policy.path)


def _violations(
    rule: PolicyRule, own: Sequence[AuditedPartition], now_ms: int
) -> Iterator[Violation]:
    """Of a topic's partitions in one log dir."""
    yield from _settings(rule, own[0])
    yield from _promises(rule, own[0])
    for partition in own:
        yield from _ages(rule, partition, now_ms)
        yield from _early_deletion(rule, partition, now_ms)
        yield from _compaction_lag(rule, partition, now_ms)
        yield from _codecs(rule, partition)
        yield from _keys(rule, partition)
    yield from _bytes(rule, own)


def _settings(rule: PolicyRule, first: AuditedPartition) -> Iterator[Violation]:
    for key, wanted in rule.settings.items():
        value = setting_of(first.config, key)
        if isinstance(wanted, Range):
            low = wanted.at_least is not None and value < wanted.at_least
            high = wanted.at_most is not None and (value > wanted.at_most or value == -1)
            ends = [f"at least {wanted.at_least}"] * low + [f"at most {wanted.at_most}"] * high
            asked = " and ".join(ends)
        else:
            asked = "" if setting_text(value) in wanted else " or ".join(wanted)
        if asked:
            text = f"{key} is {setting_text(value)} ({first.config.source(key)}), not {asked}"
            yield Violation(rule, "policy-setting", first, None, key, text, None)


def _promises(rule: PolicyRule, first: AuditedPartition) -> Iterator[Violation]:
    """Settings under which a limit cannot hold, whatever is on disk today."""
    config, limits = first.config, rule.limits
    deletes = "delete" in config.cleanup_policy
    retention = format_setting_ms(config.retention_ms)
    kept = f"retention.ms is {retention} ({config.source('retention.ms')})"
    if limits.max_age_ms is not None:
        asked = rule.words["max-age"]
        if not deletes:
            policy = setting_text(config.cleanup_policy) or "empty"
            text = f"cleanup.policy is {policy}: the latest record of a key has no age at which "
            yield _promise(rule, first, f"{text}it goes, {asked} cannot hold", "max-age")
        elif config.retention_ms == -1 or config.retention_ms > limits.max_age_ms:
            yield _promise(rule, first, f"{kept}, over {asked}", "max-age")
    if limits.min_retention_ms is not None and deletes:
        if 0 <= config.retention_ms < limits.min_retention_ms:
            asked = rule.words["min-retention"]
            yield _promise(rule, first, f"{kept}, under {asked}", "min-retention")
    lag = limits.max_compaction_lag_ms
    if lag is not None and config.is_compacted and config.max_compaction_lag_ms > lag:
        value, source = config.max_compaction_lag_ms, config.source("max.compaction.lag.ms")
        text = (
            f"max.compaction.lag.ms is {value} ({source}), over {rule.words['max-compaction-lag']}"
        )
        yield _promise(rule, first, text, "max-compaction-lag")


def _promise(rule: PolicyRule, first: AuditedPartition, text: str, limit: str) -> Violation:
    return Violation(rule, "policy-setting", first, None, limit, text, None)


def _ages(rule: PolicyRule, partition: AuditedPartition, now_ms: int) -> Iterator[Violation]:
    limit = rule.limits.max_age_ms
    if limit is None:
        return
    old = [
        s
        for s in partition.segments
        if s.smallest_timestamp_ms >= 0 and s.smallest_timestamp_ms < now_ms - limit
        and s.next_offset > partition.log_start_offset
    ]  # fmt: skip
    if old:
        oldest = min(old, key=lambda s: s.smallest_timestamp_ms)
        size = sum(s.size_in_bytes for s in old if s.effective_timestamp_ms < now_ms - limit)
        text = (
            f"{rule.words['max-age']}: a record of "
            f"{format_timestamp(oldest.smallest_timestamp_ms)} in the segment "
            f"{oldest.base_offset}; segments whose newest record is as old: {format_bytes(size)}"
        )
        since = oldest.smallest_timestamp_ms + limit
        yield Violation(
            rule, "policy-age", partition, partition.partition, "", text, since, oldest.base_offset
        )


def _early_deletion(
    rule: PolicyRule, partition: AuditedPartition, now_ms: int
) -> Iterator[Violation]:
    """What size makes go that time alone would keep."""
    limit = rule.limits.min_retention_ms
    if limit is None:
        return
    early = [
        f
        for f in partition.retention.segments
        if f.due_ms >= 0 and f.due_ms < f.timestamp_ms + limit and f.rule != "retention.ms"
    ]  # fmt: skip
    if early:
        first = early[0]
        text = (
            f"{rule.words['min-retention']}: {first.rule} takes the segment {first.base_offset} at "
            f"{format_timestamp(first.due_ms)}, {format_count(len(early), 'segment')} before "
            "their time"
        )
        yield Violation(
            rule, "policy-retention", partition, partition.partition, "", text,
            min(first.due_ms, now_ms), first.base_offset,
        )  # fmt: skip


def _compaction_lag(
    rule: PolicyRule, partition: AuditedPartition, now_ms: int
) -> Iterator[Violation]:
    limit, since = rule.limits.max_compaction_lag_ms, partition.compaction.dirty_since_ms
    if limit is None or not partition.config.is_compacted or since < 0 or now_ms - since <= limit:
        return
    verdict = partition.compaction
    text = (
        f"{rule.words['max-compaction-lag']}: dirty from offset {verdict.first_dirty_offset} of "
        f"{format_timestamp(since)} on ({format_bytes(verdict.dirty_bytes)}): {verdict.reason}"
    )
    yield Violation(
        rule, "policy-compaction-lag", partition, partition.partition, "", text, since + limit,
        verdict.first_dirty_offset,
    )  # fmt: skip


def _codecs(rule: PolicyRule, partition: AuditedPartition) -> Iterator[Violation]:
    allowed = rule.limits.codecs
    if allowed is None:
        return
    sizes: dict[str, int] = defaultdict(int)
    first: dict[str, Any] = {}
    for segment in partition.segments:
        for codec, size in segment.bytes_by_codec.items():
            if codec not in allowed and size > segment.control_bytes * (codec == "none"):
                sizes[codec] += size
                first.setdefault(codec, segment)
    for codec, size in sizes.items():
        segment = first[codec]
        known = segment.smallest_timestamp_ms
        text = (
            f"{rule.words['codecs']}: {format_bytes(size)} of {codec}, the first in the "
            f"segment {segment.base_offset}"
        )
        since = known if known >= 0 else None
        yield Violation(
            rule, "policy-codec", partition, partition.partition, codec, text, since,
            segment.base_offset,
        )  # fmt: skip


def _keys(rule: PolicyRule, partition: AuditedPartition) -> Iterator[Violation]:
    limit, count = rule.limits.max_keys, keys_of(partition)
    if limit is not None and count is not None and count > limit:
        text = f"{rule.words['max-keys']}: {count} distinct keys"
        yield Violation(rule, "policy-keys", partition, partition.partition, "", text, None)


def keys_of(partition: AuditedPartition) -> int | None:
    """Distinct keys of a partition if somebody counted them."""
    contents = getattr(partition, "contents", None)
    records = contents.records if contents is not None else None
    keys = None if records is None else records.keys
    return None if keys is None else int(keys.distinct_keys.value)


def _bytes(rule: PolicyRule, own: Sequence[AuditedPartition]) -> Iterator[Violation]:
    limit = rule.limits.max_bytes
    size = sum(p.bytes_by_kind["log"] for p in own)
    if limit is None or size <= limit:
        return
    since = _passed_at(
        ((s.effective_timestamp_ms, s.size_in_bytes) for p in own for s in p.segments), limit
    )
    text = (
        f"{rule.words['max-bytes']}: {format_bytes(size)} in {format_count(len(own), 'partition')}"
    )
    yield Violation(rule, "policy-bytes", own[0], None, "", text, since)


def _passed_at(sizes: Iterable[tuple[int, int]], limit: int) -> int | None:
    """When what is still there came to more than the limit, at the latest."""
    total = 0
    for at_ms, size in sorted(sizes):
        total += size
        if total > limit:
            return at_ms
    return None
