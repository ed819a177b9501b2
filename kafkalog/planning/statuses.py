"""How a partition ends, in the words that plans, results, documents and tables have in common.

What a verb did has a word of its own, beside the verb's result: compacted, deleted, rebuilt.
"""

from __future__ import annotations

from typing import Final

from kafkalog.errors import LogCleaningRefusedError, describe_error, fault_text

SKIP: Final = "skip"  # nothing to do now
REFUSED: Final = "refused"  # a safety rule forbids it
LEFT: Final = "left"  # would be done, but a limit of the run leaves it for the next
FAILED: Final = "failed"  # was begun, or should have been, and could not be done


def ended_by(error: Exception, directory: str) -> tuple[str, str, str]:
    """Status, reason and fault of a partition whose work an error ended; the fault is the traceback
    of what only a fault of ours can raise, else empty."""
    if isinstance(error, LogCleaningRefusedError):
        return REFUSED, str(error), ""
    return FAILED, describe_error(error, directory), fault_text(error)


def is_done(status: str, *, applied: bool) -> bool:
    """Whether nothing about this partition needs to be looked at."""
    return status not in (FAILED, REFUSED) and not (applied and status == LEFT)
