from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.format import file_names
from kafkalog.format.file_names import LogFileKind, LogFileName, parse_file_name

BUILDERS = {
    LogFileKind.LOG: file_names.log_file_name,
    LogFileKind.OFFSET_INDEX: file_names.offset_index_file_name,
    LogFileKind.TIME_INDEX: file_names.time_index_file_name,
    LogFileKind.TRANSACTION_INDEX: file_names.transaction_index_file_name,
    LogFileKind.PRODUCER_SNAPSHOT: file_names.producer_snapshot_file_name,
}
SUFFIXES = ["", ".cleaned", ".swap", ".deleted"]


@given(st.sampled_from(list(BUILDERS)), st.integers(0, 2**63 - 1), st.sampled_from(SUFFIXES))
def test_name_round_trip(kind: LogFileKind, offset: int, suffix: str) -> None:
    name = BUILDERS[kind](offset, suffix)
    assert name == str(offset).zfill(20) + kind.value + suffix
    assert parse_file_name(name) == LogFileName(kind, offset, suffix)


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("00000000000000000100-0000000003.checkpoint", ""),
        ("00000000000000000100-0000000003.checkpoint.deleted", ".deleted"),
        ("00000000000000000100-0000000003-8231456012345.checkpoint.part", ".part"),
        ("00000000000000000100-00000000038231456012345.checkpoint.part", ".part"),
    ],
)
def test_metadata_snapshot_has_an_epoch(name: str, suffix: str) -> None:
    expected = LogFileName(LogFileKind.METADATA_SNAPSHOT, 100, suffix, 3)
    assert parse_file_name(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".log",
        "12.log",
        "0000000000000000000.log",
        "000000000000000000000.log",
        "99999999999999999999.log",
        "-0000000000000000001.log",
        "0000000000000000000a.log",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠.log",
        "00000000000000000000.LOG",
        "00000000000000000000.log\n",
        "00000000000000000000.log.bak",
        "00000000000000000000.log.cleaned.swap",
        "00000000000000000000.log.part",
        "00000000000000000000.checkpoint",
        "00000000000000000100-0000000003.checkpoint.swap",
        "00000000000000000100-9999999999.checkpoint",
        "x00000000000000000000.log",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
    ],
)
def test_name_that_kafka_would_not_write_is_none(name: str) -> None:
    assert parse_file_name(name) is None


@pytest.mark.parametrize("offset", [-1, 2**63])
def test_what_is_no_offset_has_no_name(offset: int) -> None:
    with pytest.raises(ValueError, match="not an offset"):
        file_names.log_file_name(offset)
