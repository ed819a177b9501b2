"""The fault log, written once and compacted undisturbed once; the oracle's JVM."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.operations.faults.breaking_files import CountingFiles
from tests.operations.faults.logs import FaultLog, compact, contents, write_fault_log
from tests.oracle.kafka import Kafka


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """The log before, and what a run that nothing disturbs does to it."""

    before: FaultLog
    steps: list[str]
    after: dict[str, tuple[bytes, int]]

    def copy(self, target: Path) -> Path:
        """A fresh copy of the log dir before the run, modification times and all."""
        return Path(shutil.copytree(self.before.log_dir, target))


@pytest.fixture(scope="session")
def undisturbed() -> Iterator[Undisturbed]:
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kafkalog-", dir=parent) as work:
        before = write_fault_log(Path(work, "before"))
        after = shutil.copytree(before.log_dir, Path(work, "after"))
        files = CountingFiles()
        run = compact(after, files)
        assert [result.status for result in run.results] == ["compacted"]
        yield Undisturbed(before, files.steps, contents(after))


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    with Kafka() as running:
        yield running
