"""The keys and types of what `--json` prints, found by running the verbs on the samples."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from data.copy_samples import copy_sample
from kafkalog.format.file_names import PARTITION_METADATA_FILE, log_file_name

ROOT = Path(__file__).resolve().parents[2]
_NAMES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
# Keys of these objects are names, of settings or of kinds of findings.
_BY_NAME = ("configSources", "featureLevels", "kinds", "records", "unread")
_BROKER = "data/samples/broker"
_ORDERS = ("--log-dir", _BROKER, "--topic", "orders")
_NODE = "data/samples/replicas/node1"
_KEY = f"{_NODE}/meta.properties"  # any file that is long enough
_RETAIN = ("--config", "retention.ms=86400000", "--now", "2026-11-29")
_COMPACT = ("--config", "min.compaction.lag.ms=0", "--force", "config-differs", "--now")


def json_tables() -> dict[str, list[str]]:
    """`json VERB` → a table of path and type, as the samples have them."""
    with tempfile.TemporaryDirectory() as scratch:
        found: dict[str, dict[str, set[str]]] = {}
        for verb, document in _documents(Path(scratch)):
            _collect(document, "", found.setdefault(verb, defaultdict(set)))
    return {f"json {verb}": _table(paths) for verb, paths in found.items()}


def _documents(scratch: Path) -> Iterator[tuple[str, Any]]:
    accounts = copy_sample("cleaning/before", scratch / "compacted")
    broker = copy_sample("broker", scratch / "broker")
    damaged = copy_sample("broker", scratch / "damaged")
    for path in (*damaged.glob("orders-0/*.index"), *damaged.glob("transactions-0/*.txnindex")):
        path.unlink()
    log = damaged / "orders-1" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-1])
    remote = copy_sample("tiered/remote", scratch / "remote")
    for path in remote.rglob(f"{0:020d}-*.log"):  # once more, under an id that nobody knows
        other = path.with_name(f"{0:020d}-BBBBBBBBBBBBBBBBBBBBBA.log")
        shutil.copy2(path, other)
    bucket = (
        "bucket",
        "data/samples/tiered/data",
        "--remote-dir",
        str(remote),
        "--now",
        "2026-12-01",
    )
    compact = (
        "compact",
        "--log-dir",
        str(accounts),
        "--topic",
        "accounts",
        *_COMPACT,
        "2026-11-29",
    )
    retain = ("retain", "--log-dir", str(broker), "--topic", "orders", *_RETAIN)
    cluster = ("data/samples/cluster/1/data", "data/samples/cluster/2/data")
    runs = [
        ("info", _BROKER),
        ("info", "data/samples/zookeeper/broker-2"),  # with a finding
        ("lag", "data/samples/groups/data"),
        compact,
        (*compact, "--apply"),
        ("retain", *_ORDERS, "--config", "retention.bytes=1", "--force", "config-differs"),
        (*retain, "--apply"),
        ("recover", "--log-dir", str(damaged), "--topic", "orders"),
        ("verify", "--log-dir", str(damaged)),
        ("cluster", *(word for path in cluster for word in ("--log-dir", path))),
        ("compare", "data/samples/replicas/node1", "data/samples/replicas/node2", "--heal"),
        ("attach", *cluster, "--in-place", "--force", "metadata-left", "--now", "2026-11-30"),
        (
            "attach",
            "data/samples/tiered/remote",
            "--into",
            str(_fresh(scratch)),
            "--topic",
            "*",
            "--apply",
        ),
        ("digest", _NODE, "--output", f"{scratch}/1.digest", "--hash-key", _KEY),
        bucket,
        (*bucket, "--deep", "--workers", "1"),
        (*bucket, "--rebuild-metadata", "--output", f"{scratch}/remote-log-metadata"),
        ("segments", *_ORDERS),
        (
            "restore",
            "data/samples/groups/data",
            "--into",
            str(_emptied(scratch)),
            "--topic",
            "orders",
            "--until",
            "orders-0=30",
            "--groups",
            "*",
            "--output",
            f"{scratch}/groups",
            "--apply",
        ),
        ("salvage", "--log-dir", str(damaged), "--topic", "orders", "--output", f"{scratch}/out"),
        ("why", "orders-1", "--offset", "3", "--now", "2026-12-01", "--log-dir", _BROKER),
        ("runs",),
    ]
    environment = {**os.environ, "XDG_STATE_HOME": str(scratch / "state"), "TZ": "UTC"}
    for words in runs:
        done = subprocess.run(
            [sys.executable, "-m", "kafkalog", *words, "--json"],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not done.stdout:
            raise RuntimeError(f"{words}: {done.stderr}")
        yield words[0], json.loads(done.stdout)


def _fresh(scratch: Path) -> Path:
    """A node that is formatted and was never started."""
    log_dir = scratch / "fresh"
    log_dir.mkdir()
    for name in ("meta.properties", "bootstrap.checkpoint"):
        shutil.copy(ROOT / "data/samples/tiered/data" / name, log_dir)
    return log_dir


def _emptied(scratch: Path) -> Path:
    """A cluster whose topic has no record."""
    log_dir = copy_sample("groups/data", scratch / "emptied")
    for path in log_dir.glob("orders-*/*"):
        if path.name != PARTITION_METADATA_FILE:
            path.unlink()
    for directory in log_dir.glob("orders-*"):
        (directory / log_file_name(0)).touch()
    return log_dir


def _collect(value: Any, path: str, found: dict[str, set[str]]) -> None:
    if path:
        found[path].add(_NAMES[type(value)])
    if isinstance(value, dict):
        named = path.rpartition(".")[2] in _BY_NAME
        for key, below in value.items():
            name = "NAME" if named else key
            _collect(below, f"{path}.{name}" if path else name, found)
    elif isinstance(value, list):
        for below in value:
            _collect(below, f"{path}[]", found)


def _table(paths: dict[str, set[str]]) -> list[str]:
    rows = ["| key | type |", "|---|---|"]
    for path, types in paths.items():
        # what is in an array of objects is told by its keys
        if types != {"object"}:
            rows.append(f"| `{path}` | {' or '.join(sorted(types, key=_null_last))} |")
    return rows


def _null_last(name: str) -> tuple[bool, str]:
    return name == "null", name
