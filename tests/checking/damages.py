"""Damage that no broker notices when it starts, done to copies of the sample log dir `broker`.

Each names the findings it must give, all of them, and nothing but these. What a broker does with
it is in tests/oracle/test_verify_claims.py, by the same names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    LOG_START_OFFSET_FILE,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.partition_metadata import pack_partition_metadata
from kafkalog.format.transaction_index import AbortedTxn, pack_transaction_index
from tests.support.reference.batches import parse_batches

ORDERS, TRANSACTIONS, DELETED = "orders-0", "transactions-0", "deleted-records-0"


@dataclass(frozen=True)
class Damage:
    """`do` is given the log dir; `partition` is the one it damages."""

    name: str
    partition: str
    finds: frozenset[str]
    do: Callable[[Path], None]


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def batch_bytes(log: Path) -> list[bytes]:
    """The batches of a sound `.log` file."""
    data = log.read_bytes()
    spans = [(p, h.size_in_bytes) for p, h, _ in parse_batches(data)]
    return [data[position : position + size] for position, size in spans]


def rewrite_keeping_time(path: Path, data: bytes) -> None:
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def index_of_a_longer_log(log_dir: Path) -> None:
    """Every second batch is gone, as after a compaction, and the old offset index stayed. The
    other index is made right, so that only the offset index is wrong.
    """
    log = segments(log_dir / ORDERS)[1]
    rewrite_keeping_time(log, b"".join(batch_bytes(log)[::2]))
    log.with_suffix(".timeindex").unlink()


def time_index_without_its_end(log_dir: Path) -> None:
    path = segments(log_dir / ORDERS)[1].with_suffix(".timeindex")
    os.truncate(path, path.stat().st_size - 12)


def zeros_behind_the_time_index(log_dir: Path) -> None:
    path = segments(log_dir / ORDERS)[1].with_suffix(".timeindex")
    os.truncate(path, path.stat().st_size + 1200)


def zeros_behind_the_offset_index(log_dir: Path) -> None:
    path = segments(log_dir / ORDERS)[1].with_suffix(".index")
    os.truncate(path, path.stat().st_size + 800)


def no_time_index(log_dir: Path) -> None:
    segments(log_dir / ORDERS)[1].with_suffix(".timeindex").unlink()


def no_transaction_index(log_dir: Path) -> None:
    segments(log_dir / TRANSACTIONS)[0].with_suffix(".txnindex").unlink()


def transaction_index_of_another_log(log_dir: Path) -> None:
    """It says that a committed transaction was aborted."""
    path = segments(log_dir / TRANSACTIONS)[0].with_suffix(".txnindex")
    path.write_bytes(path.read_bytes() + pack_transaction_index([AbortedTxn(9, 211, 215, 216)]))


def no_snapshots(log_dir: Path) -> None:
    for path in (log_dir / TRANSACTIONS).glob("*.snapshot"):
        path.unlink()


def snapshot_of_another_time(log_dir: Path) -> None:
    """The newest snapshot is a copy of an older one."""
    older, newest = sorted((log_dir / TRANSACTIONS).glob("*.snapshot"))[-3::2]
    shutil.copy(older, newest)


def no_middle_segment(log_dir: Path) -> None:
    _remove_segment(log_dir / ORDERS, 1)


def no_first_segment(log_dir: Path) -> None:
    _remove_segment(log_dir / ORDERS, 0)


def no_log_at_all(log_dir: Path) -> None:
    for log in segments(log_dir / ORDERS):
        log.unlink()


def an_empty_middle_segment(log_dir: Path) -> None:
    os.truncate(segments(log_dir / ORDERS)[1], 0)


def no_last_segment(log_dir: Path) -> None:
    _remove_segment(log_dir / ORDERS, -1)


def no_log_start(log_dir: Path) -> None:
    (log_dir / LOG_START_OFFSET_FILE).unlink()


def log_start_beyond_the_end(log_dir: Path) -> None:
    path = log_dir / LOG_START_OFFSET_FILE
    entries = parse_offset_checkpoint(path.read_bytes()) | {("deleted-records", 0): 99_999}
    path.write_bytes(pack_offset_checkpoint(entries))


def one_wrong_bit(log_dir: Path) -> None:
    """In the last batch of a closed segment."""
    log = segments(log_dir / ORDERS)[1]
    data = bytearray(log.read_bytes())
    data[-3] ^= 1
    rewrite_keeping_time(log, bytes(data))


def torn_tail(log_dir: Path) -> None:
    log = segments(log_dir / ORDERS)[-1]
    rewrite_keeping_time(log, log.read_bytes() + batch_bytes(log)[0][:40])


def other_directory_id(log_dir: Path) -> None:
    path = log_dir / "meta.properties"
    text = path.read_text()
    path.write_text(text.replace("vMP88smz2LFYzmvBqyWadg", "QV6HkAN4wiUW_Jo7G4Y02Q"))


def no_partition_metadata(log_dir: Path) -> None:
    (log_dir / ORDERS / "partition.metadata").unlink()


def other_topic_id(log_dir: Path) -> None:
    """One that no topic of the cluster has."""
    path = log_dir / TRANSACTIONS / "partition.metadata"
    path.write_bytes(pack_partition_metadata("4L6g3nShT-eMCtK--X86sw"))


def no_leader_epochs(log_dir: Path) -> None:
    (log_dir / ORDERS / "leader-epoch-checkpoint").unlink()


def other_leader_epochs(log_dir: Path) -> None:
    (log_dir / ORDERS / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n7 450\n")


def interrupted_swap(log_dir: Path) -> None:
    """Two segments are merged and wait as a swap; their files are still there."""
    first, second = segments(log_dir / ORDERS)[:2]
    merged = first.with_name(f"{first.name}.swap")
    merged.write_bytes(first.read_bytes() + second.read_bytes())


def interrupted_swap_with_indexes(log_dir: Path) -> None:
    interrupted_swap(log_dir)
    first = segments(log_dir / ORDERS)[0]
    for suffix in (".index", ".timeindex"):
        first.with_suffix(f"{suffix}.swap").write_bytes(b"")


def unfinished_cleaning(log_dir: Path) -> None:
    first = segments(log_dir / ORDERS)[0]
    shutil.copy(first, first.with_name(f"{first.name}.cleaned"))


def index_without_its_log(log_dir: Path) -> None:
    first = segments(log_dir / ORDERS)[0].with_suffix(".index")
    shutil.copy(first, first.with_name("00000000000000000007.index"))


def unreadable_checkpoint(log_dir: Path) -> None:
    (log_dir / CLEANER_OFFSET_FILE).write_text("0\n5\nno\n")


def directory_of_nobody(log_dir: Path) -> None:
    (log_dir / "lost+found").mkdir()


def file_without_a_number(log_dir: Path) -> None:
    (log_dir / ORDERS / "backup.log").write_bytes(b"")


def _remove_segment(directory: Path, number: int) -> None:
    base = segments(directory)[number].stem
    for path in directory.glob(f"{base}.*"):
        path.unlink()


def _damage(do: Callable[[Path], None], finds: str, partition: str = ORDERS) -> Damage:
    return Damage(do.__name__, partition, frozenset(finds.split()), do)


DAMAGES = (
    # a topic that is not compacted misses offsets as well
    _damage(index_of_a_longer_log, "offset-index-disagrees time-index-missing offset-gap"),
    _damage(time_index_without_its_end, "time-index-short"),
    _damage(zeros_behind_the_time_index, "time-index-padded"),
    _damage(zeros_behind_the_offset_index, "offset-index-padded"),
    _damage(no_time_index, "time-index-missing"),
    _damage(no_transaction_index, "transaction-index-missing", TRANSACTIONS),
    # its last stable offset ends the search for the ones behind it
    _damage(
        transaction_index_of_another_log,
        "transaction-index-stale transaction-index-missing",
        TRANSACTIONS,
    ),
    _damage(no_snapshots, "open-transaction-forgotten", TRANSACTIONS),
    _damage(snapshot_of_another_time, "snapshot-disagrees", TRANSACTIONS),
    _damage(no_middle_segment, "segment-missing"),
    _damage(no_first_segment, "first-segments-missing"),
    _damage(no_last_segment, "log-end-lost"),
    _damage(no_log_at_all, "log-end-lost orphan-index"),
    _damage(an_empty_middle_segment, "segment-missing offset-index-disagrees time-index-disagrees"),
    _damage(no_log_start, "log-start-lost", DELETED),
    _damage(log_start_beyond_the_end, "log-start-beyond-end", DELETED),
    _damage(one_wrong_bit, "crc-mismatch"),
    _damage(torn_tail, "torn-tail"),
    _damage(other_directory_id, "directory-id-foreign"),
    _damage(no_partition_metadata, "partition-metadata-missing"),
    _damage(other_topic_id, "topic-id-foreign", TRANSACTIONS),
    _damage(no_leader_epochs, "leader-epochs-missing"),
    _damage(other_leader_epochs, "leader-epochs-disagree"),
    _damage(interrupted_swap, "swap-left swap-without-index"),
    _damage(interrupted_swap_with_indexes, "swap-left"),
    _damage(unfinished_cleaning, "cleaned-left"),
    _damage(index_without_its_log, "orphan-index"),
    _damage(unreadable_checkpoint, "checkpoint-unreadable"),
    _damage(directory_of_nobody, "foreign-directory"),
    _damage(file_without_a_number, "foreign-file"),
)
