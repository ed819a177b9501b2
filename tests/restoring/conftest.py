"""What tests of restores share: a state directory of their own, and a log that has everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.restoring.test_restore import busy


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def source(log_dir: Path) -> Path:
    busy(log_dir / "source").write()
    return log_dir / "source"
