"""Runs `kafkalog` with these arguments and prints, as the last line, what the process took as JSON.

    python -m tests.support.process_costs compact --log-dir DIR …

Bytes are those that it asked the system for, of any file, but for what `sendfile` brings into the
page cache without a copy: the system counts these as read and as written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.peak_memory import peak_mib


@dataclass(frozen=True, slots=True)
class ProcessCosts:
    """Of a process as a whole, its start included; CPU with its children's. `disk_bytes_read`: what
    was not in the page cache, of all that it read.
    """

    cpu_seconds: float
    peak_bytes: int
    bytes_read: int
    bytes_written: int
    disk_bytes_read: int = 0
    system_seconds: float = 0.0
    wall_seconds: float = 0.0


def run_counted(*arguments: str) -> tuple[dict[str, Any], ProcessCosts]:
    """The JSON document that `kafkalog` prints with these arguments, and what it took."""
    command = [sys.executable, "-m", "tests.support.process_costs", *arguments]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    *document, last = process.stdout.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise RuntimeError(f"{command}: status {status}")
    process.returncode = 0
    wall = time.perf_counter() - started
    cpu = usage.ru_utime + usage.ru_stime
    costs = ProcessCosts(cpu, *json.loads(last), usage.ru_stime, wall)
    return json.loads("\n".join(document)), costs


if __name__ == "__main__":
    from kafkalog.cli.main import main

    sent, send = [0], os.sendfile

    def counted(*arguments: Any) -> int:
        done = send(*arguments)
        sent[0] += done
        return done

    os.sendfile = counted
    code = main(sys.argv[1:])
    lines = Path("/proc/self/io").read_text().splitlines()
    counts = {name: int(value) for name, value in (line.split(": ") for line in lines)}
    costs = [int(peak_mib() * 2**20), counts["rchar"] - sent[0], counts["wchar"] - sent[0]]
    costs.append(counts["read_bytes"])
    print("\n" + json.dumps(costs))  # noqa: T201 - a command's result
    sys.exit(code)
