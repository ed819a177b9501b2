"""Section `logDirs` of the document: whose each log dir is, how fast it grows, when it is full.

Bytes are those of the partition directories that were audited. A capacity is what the option says;
the system is not asked: a log dir that was copied says nothing of the disk it came from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafkalog.auditing.history import History
from kafkalog.errors import InvalidConfigError
from kafkalog.log.log_dir_files import read_log_dir_files


def log_dir_rows(
    sizes: Mapping[tuple[str, str], int],
    capacity: Mapping[str, int],
    history: History,
    now_ms: int,
) -> list[dict[str, Any]]:
    """An entry a log dir, by path. `capacity` by path, "" for all others.

    InvalidConfigError for a capacity of a log dir that is not there.
    """
    per_dir: dict[str, dict[str, int]] = defaultdict(dict)
    for (log_dir, topic), size in sizes.items():
        per_dir[log_dir][topic] = size
    resolved = {str(Path(path).resolve()) if path else "": n for path, n in capacity.items()}
    unknown = sorted(set(resolved) - {"", *per_dir})
    if unknown:
        reason = (
            f"--capacity of a log dir that is not audited; there are {', '.join(sorted(per_dir))}"
        )
        raise InvalidConfigError(reason, path=unknown[0])
    rows = []
    for log_dir, topics in sorted(per_dir.items()):
        meta = _meta(log_dir)
        size = sum(topics.values())
        room = resolved.get(log_dir, resolved.get(""))
        growth = history.growth_of(log_dir, topics, now_ms)
        rows.append(
            {
                "path": log_dir,
                "brokerId": None if meta is None else meta.node_id,
                "clusterId": None if meta is None else meta.cluster_id,
                "bytes": size,
                "capacityBytes": room,
                "growthBytesPerDay": growth,
                "daysUntilFull": days_until_full(size, room, growth),
            }
        )
    return rows


def days_until_full(size: int, capacity: int | None, growth: int | None) -> float | None:
    """0 of a full one, None of one that does not grow, or of which too little is known."""
    if capacity is None:
        return None
    if size >= capacity:
        return 0.0
    if growth is None or growth <= 0:
        return None
    return round((capacity - size) / growth, 1)


def _meta(log_dir: str) -> Any:
    try:
        return read_log_dir_files(Path(log_dir)).meta
    except OSError:
        return None
