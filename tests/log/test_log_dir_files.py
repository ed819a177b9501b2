"""What the files at the root of a log dir say, read again and again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkalog.format.checkpoints import HIGH_WATERMARK_FILE, pack_offset_checkpoint
from kafkalog.log import log_dir_files
from kafkalog.log.log_dir_files import read_log_dir_files


def _write(log_dir: Path, offset: int) -> None:
    log_dir.mkdir(exist_ok=True)
    path = log_dir / HIGH_WATERMARK_FILE
    path.write_bytes(pack_offset_checkpoint({("orders", 0): offset}))
    os.utime(path, ns=(0, 0))


def _offset(log_dir: Path) -> int:
    return read_log_dir_files(log_dir).checkpoints[HIGH_WATERMARK_FILE]["orders", 0]


def test_a_checkpoint_is_read_anew_whatever_its_size_and_times(tmp_path: Path) -> None:
    for offset in (5, 7, 5):
        _write(tmp_path, offset)
        assert _offset(tmp_path) == offset


def test_a_checkpoint_of_the_same_bytes_is_parsed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse, parsed = log_dir_files.parse_offset_checkpoint, list[str]()

    def parse_and_note(data: bytes, path: str) -> dict[tuple[str, int], int]:
        if data:
            parsed.append(path)
        return parse(data, path)

    monkeypatch.setattr(log_dir_files, "parse_offset_checkpoint", parse_and_note)
    log_dirs = [tmp_path / f"disk{number}" for number in range(40)]
    for number, log_dir in enumerate(log_dirs):
        _write(log_dir, number)
        assert [_offset(log_dir) for _ in range(3)] == [number] * 3
    assert parsed == [str(log_dir / HIGH_WATERMARK_FILE) for log_dir in log_dirs]
    assert len(log_dir_files._last_parsed) <= log_dir_files._MOST_PARSED
