"""What does a log dir of very many very small partitions cost the verbs that only read?

    python -m tests.benchmarks.bench_small_partitions [--partitions 2000] [--segments 5] [--more]
                                                      [--verbs audit segments …] [--rounds 3]

Each partition has so many segments of 4 KiB (three batches), their indexes, and an empty active
segment; ten partitions a topic. Each verb is a whole process on one core (`taskset`), with one
worker and the files in memory: `segments --json`, `audit --json` twice, the second time with
nothing changed, `segments` with what that kept, `info`, the plans of `retain` and `compact`, and
`verify`; with `--more` the plan of `recover`, and at last `compact --apply`. Prints one JSON line:
medians of wall and CPU seconds and of the peak in MiB by verb.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.side_by_side import Cost, circumstances, fast_directory, median
from tests.support.topics import topic_words

PARTITIONS_A_TOPIC = 10
_RECORDS_A_SEGMENT = 30
_GENERATE = """
import sys
from pathlib import Path
from tests.benchmarks.bench_small_partitions import generate
generate(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
"""
_AGAIN = "audit again"
_KEPT = "segments kept"
_APPLY = "compact apply"
VERBS = ("segments", "audit", _AGAIN, _KEPT, "info", "retain", "compact", "verify")
# The last one leaves other logs behind: for one round.
MORE_VERBS = ("recover", _APPLY)


def generate(log_dir: Path, partitions: int, segments: int) -> None:
    """One partition is written, the others are copies of it."""
    # In a process of its own: a child's peak memory starts at its parent's.
    from kafkalog.format import checkpoints
    from tests.benchmarks.generate import LogSpec, write_log

    spec = LogSpec(
        records=segments * _RECORDS_A_SEGMENT, keys=50, batch_bytes=1300, segment_bytes=4096
    )
    first = write_log(log_dir, "topic0", spec)
    files = [(file.name, file.read_bytes()) for file in first.iterdir()]
    per = PARTITIONS_A_TOPIC
    names = [(f"topic{number // per}", number % per) for number in range(partitions)]
    for topic, partition in names[1:]:
        directory = log_dir / f"{topic}-{partition}"
        directory.mkdir()
        for name, data in files:
            (directory / name).write_bytes(data)
    for name in (checkpoints.HIGH_WATERMARK_FILE, checkpoints.RECOVERY_POINT_FILE):
        lines = dict.fromkeys(names, spec.records)
        (log_dir / name).write_bytes(checkpoints.pack_offset_checkpoint(lines))


def command(verb: str, log_dir: Path, runs: Path) -> list[str]:
    """The verb's words."""
    words = [sys.executable, "-m", "kafkalog", verb.split()[0], "--log-dir", str(log_dir)]
    if verb in ("audit", _AGAIN, "segments", _KEPT):
        words.append("--json")
    if verb in ("audit", _AGAIN, "retain"):
        words += ["--config", "cleanup.policy=delete"]
    if verb == "retain":
        words += ["--config", f"retention.ms={7 * 86_400_000}"]
    if verb in ("compact", _APPLY):
        words += ["--config", "cleanup.policy=compact"]
    if verb == _APPLY:
        words += ["--apply", "--no-undo"]
    if verb in ("retain", "compact", "recover", _APPLY):
        # A plan for topics that are not named is refused where nothing says their policy.
        words += topic_words(log_dir)
    if verb != "info":
        # Where no audit is kept, whatever ran before.
        words += ["--run-dir", str(runs / "none" if verb == "segments" else runs)]
    if verb in ("audit", _AGAIN, "verify", "compact", "recover", _APPLY):
        words += ["--workers", "1"]
    return words


def measure(words: list[str], core: str, out: Path) -> Cost:
    """One process; exit code 1 says that something was found."""
    started = time.perf_counter()
    with out.open("wb") as file:
        process = subprocess.Popen(
            ["taskset", "-c", core, *words], stdout=file, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        raise SystemExit(f"{' '.join(words)} ended with {code}")
    wall = time.perf_counter() - started
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    """Generate, run the verbs, print."""
    parser = argparse.ArgumentParser(description="Very many very small partitions.")
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--segments", type=int, default=5, help="of each, without the active one")
    parser.add_argument("--verbs", nargs="+", choices=VERBS, default=VERBS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", default="0")
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: memory)")
    parser.add_argument("--more", action="store_true", help="those that change logs, in one round")
    args = parser.parse_args()
    if args.more and args.rounds > 1:
        parser.error("--more is for --rounds 1: it changes the logs")
    verbs = (*args.verbs, *(MORE_VERBS if args.more else ()))
    costs: dict[str, list[Cost]] = {verb: [] for verb in verbs}
    with tempfile.TemporaryDirectory(dir=args.dir or fast_directory()) as work:
        log_dir, runs, out = Path(work, "data"), Path(work, "runs"), Path(work, "out")
        log_dir.mkdir()
        subprocess.run(
            [sys.executable, "-c", _GENERATE, log_dir, str(args.partitions), str(args.segments)],
            check=True,
        )
        for _ in range(args.rounds):
            shutil.rmtree(runs, ignore_errors=True)
            if {_AGAIN, _KEPT} & {*verbs} and "audit" not in verbs:
                measure(command("audit", log_dir, runs), args.core, out)
            for verb in verbs:
                costs[verb].append(measure(command(verb, log_dir, runs), args.core, out))
    result = {
        "bench": "small_partitions",
        "partitions": args.partitions,
        "segments_a_partition": args.segments,
        "rounds": args.rounds,
        **{verb: median(each) for verb, each in costs.items()},
        **circumstances(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
