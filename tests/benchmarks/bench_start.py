"""How long until a command has answered about a small log, against Kafka's tool?

    python -m tests.benchmarks.bench_start [--rounds 5] [--core 0]

Whole processes on one core (`taskset`), in turn, over a copy of the sample log dir of a broker:
`kafkalog --help`, `segments`, `verify`, `dump` of one segment; Kafka's `DumpLogSegments` of the
same segment. Then a process that compiles every kernel, which happens once an installation. Prints
one JSON line: medians of wall and CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from data.copy_samples import SAMPLES
from tests.benchmarks.side_by_side import Cost, circumstances, median, run_measured
from tests.oracle.setup import ensure_oracle

_COMPILE = """
import importlib, pkgutil
from kafkalog import kernels, native
from kafkalog.kernels.compiling import compile_kernel
from kafkalog.kernels.parts import known_kernels
for room in (kernels, native):
    for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        importlib.import_module(module.name)
for _, kernel in known_kernels():
    compile_kernel(kernel)
"""


def commands(log_dir: Path) -> dict[str, list[str]]:
    """What is run, by its name in the result."""
    ours = [sys.executable, "-m", "kafkalog"]
    segment = max(log_dir.glob("*/*.log"), key=lambda path: path.stat().st_size)
    runtime = ensure_oracle()
    java = [str(runtime.java), "-XX:+UseSerialGC", "-cp", runtime.class_path]
    return {
        "help": [*ours, "--help"],
        "segments": [*ours, "segments", "--log-dir", str(log_dir)],
        "verify": [*ours, "verify", "--log-dir", str(log_dir), "--run-dir", f"{log_dir}-runs"],
        "dump": [*ours, "dump", "--files", str(segment)],
        "DumpLogSegments": [
            *(*java, "org.apache.kafka.tools.DumpLogSegments", "--files", str(segment))
        ],
    }


def main() -> None:
    """Run them in turn, print."""
    parser = argparse.ArgumentParser(description="The start of commands.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", default="0")
    args = parser.parse_args()
    costs: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory() as work:
        log_dir = Path(work, "broker")
        shutil.copytree(SAMPLES / "broker", log_dir)
        for _ in range(args.rounds):
            for name, command in commands(log_dir).items():
                costs.setdefault(name, []).append(run_measured(command, args.core))
        command = [sys.executable, "-c", _COMPILE]
        costs["all kernels compiled"] = [run_measured(command, args.core)]
    result = {
        "bench": "start",
        "rounds": args.rounds,
        **{name: median(each) for name, each in costs.items()},
        **circumstances(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
