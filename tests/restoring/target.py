"""A stopped cluster whose topics are there and empty, for restores into it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafkalog.cli.main import main
from kafkalog.reading.tables import read_records
from tests.support.log_builder import LogBuilder
from tests.support.metadata_builder import MetadataBuilder, config, partition, topic

TARGET_ID = "9L6g3nShT-eMCtK--X86sw"


def empty_target(
    log_dir: Path,
    topics: Mapping[str, int] | None = None,
    configs: Mapping[str, str] | None = None,
) -> Path:
    """Node 1's log dir with these topics (name to partitions), each with these settings, none of
    which has a record.
    """
    cluster = MetadataBuilder(log_dir)
    for number, (name, count) in enumerate((topics or {"orders": 1}).items()):
        topic_id = f"{number}{TARGET_ID[1:]}"
        records = [partition([1], topic_id, n) for n in range(count)]
        settings = [config(name, key, value) for key, value in (configs or {}).items()]
        cluster.batch(topic(name, topic_id), *records, *settings)
        for n in range(count):
            LogBuilder(log_dir, f"{name}-{n}", topic_id=topic_id).segment().write()
    cluster.write()
    return log_dir


def restore(source: Path, *into: Path, words: tuple[str, ...] = (), apply: bool = True) -> int:
    targets = [word for path in into for word in ("--into", str(path))]
    args = ["restore", str(source), *targets, "--topic", "orders", *words]
    return main([*args, "--apply"] if apply else args)


def contents(log_dir: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and modification time of every file of the partitions, and the checkpoints."""
    files = [*log_dir.glob("*/*"), *log_dir.glob("*checkpoint")]
    return {
        str(path.relative_to(log_dir)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(files)
        if path.is_file()
    }


def served(path: Path) -> list[list[tuple[object, ...]]]:
    """What consumers of both isolation levels get: offset, key, value, timestamp, headers. Of a log
    that was restored once its broker has raised the high watermark.
    """
    (path.parent / "replication-offset-checkpoint").unlink(missing_ok=True)
    columns = ["offset", "key", "value", "timestampMs", "headers"]
    return [
        [
            (*list(row.values())[:4], str(row["headers"]))
            for row in read_records(path, columns=columns, read_committed=level)
            .read_all()
            .to_pylist()
        ]
        for level in (False, True)
    ]
