"""The job as an operator starts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.cli.output import ExitCode
from tests.jobs.submit import submit

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def test_what_executors_cannot_follow_is_refused(log_dir: Path, tmp_path: Path) -> None:
    done = submit("list_segments.py", "--log-dir", str(log_dir), "--run-dir", str(tmp_path))
    assert done.returncode == ExitCode.USAGE, done.stdout + done.stderr
    assert "--run-dir is not for segments that executors list" in done.stdout + done.stderr
