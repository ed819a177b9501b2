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

from kafkalog.auditing.known_files import KnownFiles
from kafkalog.auditing.request import AuditTask
from kafkalog.errors import KafkaLogError
from kafkalog.format.topics import COMPACT
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import JsonFacts, PartitionInventory
from kafkalog.planning.compaction_plan import CLEAN
from kafkalog.planning.config_sources import ResolvedConfig
from kafkalog.planning.force_rules import FORCE_CONFIG_DIFFERS, FORCE_NOTHING_DIRTY
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.plan_by_settings import (
    PlanInputs,
    compaction_by_settings,
    retention_by_settings,
    why_not_by_default,
)
from kafkalog.planning.policy_evidence import (
    POLICY,
    SUGGESTED,
    PolicyStanding,
    why_not_deleted_from,
)
from kafkalog.planning.retention_plan import BY_TIME, DELETE
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


def advise_retention(
    task: AuditTask, repaired: PartitionFacts, files: KnownFiles, bases: Collection[int]
) -> Advice:
    """`kafkalog retain` for segments that are due, with these base offsets; `repaired`: the facts
    of the segments that a broker repairs on load.
    """
    resolved, said = _resolved(task, files)
    try:
        facts = _retention_facts(task.loaded, repaired, files, resolved)
        plan = retention_by_settings(_inputs(task, resolved, facts), with_token=False)
    except (KafkaLogError, OSError) as error:
        return Advice(why_not=f"`kafkalog retain` stops at it: {error}")
    if plan.status != DELETE:
        return _deletes_nothing(plan.reason)
    if not {segment.base_offset for segment in plan.deleted}.issuperset(bases):
        kept = plan.kept[0]
        return Advice(
            why_not="`kafkalog retain` does not delete all of them: segment "
            f"{kept.base_offset}: {kept.reason}"
        )
    return Advice(_command("retain", task, resolved, said))


class AdviceByTime:
    """The same for logs that nothing is wrong with (`sound_facts`), of which time alone deletes
    what is due, by the settings in force: no plan is made, what could be against it is asked alone,
    and of a topic's policy once.
    """

    def __init__(self) -> None:
        # With the settings themselves, so that no others are made at their address.
        self._policies: dict[tuple[int, str, int | None], tuple[ResolvedConfig, str | None]] = {}

    def of(self, task: AuditTask, files: KnownFiles) -> Advice:
        """For a log; its policy is not one that the disk suggests."""
        resolved, said = _resolved(task, files)
        refusal = resolved.refusal
        if refusal is None:
            refusal = (
                self._why_not_by_policy(task, resolved)
                or _inputs(task, resolved, PartitionFacts(())).why_not_at_this_time
                or why_not_by_default(resolved.config, BY_TIME)
            )
        if refusal is not None:
            return _deletes_nothing(refusal)
        return Advice(_command("retain", task, resolved, said))

    def _why_not_by_policy(self, task: AuditTask, resolved: ResolvedConfig) -> str | None:
        """All that this goes by is of the topic, but for the line of the cleaner."""
        partition = task.partition
        name, cleaner = partition.topic_partition.topic, partition.checkpoints.cleaner
        key = id(resolved), name, cleaner
        if key not in self._policies:
            reason = why_not_deleted_from(
                partition,
                resolved.config,
                PartitionFacts(()),
                resolved.standing,
                is_forced=resolved.is_forced,
            )
            self._policies[key] = resolved, reason
        return self._policies[key][1]


def _deletes_nothing(reason: str) -> Advice:
    return Advice(why_not=f"`kafkalog retain` deletes nothing here: {reason}")


def advise_compaction(
    task: AuditTask, facts: PartitionFacts, files: KnownFiles, *, cleans_again: bool
) -> Advice:
    """`kafkalog compact` now; `cleans_again`: of a log in which nothing is dirty."""
    resolved, said = _resolved(task, files)
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


def _resolved(task: AuditTask, files: KnownFiles) -> tuple[ResolvedConfig, list[str]]:
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
        older = why_metadata_is_older(files.epochs, task.known_epoch)
    return (resolved if older is None else replace(resolved, refusal=older)), options


def _retention_facts(
    partition: PartitionInventory,
    repaired: PartitionFacts,
    files: KnownFiles,
    resolved: ResolvedConfig,
) -> PartitionFacts:
    """Those of `scan_retention_facts`, of which the audit has read most."""
    is_in_force = resolved.standing is PolicyStanding.IN_FORCE  # the mark does not count against it
    return PartitionFacts(
        repaired.segments,
        problems=(files.epochs_problem,) if files.epochs_problem else (),
        compaction_mark=None if is_in_force else files.compaction_mark(partition),
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
