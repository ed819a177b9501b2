"""A document of an audit as the page takes it, of any size, with every list filled."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

DAY_MS = 86_400_000
NOW_MS = 1_750_000_000_000
KINDS = ("log", "index", "snapshot", "leftover", "undo", "other")
_NAMES = (
    "orders",
    "payments",
    "customers",
    "clicks",
    "audit-trail",
    "inventory",
    "__consumer_offsets",
)
# (from, to) in ms before now: without a time, in the future, ages, an end of -1 is none
EDGES = (-2, -1, 0, 3_600_000, DAY_MS, 3 * DAY_MS, 7 * DAY_MS, 30 * DAY_MS, 90 * DAY_MS, -1)
BUCKETS = tuple(pairwise(EDGES))


def example_document(topics: int = 9, findings: int = 12, *, seed: int = 1) -> dict[str, Any]:
    """`topics` topics of falling size and so many findings."""
    chance = random.Random(seed)
    names = [_NAMES[n] if n < len(_NAMES) else f"topic-{n}" for n in range(topics)]
    rows = [_topic(name, chance) for name in names]
    return {
        "schemaVersion": 1,
        "nowMs": NOW_MS,
        "seconds": 1.25,
        "kafkaVersion": "4.3",
        "logDirs": [
            {
                "path": "/var/lib/kafka/data-1",
                "brokerId": 1,
                "clusterId": "x",
                "bytes": 123_456_789_012,
                "capacityBytes": 200 * 2**30,
                "growthBytesPerDay": 3_221_225_472,
                "daysUntilFull": 28.4,
            },
            {
                "path": "/var/lib/kafka/data-2",
                "brokerId": 1,
                "clusterId": "x",
                "bytes": 45_678_901_234,
                "capacityBytes": None,
                "growthBytesPerDay": None,
                "daysUntilFull": None,
            },
        ],
        "totals": {
            "bytes": sum(row["bytes"] for row in rows),
            "topics": topics,
            "partitions": topics * 4,
            "segments": topics * 40,
            "records": sum(row["records"] for row in rows),
            "dueBytes": 12_345_678,
            "blockedBytes": 9_876_543_210,
            "leftoverBytes": 55_555_555,
        },
        "topics": rows,
        "partitions": [],
        "segments": [],
        "timeline": [
            {
                "topic": name,
                "dayMs": NOW_MS // DAY_MS * DAY_MS + day * DAY_MS,
                "bytes": chance.randrange(2**33),
                "segments": chance.randrange(1, 9),
            }
            for name in names
            for day in sorted(chance.sample(range(-3, 30), 6))
        ],
        "ageHistogram": [
            {
                "topic": name,
                "fromMs": start,
                "toMs": end,
                "closedBytes": chance.randrange(2**32) if start >= 0 else 7,
                "activeBytes": chance.randrange(2**28)
                if start is not None and start < DAY_MS
                else 0,
                "records": chance.randrange(10**6),
            }
            for name in names
            for start, end in BUCKETS
        ],
        "contents": [
            {
                "topic": name,
                "partition": 0,
                "logDir": "/var/lib/kafka/data-1",
                "tombstones": 12,
                "tombstonesWithHorizon": 3,
                "nextTombstoneMs": NOW_MS + DAY_MS,
                "stuckTombstones": 1,
                "markers": 20,
                "stuckMarkers": 0,
                "emptyValues": 4,
                "nullTextValues": 2,
                "keylessRecords": 0,
                "committedBytes": 10**9,
                "abortedBytes": 10**7,
                "openBytes": 0,
                "markerBytes": 1560,
                "readableBeyondPolicyRecords": 99,
                "oldestTimestampMs": NOW_MS - 40 * DAY_MS,
                "newestTimestampMs": NOW_MS,
                "distinctKeys": None,
                "compactionGainBytes": None,
            }
            for name in names
        ],
        "leftovers": [
            {
                "path": f"/var/lib/kafka/data-1/{names[0]}-0/00000000000000000000.log.deleted",
                "kind": "deleted",
                "bytes": 1_048_576,
                "topic": names[0],
                "partition": 0,
            },
        ],
        "whatIf": [
            _what_if(label, settings, share, rows)
            for label, settings, share in (
                ("", {}, 1.0),
                ("retention.ms=3d", {"retention.ms": "259200000"}, 0.5),
                ("segment.bytes=256MiB", {"segment.bytes": "268435456"}, 0.85),
            )
        ],
        "safeDeleteOffsets": [
            {
                "clusterId": "5L6g3nShT-eMCtK--X86sw",
                "topic": names[0],
                "partition": 0,
                "offset": 12_345,
                "group": "billing",
                "bytes": 5 * 2**30,
            }
        ],
        "policy": {
            "file": "policy.yaml",
            "violations": 2,
            "rules": [
                {
                    "name": "personal-data",
                    "topics": ["customers*"],
                    "asks": ["max-age 30 d"],
                    "severity": "error",
                    "matchedTopics": 1,
                    "violations": 2,
                },
                {
                    "name": "codecs",
                    "topics": ["*"],
                    "asks": ["codecs zstd, lz4", "max-bytes 10 GiB"],
                    "severity": "warning",
                    "matchedTopics": topics,
                    "violations": 0,
                },
            ],
        },
        "history": {
            "runs": 3,
            "growth": [{"topic": name, "bytesPerDay": chance.randrange(2**28)} for name in names],
        },
        "findings": [_finding(number, names[number % topics]) for number in range(findings)],
        "kinds": {
            kind: {
                "means": f"what {kind} means",
                "broker": "keeps what lies behind it",
                "remedy": "delete the record, or wait",
            }
            for kind in ("future-timestamp", "active-never-rolls", "policy-age")
        },
    }


def _topic(name: str, chance: random.Random) -> dict[str, Any]:
    log = int(2 ** chance.uniform(28, 38))
    kinds = dict(zip(KINDS, (log, log // 400, log // 9000, log // 30, log // 50, 512), strict=True))
    return {
        "topic": name,
        "partitions": 4,
        "segments": 40,
        "records": log // 100,
        "bytes": sum(kinds.values()),
        "bytesByKind": kinds,
        "cleanupPolicy": "delete",
        "retentionMs": 7 * DAY_MS,
        "retentionBytes": -1,
        "segmentBytes": 2**30,
        "segmentMs": 7 * DAY_MS,
        "configSources": {"retention.ms": "default"},
        "oldestTimestampMs": NOW_MS - 30 * DAY_MS,
        "newestTimestampMs": NOW_MS - 1000,
        "dueBytes": log // 7,
        "blockedBytes": log // 11,
        "retentionCeilingBytes": -1,
    }


_SUMMED = ("bytes", "records", "expectedBytes")


def _what_if(
    label: str, settings: dict[str, str], share: float, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    points = [
        {
            "topic": row["topic"],
            "atMs": NOW_MS + day * DAY_MS,
            "bytes": int(row["bytes"] * share ** (day / 3)),
            "records": int(row["records"] * share ** (day / 3)),
            "expectedBytes": int(row["bytes"] * share ** (day / 3)) + day * 2**20,
        }
        for row in rows
        for day in (0, 1, 3, 7, 14, 30)
    ]
    for day in (0, 1, 3, 7, 14, 30):
        at_ms = NOW_MS + day * DAY_MS
        own = [point for point in points if point["atMs"] == at_ms]
        sums = {name: sum(point[name] for point in own) for name in _SUMMED}
        points.append({"topic": "", "atMs": at_ms, **sums})
    return {"label": label, "settings": settings, "points": points}


def _finding(number: int, topic: str) -> dict[str, Any]:
    severity = ("error", "warning", "info")[number % 3]
    kind = ("future-timestamp", "active-never-rolls", "policy-age")[number % 3]
    return {
        "id": kind,
        "severity": severity,
        "logDir": "/var/lib/kafka/data-1",
        "topic": topic,
        "partition": number % 4,
        "segmentBaseOffset": 881_204,
        "path": f"/var/lib/kafka/data-1/{topic}-{number % 4}",
        "position": None,
        "offset": 881_204 + number if number % 2 else None,
        "text": f"{topic}: rule retention.ms: the record at offset {881_204 + number} is of "
        "2031-01-01 and holds back 9.2 GiB since 2025-05-01",
        "more": 0,
        "fix": "set retention.ms on the topic, or delete records up to the offset",
    }
