"""Each verb that reads answers of a tiered log what it answers of the broker's own directory, where
all of it still lies: records, batches, indexes, SQL, fetches, lookups, dump, verify, segments,
digest, compare, and what audit and why say of the remote part. Streams and exports to Delta are in
tests/spark/test_tiered.py.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafkalog
from kafkalog.cli.main import main
from kafkalog.remote.segment import ChunkedSegment
from tests.bucket.tiered_cluster import TieredCluster
from tests.remote.test_aiven import KEYS, KEYS_OF_ROWS, STORE
from tests.support.aiven_store import Plugin

pytestmark = pytest.mark.thorough

TOPIC = "b-txn"
NOW = "2026-11-30"
DISK = "disk"
LAYOUTS = ("kafka", "aiven plain", "aiven zstd AES")
KEY_WORDS = [f"--remote-key={key_id}={file}" for key_id, file in KEYS.items()]
# What is of the place and not of the log.
OWN = ("path", "state", "modificationTime", "hasSnapshot", "mtimeNs")


@dataclass(frozen=True)
class Place:
    """A log dir, and where the rest of its log is: nowhere of the broker's own directory."""

    log_dir: Path
    store: Path | None

    @property
    def partition(self) -> Path:
        return self.log_dir / f"{TOPIC}-0"

    @property
    def words(self) -> list[str]:
        return [] if self.store is None else [f"--remote-dir={self.store}"]

    @property
    def key_words(self) -> list[str]:
        return [] if self.store is None else [*self.words, *KEY_WORDS]

    @property
    def options(self) -> dict[str, Any]:
        return {} if self.store is None else {"remote_dirs": str(self.store), "remote_keys": KEYS}


Answer = Callable[[Place, pytest.CaptureFixture[str]], Any]


def store_of(layout: str, partition: Path, store: Path) -> Path:
    """The closed segments of a partition, with the ids that `__remote_log_metadata` has."""
    (directory,) = STORE.rglob(f"{TOPIC}-*")
    ids = {path.stem[:20]: path.stem[21:] for path in directory.rglob("*.rsm-manifest")}
    key = ("key1", Path(KEYS["key1"])) if "AES" in layout else None
    for log, behind in pairwise(sorted(partition.glob("*.log"))):
        if layout == "kafka":
            topic_id = directory.name[-22:]
            folder = store / "kafka-tiered-storage" / f"{TOPIC}-0-{topic_id}"
            folder.mkdir(parents=True, exist_ok=True)
            stem = folder / f"{log.stem}-{ids[log.stem]}"
            for suffix in (".log", ".index", ".timeindex", ".txnindex"):
                if log.with_suffix(suffix).exists():
                    shutil.copy(log.with_suffix(suffix), f"{stem}{suffix}")
            shutil.copy(behind.with_suffix(".snapshot"), f"{stem}.snapshot")
            shutil.copy(partition / "leader-epoch-checkpoint", f"{stem}.leader_epoch_checkpoint")
        else:
            plugin = Plugin(16384, is_compressed=key is not None, key=key,
                            topic_id=directory.name[-22:])  # fmt: skip
            end = int(behind.stem) - 1
            plugin.copy(log, store, segment_id=ids[log.stem], end_offset=end)
    return store


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Place]:
    """By layout; DISK is the broker's own directory."""
    path = tmp_path_factory.mktemp("places")
    disk = TieredCluster(path / DISK).broker
    made = {DISK: Place(disk, None)}
    for layout in LAYOUTS:
        own = path / layout.replace(" ", "-")
        log_dir = Path(shutil.copytree(disk, own / "broker"))
        store = store_of(layout, disk / f"{TOPIC}-0", own / "store")
        *closed, _ = sorted((log_dir / f"{TOPIC}-0").glob("*.log"))
        for log in closed:
            for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
                log.with_suffix(suffix).unlink(missing_ok=True)
        made[layout] = Place(log_dir, store)
    return made


def own_columns_dropped(table: pa.Table) -> pa.Table:
    table = table.drop_columns([name for name in OWN if name in table.column_names])
    order = [(name, "ascending") for name in table.column_names if name in KEYS_OF_ROWS]
    return table.sort_by(order) if order else table


def records(place: Place, _: Any) -> list[pa.Table]:
    return [
        kafkalog.read_records(
            place.log_dir, topics=TOPIC, read_committed=committed, **place.options
        ).read_all()
        for committed in (False, True)
    ]


def batches(place: Place, _: Any) -> pa.Table:
    return own_columns_dropped(
        kafkalog.read_batches(place.log_dir, topics=TOPIC, verify_checksums=True, **place.options)
    )


def views(place: Place, _: Any) -> list[pa.Table]:
    return [
        own_columns_dropped(
            kafkalog.read_view(view, place.log_dir, topics=TOPIC, **place.options)
        )
        for view in ("offset_index", "time_index", "transaction_index", "segments", "transactions",
                     "producers")
    ]  # fmt: skip


def sql(place: Place, capsys: pytest.CaptureFixture[str]) -> str:
    query = (
        "SELECT count(*) AS n, sum(length(value)) AS bytes, min(offset) AS a, max(offset) AS z"
        f" FROM records WHERE topic = '{TOPIC}' GROUP BY floor(offset / 500) ORDER BY a"
    )
    return printed(capsys, "sql", str(place.log_dir), "--sql", query, *place.key_words)


def fetches(place: Place, _: Any) -> list[Any]:
    return [
        kafkalog.fetch(place.partition, offset, 20_000, isolation_level=level, **place.options)
        for level in ("read_uncommitted", "read_committed")
        for offset in (0, 700, 1158, 1159, 2800, 2890, 3100)
    ]


def lookups(place: Place, _: Any) -> list[Any]:
    times = kafkalog.read_records(
        place.log_dir, topics=TOPIC, columns="timestampMs", **place.options
    ).read_all()["timestampMs"]
    asked = (-3, -2, -1, *sorted(set(times.to_pylist()))[::100])
    return [
        kafkalog.list_offsets(place.partition, time, isolation_level=level, **place.options)
        for level in ("read_uncommitted", "read_committed")
        for time in asked
    ]


def dump(place: Place, capsys: pytest.CaptureFixture[str]) -> list[str]:
    text = printed(capsys, "dump", "--print-data-log", str(place.partition), *place.key_words)
    return [line for line in text.splitlines() if line.startswith(("baseOffset", "| offset"))]


def verify(place: Place, capsys: pytest.CaptureFixture[str]) -> Any:
    found = document(capsys, "verify", str(place.log_dir), *place.key_words)
    (own,) = found["partitions"]
    findings = [(each["id"], each["topic"], each["offset"]) for each in found["findings"]]
    return findings, own["segmentsRead"], own["bytesRead"]


def segments(place: Place, capsys: pytest.CaptureFixture[str]) -> Any:
    found = document(capsys, "segments", str(place.log_dir), *place.key_words)
    return [{k: v for k, v in row.items() if k not in OWN} for row in found["segments"]]


def audit(place: Place, capsys: pytest.CaptureFixture[str]) -> Any:
    """Of the remote part: with the settings of the disk, and what another time would make of it."""
    found = document(
        capsys, "audit", str(place.log_dir), f"--now={NOW}", "--config=retention.ms=1h",
        "--what-if=retention.ms=12h", "--price-per-gib-month=0.023", *place.words,
    )  # fmt: skip
    return _of_remote(found)


def _of_remote(value: Any, name: str = "") -> list[Any]:
    """Members about remote storage, wherever they are; what objects take depends on the layout."""
    if isinstance(value, dict):
        return [
            each
            for key, own in value.items()
            if "Stored" not in key and "ost" not in key
            for each in _of_remote(own, key if key.startswith("remote") else name)
        ]
    if isinstance(value, list):
        return [each for own in value for each in _of_remote(own, name)]
    return [(name, value)] if name else []


def why(place: Place, capsys: pytest.CaptureFixture[str]) -> Any:
    """Of an offset that is on every disk, with what is said of the log; of one that is not the
    answer is what keeps it in remote storage."""
    words = ["why", f"{TOPIC}-0", f"--log-dir={place.log_dir}", f"--now={NOW}", "--json"]
    (found,) = json.loads(printed(capsys, *words, "--offset=3000"))
    (other,) = json.loads(printed(capsys, *words, "--offset=100"))
    assert any("remote" in step["text"] for step in other["steps"]) or place.store is None
    # That a part of the log is elsewhere is a step of its own.
    steps = [each for each in found.pop("steps") if "is in remote storage" not in each["text"]]
    return steps, {key: value for key, value in found.items() if key not in OWN}


def digest(place: Place, capsys: pytest.CaptureFixture[str]) -> Any:
    key, output = place.log_dir.parent / "hash-key", place.log_dir.parent / "digest"
    key.write_bytes(bytes(range(32)))
    output.unlink(missing_ok=True)
    printed(
        capsys, "digest", str(place.log_dir), f"--topic={TOPIC}", f"--output={output}",
        f"--hash-key={key}", "--workers=1", *place.key_words,
    )  # fmt: skip
    return key, output


ANSWERS: dict[str, Answer] = {
    "records": records, "batches": batches, "views": views, "sql": sql, "fetch": fetches,
    "lookups": lookups, "dump": dump, "verify": verify, "segments": segments, "audit": audit,
    "why": why,
}  # fmt: skip


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    code = main(list(words))
    out = capsys.readouterr()
    assert code in (0, 1), out.err
    return out.out


def document(capsys: pytest.CaptureFixture[str], verb: str, *words: str) -> dict[str, Any]:
    workers = ["--workers=1"] if verb == "verify" else []
    more = [f"--topic={TOPIC}", *workers, "--json"]
    found: dict[str, Any] = json.loads(printed(capsys, verb, *words, *more))
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("verb", ANSWERS)
def test_a_tiered_log_answers_as_the_brokers_own_directory(
    places: dict[str, Place], verb: str, layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected, found = (ANSWERS[verb](places[each], capsys) for each in (DISK, layout))
    assert expected
    assert found == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tiered_log_compares_equal_to_the_brokers_own_directory(
    places: dict[str, Place], layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As log dirs, and by the digest of either."""
    disk, tiered = places[DISK], places[layout]
    words = ["--topic=b-txn", "--json", "--workers=1"]
    key, own = digest(disk, capsys)
    _, other = digest(tiered, capsys)
    by_key = [*words, f"--hash-key={key}"]
    for pair, more in (
        ([str(disk.log_dir), str(tiered.log_dir)], [*words, *tiered.key_words]),
        ([str(own), str(other)], by_key),
        ([str(disk.log_dir), str(other)], by_key),
    ):
        found = json.loads(printed(capsys, "compare", *pair, *more))
        assert found["findings"] == []


@pytest.mark.parametrize("verb", ["audit", "why"])
def test_audit_and_why_read_no_segment_in_remote_storage(
    places: dict[str, Place], verb: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Manifests, and names of objects: what they say of it needs no chunk."""

    def refuse(*_: Any) -> Iterator[Any]:
        raise AssertionError("a chunk was read")

    monkeypatch.setattr(ChunkedSegment, "blocks", refuse)
    assert ANSWERS[verb](places[LAYOUTS[-1]], capsys)
