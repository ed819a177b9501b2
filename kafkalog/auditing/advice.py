"""Commands that change a log, as an audit advises them: each is tried first on what the audit knows
of the partition, with the plan that the command itself would make. One that would do nothing is
not advised, and it is said why.

Whether a broker holds the lock nobody tries here: all of them are for when it does not run. What
only the records tell (keys that are missing) the command finds out before it changes anything.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace

from kafkalog.auditing.request import AuditTask
from kafkalog.errors import KafkaLogError
from kafkalog.format.topics import COMPACT
from kafkalog.log.compaction_signs import FIRST_BATCHES, compaction_mark
from kafkalog.log.inventory import JsonFacts, PartitionFacts, PartitionInventory, SegmentFacts
from kafkalog.log.retention_facts import read_leader_epochs, repaired_segments
from kafkalog.planning.compaction_plan import CLEAN
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.force_rules import FORCE_CONFIG_DIFFERS, FORCE_NOTHING_DIRTY
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.plan_by_settings import (
    PlanInputs,
    compaction_by_settings,
    retention_by_settings,
)
from kafkalog.planning.policy_evidence import POLICY, SUGGESTED, PolicyStanding
from kafkalog.planning.retention_plan import DELETE
from kafkalog.requests.run_settings import why_metadata_is_older


@dataclass(frozen=True, slots=True)
class Advice(JsonFacts):
    """A command that would do what it is for; without one, why there is none."""

    command: str = ""
    why_not: str = ""

    def text(self, otherwise: str) -> str:
        """`otherwise`: what helps where the command does not, and beside it."""
        if self.command:
            return f"{otherwise}, or {self.command}"
        return f"{otherwise}; {self.why_not}" if self.why_not else otherwise


def advise_retention(task: AuditTask, facts: PartitionFacts, bases: Collection[int]) -> Advice:
    """`kafkalog retain` for segments that are due, with these base offsets; `facts` are the
    audit's.
    """
    resolved, said = _resolved(task)
    try:
        plan = retention_by_settings(
            _inputs(task, resolved, _retention_facts(task.loaded, facts, resolved)),
            with_token=False,
        )
    except (KafkaLogError, OSError) as error:
        return Advice(why_not=f"`kafkalog retain` stops at it: {error}")
    if plan.status != DELETE:
        return Advice(why_not=f"`kafkalog retain` deletes nothing here: {plan.reason}")
    if not {segment.base_offset for segment in plan.deleted}.issuperset(bases):
        kept = plan.kept[0]
        return Advice(
            why_not="`kafkalog retain` does not delete all of them: segment "
            f"{kept.base_offset}: {kept.reason}"
        )
    return Advice(_command("retain", task, resolved, said))


def advise_compaction(task: AuditTask, facts: PartitionFacts, *, cleans_again: bool) -> Advice:
    """`kafkalog compact` now; `cleans_again`: of a log in which nothing is dirty."""
    resolved, said = _resolved(task)
    force = frozenset({FORCE_NOTHING_DIRTY} if cleans_again else ())
    inputs = replace(_inputs(task, resolved, facts), force=force)
    plan = compaction_by_settings(inputs, with_token=False)
    if plan.status != CLEAN:
        return nothing_to_compact(plan.reason)
    forced = [f"--force {FORCE_NOTHING_DIRTY}"] if cleans_again else []
    return Advice(_command("compact", task, resolved, [*said, *forced]))


def _inputs(task: AuditTask, resolved: ResolvedConfig, facts: PartitionFacts) -> PlanInputs:
    return PlanInputs(
        task.loaded,
        resolved,
        facts,
        now_ms=task.now_ms,
        high_watermark=task.assumed_high_watermark,
        kafka_version=task.kafka_version,
        clock_ms=task.clock_ms,
    )


def nothing_to_compact(reason: str) -> Advice:
    """None, for a plan's reason."""
    return Advice(why_not=f"`kafkalog compact` does nothing here: {reason}")


def _resolved(task: AuditTask) -> tuple[ResolvedConfig, list[str]]:
    """The settings by which the command goes, and the options that it needs for that. A policy that
    the disk proves and no setting has may be given, if nothing is deleted by it; no other one.
    """
    resolved = task.resolved
    options: list[str] = []
    suggested = resolved.in_force.source(POLICY) in SUGGESTED
    is_proven = suggested and resolved.in_force.cleanup_policy == COMPACT
    if is_proven and resolved.refusal is None and resolved.standing is PolicyStanding.UNKNOWN:
        resolved = replace(resolved, config=resolved.in_force, standing=PolicyStanding.SAID)
        options = [f"--config {POLICY}=compact"]
    older = None
    if task.known_epoch is not None and not resolved.unreliable:
        older = why_metadata_is_older(task.partition.path, task.known_epoch)
    return (resolved if older is None else replace(resolved, refusal=older)), options


def _retention_facts(
    partition: PartitionInventory, facts: PartitionFacts, resolved: ResolvedConfig
) -> PartitionFacts:
    """Those of `scan_retention_facts`, of which the audit has read most."""
    problems = []
    try:
        read_leader_epochs(partition.path)
    except (KafkaLogError, OSError) as error:
        problems.append(str(error))
    known: dict[int, SegmentFacts] = {each.base_offset: each for each in facts.segments}
    repaired = (known.get(segment.base_offset) for segment in repaired_segments(partition))
    is_in_force = resolved.standing is PolicyStanding.IN_FORCE  # the mark does not count against it
    return PartitionFacts(
        tuple(each for each in repaired if each is not None),
        problems=tuple(problems),
        compaction_mark=None
        if is_in_force
        else compaction_mark(partition.segments[:1], FIRST_BATCHES),
    )


def _command(verb: str, task: AuditTask, resolved: ResolvedConfig, more: list[str]) -> str:
    name = task.partition.topic_partition
    where = shlex.quote(task.partition.log_dir)
    words = [
        f"kafkalog {verb} --log-dir {where} --topic {name.topic} --topic-partition {name}",
        *_given(resolved),
        *more,
    ]
    if task.assumed_high_watermark is not None:
        words.append(f"--high-watermark {task.assumed_high_watermark}")
    if task.is_now_given:  # by the clock it would do something else
        words.append(f"--now {task.now_ms}")
    if resolved.is_forced:
        words.append(f"--force {FORCE_CONFIG_DIFFERS}")
    files = f", with the same {' and '.join(task.other_options)}," if task.other_options else ""
    return f"`{' '.join(words)} --apply`{files} while the broker does not run"


def _given(resolved: ResolvedConfig) -> list[str]:
    """The settings that options say, as options."""
    given = resolved.config.given()
    return [
        f"--config {shlex.quote(f'{key}={given[key]}')}"
        for key in sorted(given)
        if resolved.config.source(key) == LogConfig.OPTION
    ]
