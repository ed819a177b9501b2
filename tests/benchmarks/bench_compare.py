"""How fast are three replicas compared, from log dirs and from digests of them?

    python -m tests.benchmarks.bench_compare [--records 8500000] [--keys 2100000] [--rounds 3]

Three copies of one log of 1 GiB, of three nodes, on one core and as whole processes: `compare` of
the log dirs, `digest` of one of them, `compare` of three digests. All finds them equal, or the
benchmark fails. Prints one JSON line: medians of wall and CPU seconds, peak memory, and bytes of
input a CPU second.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from kafkalog.format.meta_properties import META_PROPERTIES_FILE, parse_meta_properties
from tests.benchmarks.generate import LogSpec, write_log
from tests.benchmarks.side_by_side import Cost, circumstances, median, run_measured

NODES = (1, 2, 3)


def generate(work: Path, spec: LogSpec) -> list[Path]:
    """The log dirs of all nodes."""
    log_dirs = [work / f"node-{node}" for node in NODES]
    write_log(log_dirs[0], "bench", spec)
    for node, log_dir in zip(NODES[1:], log_dirs[1:], strict=True):
        shutil.copytree(log_dirs[0], log_dir)
        path = log_dir / META_PROPERTIES_FILE
        text = path.read_text("utf-8")
        meta = parse_meta_properties(path.read_bytes(), str(path))
        text = text.replace(f"node.id={meta.node_id}", f"node.id={node}")
        text = text.replace(str(meta.directory_id), f"{node:022d}")
        path.write_text(text, "utf-8")
    return log_dirs


def main() -> None:
    """Generate, run in turn, print."""
    parser = argparse.ArgumentParser(description="Three replicas compared.")
    parser.add_argument("--records", type=int, default=8_500_000)
    parser.add_argument("--keys", type=int, default=2_100_000)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", default="0")
    args = parser.parse_args()
    spec = LogSpec(args.records, args.keys, value_bytes=args.value_bytes)
    costs: dict[str, list[Cost]] = {"compare": [], "digest": [], "compare_digests": []}
    with tempfile.TemporaryDirectory() as work:
        log_dirs = generate(Path(work), spec)
        size = sum(path.stat().st_size for path in log_dirs[0].glob("*/*.log"))
        key = Path(work, "key")
        key.write_bytes(bytes(32))
        kafkalog = [sys.executable, "-m", "kafkalog"]
        digests = [Path(work, f"{node}.digest") for node in NODES]
        for log_dir, digest in zip(log_dirs, digests, strict=True):
            words = ["digest", str(log_dir), "--output", str(digest), "--hash-key", str(key)]
            run_measured([*kafkalog, *words], args.core)
        for _ in range(args.rounds):
            again = [*words[:3], f"{digests[-1]}.again", *words[4:]]
            commands = {
                "compare": ["compare", *map(str, log_dirs), "--workers", "1"],
                "digest": again,
                "compare_digests": ["compare", *map(str, digests)],
            }
            for who, command in commands.items():
                costs[who].append(run_measured([*kafkalog, *command], args.core))
            Path(again[3]).unlink()
        digest_bytes = digests[0].stat().st_size
    cpu = median(costs["compare"])["cpu_seconds"]
    result = {
        "bench": "compare",
        "records": args.records,
        "bytes": 3 * size,
        "rounds": args.rounds,
        **{who: median(each) for who, each in costs.items()},
        "gb_per_cpu_second": round(3 * size / 1e9 / cpu, 2),
        "digest_bytes_a_record": round(digest_bytes / args.records, 1),
        **circumstances(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
