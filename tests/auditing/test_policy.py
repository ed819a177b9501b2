"""Policies: what breaks a rule is named with topic, rule, what was found and since when; a file
that makes no sense is named with its line.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.policy_checks import check_policy
from kafkalog.auditing.policy_file import parse_policy, policy_schema, read_policy
from kafkalog.checking.finding import Finding
from kafkalog.errors import InvalidConfigError
from kafkalog.format.compression import CompressionType
from kafkalog.format.record import Record
from tests.auditing.documents import audit
from tests.support.log_builder import START_MS, LogBuilder

DAY_MS = 86_400_000
NOW_MS = START_MS + 100 * DAY_MS
HEAD = "version: 1\nrules:\n  - name: rule\n    topics: ['*']\n"


def policy(limits: str = "", settings: str = "", head: str = HEAD) -> bytes:
    text = head
    text += f"    settings: {{{settings}}}\n" if settings else ""
    text += f"    limits: {{{limits}}}\n" if limits else ""
    return text.encode()


TWICE = policy("max-age: 1d") + policy("max-age: 1d").split(b"rules:\n")[1]


def write_log(log_dir: Path, name: str, *, codec: CompressionType = CompressionType.NONE) -> Path:
    """A segment of day 0, one of day 90, an active one of day 99."""
    log = LogBuilder(log_dir, name)
    offset = 0
    for day in (0, 90, 99):
        log.segment()
        records = [
            Record(offset + n, START_MS + day * DAY_MS + n, b"k%d" % n, b"v" * 200)
            for n in range(4)
        ]
        log.batch(*records, codec=codec)
        offset += 4
    return log.write()


def audited(log_dir: Path, *config: str) -> tuple[AuditedPartition, ...]:
    return audit(log_dir, now_ms=NOW_MS, config=config).partitions


def findings(
    partitions: tuple[AuditedPartition, ...], data: bytes, first_seen: dict[Any, int] | None = None
) -> list[Finding]:
    found = check_policy(parse_policy(data), partitions, NOW_MS, first_seen or {}).findings
    return [finding for finding in found if finding.severity.is_failure]


@pytest.fixture
def partitions(log_dir: Path) -> tuple[AuditedPartition, ...]:
    write_log(log_dir, "orders-0")
    return audited(log_dir, f"retention.ms={30 * DAY_MS}", "cleanup.policy=delete")


@pytest.mark.parametrize(
    ("limits", "kind", "text"),
    [
        (
            "max-age: 30d",
            "policy-age",
            "orders-0: rule rule: max-age 30d: a record of 2023-11-14T22:13:20.000Z in the segment "
            "0; segments whose newest record is as old: 905 B; since 2023-12-14T22:13:20.000Z",
        ),
        (
            "max-age: 20d",
            "policy-setting",
            "orders: rule rule: retention.ms is 30 d (2592000000) (option), over max-age 20d; "
            "since 2024-02-22T22:13:20.000Z",
        ),
        (
            "min-retention: 60d",
            "policy-setting",
            "orders: rule rule: retention.ms is 30 d (2592000000) (option), under min-retention "
            "60d; since 2024-02-22T22:13:20.000Z",
        ),
        (
            "codecs: [zstd, lz4]",
            "policy-codec",
            "orders-0: rule rule: codecs zstd, lz4: 2.7 KiB of none, the first in the segment 0; "
            "since 2023-11-14T22:13:20.000Z",
        ),
        (
            "max-bytes: 2KiB",
            "policy-bytes",
            "orders: rule rule: max-bytes 2KiB: 2.7 KiB in 1 partition; since "
            "2024-02-21T22:13:20.003Z",
        ),
    ],
)
def test_a_violation_names_topic_rule_finding_and_since_when(
    partitions: tuple[AuditedPartition, ...], limits: str, kind: str, text: str
) -> None:
    (found,) = [f for f in findings(partitions, policy(limits)) if f.kind == kind]
    assert (found.topic, str(found.severity), found.text) == ("orders", "error", text)


@pytest.mark.parametrize(
    "limits",
    [
        "max-age: 101d", "max-age: 8640000000", "min-retention: 30d", "codecs: [none]",
        "max-bytes: 1MiB", "max-bytes: 4000", "max-compaction-lag: 1d",
    ],
)  # fmt: skip
def test_what_keeps_to_the_rule_is_no_finding(log_dir: Path, limits: str) -> None:
    write_log(log_dir, "orders-0")
    own = audited(log_dir, f"retention.ms={30 * DAY_MS}", "cleanup.policy=delete")
    assert findings(own, policy(limits)) == []


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("cleanup.policy: compact", "cleanup.policy is delete (option), not compact"),
        ("cleanup.policy: [compact, delete]", None),
        ("retention.ms: 30d", None),
        ("retention.ms: {at-least: 7d, at-most: 30d}", None),
        ("retention.ms: {at-most: 29d}", "retention.ms is 2592000000 (option), not at most"),
        ("retention.ms: {at-least: 31d}", "not at least 2678400000"),
        ("preallocate: false", None),
        ("min.cleanable.dirty.ratio: 0.5", None),
        (
            "compression.type: [zstd, lz4]",
            "compression.type is producer (default), not zstd or lz4",
        ),
        ("segment.bytes: 1GiB", None),
    ],
)
def test_settings_in_force_are_compared(
    partitions: tuple[AuditedPartition, ...], settings: str, reason: str | None
) -> None:
    found = findings(partitions, policy(settings=settings))
    assert [f.kind for f in found] == ["policy-setting"] * (reason is not None)
    assert all(reason in f.text for f in found if reason)


def test_no_limit_is_above_every_limit(log_dir: Path) -> None:
    write_log(log_dir, "orders-0")
    own = audited(log_dir, "retention.ms=-1", "cleanup.policy=delete")
    texts = [f.text for f in findings(own, policy("max-age: 200d", "retention.ms: {at-most: 1d}"))]
    assert len(texts) == 2
    assert all("retention.ms is -1" in text for text in texts)


def test_compacted_topics_are_held_to_lag_and_age(log_dir: Path) -> None:
    write_log(log_dir, "orders-0")
    own = audited(log_dir, "cleanup.policy=compact", "min.cleanable.dirty.ratio=1")
    lag, promise = findings(own, policy("max-compaction-lag: 10d"))[::-1]
    assert promise.kind == "policy-setting"
    assert lag.kind == "policy-compaction-lag"
    assert "dirty from offset 0 of 2023-11-14T22:13:20.000Z on" in lag.text
    assert lag.text.endswith("since 2023-11-24T22:13:20.000Z")
    ages = findings(own, policy("max-age: 50d"))
    assert [f.kind for f in ages] == ["policy-setting", "policy-age"]
    assert "has no age at which it goes" in ages[0].text


def test_a_policy_that_is_empty_is_called_so(log_dir: Path) -> None:
    write_log(log_dir, "orders-0")
    own = audited(log_dir, "cleanup.policy=")
    (found, *_) = findings(own, policy("max-age: 50d"))
    assert "cleanup.policy is empty: " in found.text


def test_size_that_deletes_before_its_time_breaks_minimum_retention(log_dir: Path) -> None:
    write_log(log_dir, "orders-0")
    own = audited(log_dir, "retention.bytes=1100", "retention.ms=-1", "cleanup.policy=delete")
    (found,) = findings(own, policy("min-retention: 200d"))
    assert found.kind == "policy-retention"
    assert "retention.bytes takes the segment 0" in found.text


def test_since_when_comes_from_earlier_runs_where_data_is_silent(
    partitions: tuple[AuditedPartition, ...],
) -> None:
    data = policy(settings="compression.type: zstd")
    verdict = check_policy(parse_policy(data), partitions, NOW_MS, {})
    (violation,) = verdict.violations
    assert violation.since_ms == NOW_MS
    (found,) = findings(partitions, data, {violation.key: START_MS})
    assert found.text.endswith("since 2023-11-14T22:13:20.000Z")


def test_rules_are_for_the_topics_they_name(log_dir: Path) -> None:
    for name in ("orders-0", "orders-dead-0", "clicks-0"):
        write_log(log_dir, name, codec=CompressionType.LZ4)
    own = audited(log_dir, "cleanup.policy=delete")
    head = HEAD.replace("['*']", "['orders*', 'nobody']") + "    except: ['*dead*']\n"
    found = findings(own, policy("codecs: [zstd]", head=head + "    severity: warning\n"))
    assert [(f.topic, str(f.severity)) for f in found] == [("orders", "warning")]
    unused = check_policy(
        parse_policy(policy("max-keys: 3", head=HEAD.replace("*", "nobody"))), own, NOW_MS, {}
    )
    assert [(f.kind, str(f.severity)) for f in unused.findings] == [("policy-unused", "info")]
    uncounted = check_policy(parse_policy(policy("max-keys: 3")), own, NOW_MS, {})
    assert [f.kind for f in uncounted.findings] == ["policy-unchecked"]
    assert uncounted.section["rules"][0]["matchedTopics"] == 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe\xff", "not YAML"),
        (b"version: 1\nrules: [\n", "line 3: not YAML"),
        (policy("max-age: 1d").replace(b"1", b"2", 1), "line 1: version"),
        (b"version: 1\n", "line 1: 'rules' is a required property"),
        (b"version: 1\nrules: []\n", "line 2: rules"),
        (HEAD.encode(), "line 3: rules.0: a rule needs settings or limits"),
        (policy("max-aeg: 30d"), "line 5: rules.0.limits: unknown: max-aeg; there are codecs"),
        (policy("max-age: 30 days"), "line 5: rules.0.limits.max-age: max-age: expected a dur"),
        (policy("max-bytes: -1"), "line 5: rules.0.limits.max-bytes: max-bytes: expected a size"),
        (policy("max-bytes: true"), "line 5: rules.0.limits.max-bytes"),
        (policy("codecs: [zip]"), "line 5: rules.0.limits.codecs.0: 'zip' is not one of"),
        (policy(settings="retention.msec: 1"), "line 5: rules.0.settings.retention.msec: unknown"),
        (policy(settings="retention.ms: soon"), "line 5: rules.0.settings.retention.ms"),
        (policy(settings="segment.bytes: 5"), "segment.bytes"),
        (policy(settings="cleanup.policy: {at-most: compact}"), "no number that has a range"),
        (policy(settings="retention.ms: {}"), "line 5"),
        (policy("max-age: 1d, max-age: 2d"), "line 5: max-age is there twice"),
        (b"version: 1\nrules: &r\n  - *r\n", "line 2: anchors and aliases are not taken"),
        (b"[" * 100_000, "not YAML"),
        (TWICE, "line 6: rules.1.name: a second"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_its_line(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        parse_policy(data, "policies/base.yaml")
    assert str(caught.value).startswith("policies/base.yaml: ")
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="No such file"):
        read_policy(str(tmp_path / "policy.yaml"))
    (tmp_path / "large.yaml").write_bytes(b"#" * (1 << 21))
    with pytest.raises(InvalidConfigError, match="more than 1048576 bytes"):
        read_policy(str(tmp_path / "large.yaml"))


def test_the_schema_is_one_and_files_may_be_json() -> None:
    jsonschema.Draft202012Validator.check_schema(policy_schema())
    document = {"version": 1, "rules": [{"name": "a", "topics": ["*"], "limits": {"max-age": 5}}]}
    assert parse_policy(json.dumps(document).encode()).rules[0].limits.max_age_ms == 5


def test_replicas_are_looked_at_on_their_own(log_dir: Path) -> None:
    write_log(log_dir, "orders-0")
    (first,) = audited(log_dir, "cleanup.policy=delete")
    twin = replace(first, log_dir="/elsewhere")
    found = findings((first, twin), policy("max-bytes: 2KiB"))
    assert [f.log_dir for f in found] == sorted([first.log_dir, "/elsewhere"])
