"""An overview as the JSON document of `info --json`."""

from __future__ import annotations

from typing import Any

from kafkalog.log.topic_partition import PartitionKind
from kafkalog.overview.disk import LogDir
from kafkalog.overview.overview import Life, Overview

Row = dict[str, Any]


def overview_document(overview: Overview, seconds: float) -> Row:
    """Names in camelCase, times in ms since 1970 (null for none), sizes in bytes."""
    levels = {} if overview.cluster is None else dict(overview.cluster.feature_levels)
    release = overview.era.release
    return {
        "seconds": round(seconds, 3),
        "mode": overview.era.mode,
        "release": None if release is None else f"{release[0]}.{release[1]}",
        "releaseIsExact": overview.era.is_exact,
        "releaseEvidence": list(overview.era.evidence),
        "featureLevels": levels,
        "metadataProblem": None if overview.cluster is None else overview.cluster.problem,
        "logDirs": [
            _log_dir(log_dir, life)
            for log_dir, life in zip(overview.log_dirs, overview.lives, strict=True)
        ],
        "partitionsLookedInto": overview.heads_count,
        "partitionsWithData": overview.with_data_count,
        "oldestRecordMs": _time(overview.oldest_ms),
        "newestRecordMs": _time(overview.newest_ms),
        "isTiered": overview.is_tiered,
        "topics": [
            {
                "topic": topic.name,
                "isInternal": topic.is_internal,
                "partitions": topic.partitions,
                "segments": topic.segments,
                "bytes": topic.bytes,
                "cleanupPolicy": topic.policy,
                "isTiered": topic.is_tiered,
                "codecs": list(topic.codecs),
                "magics": list(topic.magics),
                "oldestRecordMs": _time(topic.oldest_ms),
                "newestRecordMs": _time(topic.newest_ms),
            }
            for topic in overview.topics
        ],
        "groups": _groups(overview),
        "findings": [
            {
                "id": notice.id,
                "severity": str(notice.severity),
                "logDir": notice.log_dir,
                "text": notice.text,
                "command": notice.command,
            }
            for notice in overview.notices
        ],
    }


def _log_dir(log_dir: LogDir, life: Life) -> Row:
    meta, space = log_dir.meta, log_dir.space
    kinds = dict.fromkeys(PartitionKind, 0)
    for partition in log_dir.partitions:
        kinds[partition.name.kind] += 1
    return {
        "path": str(log_dir.path),
        "clusterId": None if meta is None else meta.cluster_id,
        "nodeId": None if meta is None else meta.node_id,
        "directoryId": None if meta is None else meta.directory_id,
        "metaPropertiesVersion": None if meta is None else meta.version,
        "isRunning": log_dir.locked_by is not None,
        "isStoppedInOrder": log_dir.is_clean_stop,
        "lastAliveMs": _time(life.alive_ms or -1),
        "hasTimesOfACopy": life.is_copied,
        "partitions": kinds[PartitionKind.LIVE],
        "futureDirectories": kinds[PartitionKind.FUTURE],
        "deletedDirectories": kinds[PartitionKind.DELETE],
        "strayDirectories": kinds[PartitionKind.STRAY],
        "segments": sum(partition.segments for partition in log_dir.partitions),
        "bytes": log_dir.log_bytes,
        "diskBytes": None if space is None else space.total,
        "diskFreeBytes": None if space is None else space.free,
    }


def _groups(overview: Overview) -> Row:
    found = overview.groups
    return {
        "isWhole": found.is_whole,
        "offsetsBytes": found.total_bytes,
        "readBytes": found.read_bytes,
        "problems": list(found.problems),
        "groups": [
            {
                "group": group.group,
                "topics": list(group.topics),
                "partitions": group.partitions,
                "lag": group.lag,
                "partitionsWithoutEnd": group.unknown,
            }
            for group in found.groups
        ],
    }


def _time(time_ms: int) -> int | None:
    return None if time_ms < 0 else time_ms
