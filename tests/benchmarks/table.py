"""The lines of `bench_all` in words close to those of docs/benchmarks.md, a paragraph a row.

    python -m tests.benchmarks.table [.cache/benchmarks.jsonl]

Of whole processes seconds, CPU (of it the system's) and peaks; of all else names and figures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_all import OUT

# Said once for all rows, or in the row's own name.
_SAID = {"row", "bench", "benchmark", "machine", "commit", "rounds", "runs", "cores", "made_slow"}


def cost_text(cost: dict[str, float]) -> str:
    """Of a whole process, as `side_by_side.Cost` has it."""
    text = f"{cost['wall_seconds']:.2f} s, {cost['cpu_seconds']:.2f} s of CPU"
    if cost.get("system_seconds"):
        text += f" ({cost['system_seconds']:.2f} the system's)"
    return text + (f", peak {cost['peak_mib']:.0f} MiB" if cost.get("peak_mib") else "")


def value_text(value: Any) -> str:
    """Of anything in a line."""
    if isinstance(value, dict):
        if "wall_seconds" in value and "cpu_seconds" in value:
            return cost_text(value)
        return "; ".join(f"{name} {value_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(value_text, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.2f} M"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def line_text(line: dict[str, Any]) -> str:
    """One line's figures."""
    if "failed" in line:
        return f"FAILED: {line['failed']}"
    parts = [
        f"{name.replace('_', ' ')} {value_text(value)}"
        for name, value in line.items()
        if name not in _SAID and value is not None
    ]
    return "; ".join(parts)


def table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """What is printed: of a row that ran twice the last, in the order of the first."""
    rows: dict[str, list[dict[str, Any]]] = {}
    before = ""
    for line in lines:
        row = line.get("row", line.get("bench", ""))
        if row != before:
            rows[row] = []
        rows[row].append(line)
        before = row
    for row, found in rows.items():
        yield f"{row}"
        yield from (f"    {line_text(line)}" for line in found)


def main() -> None:
    """Read, print."""
    parser = argparse.ArgumentParser(description="The figures of benchmarks, readable.")
    parser.add_argument("lines", type=Path, nargs="?", default=OUT)
    args = parser.parse_args()
    text = args.lines.read_text(encoding="utf-8")
    for line in table([json.loads(each) for each in text.splitlines()]):
        print(line)  # noqa: T201 - a command's result


if __name__ == "__main__":
    main()
