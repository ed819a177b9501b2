"""What the tables of internal topics make of records that cannot be read, by mode. That of groups,
members and offsets is in `consumer_offsets`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.messages.group_records import GROUP_METADATA, OFFSET_COMMIT
from kafkalog.messages.share_state_records import SHARE_SNAPSHOT
from kafkalog.messages.transaction_records import TRANSACTION_LOG
from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads
from kafkalog.reading.function_views.table import FUNCTION_VIEWS
from kafkalog.reading.request import ReadMode
from tests.support.coordinator_logs import write_coordinator_logs
from tests.support.log_builder import START_MS, TOPIC_ID, LogBuilder
from tests.support.message_encoder import encode_key

# A version that no Kafka has written: a group's coordinator does not load it. That of transactions
# skips such a record, but not one that ends in the middle.
UNKNOWN = b"\0\x63"
CUT = b"\0\0\0"
ERRORS = {
    "top_committers": ["__consumer_offsets-2"],
    "rebalances": ["__consumer_offsets-2"],
    "transactional_ids": ["__transaction_state-2"],
    "open_transactions": ["__transaction_state-2", "__consumer_offsets-2"],
    "remote_segments": ["__remote_log_metadata-2"],
    "share_states": ["__share_group_state-2"],
}


def table(name: str, log_dir: Path, mode: ReadMode) -> list[dict[str, Any]]:
    view = FUNCTION_VIEWS[name]
    assert view.made is not None
    found = view.made(SharedReads([log_dir], FunctionOptions(mode=mode, now_ms=START_MS)))
    assert found.schema.names == view.schema_in(mode).names
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def write_unreadable(log_dir: Path) -> None:
    """One more partition of each topic, whose records nobody knows."""
    commit = {"group": "other", "topic": "t", "partition": 0}
    share = {"groupId": "other", "topicId": TOPIC_ID, "partition": 9}
    for topic, keys in {
        "__consumer_offsets": (
            encode_key(OFFSET_COMMIT.key, commit),
            encode_key(GROUP_METADATA.key, {"group": "other"}),
        ),
        "__transaction_state": (encode_key(TRANSACTION_LOG.key, {"transactionalId": "other"}),),
        "__share_group_state": (encode_key(SHARE_SNAPSHOT.key, share),),
        "__remote_log_metadata": (None,),
    }.items():
        log = LogBuilder(log_dir, f"{topic}-2")
        for key in keys:
            log.batch((key, CUT if topic == "__transaction_state" else UNKNOWN))
        log.write()


@pytest.mark.parametrize("name", ERRORS)
def test_a_table_has_a_row_for_each_record_that_cannot_be_read(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_coordinator_logs(tmp_path, 3)
    sound = table(name, tmp_path, ReadMode.FAILFAST)
    assert sound
    assert table(name, tmp_path, ReadMode.DROPMALFORMED) == sound
    write_unreadable(tmp_path)
    with pytest.raises(CorruptRecordError):
        table(name, tmp_path, ReadMode.FAILFAST)
    assert table(name, tmp_path, ReadMode.DROPMALFORMED) == sound
    with caplog.at_level(logging.WARNING):
        caplog.clear()
        found = table(name, tmp_path, ReadMode.PERMISSIVE)
    assert [row for row in found if row["error"] is None] == [r | {"error": None} for r in sound]
    bad = [row for row in found if row["error"] is not None]
    assert len(bad) == len(ERRORS[name])
    for row, partition in zip(bad, ERRORS[name], strict=True):
        assert set(row.values()) == {None, row["error"]}
        assert f"{partition}/00000000000000000000.log, offset " in row["error"]
    said = [its for its in caplog.records if its.name.endswith("function_views.unreadable")]
    assert len(said) == 1, "once, of all of them"


def test_a_lag_of_a_commit_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    write_coordinator_logs(tmp_path, 3)
    sound = table("lag", tmp_path, ReadMode.FAILFAST)
    write_unreadable(tmp_path)
    with pytest.raises(CorruptRecordError):
        table("lag", tmp_path, ReadMode.FAILFAST)
    assert table("lag", tmp_path, ReadMode.DROPMALFORMED) == sound
    *rest, bad = table("lag", tmp_path, ReadMode.PERMISSIVE)
    assert rest == sound
    assert (bad["group"], bad["topic"], bad["partition"]) == ("other", "t", 0)
    assert (bad["lag"], bad["state"]) == (None, None)
    assert "version 99" in bad["error"]


def test_a_coordinators_load_leaves_out_a_damaged_batch(tmp_path: Path) -> None:
    write_coordinator_logs(tmp_path, 3)
    sound = table("coordinator_load", tmp_path, ReadMode.FAILFAST)
    log = LogBuilder(tmp_path, "__consumer_offsets-2")
    directory = log.batch(("k", "v")).batch(("k", "v")).write()
    (path,) = directory.glob("*.log")
    content = bytearray(path.read_bytes())
    content[8:12] = (1 << 30).to_bytes(4, "big")  # its length
    path.write_bytes(content)
    with pytest.raises(KafkaLogError):
        table("coordinator_load", tmp_path, ReadMode.FAILFAST)
    *rest, left, bad = table("coordinator_load", tmp_path, ReadMode.PERMISSIVE)
    assert rest == [row | {"error": None} for row in sound]
    assert (left["coordinatorPartition"], left["records"]) == (2, 1)
    assert str(path) in bad["error"]
    *rest, left = table("coordinator_load", tmp_path, ReadMode.DROPMALFORMED)
    assert (rest, left["records"]) == (sound, 1)
