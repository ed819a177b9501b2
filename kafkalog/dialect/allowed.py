"""What runs on DuckDB, by name: for the documents, and for tests that run each on both engines."""

from __future__ import annotations

from kafkalog.dialect.functions import SIMPLE
from kafkalog.dialect.scope import AGGREGATES
from kafkalog.dialect.special import LAZY, SPECIAL
from kafkalog.dialect.windows import WINDOW_FUNCTIONS

# Whose arguments may have words between them, which the parser knows.
_WITH_WORDS = ("extract", "substring", "trim")


def function_names() -> list[str]:
    """Functions of a row."""
    return sorted({*SIMPLE, *SPECIAL, *LAZY, *_WITH_WORDS})


def aggregate_names() -> list[str]:
    """Aggregates, over groups and in windows."""
    return sorted(AGGREGATES)


def window_names() -> list[str]:
    """Functions that are for windows only."""
    return sorted(WINDOW_FUNCTIONS)
