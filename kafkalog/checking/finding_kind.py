"""What a kind of finding is: a row of the tables in `finding_kinds` and `cluster_kinds`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kafkalog.texts import format_count


class Severity(StrEnum):
    """ERROR: records are lost, hidden, or seen that should not be, now or at the next start.
    WARNING: a broker gets by, and something works worse or is about to go wrong. INFO: nothing to
    do; never the reason for an exit code.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Its place among them, the worst first."""
        return _RANKS[self]

    @property
    def is_failure(self) -> bool:
        """Whether a finding of it makes an exit code of 1."""
        return self is not Severity.INFO


def count_found(severities: Iterable[Severity]) -> str:
    """`1 error, 2 warnings, 3 info`, or that nothing was found."""
    counts = Counter(severities)
    found = [
        f"{counts[each]} {each}" if each is Severity.INFO else format_count(counts[each], each)
        for each in Severity
        if counts[each]
    ]
    return ", ".join(found) or "nothing found"


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A row of the table."""

    id: str
    severity: Severity
    means: str
    broker: str
    remedy: str
