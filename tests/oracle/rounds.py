"""Plays a scenario round by round: Kafka appends, Kafka cleans copy A, we clean copy B, compare.

Each round starts from Kafka's result of the one before, so that a mistake of ours shows in the
round that made it. `Compact` is the thing under test; `compact_with_kafkalog` is the real one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.oracle.compare import compare_log_dirs
from tests.oracle.kafka import MAP_BYTES, Answer, Kafka, KafkaFailedError
from tests.oracle.scripts import START_MS, Scenario
from tests.oracle.setup import CACHE

SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class CompactCall:
    """What both cleaners are told. `high_watermark` None = as checkpointed; `dedupe_buffer_size`
    None = a map with room for every key.
    """

    log_dir: Path
    topic: str
    partition: int
    now_ms: int
    config: Mapping[str, str]
    high_watermark: int | None
    producer_expiry_ms: int
    keyless: bool
    kafka_version: str = "4.3"
    dedupe_buffer_size: int | None = None

    @property
    def partition_name(self) -> str:
        return f"{self.topic}-{self.partition}"


# Answers with the facts of the round to be compared with Kafka's; raises where it did not run.
Compact = Callable[[CompactCall], Mapping[str, Any]]


@dataclass
class Outcome:
    """What came of a scenario. `complaints` is empty where everything was equal."""

    seed: int
    rounds: int = 0
    cleaned: int = 0
    full_maps: int = 0
    deletions: int = 0
    kafka_failures: int = 0
    complaints: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = f"seed {self.seed}, round {self.rounds}: {len(self.complaints)} differences"
        return "\n  ".join([head, *self.complaints[:40]])


class CompactFailedError(Exception):
    """The verb did not end with exit code 0."""


def compact_with_kafkalog(call: CompactCall, *more: str) -> Mapping[str, Any]:
    """`kafkalog compact --apply` in this process; the one element of its JSON's `partitions`."""
    from kafkalog.cli.main import main  # late: the harness is tested without the package

    config = {**call.config, "producer.id.expiration.ms": str(call.producer_expiry_ms)}
    arguments = ["compact", "--log-dir", str(call.log_dir), "--topic", call.topic, "--apply"]
    arguments += ["--now", str(call.now_ms), "--no-undo", "--json"]
    arguments += ["--kafka-version", call.kafka_version]
    for name, value in config.items():
        arguments += ["--config", f"{name}={value}"]
    # of a broker's log dir, whose metadata log has settings of its own
    arguments += ["--force", "config-differs", *more]
    if call.high_watermark is not None:
        arguments += ["--high-watermark", str(call.high_watermark)]
    if call.dedupe_buffer_size is not None:
        arguments += ["--dedupe-buffer-size", str(call.dedupe_buffer_size)]
    if call.keyless:
        arguments += ["--force", "null-keys"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    if code != 0:
        raise CompactFailedError(f"exit code {code}: {err.getvalue()} {out.getvalue()}")
    (result,) = json.loads(out.getvalue())["partitions"]
    facts: Mapping[str, Any] = result
    return facts


def compact_with_kafka(kafka: Kafka) -> Compact:
    """Kafka in the place of the thing under test: the harness then has to find no difference."""

    def compact(call: CompactCall) -> Mapping[str, Any]:
        return _clean_with_kafka(kafka, call)

    return compact


def play(
    scenario: Scenario,
    kafka: Kafka,
    work: Path,
    compact: Compact,
    *,
    after_round: Callable[[Path], None] | None = None,
) -> Outcome:
    """All rounds of a scenario in the empty directory `work`; stops at the first difference."""
    outcome = Outcome(scenario.seed)
    base = work / "base"
    base.mkdir(parents=True)
    log_start, log_end, clock = 0, 0, START_MS
    for number in range(scenario.rounds):
        appended = scenario.next_round(log_start, log_end, clock)
        expiry = scenario.producer_expiry_ms
        written = kafka.write(
            base / scenario.partition_name,
            appended.lines,
            now_ms=clock,
            config=appended.config,
            producer_expiry_ms=expiry,
        )
        log_start, log_end = int(written["logStartOffset"]), int(written["logEndOffset"])
        clock = int(written["now"]) + appended.clean_after_ms
        config = _exact_fit(appended.config, base / scenario.partition_name, number)
        # opening alone changes a directory (stray snapshots, expired producers)
        kafka.open_once(
            base,
            scenario.partition_name,
            now_ms=clock,
            config=config,
            producer_expiry_ms=expiry,
        )
        if scenario.legacy_share:
            _set_times(base, scenario, number, clock)
        if appended.cleaner_checkpoint is not None:
            _set_checkpoint(base, scenario, appended.cleaner_checkpoint)
        kafkas, ours = work / f"kafka-{number}", work / f"ours-{number}"
        copy_log_dir(base, kafkas)
        copy_log_dir(base, ours)
        outcome.rounds += 1
        call = CompactCall(
            log_dir=kafkas,
            topic=scenario.topic,
            partition=scenario.partition,
            now_ms=clock,
            config=config,
            high_watermark=appended.high_watermark,
            producer_expiry_ms=expiry,
            keyless=scenario.keyless,
            kafka_version=kafka.line,
            dedupe_buffer_size=scenario.dedupe_buffer_size,
        )
        try:
            expected = _clean_with_kafka(kafka, call)
        except KafkaFailedError:
            # a partition that Kafka calls uncleanable has no result to compare with
            outcome.kafka_failures += 1
            outcome.complaints += _not_refused(compact, replace(call, log_dir=ours))
            break
        outcome.cleaned += not expected["skipped"]
        outcome.full_maps += _map_was_full(expected)
        outcome.complaints += _run_and_compare(
            compact,
            replace(call, log_dir=ours),
            expected,
            kafkas=kafkas,
            source=base,
            kafka=kafka,
            ignored=_come_and_go(log_start, log_end, base / scenario.partition_name),
        )
        if outcome.complaints:
            break
        if after_round is not None:
            after_round(ours / scenario.partition_name)
        if appended.retains:
            log_start = _retain_both(outcome, kafka, call, ours, base, log_start == log_end)
            if outcome.complaints:
                break
        shutil.rmtree(ours)
        shutil.rmtree(base)
        base = kafkas
    return outcome


def play_and_keep_failed(scenario: Scenario, kafka: Kafka, compact: Compact) -> Outcome:
    """play() in a scratch directory; a failed case is kept under `.cache/oracle/failed`."""
    with work_directory() as work:
        try:
            outcome = play(scenario, kafka, work / "case", compact)
        except Exception as error:
            _keep(work / "case", scenario.seed)
            error.add_note(f"scenario {scenario.seed}, Kafka {kafka.line}")
            raise
        if outcome.complaints:
            _keep(work / "case", scenario.seed)
    return outcome


@contextlib.contextmanager
def work_directory() -> Iterator[Path]:
    """A scratch directory, in memory where there is room for one there."""
    where = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="kafkalog-oracle-", dir=where) as path:
        yield Path(path)


def copy_log_dir(source: Path, target: Path) -> None:
    """Contents and times of modification; a third of the system calls of `shutil.copytree`."""
    target.mkdir()
    with os.scandir(source) as entries:
        for entry in entries:
            copy = target / entry.name
            if entry.is_dir():
                copy_log_dir(Path(entry.path), copy)
                continue
            copy.write_bytes(Path(entry.path).read_bytes())
            os.utime(copy, ns=(entry.stat().st_atime_ns, entry.stat().st_mtime_ns))


# -- the parts -----------------------------------------------------------------------------------


def _keep(case: Path, seed: int) -> None:
    kept = CACHE / "failed" / f"scenario-{seed}"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(case, kept)


def _set_times(base: Path, scenario: Scenario, number: int, clock: int) -> None:
    """Now and then other times of modification, and a first dirty offset further on: the rule for
    legacy tombstones compares the times of clean and of dirty segments.
    """
    rnd = random.Random(scenario.seed * 100 + number)
    logs = sorted((base / scenario.partition_name).glob("*.log"))[:-1]
    if len(logs) < 2 or rnd.random() < 0.4:
        return
    retention = int(scenario.config["delete.retention.ms"])
    for log in logs:
        age_ms = rnd.choice((0, 1, 5000, retention, retention + 1, 2 * retention))
        os.utime(log, ns=((clock - age_ms) * 1_000_000,) * 2)
    if number == 0:
        offset = int(rnd.choice(logs[1:]).stem) + rnd.choice((0, 0, 1))
        _set_checkpoint(base, scenario, offset)


def _set_checkpoint(log_dir: Path, scenario: Scenario, offset: int) -> None:
    (log_dir / "cleaner-offset-checkpoint").write_text(
        f"0\n1\n{scenario.topic} {scenario.partition} {offset}\n"
    )


def _exact_fit(config: Mapping[str, str], partition_dir: Path, number: int) -> dict[str, str]:
    """Now and then a limit that neighbouring segments reach to the byte: they still merge."""
    logs = sorted(partition_dir.glob("*.log"))[:-1]
    rnd = random.Random(sum(log.stat().st_size for log in logs) + number)
    draw = rnd.random()
    if len(logs) < 2 or draw > 0.15:
        return dict(config)
    first = rnd.randrange(len(logs) - 1)
    few = logs[first : first + rnd.randint(2, 4)]
    if draw < 0.1:
        log_bytes = max(1, sum(f.stat().st_size for f in few))  # all of them may be empty
        return {**config, "internal.segment.bytes": str(log_bytes)}
    index_bytes = sum(f.with_suffix(".index").stat().st_size for f in few)
    # Kafka's time index needs a spare entry, whatever the sums allow; and the active segment must
    # still open
    active = _active_log(partition_dir)
    room = max(
        12 + sum(f.with_suffix(".timeindex").stat().st_size for f in few),
        *(12 + active.with_suffix(suffix).stat().st_size for suffix in (".index", ".timeindex")),
    )
    return (
        {**config, "segment.index.bytes": str(index_bytes)} if index_bytes >= room else {**config}
    )


def _active_log(partition_dir: Path) -> Path:
    return max(partition_dir.glob("*.log"))


def _not_refused(compact: Compact, call: CompactCall) -> list[str]:
    """What Kafka cannot clean for ever must be left alone, and named, by us as well."""
    with contextlib.suppress(CompactFailedError):
        compact(call)
        return ["Kafka gives up on this partition, ours does not"]
    return []


def _retain_both(
    outcome: Outcome,
    kafka: Kafka,
    call: CompactCall,
    ours: Path,
    source: Path,
    everything_deleted: bool,
) -> int:
    """Retention on Kafka's result of the round and on ours; the log start offset after it."""
    from tests.oracle.retention import RetentionCall, retain_and_compare  # late, as above

    expected, found = retain_and_compare(
        RetentionCall(
            now_ms=call.now_ms,
            config=call.config,
            high_watermark=call.high_watermark,
            kafka_version=kafka.line,
            partition_name=call.partition_name,
            producer_expiry_ms=call.producer_expiry_ms,
        ),
        kafka,
        ours=ours,
        kafkas=call.log_dir,
        source=source,
        everything_deleted=everything_deleted,
    )
    outcome.deletions += bool(expected["deleted"])
    outcome.complaints += [f"retention: {line}" for line in found]
    return int(expected["logStartOffset"])


def _come_and_go(log_start: int, log_end: int, partition_dir: Path) -> frozenset[str]:
    """Where every record is deleted (log start = log end), Kafka removes the snapshots each time it
    opens a log that has them, and writes them each time it opens or closes one that has not.
    """
    if log_start != log_end:
        return frozenset()
    bases = {path.stem for path in partition_dir.glob("*.log")}
    return frozenset(f"{offset}.snapshot" for offset in {*bases, f"{log_end:020d}"})


def _map_was_full(answer: Answer) -> bool:
    return bool(
        not answer["skipped"] and answer["endOffset"] < answer["effectiveUncleanableOffset"]
    )


def _run_and_compare(
    compact: Compact,
    call: CompactCall,
    expected: Answer,
    *,
    kafkas: Path,
    source: Path,
    kafka: Kafka,
    ignored: frozenset[str],
) -> list[str]:
    try:
        facts = compact(call)
    except CompactFailedError as error:
        return [str(error)]
    names = ["firstDirtyOffset", "firstUncleanableOffset"]
    names += [] if expected["skipped"] else ["endOffset"]
    complaints = [
        f"{name}: ours {facts.get(name)}, Kafka's {expected[name]}"
        for name in names
        if facts.get(name) != expected[name]
    ]
    differences = compare_log_dirs(
        call.log_dir,
        kafkas,
        call.partition_name,
        source=source,
        kafka=kafka,
        index_interval_bytes=int(call.config["index.interval.bytes"]),
        ignored=ignored,
    )
    return complaints + [str(difference) for difference in differences]


def _clean_with_kafka(kafka: Kafka, call: CompactCall) -> Answer:
    return kafka.clean(
        call.log_dir,
        call.partition_name,
        now_ms=call.now_ms,
        config=call.config,
        high_watermark="checkpoint" if call.high_watermark is None else call.high_watermark,
        obey_ratio=True,
        producer_expiry_ms=call.producer_expiry_ms,
        map_bytes=MAP_BYTES if call.dedupe_buffer_size is None else call.dedupe_buffer_size,
    )
