"""Comparisons in this process, and what they say in short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkalog.comparing.comparison import compare_partition
from kafkalog.comparing.difference import ComparedPartition
from kafkalog.comparing.request import CompareRequest
from kafkalog.comparing.run import CompareRun, compare_run
from kafkalog.format import meta_properties


def compare(*log_dirs: Path, **options: Any) -> CompareRun:
    request = CompareRequest(tuple(map(str, log_dirs)), **options)
    return compare_run(request, lambda tasks: map(compare_partition, tasks))


def only(*log_dirs: Path) -> ComparedPartition:
    """Of the one partition in these log dirs."""
    (found,) = compare(*log_dirs).partitions
    assert found.status == "compared", found.reason
    return found


def told(*log_dirs: Path) -> list[tuple[str, int, str, str]]:
    """Each difference as (id, offset, wrong nodes, right nodes), nodes by their numbers."""
    return [
        (each.kind, each.offset, _numbers(each.wrong), _numbers(each.right))
        for each in compare(*log_dirs).differences
    ]


def as_node(log_dir: Path, node_id: int) -> Path:
    """Make the log dir that of another node of the cluster."""
    path = log_dir / meta_properties.META_PROPERTIES_FILE
    meta = meta_properties.parse_meta_properties(path.read_bytes(), str(path))
    directory = f"{node_id:022d}"
    path.write_bytes(
        meta_properties.pack_meta_properties(
            meta_properties.MetaProperties(meta.version, meta.cluster_id, node_id, directory)
        )
    )
    return log_dir


def _numbers(names: tuple[str, ...]) -> str:
    return " ".join(name.removeprefix("node ") for name in names)
