"""What is uploaded, as far as its records can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.contents.uploads import read_uploads
from kafkalog.log.log_dir import open_log_dir
from tests.support.log_builder import LogBuilder


def test_records_that_cannot_be_read_are_counted(
    log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = [(None, b"\1\0"), (None, None), (None, b"\1\0\0\2")]
    path = LogBuilder(log_dir, "__remote_log_metadata-0").batch(*records).write()
    assert read_uploads(open_log_dir(str(log_dir))) == {}
    assert caplog.messages == [f"3 records of {path} cannot be read: not counted"]
