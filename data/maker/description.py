"""What is written about the samples: the manifest, and the table of data/README.md."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.oracle.jars import KAFKA_VERSION

MARKS = ("<!-- table: written by make_samples.py -->", "<!-- end of table -->")


def disk_bytes(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def describe(samples: Path, cleaning: Mapping[str, Any]) -> dict[str, Any]:
    files = {
        path.relative_to(samples).as_posix(): {
            "bytes": path.stat().st_size,
            "mtimeMs": path.stat().st_mtime_ns // 1_000_000,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(samples.rglob("*"))
        if path.is_file()
    }
    return {
        "command": "python data/make_samples.py",
        "broker": f"Apache Kafka {KAFKA_VERSION} (KRaft, one node)",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cleaning": cleaning,
        "files": files,
    }


def write_manifest(samples: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1) + "\n"
    (samples / "MANIFEST.json").write_text(text, encoding="utf-8")


def write_table(
    document: Path,
    samples: Path,
    manifest: dict[str, Any],
    groups: list[tuple[str, dict[str, str]]],
) -> None:
    """Put the table of all topics between the marks in `document`."""
    rows = [
        f"Made by `{manifest['command']}` with {manifest['broker']} on {manifest['date']}.",
        "",
        "| topic | what it holds | partitions | segments | KiB | sha256 |",
        "|---|---|---|---|---|---|",
    ]
    rows += [
        row(samples, manifest["files"], f"{sample}/{topic}", text)
        for sample, topics in groups
        for topic, text in topics.items()
    ]
    text = document.read_text(encoding="utf-8")
    start, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    table = "\n".join(rows)
    document.write_text(f"{text[:start]}\n{table}\n{text[end:]}", encoding="utf-8")


def row(samples: Path, listed: dict[str, dict[str, Any]], topic: str, text: str) -> str:
    """One topic's line; its digest is over its files' lines as `sha256sum` prints them."""
    folders = [
        folder
        for folder in sorted((samples / topic).parent.iterdir())
        if re.match(rf"{re.escape(Path(topic).name)}-\d", folder.name)
    ]
    files = {name: facts for name, facts in listed.items() if (samples / name).parent in folders}
    lines = "".join(f"{facts['sha256']}  {name}\n" for name, facts in files.items())
    digest = hashlib.sha256(lines.encode()).hexdigest()
    logs = [name for name in files if name.endswith(".log")]
    size = sum(facts["bytes"] for facts in files.values())
    return (
        f"| `{topic}` | {text} | {len(folders)} | {len(logs)} | {size / 1024:.0f} "
        f"| `{digest[:16]}…` |"
    )
