"""What is so of a whole log dir and is said once: settings that are not known, times of a copy, how
the broker left it. Partitions find such things one by one; what they say is put together here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kafkalog.auditing.audit_kinds import ALL_KINDS
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.signs_of_life import SignsOfLife
from kafkalog.checking.finding import Finding
from kafkalog.texts import format_timestamp

SETTINGS_UNKNOWN = "settings-unknown"
_INCOMPLETE = "audit-incomplete"
# What a partition may say that is so of its log dir.
_OF_LOG_DIRS = frozenset({SETTINGS_UNKNOWN, _INCOMPLETE})
_MOST_TOPICS = 5


def reported_once(
    partitions: Sequence[AuditedPartition], log_dir_problems: Iterable[str]
) -> tuple[tuple[AuditedPartition, ...], list[Finding]]:
    """The partitions without what is so of their log dir, and that as findings of the log dirs.
    `log_dir_problems` are findings of their own.
    """
    problems = set(log_dir_problems)
    unknown: dict[tuple[str, str], list[AuditedPartition]] = {}
    kept = []
    for audited in partitions:
        if all(finding.kind not in _OF_LOG_DIRS for finding in audited.findings):
            kept.append(audited)
            continue
        known = {f"{audited.name}: {problem}" for problem in problems}
        own = [f for f in audited.findings if f.kind != _INCOMPLETE or f.text not in known]
        for finding in own:
            if finding.kind == SETTINGS_UNKNOWN:
                reason = finding.text.removeprefix(f"{audited.topic}: ")
                unknown.setdefault((audited.log_dir, reason), []).append(audited)
        own = [f for f in own if f.kind != SETTINGS_UNKNOWN]
        is_same = len(own) == len(audited.findings)
        kept.append(audited if is_same else replace(audited.whole, findings=tuple(own)))
    return tuple(kept), list(_unknown(unknown))


def _unknown(found: Mapping[tuple[str, str], Sequence[AuditedPartition]]) -> Iterator[Finding]:
    """One a log dir, with each reason."""
    by_log_dir: dict[str, list[str]] = {}
    for (log_dir, reason), partitions in found.items():
        topics = sorted({audited.topic for audited in partitions})
        more = f" and {len(topics) - _MOST_TOPICS} more" if len(topics) > _MOST_TOPICS else ""
        named = ", ".join(topics[:_MOST_TOPICS]) + more
        by_log_dir.setdefault(log_dir, []).append(f"{named}: {reason}")
    for log_dir, reasons in by_log_dir.items():
        more = f"; and {len(reasons) - _MOST_TOPICS} more" if len(reasons) > _MOST_TOPICS else ""
        yield _finding(SETTINGS_UNKNOWN, "; ".join(reasons[:_MOST_TOPICS]) + more, log_dir)


def find_signs(signs: Mapping[str, SignsOfLife]) -> Iterator[Finding]:
    """What the files of each log dir tell of its broker's last day."""
    for log_dir, each in signs.items():
        if each.is_copied:
            yield _finding(
                "times-of-a-copy",
                f"all files are of {format_timestamp(each.files_from_ms)} to "
                f"{format_timestamp(each.files_to_ms)}, later than the newest record, "
                f"{format_timestamp(each.by_logs_ms)}: the broker was alive until then, at least",
                log_dir,
            )
        if each.not_cut and not each.is_clean_stop:
            who = (
                "copied from a running broker, or from one that was killed"
                if each.is_copied
                else "its broker runs or was killed, or it was copied from a running one"
            )
            yield _finding(
                "not-stopped-in-order",
                f"{each.not_cut} of {each.partitions} active segments have indexes of full size, "
                f"and there is no .kafka_cleanshutdown: {who}",
                log_dir,
            )


def _finding(kind: str, text: str, log_dir: str) -> Finding:
    return Finding(kind, ALL_KINDS[kind].severity, text, log_dir, log_dir=log_dir)
