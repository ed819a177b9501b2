from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kafkalog.errors import LogChangedError
from kafkalog.log.storage import LocalFile


def test_a_file_is_read_at_any_position_into_the_callers_buffer(log_dir: Path) -> None:
    path = log_dir / "x.log"
    path.write_bytes(bytes(range(200)))
    stat = path.stat()
    buf = np.full(60, 0xEE, np.uint8)
    with LocalFile(str(path)) as file:
        assert (file.size, file.mtime_ns, file.inode) == (200, stat.st_mtime_ns, stat.st_ino)
        file.read_into(buf, 100, 50)
        assert file.read_bytes(190, 100) == bytes(range(190, 200))
        file.will_need(0, 200)
        file.will_need(100, 200, waits=True)
    assert buf.tobytes() == bytes(range(100, 150)) + b"\xee" * 10


def test_what_is_in_memory_is_not_waited_for(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log_dir / "x.log"
    path.write_bytes(bytes(200))

    def sendfile(*_: object) -> int:
        raise AssertionError("was read once more")

    monkeypatch.setattr("os.sendfile", sendfile)
    with LocalFile(str(path)) as file:
        file.will_need(0, 200, waits=True)


def test_a_short_read_says_where_the_file_ends(log_dir: Path) -> None:
    path = log_dir / "x.log"
    path.write_bytes(bytes(200))
    with LocalFile(str(path)) as file, pytest.raises(LogChangedError) as error:
        file.read_into(np.zeros(100, np.uint8), 150, 100)
    assert (error.value.path, error.value.position) == (str(path), 200)


def test_a_closed_file_is_closed(log_dir: Path) -> None:
    path = log_dir / "x.log"
    path.write_bytes(b"x")
    file = LocalFile(str(path))
    file.close()
    file.close()
    with pytest.raises(OSError, match="descriptor"):
        file.read_bytes(0, 1)


def test_what_cannot_be_opened_is_the_systems_error(log_dir: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LocalFile(str(log_dir / "none.log"))
