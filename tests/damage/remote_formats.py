"""Objects of remote storage, and records of `__remote_log_metadata`: sound ones, what is done to
read one, and numbers forged in a manifest.

An object is read as `bucket --deep` and `--rebuild-metadata` do, all of its segment: its manifest,
each chunk, batch, record and index.
"""

from __future__ import annotations

import functools
import json
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafkalog import open_log_dir
from kafkalog.bucket.finding import Place
from kafkalog.bucket.look import LookTask, look
from kafkalog.bucket.stored_copies import read_stored_copy
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.messages.remote_log_records import decode_remote_log_record
from kafkalog.reading.remote_copies import read_metadata_partitions
from kafkalog.remote.cache import BLOCKS
from kafkalog.remote.layouts import find_directories
from kafkalog.remote.segment import read_manifest
from kafkalog.remote.stored_segments import stored_segments
from tests.damage.formats import Format, _scratch, check_damaged, with_batch_checksums
from tests.remote.test_aiven import BROKER, KEYS, STORE
from tests.support.aiven_store import Plugin
from tests.support.log_builder import LogBuilder

SUFFIXES = ("rsm-manifest", "log", "indexes")
METADATA = "__remote_log_metadata"
_FORGED = (
    -1,
    0,
    1,
    2,
    13,
    2**20,
    2**31 - 1,
    2**31,
    2**40,
    2**63 - 1,
    2**63,
    10**400,
    None,
    "1",
    [],
)
_BUFFERS = ChunkBuffers()


@functools.cache
def _stores() -> dict[str, Path]:
    """A store of one small segment each: as it lay, with zstd, and encrypted as well."""
    root = _scratch() / "remote"
    log = LogBuilder(root / "log", "orders-0").segment()
    for number in range(12):
        log.batch((f"k{number}", "v" * 60), (f"k{number}", None))
    log.segment().write()
    path = root / "log" / "orders-0" / f"{0:020d}.log"
    for name, is_compressed in (("plain", False), ("zstd", True)):
        Plugin(512, is_compressed=is_compressed).copy(path, root / name, end_offset=23)
    (encrypted,) = STORE.rglob("b-txn-*/0/*00590-*.log")
    place = root / "AES" / encrypted.parent.parent.name / "0"
    place.mkdir(parents=True)
    for each in encrypted.parent.glob(f"{encrypted.stem}.*"):
        shutil.copy(each, place)
    return {name: root / name for name in ("plain", "zstd", "AES")}


def read_segment(store: Path) -> None:
    """Everything of the one segment of a store."""
    # Written again within one tick of the file system's clock an object looks the same.
    BLOCKS.clear()
    read_manifest.cache_clear()
    keys = tuple(KEYS.items())
    for segment in stored_segments(find_directories(str(store), "aiven")):
        with suppress(KafkaLogError):
            read_stored_copy(segment, keys)
        place = Place(segment.place, segment.name, segment.partition)
        look(LookTask(segment, segment.log_path(keys), place, None, is_deep=True), _BUFFERS)


def _object(store: Path, suffix: str) -> Path:
    (path,) = store.rglob(f"*.{suffix}")
    return path


def _format(variant: str, suffix: str) -> Format:
    store = _stores()[variant]
    path = _object(store, suffix)
    sound = path.read_bytes()

    def read(data: bytes) -> None:
        path.write_bytes(data)
        try:
            read_segment(store)
        finally:
            path.write_bytes(sound)

    return Format(f"{variant} {suffix} object", (sound,), read)


def _metadata_log() -> Format:
    log_dir = _scratch() / "metadata"
    shutil.copytree(BROKER / f"{METADATA}-0", log_dir / f"{METADATA}-0")
    path = log_dir / f"{METADATA}-0" / f"{0:020d}.log"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        read_metadata_partitions(open_log_dir(str(log_dir)), MAX_BATCH_BYTES)

    return Format("remote log metadata", (path.read_bytes(),), read, with_batch_checksums)


def _metadata_values() -> tuple[bytes, ...]:
    from kafkalog import read_records

    table = read_records(BROKER, topics=[METADATA], columns=["value"]).read_all()
    return tuple(table["value"].to_pylist()[:4])


def _read_record(data: bytes) -> None:
    decode_remote_log_record(data)


@functools.cache
def remote_formats() -> dict[str, Format]:
    """Every format by its name."""
    found = [_format(variant, suffix) for variant in _stores() for suffix in SUFFIXES]
    record = Format("remote log metadata record", _metadata_values(), _read_record)
    return {format_.name: format_ for format_ in (*found, _metadata_log(), record)}


def try_forged_manifests(seed: int, count: int) -> list[str]:
    """Manifests that are JSON, with one or two values another one; the promises that were
    broken."""
    rnd = random.Random(f"forged {seed}")
    own = [each for name, each in remote_formats().items() if "rsm-manifest" in name]
    found = []
    for _ in range(count):
        format_ = rnd.choice(own)
        fields = json.loads(format_.samples[0])
        for _ in range(rnd.choice((1, 1, 2))):
            _forge(fields, rnd)
        found.append(check_damaged(format_, json.dumps(fields).encode()))
    return [broken for broken in found if broken is not None]


def _forge(fields: dict[str, Any], rnd: random.Random) -> None:
    places: list[tuple[Any, str]] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                places.append((value, name))
                collect(inner)

    collect(fields)
    holder, name = rnd.choice(places)
    holder[name] = rnd.choice(_FORGED)
