"""How `make test` shares the suite between processes (`pytest -n 2`): a file stays with one of
them, and all files that use the Spark session with the same one, so that there is one session. What
takes long is started first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_LONG = ("spark", "broker", "oracle", "slow")
ROOT = Path(__file__).resolve().parents[2]


@cache
def process_group(file: str) -> str:
    """The files that go to one process: those of the Spark session, or each its own."""
    uses_session = "spark: SparkSession" in (ROOT / file).read_text(encoding="utf-8")
    return "spark session" if uses_session else file


class FileScheduling(LoadScopeScheduling):
    """Hands out groups of files, in the order in which the tests were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return process_group(nodeid.split("::")[0])


@pytest.hookimpl(optionalhook=True)  # a run without xdist has no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling:
    """Asked by the process that hands out the tests."""
    config.option.loadscopereorder = False
    return FileScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups that have a long test first; the order within a file stays."""
    long = set(_long_groups(items))
    items.sort(key=lambda item: process_group(_file(item)) not in long)


def _long_groups(items: list[pytest.Item]) -> Iterator[str]:
    for item in items:
        if any(item.get_closest_marker(mark) for mark in _LONG):
            yield process_group(_file(item))


def _file(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]
