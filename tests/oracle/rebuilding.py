"""Logs whose indexes and snapshots are to be rebuilt: by Kafka's loader in one copy, by us in the
other. `random_case(seed)` makes the log with Kafka's own classes and then breaks what lies beside.
"""

from __future__ import annotations

import contextlib
import io
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.oracle.compare import Difference, _compare_snapshots
from tests.oracle.kafka import Kafka, KafkaFailedError
from tests.oracle.scripts import START_MS, random_scenario

INDEXES = (".index", ".timeindex", ".txnindex")
TORN_TAIL = bytes.fromhex("00000000000000070000010000000000020000")
EPOCHS, NO_EPOCHS = "leader-epoch-checkpoint", ("", "0\n0\n")


@dataclass(frozen=True, slots=True)
class Case:
    """A log dir with one partition, and what Kafka is told when it loads it."""

    log_dir: Path
    partition: str
    now_ms: int
    config: Mapping[str, str]
    producer_expiry_ms: int


def random_case(seed: int, kafka: Kafka, log_dir: Path, *, keyless: bool = False) -> Case:
    """A log of some rounds of appends and cleanings; every third transactional, every fourth with
    legacy batches. `keyless` mixes in null and empty keys.
    """
    scenario = random_scenario(
        seed, keyless=keyless, transactional=seed % 3 == 1, legacy=seed % 4 == 2
    )
    log_start, log_end, clock = 0, 0, START_MS
    expiry = scenario.producer_expiry_ms
    config: Mapping[str, str] = scenario.config
    log_dir.mkdir(parents=True)
    for _ in range(min(scenario.rounds, 3)):
        appended = scenario.next_round(log_start, log_end, clock)
        # of its own accord Kafka only rolls for what an index of the smallest size holds
        config = {**appended.config, "segment.index.bytes": "4096"}
        options = {"config": config, "producer_expiry_ms": expiry}
        name = scenario.partition_name
        written = kafka.write(log_dir / name, appended.lines, now_ms=clock, **options)  # type: ignore[arg-type]
        log_start, log_end = int(written["logStartOffset"]), int(written["logEndOffset"])
        clock = int(written["now"]) + appended.clean_after_ms
        with contextlib.suppress(KafkaFailedError):  # what it cannot clean it leaves
            kafka.clean(log_dir, name, now_ms=clock, high_watermark=log_end, **options)  # type: ignore[arg-type]
    return Case(log_dir, scenario.partition_name, clock, config, expiry)


def lose_everything(directory: Path) -> None:
    """Only the `.log` files stay."""
    for path in list(directory.iterdir()):
        if path.suffix in (*INDEXES, ".snapshot") or path.name == EPOCHS:
            path.unlink()


def break_files(directory: Path, rnd: random.Random) -> None:
    """Indexes and snapshots that are missing, cut, longer, of wrong content; maybe a torn log."""
    for path in sorted(directory.iterdir()):
        if path.suffix not in (*INDEXES, ".snapshot") or rnd.random() < 0.4:
            continue
        data = path.read_bytes()
        if path.suffix == ".txnindex":  # read when it is loaded: only whole entries
            path.write_bytes(data[: len(data) // 34 // 2 * 34])
            continue
        change = rnd.randrange(5)
        if change == 0:
            path.unlink()
        elif change == 1:
            path.write_bytes(data + bytes(rnd.choice((8, 12, 24, 4096))))
        elif change == 2:
            path.write_bytes(data[: len(data) * 2 // 3])
        elif change == 3:
            path.write_bytes(data + rnd.randbytes(5))
        elif data:
            at = rnd.randrange(len(data))
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
    if rnd.random() < 0.3:
        log = max(directory.glob("*.log"))
        log.write_bytes(log.read_bytes() + TORN_TAIL[: rnd.randint(1, len(TORN_TAIL))])


def recover_with_kafkalog(case: Case, log_dir: Path, *more: str) -> tuple[int, str]:
    """`kafkalog recover` of a copy in this process; exit code and stdout."""
    from kafkalog.cli.main import main

    config = {**case.config, "producer.id.expiration.ms": str(case.producer_expiry_ms)}
    arguments = ["recover", "--log-dir", str(log_dir), "--topic", "*", "--now", str(case.now_ms)]
    arguments += ["--json", *more]
    for name, value in config.items():
        arguments += ["--config", f"{name}={value}"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue() or err.getvalue()


def compare_rebuilt(
    ours: Path, kafkas: Path, source: Path, *, may_know_more: bool
) -> list[Difference]:
    """Every difference of the partition directories after both rebuilt them.

    A loader removes the snapshots at or below the log start, which ours leaves to it. With
    `may_know_more` a snapshot that was there before may hold what the log does not tell any more.
    """
    names = {d: {p.name for p in d.iterdir() if p.suffix != ".deleted"} for d in (ours, kafkas)}
    bases = sorted(path.stem for path in ours.glob("*.log"))
    first = bases[0]
    snapshots = sorted(n for n in names[kafkas] if n.endswith(".snapshot"))
    # where legacy batches end a log, one is left over, for the next load to remove
    passing = {n for n in snapshots[:-1] if n.partition(".")[0] not in bases}
    if (kafkas / EPOCHS).exists() and (kafkas / EPOCHS).read_text() in NO_EPOCHS:
        passing.add(EPOCHS)
    missing = names[kafkas] - names[ours] - passing
    found = [Difference(n, "file", "none", "there") for n in sorted(missing)]
    for name in sorted(names[ours]):
        mine, other = ours / name, kafkas / name
        was_there = (source / name).exists()
        if name.endswith(".snapshot") and not other.exists():
            if not (was_there and name.partition(".")[0] <= first):
                found.append(Difference(name, "file", "there", "none"))
        elif not other.exists():
            found.append(Difference(name, "file", "there", "none"))
        elif mine.read_bytes() == other.read_bytes():
            continue
        elif name == EPOCHS and may_know_more:
            # with us an epoch without a batch stays, and where one below the log start began
            if not _epochs(other) <= _epochs(mine):
                found.append(Difference(name, "epochs", _epochs(mine), _epochs(other)))
        elif name.endswith(".snapshot"):
            untouched = was_there and mine.read_bytes() == (source / name).read_bytes()
            if not (may_know_more and untouched):
                found += _compare_snapshots(mine, other)
        else:
            one, due = mine.read_bytes(), other.read_bytes()
            found.append(Difference(name, "bytes", one, due))
    return found


def _epochs(path: Path) -> set[str]:
    return {line.split()[0] for line in path.read_text().splitlines()[2:]}


def rebuild_both(
    case: Case, kafka: Kafka, work: Path, *, may_know_more: bool = False
) -> list[Difference]:
    """Rebuild a copy each, compare, and have Kafka load ours as after a clean stop."""
    kafkas, ours = work / "kafkas", work / "ours"
    shutil.copytree(case.log_dir, kafkas)
    shutil.copytree(case.log_dir, ours)
    options = {"now_ms": case.now_ms, "config": case.config}
    options["producer_expiry_ms"] = case.producer_expiry_ms
    expected = kafka.recover(kafkas, case.partition, **options)  # type: ignore[arg-type]
    code, said = recover_with_kafkalog(case, ours, "--apply", "--no-undo")
    if code != 0:
        return [Difference(case.partition, "exit code", code, said)]
    found = compare_rebuilt(
        ours / case.partition,
        kafkas / case.partition,
        case.log_dir / case.partition,
        may_know_more=may_know_more,
    )
    again, said = recover_with_kafkalog(case, ours)
    if again != 0:
        found.append(Difference(case.partition, "second look", again, said))
    loaded = kafka.open_once(ours, case.partition, **options)  # type: ignore[arg-type]
    facts = ("logStartOffset", "logEndOffset", "lastStableOffset", "numberOfSegments")
    if not may_know_more:
        facts += ("producers",)  # type: ignore[assignment]
    found += [
        Difference(case.partition, f"loaded {fact}", loaded[fact], expected[fact])
        for fact in facts
        if loaded[fact] != expected[fact]
    ]
    return found
