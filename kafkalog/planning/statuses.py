"""How a partition ends, in the words that plans, results, documents and tables have in common.

What a verb did has a word of its own, beside the verb's result: compacted, deleted, rebuilt.
"""

from __future__ import annotations

from typing import Final

SKIP: Final = "skip"  # nothing to do now
REFUSED: Final = "refused"  # a safety rule forbids it
LEFT: Final = "left"  # would be done, but a limit of the run leaves it for the next
FAILED: Final = "failed"  # was begun, or should have been, and could not be done


def is_done(status: str, *, applied: bool) -> bool:
    """Whether nothing about this partition needs to be looked at."""
    return status not in (FAILED, REFUSED) and not (applied and status == LEFT)
