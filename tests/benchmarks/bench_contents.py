"""What reading all records costs an audit, and how far its estimates are off.

    python -m tests.benchmarks.bench_contents [--records 4000000] [--keys 1000000 4000000]

One partition of so many records (116 bytes each, uncompressed) whose keys are all different, or
drawn from fewer, audited by headers alone and with --estimate. Prints a JSON line each: CPU seconds
in all and a GiB, the largest resident size of a process in MiB, and by how much the count of keys
is off of the true one, beside the error that the audit states.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_scale import generate

_GIB = 1 << 30


def audit(log_dir: Path, work: Path, *options: str) -> tuple[dict[str, Any], float, float]:
    """(the document, CPU seconds, MiB) of a whole process and its workers."""
    command = [sys.executable, "-m", "kafkalog", "audit", "--log-dir", str(log_dir), "--json"]
    command += ["--config", "cleanup.policy=compact", "--workers", "1"]
    command += ["--run-dir", str(work / "runs"), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    document = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise RuntimeError(f"{command}: status {status}")
    return document, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(work: Path, records: int, keys: int) -> None:
    """One log, by headers and by records."""
    log_dir = work / f"{keys}-keys"
    arguments = ["--records", str(records), "--keys", str(keys)]
    size = generate(log_dir, *arguments, *(["--distinct"] if keys == records else []))
    for options in ((), ("--estimate",)):
        document, seconds, mib = audit(log_dir, work, *options)
        (row,) = document["contents"]
        line = {
            "bench": "contents", "options": " ".join(options), "records": records, "keys": keys,
            "bytes": size, "cpu_seconds": round(seconds, 2), "peak_mib": round(mib),
            "cpu_seconds_per_gib": round(seconds * _GIB / size, 2),
        }  # fmt: skip
        if options:
            line["distinct_keys"] = row["distinctKeys"]
            line["stated_error"] = row["distinctKeysError"]
            line["gain_bytes"] = row["compactionGainBytes"]
            line["gain_error"] = row["compactionGainError"]
        print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Audits that read all records.")
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, nargs="*", default=[1_000_000, 4_000_000])
    parser.add_argument("--dir", type=Path, default=None, help="where to work")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        for keys in args.keys:
            measure(Path(folder), args.records, keys)


if __name__ == "__main__":
    main()
