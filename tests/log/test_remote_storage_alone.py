"""Remote storage given as a log dir: named as what it is, never nothing found."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.log.log_dir import open_log_dir

SEGMENT = "00000000000000000000-7aGs9TQpSnyJyBHUi8V_Kg.log"
DIRECTORIES = [
    "kafka-tiered-storage/orders-0-4L6g3nShT-eMCtK--X86sw",  # LocalTieredStorage
    "orders-4L6g3nShT-eMCtK--X86sw/0",  # Aiven's plug-in
]


@pytest.mark.parametrize("directory", DIRECTORIES)
@pytest.mark.parametrize("above", [0, 1, 2])
def test_it_is_refused_by_its_name(tmp_path: Path, directory: str, above: int) -> None:
    path = tmp_path / directory
    path.mkdir(parents=True)
    (path / SEGMENT).write_bytes(b"x")
    given = [path, *path.parents][above]
    with pytest.raises(InvalidConfigError, match=f"remote storage of tiered topics.*{SEGMENT}"):
        open_log_dir(given)


def test_other_logs_are_none(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "server.log").write_bytes(b"x")
    with pytest.raises(InvalidConfigError, match="no log dir: it has neither"):
        open_log_dir(tmp_path)
