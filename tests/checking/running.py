"""A verify run in this process, and what it found."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from kafkalog.checking.finding import Finding
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.run import VerifyRun, verify_run
from kafkalog.checking.segment import check_segment


def verify(*log_dirs: Path, **options: Any) -> VerifyRun:
    """Check log dirs; the run is kept in `run_dir`, or in a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory() as scratch:
        options.setdefault("run_dir", scratch)
        request = VerifyRequest(tuple(map(str, log_dirs)), **options)
        said: list[str] = []
        run = verify_run(request, lambda tasks: map(check_segment, tasks), said.append)
        assert run.is_kept, said
        return run


def findings(*log_dirs: Path, **options: Any) -> tuple[Finding, ...]:
    """What is found; not that the node's metadata log is elsewhere, which it is of most log dirs
    that tests build.
    """
    found = verify(*log_dirs, **options).findings
    return tuple(finding for finding in found if finding.kind != "metadata-log-missing")


def failures(*log_dirs: Path, **options: Any) -> set[str]:
    """Ids of all that is more than information."""
    return {
        finding.kind for finding in findings(*log_dirs, **options) if finding.severity.is_failure
    }
