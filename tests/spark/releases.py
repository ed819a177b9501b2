"""What each release of Spark has, as marks on the tests that show it.

A feature's test runs on every release: where the feature is there it has to pass, elsewhere it has
to be refused with an InvalidConfigError that names it. So the documents' table is what was tested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException

from kafkalog.errors import InvalidConfigError
from kafkalog.spark.releases import RELEASE

# The newest patch of each is what `make matrix` installs.
RELEASES = ("3.5", "4.0", "4.1", "4.2", "4.3")
# Feature → the releases that have it.
FEATURES: dict[str, tuple[str, ...]] = {}


def feature(
    name: str, *, since: str = "3.5", until: str = "4.3", refused: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test of a feature that the releases `since` to `until` have. On others the error has to say
    `refused`."""
    there = RELEASES[RELEASES.index(since) : RELEASES.index(until) + 1]
    FEATURES[name] = there

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            if RELEASE in there:
                test(*args, **kwargs)
                return
            with pytest.raises((InvalidConfigError, PySparkException), match=refused):
                test(*args, **kwargs)

        return pytest.mark.matrix(run)

    return mark
