"""Comparisons in this process, and what they say in short."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kafkalog.comparing.across_tasks import CompareAcross, execute_by_size
from kafkalog.comparing.comparison import compare_partition
from kafkalog.comparing.difference import ComparedPartition
from kafkalog.comparing.digest import DigestRequest, digest_partition, digest_run
from kafkalog.comparing.request import CompareRequest
from kafkalog.comparing.run import CompareRun, compare_run
from kafkalog.format import meta_properties
from kafkalog.resources.staged_tasks import run_stages


def compare(*log_dirs: Path, **options: Any) -> CompareRun:
    """Of log dirs; many tasks for each partition say the same; digests of them, and one of them
    beside the log dirs of the others, say the same with the key's hash in the key's place.
    """
    run = _compare(map(str, log_dirs), **options)
    assert compare_across_tasks(*log_dirs, **options) == run
    with tempfile.TemporaryDirectory() as work:
        key = Path(work, "key")
        key.write_bytes(b"a key of tests, for all hosts")
        digests = [
            digest(log_dir, Path(work, f"{n}.digest"), key) for n, log_dir in enumerate(log_dirs)
        ]
        for paths in (digests, [digests[0], *map(str, log_dirs[1:])]):
            again = _compare(paths, hash_key=str(key), **options)
            assert _without_keys(again) == _without_keys(run)
    return run


def compare_across_tasks(*log_dirs: Path, **options: Any) -> CompareRun:
    """Of log dirs, each partition by as many tasks as it can be cut for."""
    request = CompareRequest(tuple(map(str, log_dirs)), **options)
    return compare_run(
        request,
        lambda tasks: execute_by_size(
            tasks, in_stages, partial(map, compare_partition), least_bytes=0, range_bytes=1
        ),
    )


def in_stages(across: CompareAcross) -> list[ComparedPartition]:
    """One partition by its stages, in this process."""
    return run_stages(len(across.ranges), across.read, [across.judge], across.conclude, workers=1)


def digest(log_dir: Path, output: Path, key: Path) -> str:
    """A digest of a log dir: its path."""
    request = DigestRequest((str(log_dir),), str(output), str(key))
    results = digest_run(request, lambda tasks: map(digest_partition, tasks))
    assert {each.status for each in results} == {"digested"}, results
    return str(output)


def _compare(paths: Iterable[str], **options: Any) -> CompareRun:
    request = CompareRequest(tuple(paths), **options)
    return compare_run(request, lambda tasks: map(compare_partition, tasks))


def _without_keys(run: CompareRun) -> list[ComparedPartition]:
    return [
        replace(
            partition,
            # of topics that share a name the text says which directory is which
            reason="" if partition.status == "failed" else partition.reason,
            differences=tuple(
                replace(
                    each, key=str(each.key is not None or each.key_hash is not None), key_hash=None
                )
                for each in partition.differences
            ),
        )
        for partition in run.partitions
    ]


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
