"""Digests of replicas: what is in them, what is not, and what is refused. That they say what log
dirs say each comparison of `comparing.compare` checks.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from kafkalog.errors import CorruptRecordError, InvalidConfigError, KafkaLogError
from kafkalog.format.checksum import crc32c
from kafkalog.format.compression import compress
from kafkalog.format.constants import CompressionType
from kafkalog.replicas.digest_format import (
    FRAME,
    HEADER_BYTES,
    PARTITION,
    ROW_BYTES,
    ROWS,
    ROWS_HEAD,
    pack_frame,
    pack_header,
    pack_json,
)
from kafkalog.replicas.digested import read_digest
from kafkalog.replicas.hash_key import key_check, read_hash_key
from tests.comparing.comparing import digest
from tests.support.log_builder import LogBuilder

NODES = (SAMPLES / "replicas" / "node1", SAMPLES / "replicas" / "node2")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "hash.key"
    path.write_bytes(bytes(range(32)))
    return path


@pytest.fixture
def log(log_dir: Path) -> LogBuilder:
    log = LogBuilder(log_dir, "orders-0").segment()
    for n in range(40):
        log.batch((f"canary-key-{n}", f"canary-value-{n}"), (None, "no key"), producer_id=n % 3)
    return log


def read_all(path: Path) -> int:
    """Every row of a digest."""
    return sum(block.size for replica in read_digest(str(path)) for block in replica.rows())


def test_hosts_that_share_no_disk_compare_digests(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / f"{n}.digest") for n in (1, 2)]
    for node, file in zip(NODES, files, strict=True):
        words = ["digest", str(node), "--output", file, "--hash-key", str(key), "--json"]
        assert main(words) == 0
        document = json.loads(capsys.readouterr().out)
        assert [p["status"] for p in document["partitions"]] == ["digested"] * 3
    assert main(["compare", *files, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(f["id"], f["topic"], f["offset"], f["wrong"]) for f in found] == [
        ("aborted-served-as-committed", "abrt", 0, ["node 2"]),
        ("resurrected-key", "tomb", 0, ["node 2"]),
    ]
    for each in found:
        assert each["key"].startswith("siphash:")
        assert each["keyBytes"] is None
    # With a log dir among them the key is read where it must be explained.
    mixed = ["compare", files[0], str(NODES[1]), "--hash-key", str(key), "--json"]
    assert main(mixed) == 1
    assert [f["key"] for f in json.loads(capsys.readouterr().out)["findings"]] == ["a", "erased"]


def test_nothing_of_records_is_in_a_digest_and_none_is_large(
    log: LogBuilder, tmp_path: Path, key: Path
) -> None:
    log.write()
    path = Path(digest(log.log_dir, tmp_path / "one", key))
    data = path.read_bytes()
    assert b"canary" not in data
    assert b"no key" not in data
    assert read_all(path) == 80
    records = sum(len(segment.batches) for segment in log.segments) * 2
    assert len(data) <= records * ROW_BYTES + 1024
    assert Path(digest(log.log_dir, tmp_path / "again", key)).read_bytes() == data
    key.write_bytes(b"another key of 32 bytes in all!!")
    other = Path(digest(log.log_dir, tmp_path / "other", key)).read_bytes()
    rows = [next(iter(read_digest(str(p))[0].rows())) for p in (path, tmp_path / "other")]
    assert (rows[0]["record"] != rows[1]["record"]).all()
    assert key.read_bytes() not in other
    assert read_hash_key(str(key)) not in other


def test_keys_that_do_not_fit_are_refused(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = digest(NODES[0], tmp_path / "one", key)
    assert main(["compare", one, str(NODES[1])]) == 2
    assert "--hash-key" in capsys.readouterr().err
    other_key = tmp_path / "other.key"
    other_key.write_bytes(b"x" * 32)
    assert main(["compare", one, str(NODES[1]), "--hash-key", str(other_key)]) == 2
    assert f"not the key of {one}" in capsys.readouterr().err
    two = digest(NODES[1], tmp_path / "two", other_key)
    assert main(["compare", one, two]) == 2
    assert "digests of several keys" in capsys.readouterr().err
    other_key.write_bytes(b"short")
    with pytest.raises(InvalidConfigError, match="a key has 16 to 65536"):
        read_hash_key(str(other_key))
    words = ["digest", str(NODES[0]), "--hash-key", str(key), "--output"]
    assert main([*words, one]) == 2  # it is there
    assert main([*words, str(tmp_path / "none" / "x")]) == 2
    assert sorted(p.name for p in tmp_path.glob("*.tmp")) == []


def test_a_digest_that_is_cut_or_changed_anywhere_is_refused(
    log: LogBuilder, tmp_path: Path, key: Path
) -> None:
    log.write()
    path = Path(digest(log.log_dir, tmp_path / "whole", key))
    data = path.read_bytes()
    changed = tmp_path / "changed"
    for end in range(0, len(data), 7):
        changed.write_bytes(data[:end])
        with pytest.raises(KafkaLogError) as raised:
            read_all(changed)
        assert raised.value.path == str(changed)
    for at in range(len(data)):
        forged = bytearray(data)
        forged[at] ^= 1 << at % 8
        changed.write_bytes(forged)
        if HEADER_BYTES - 20 <= at < HEADER_BYTES - 4:
            continue  # the key's check: the header's checksum has it
        with pytest.raises(KafkaLogError):
            read_all(changed)
    changed.write_bytes(data + b"\0")
    with pytest.raises(CorruptRecordError):
        read_all(changed)


def framed(data: bytes) -> list[bytearray]:
    """The frames of a digest."""
    at, found = HEADER_BYTES, []
    while at < len(data):
        length = FRAME.unpack_from(data, at)[1]
        found.append(bytearray(data[at : at + FRAME.size + length]))
        at += FRAME.size + length
    return found


def with_rows(data: bytes, payload: bytes) -> bytes:
    """The digest with another block of rows, and its right checksum."""
    frames = framed(data)
    frames[1] = bytearray(pack_frame(ROWS, payload))
    return data[:HEADER_BYTES] + b"".join(frames)


@pytest.mark.parametrize(
    ("head", "body", "reason"),
    [
        ((0, 0, 2**32 - 1, 0), b"", "records in a block"),
        ((0, 0, 65536, 0), b"", "bytes of 65536 records"),
        ((0, 0, 1, 4), compress(CompressionType.ZSTD, bytes(2**24)), "larger|more than"),
        ((0, 0, 1, 4), b"no frame of zstd at all", "zstd"),
        ((0, 0, 1, 3), bytes(ROW_BYTES), "codec 3"),
        ((0, -5, 1, 0), bytes(ROW_BYTES), "offset -5"),
        ((0, 5, 2, 0), bytes(2 * ROW_BYTES), "do not rise"),
        ((0, 5, 2, 0), struct.pack(">qq", 0, 2**63 - 1) + bytes(80), "do not rise"),
        ((0, 5, 1, 0), bytes(44) + b"\xff" * 4, "flags"),
    ],
    ids=range(9),
)
def test_forged_rows_are_refused_whatever_their_checksum(
    log: LogBuilder,
    tmp_path: Path,
    key: Path,
    head: tuple[int, int, int, int],
    body: bytes,
    reason: str,
) -> None:
    log.write()
    data = Path(digest(log.log_dir, tmp_path / "whole", key)).read_bytes()
    forged = tmp_path / "forged"
    forged.write_bytes(with_rows(data, ROWS_HEAD.pack(*head) + body))
    with pytest.raises(KafkaLogError, match=reason) as raised:
        read_all(forged)
    assert raised.value.path == str(forged)


def test_forged_facts_and_lengths_are_refused(tmp_path: Path, key: Path) -> None:
    header = pack_header(key_check(read_hash_key(str(key))))
    whole = Path(digest(NODES[0], tmp_path / "whole", key)).read_bytes()
    facts = json.loads(framed(whole)[0][FRAME.size :])
    assert crc32c(framed(whole)[0][FRAME.size :]) == FRAME.unpack_from(framed(whole)[0])[2]
    forged = tmp_path / "forged"
    for wrong in (
        {"log_end_offset": -1},
        {"log_end_offset": "9"},
        {"log_start_offset": 10**6},
        {"leader_epochs": [[1, 5], [0, 9]]},
        {"snapshots": [[1]]},
        {"topic_partition": "../x"},
        {"more": 1},
    ):
        forged.write_bytes(header + pack_json(PARTITION, {**facts, **wrong}))
        with pytest.raises(CorruptRecordError, match="no such thing"):
            read_all(forged)
    forged.write_bytes(header + FRAME.pack(PARTITION, 2**31, 0))
    with pytest.raises(CorruptRecordError, match="are left"):
        read_all(forged)
    forged.write_bytes(b"KLDIGEST" + bytes(64))
    with pytest.raises(KafkaLogError, match="version 0"):
        read_all(forged)
    assert main(["compare", str(forged), str(NODES[1])]) == 1
