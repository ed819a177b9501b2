"""A partition that cannot be read is named by each reader; the others are read where losses are
borne.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import kafkalog
from kafkalog.errors import InvalidConfigError
from kafkalog.log import listing
from kafkalog.reading.tables import read_view
from tests.support.log_builder import LogBuilder


def link_to_nowhere(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (log_dir / "lost-0").symlink_to(log_dir / "not-mounted" / "lost-0")


def no_permission(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may list all: the system's answer stands in for it."""
    path = LogBuilder(log_dir, "lost-0").batch(("k", "v")).write()
    scan = listing.os.scandir

    def refusing(directory: Path) -> object:
        if Path(directory) == path.resolve():
            raise PermissionError(13, "Permission denied", str(directory))
        return scan(directory)

    monkeypatch.setattr(listing.os, "scandir", refusing)


@pytest.mark.parametrize("breaks", [link_to_nowhere, no_permission])
@pytest.mark.parametrize("view", ["records", "batches", "transactions"])
def test_it_is_named(
    log_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    breaks: Callable[[Path, pytest.MonkeyPatch], None],
    view: str,
) -> None:
    LogBuilder(log_dir).batch(("a", "1")).batch(("b", "2")).write()
    breaks(log_dir, monkeypatch)
    with pytest.raises(InvalidConfigError, match="lost-0 cannot be read") as caught:
        read_view(view, log_dir)
    assert caught.value.path == str(log_dir / "lost-0")
    with caplog.at_level(logging.WARNING):
        kept = read_view(view, log_dir, mode="PERMISSIVE")
    assert len(kept) == (0 if view == "transactions" else 2)
    assert sum("lost-0 cannot be read" in line for line in caplog.messages) == 1
    # nobody asked for it
    assert len(read_view(view, log_dir, topics=["orders"])) == len(kept)
    given = kafkalog.read_records(log_dir, columns=["offset"], fail_on_data_loss=False)
    assert given.read_all()["offset"].to_pylist() == [0, 1]
