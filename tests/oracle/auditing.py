"""Random logs for the audit's forecasts: what we say of a log at one moment, held against what
Kafka's own code does with copies of it at that moment and later.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kafkalog.auditing.audit_run import open_audit
from kafkalog.auditing.audited_partition import CompactionVerdict
from kafkalog.auditing.explanation import Explainer
from kafkalog.auditing.partition_audit import audit_closely
from kafkalog.auditing.request import AuditTask, audit_request
from kafkalog.cleaning.record_outcomes import STAYS
from kafkalog.errors import LogCleaningRefusedError
from kafkalog.planning.compaction_plan import CLEAN
from kafkalog.planning.retention_forecast import NEVER, RetentionForecast
from kafkalog.reading.tables import read_records
from kafkalog.requests.run_request import RunOptions
from tests.oracle.kafka import Answer, Kafka, KafkaFailedError
from tests.oracle.retention import LOG_CONFIG, NAME, RetentionCall, random_call, retention_script
from tests.oracle.rounds import copy_log_dir
from tests.oracle.scripts import START_MS, random_scenario

_DAY_MS = 86_400_000


@dataclass(slots=True)
class AuditTally:
    """What was compared; `complaints` is empty where all was equal."""

    logs: int = 0
    moments: int = 0
    deleting: int = 0
    waiting: int = 0
    cleanable: int = 0
    later: int = 0
    tiered: int = 0
    rolled: int = 0
    failing: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    uncleanable_reasons: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)


def _task(
    log_dir: Path, now_ms: int, config: Mapping[str, str], high_watermark: int | None, line: str
) -> AuditTask:
    """The one partition in a log dir, by these settings."""
    options: RunOptions = {
        "now_ms": now_ms,
        "config": [f"{key}={value}" for key, value in config.items()],
        "high_watermark": high_watermark,
        "kafka_version": line,
    }
    (task,) = open_audit(audit_request([str(log_dir)], options)).tasks
    return task


def _offsets(partition_dir: Path) -> set[int]:
    """Of all records that are there, control records too."""
    batches = read_records(partition_dir, columns=["offset"], include_control=True)
    return {offset for batch in batches for offset in batch.column(0).to_pylist()}


def forecast_of(
    log_dir: Path, call: RetentionCall, *, uploaded: int | None, line: str
) -> RetentionForecast:
    """What an audit says of the one partition in a log dir."""
    task = _task(log_dir, call.now_ms, call.config, call.high_watermark, line)
    return audit_closely(replace(task, uploaded_offset=uploaded))[0].retention


def play_forecast(seed: int, kafka: Kafka, work: Path, tally: AuditTally) -> None:
    """One log and its settings: of several moments the segments that Kafka then deletes are those
    that were said to go. Of a tiered log in two passes: one whose records are all deleted rolls in
    the first.
    """
    rnd = random.Random(seed)
    base = work / "base"
    base.mkdir(parents=True)
    written = kafka.write(base / NAME, retention_script(rnd), now_ms=START_MS, config=LOG_CONFIG)
    end = int(written["logEndOffset"])
    if rnd.random() < 0.4:
        start = rnd.choice((end, rnd.randint(int(written["logStartOffset"]), end)))
        written = kafka.write(
            base / NAME, [{"log_start": start}], now_ms=int(written["now"]), config=LOG_CONFIG
        )
    kafka.open_once(base, NAME, now_ms=int(written["now"]), config=LOG_CONFIG)
    call = random_call(rnd, written, kafka.line)
    uploaded = None
    is_compacted = "compact" in call.config["cleanup.policy"]
    if rnd.random() < 0.35 and not is_compacted:
        call, uploaded = _tiered(rnd, call, written, base / NAME)
        tally.tiered += 1
    forecast = forecast_of(base, call, uploaded=uploaded, line=kafka.line)
    tally.logs += 1
    tally.rolled += any("a pass rolls it" in segment.text for segment in forecast.segments)
    for time_ms in _moments(rnd, call.now_ms, [s.due_ms for s in forecast.segments]):
        deleted = _deleted_by_kafka(kafka, base, work / "copy", call, time_ms, uploaded)
        said = [s.base_offset for s in forecast.segments if NEVER < s.due_ms <= time_ms]
        if said != deleted:
            tally.complaints.append(
                f"seed {seed} {call} at {time_ms}: said {said}, Kafka deletes {deleted}"
            )
        tally.moments += 1
        tally.deleting += bool(deleted)
        tally.waiting += any(s.due_ms > time_ms for s in forecast.segments)


def _tiered(
    rnd: random.Random, call: RetentionCall, written: Answer, partition_dir: Path
) -> tuple[RetentionCall, int]:
    """The call's limits as local ones, or as total ones that hold locally; what is uploaded."""
    limits = {key: call.config[key] for key in ("retention.ms", "retention.bytes")}
    if rnd.random() < 0.6:
        limits = {f"local.{key}": value for key, value in limits.items() if value != "-1"}
    config = {key: value for key, value in call.config.items() if not key.startswith("retention")}
    tiered = {"remote.storage.enable": "true", "retention.ms": "-1", **limits}
    bases = [int(log.stem) for log in sorted(partition_dir.glob("*.log"))]
    uploaded = rnd.choice((-1, *(base - 1 for base in bases), int(written["logEndOffset"]) - 1))
    return replace(call, config={**config, **tiered}), max(uploaded, -1)


def _moments(rnd: random.Random, now_ms: int, due: list[int]) -> list[int]:
    """Now, and around times at which something is said to go."""
    later = sorted({time_ms for time_ms in due if time_ms > now_ms})
    chosen = rnd.sample(later, min(len(later), 2))
    around = [time_ms + delta for time_ms in chosen for delta in (-1, 0)]
    return [now_ms, *around, now_ms + rnd.choice((1, _DAY_MS, 400 * _DAY_MS))]


def _deleted_by_kafka(
    kafka: Kafka,
    base: Path,
    copy: Path,
    call: RetentionCall,
    time_ms: int,
    uploaded: int | None,
) -> list[int]:
    copy_log_dir(base, copy)
    watermark = "checkpoint" if call.high_watermark is None else call.high_watermark
    answer = kafka.retain(
        copy,
        NAME,
        now_ms=time_ms,
        config=call.config,
        high_watermark=watermark,
        uploaded=uploaded,
        passes=1 if uploaded is None else 2,
    )
    shutil.rmtree(copy)
    return [int(base_offset) for base_offset in answer["deleted"]]


def play_verdicts(seed: int, kafka: Kafka, work: Path, tally: AuditTally) -> None:
    """The rounds of one random log: before each the verdict of our audit is that of Kafka's cleaner
    manager, and where we say from when on it would clean, it does so then and not before.
    """
    scenario = random_scenario(
        seed, transactional=seed % 2 == 1, legacy=seed % 5 == 2, deleting=seed % 4 == 3
    )
    base = work / "base"
    base.mkdir(parents=True)
    name, expiry = scenario.partition_name, scenario.producer_expiry_ms
    log_start, log_end, clock = 0, 0, START_MS
    tally.logs += 1
    for number in range(scenario.rounds):
        appended = scenario.next_round(log_start, log_end, clock)
        written = kafka.write(
            base / name, appended.lines, now_ms=clock, config=appended.config,
            producer_expiry_ms=expiry,
        )  # fmt: skip
        log_start, log_end = int(written["logStartOffset"]), int(written["logEndOffset"])
        clock = int(written["now"]) + appended.clean_after_ms
        config = appended.config
        kafka.open_once(base, name, now_ms=clock, config=config, producer_expiry_ms=expiry)
        watermark = appended.high_watermark
        settings = {**config, "producer.id.expiration.ms": str(expiry)}
        explainer = Explainer(_task(base, clock, settings, watermark, kafka.line))
        ours = explainer.audited.compaction
        gives_up = False
        outcomes: dict[int, str] = {}
        if ours.status == CLEAN:
            try:
                outcomes = {each.offset: each.outcome for each in explainer.outcomes()}
            except LogCleaningRefusedError:  # as only the records tell: so must Kafka
                gives_up = True

        def clean(log_dir: Path, now_ms: int, *, obey: bool) -> Answer:
            return kafka.clean(
                log_dir, name, now_ms=now_ms, config=config, obey_ratio=obey,  # noqa: B023
                high_watermark="checkpoint" if watermark is None else watermark,  # noqa: B023
                producer_expiry_ms=expiry,
            )  # fmt: skip

        where = f"seed {seed} round {number}"
        if ours.status not in ("clean", "refused"):
            moments = (
                [(ours.cleanable_at_ms - 1, False), (ours.cleanable_at_ms, True)]
                if ours.cleanable_at_ms > 0
                else [(clock + 400 * _DAY_MS, False)]
            )
            for time_ms, expected in moments:
                copy_log_dir(base, work / "copy")
                found = clean(work / "copy", time_ms, obey=True)["eligible"]
                if found != expected:
                    tally.complaints.append(f"{where}: at {time_ms} eligible is {found}, {ours}")
                tally.later += expected
                shutil.rmtree(work / "copy")
        try:
            theirs = clean(base, clock, obey=False)
        except KafkaFailedError:
            tally.failing += 1
            # A log that is not to be cleaned yet fails here as well, for this round does not ask.
            waits = ours.status == "skip" and not clean(base, clock, obey=True)["eligible"]
            if ours.status != "refused" and not gives_up and not waits:
                tally.complaints.append(f"{where}: Kafka fails, we say {ours.status}")
            return
        if gives_up:
            tally.complaints.append(f"{where}: Kafka cleans what we say it gives up")
        tally.complaints += [f"{where}: {line}" for line in _verdict_differs(ours, theirs)]
        if outcomes:
            survivors = _offsets(base / name)
            # what lies below the log start nobody reads, whatever becomes of it
            readable = {o: f for o, f in outcomes.items() if o >= log_start}
            wrong = {o: f for o, f in readable.items() if (f == STAYS) != (o in survivors)}
            if wrong:
                tally.complaints.append(
                    f"{where}: outcomes {wrong}, Kafka keeps {sorted(survivors)}"
                )
            tally.outcomes.update(readable.values())
        tally.moments += 1
        tally.cleanable += bool(theirs["eligible"])
        tally.uncleanable_reasons.add(ours.uncleanable_reason.split()[0])


def _verdict_differs(ours: CompactionVerdict, theirs: Answer) -> list[str]:
    wanted = {
        "first_dirty_offset": theirs["firstDirtyOffset"],
        "first_uncleanable_offset": theirs["firstUncleanableOffset"],
        "cleanable_bytes": theirs["cleanableBytes"],
        "clean_bytes": theirs["cleanBytes"],
        "cleanable_ratio": theirs["cleanableRatio"] or 0.0,
        "must_compact": theirs["maxCompactionDelay"] > 0,
    }
    found = [
        f"{name}: ours {getattr(ours, name)}, Kafka's {value}"
        for name, value in wanted.items()
        if getattr(ours, name) != value
    ]
    if ours.status != "refused" and (ours.status == "clean") != theirs["eligible"]:
        found.append(f"status {ours.status} ({ours.reason}), Kafka's eligible {theirs['eligible']}")
    bound = _bound_of(ours)
    limits = {"high": theirs["highWatermark"], "transaction": theirs["lastStableOffset"]}
    if bound in limits and ours.first_uncleanable_offset > ours.first_dirty_offset:
        if limits[bound] != ours.first_uncleanable_offset:
            found.append(f"{ours.uncleanable_reason}: Kafka's is {limits[bound]}")
    return found


def _bound_of(ours: CompactionVerdict) -> str:
    return ours.uncleanable_reason.split()[0]
