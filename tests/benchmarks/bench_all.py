"""Every benchmark whose figures docs/benchmarks.md has, one after the other, each with its peer.

    python -m tests.benchmarks.bench_all [WORD]

A JSON line each, as the benchmarks themselves print it; with words only those whose name or
arguments hold them all. On a quiet machine it takes about an hour.
"""

from __future__ import annotations

import subprocess
import sys

FIGURES = (
    ("compact", "--spark"),
    ("compact", "--codec", "lz4"),
    ("compact", "--codec", "zstd"),
    ("compact", "--codec", "snappy"),
    ("compact", "--codec", "gzip"),
    ("compact", "--value-bytes", "1000", "--records", "2000000", "--keys", "500000"),
    ("compact", "--cores", "2"),
    ("compact", "--cores", "2", "--codec", "lz4"),
    ("compact", "--cores", "2", "--codec", "zstd"),
    ("scale",),
    ("scale", "--distinct", "100000000"),
    ("cost_model",),
    ("many_partitions",),
    ("small_partitions",),
    ("small_partitions", "--partitions", "20000", "--rounds", "1"),
    ("group_offsets", "--spark"),
    ("query",),
    ("sql",),
    ("recover", "--records", "16000000", "--rounds", "3"),
    ("dump", "--records", "1000000", "--rounds", "3"),
    ("scan",),
    ("scan", "--records", "8000000", "--peer"),
    ("decode",),
    ("verify",),
    ("safety",),
    ("contents",),
    ("audit", "--topics", "50", "--workers", "1"),
    ("audit_on_spark",),
    ("retain",),
    ("compare",),
    ("salvage",),
    ("remote",),
    ("start",),
)


def main() -> int:
    """Run them; the exit code of the first that failed."""
    words = sys.argv[1:]
    failed = 0
    for name, *arguments in FIGURES:
        if all(word in (name, *arguments) for word in words):
            command = [sys.executable, "-m", f"tests.benchmarks.bench_{name}", *arguments]
            code = subprocess.run(command, check=False).returncode
            failed = failed or code
    return failed


if __name__ == "__main__":
    sys.exit(main())
