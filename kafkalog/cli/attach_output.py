"""How `attach` ends, in place or of a bucket: its last line and the exit code."""

from __future__ import annotations

from kafkalog.cli.output import ExitCode
from kafkalog.restoring.attach import AttachRun, is_whole
from kafkalog.texts import format_count


def summary(run: AttachRun, count: int, seconds: float) -> str:
    """`count`: partitions that the metadata has."""
    partitions = format_count(count, "partition")
    if run.applied:
        written = len(run.results)
        return f"{partitions} attached, {written} directories written in {seconds:.1f} s"
    planned = f"{partitions} planned in {seconds:.1f} s"
    return f"{planned}; nothing was changed (--apply does)"


def exit_code_of(run: AttachRun) -> ExitCode:
    """FINDINGS where anything is refused or not whole."""
    if run.faults:
        return ExitCode.FAULT
    if run.plan.refusals or run.problems or (run.applied and not is_whole(run)):
        return ExitCode.FINDINGS
    return ExitCode.DONE
