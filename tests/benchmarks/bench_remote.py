"""How fast is a log in a bucket read, against obstore alone and against the same log on the disk?

    python -m tests.benchmarks.bench_remote [--records 6000000] [--rounds 3] [--latency-ms 20]

The bucket is a process that answers late and sends each answer no faster than a connection of a
store does (`range_server`): the rate is that of what is asked for at once, for obstore as for us.
Plain segments, and Aiven's layout with zstd and AES in chunks of 4 MiB and of 256 KiB.

Prints one JSON line: stored bytes a second of wall time, medians of processes that have started,
 obstore       all bytes of the `.log` objects in ranges of 4 MiB, eight at once
 decode        view `batches` with checksums of the log on the disk, or of objects in a directory
 scan          the same view of the bucket
 of_possible   scan against the slower of the two above
 peak_mib      of the process that scans
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from Crypto.PublicKey import RSA

from tests.benchmarks.generate import LogSpec, write_log
from tests.benchmarks.side_by_side import Cost, circumstances, fast_directory, median
from tests.support.aiven_store import Plugin
from tests.support.s3_server import BUCKET

_RANGE_BYTES, _AT_ONCE = 4 * 1024 * 1024, 8
PLAIN = "disk"
_CHUNK_BYTES = {PLAIN: None, "zstd-aes-4MiB": 4 * 1024 * 1024, "zstd-aes-256KiB": 256 * 1024}


def obstore_alone(root: str, place: str, size: int) -> int:
    """All `.log` objects below a place, `size` bytes of them."""
    import obstore

    from kafkalog.remote.bucket_client import open_client

    client = open_client(root)
    objects = [m for page in obstore.list(client, place) for m in page if m["path"].endswith("log")]
    ranges = [
        (m["path"], start, min(start + _RANGE_BYTES, m["size"]))
        for m in objects
        for start in range(0, m["size"], _RANGE_BYTES)
    ]

    def read(each: tuple[str, int, int]) -> int:
        return len(memoryview(obstore.get_range(client, each[0], start=each[1], end=each[2])))

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = sum(threads.map(read, ranges))
    if found != size:
        raise RuntimeError(f"{found} bytes of {size}")
    return found


def scan(place: str, remote: str | None, key: Path) -> int:
    """The view `batches` with checksums; how many rows."""
    import kafkalog

    if remote is None:
        return kafkalog.read_batches(place, verify_checksums=True).num_rows
    found = kafkalog.read_batches(
        place, verify_checksums=True, remote_dirs=[remote], remote_keys={"key1": str(key)}
    )
    return found.num_rows


def measured(call: Callable[[], int]) -> Cost:
    """In a process forked of this one, which has loaded the kernels."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        started = time.perf_counter()
        call()
        seconds = time.perf_counter() - started
        own = resource.getrusage(resource.RUSAGE_SELF)
        cost = seconds, own.ru_utime + own.ru_stime, own.ru_maxrss / 1024
        os.write(writer, json.dumps(cost).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as text:
        found = text.read()
    os.waitpid(child, 0)
    return Cost(*json.loads(found))


def figures(size: int, rounds: Sequence[tuple[Cost, Cost, Cost]]) -> dict[str, Any]:
    """Medians; the share is that of a round, since machines change their speed."""
    names = ("obstore", "decode", "scan")
    medians = {
        name: median(costs) for name, costs in zip(names, zip(*rounds, strict=True), strict=True)
    }
    shares = [
        max(own.wall_seconds, decode.wall_seconds) / scan.wall_seconds
        for own, decode, scan in rounds
    ]
    return {
        "stored_bytes": size,
        **{name: round(size / medians[name]["wall_seconds"]) for name in names},
        "of_possible": round(statistics.median(shares), 3),
        "cpu_seconds": {name: medians[name]["cpu_seconds"] for name in names},
        "peak_mib": round(medians["scan"]["peak_mib"]),
    }


@contextmanager
def served(directory: Path, latency_ms: float, connection_bytes: float) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.benchmarks.range_server", str(directory)]
    command += [f"--latency-ms={latency_ms}", f"--connection-bytes={connection_bytes}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(server.stdout.readline())}",
            "AWS_ACCESS_KEY_ID": "benchmark",
            "AWS_SECRET_ACCESS_KEY": "benchmark",
            "AWS_REGION": "us-east-1",
        }
        try:
            yield
        finally:
            server.terminate()


def prepared(directory: Path, records: int) -> tuple[Path, Path]:
    """A log dir, and its closed segments as the plug-in puts them into a store: what is left of it
    on the disk then, and the key."""
    log_dir, local, key = directory / PLAIN, directory / "local", directory / "key1.pem"
    logs = sorted(write_log(log_dir, "orders", LogSpec(records, keys=records // 4)).glob("*.log"))
    key.write_bytes(RSA.generate(2048).export_key())
    for kind, chunk_bytes in _CHUNK_BYTES.items():
        if chunk_bytes is not None:
            plugin = Plugin(chunk_bytes, is_compressed=True, key=("key1", key))
            for log, behind in pairwise(logs):
                plugin.copy(log, directory / kind, end_offset=int(behind.stem) - 1)
    (local / "orders-0").mkdir(parents=True)
    active = f"orders-0/{logs[-1].name}"
    for name in (active, "orders-0/leader-epoch-checkpoint", "meta.properties"):
        shutil.copy(log_dir / name, local / name)
    return local, key


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=6_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--connection-bytes", type=float, default=20e6)
    args = parser.parse_args()
    root, result = f"s3://{BUCKET}", dict[str, Any]()
    with tempfile.TemporaryDirectory(dir=fast_directory()) as scratch:
        directory = Path(scratch)
        local, key = prepared(directory, args.records)
        scan(str(directory / "disk"), None, key)
        with served(directory, args.latency_ms, args.connection_bytes):
            for kind in _CHUNK_BYTES:
                size = sum(path.stat().st_size for path in (directory / kind).rglob("*.log"))
                if kind == PLAIN:
                    places = [(str(directory / kind), None), (f"{root}/{kind}", None)]
                else:
                    places = [(str(local), str(directory / kind)), (str(local), f"{root}/{kind}")]
                calls = [partial(obstore_alone, root, kind, size)]
                calls += [partial(scan, *place, key) for place in places]
                rounds = []
                for _ in range(args.rounds):
                    own, decode, remote = map(measured, calls)
                    rounds.append((own, decode, remote))
                result[kind] = figures(size, rounds)
    print(json.dumps({"benchmark": "remote", **vars(args), **circumstances(), **result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
