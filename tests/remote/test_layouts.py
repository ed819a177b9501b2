"""Layouts are found by looking; what is not read is named, and nothing is no answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES
from kafkalog import read_records
from kafkalog.errors import InvalidConfigError
from kafkalog.remote.layouts import AIVEN, KAFKA, PLAIN, find_directories
from tests.support.aiven_store import TOPIC_ID, Plugin
from tests.support.log_builder import LogBuilder

STORE = Path(__file__).parent / "samples/store"
KAFKAS = SAMPLES / "tiered/remote"
ID = "4-iFLTnfR7CXEvororINzg"


def made(place: Path, *files: str) -> Path:
    for name in files:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"KAFS")
    return place


def test_directories_are_told_by_their_ids_below_any_prefix() -> None:
    found = {
        (d.layout, d.name, d.partition, d.topic_id) for d in find_directories(str(STORE), None)
    }
    assert (AIVEN, "b-txn", 0, "mfnqbqV4QheipuCS-yEb_A") in found
    assert {name for _, name, _, _ in found} == {"a-lz4", "b-lz4", "b-txn", "c-lz4"}
    (kafka,) = find_directories(str(KAFKAS), None)
    assert (kafka.layout, kafka.name, kafka.partition) == (KAFKA, "tiered", 0)


def test_names_with_dashes_are_split_from_the_right(tmp_path: Path) -> None:
    stem = f"{0:020d}-{'-' * 21}Q"
    made(tmp_path, f"c-none-0-{ID}/7/{stem}.log", f"c-none-0-{ID}/7/{stem}.rsm-manifest")
    (found,) = find_directories(str(tmp_path), None)
    assert (found.layout, found.name, found.partition, found.topic_id) == (AIVEN, "c-none-0", 7, ID)
    assert found.is_of("c-none-0", 7, ID)
    assert found.is_of("none-0", 7, ID)  # behind a prefix without a slash
    assert not found.is_of("none-0", 7, None)
    assert not found.is_of("c-none-0", 7, "A" * 22)
    assert not found.is_of("c-none-0", 8, ID)


def test_plain_copies_read_in_front_of_the_log(log_dir: Path, tmp_path: Path) -> None:
    log = LogBuilder(log_dir, "orders-0").segment().batch(("a", "1")).batch(("b", "2"))
    log.segment().batch(("c", "3")).write()
    expected = read_records(log_dir).read_all()
    store = tmp_path / "cluster/orders-0"
    store.mkdir(parents=True)
    for path in (log_dir / "orders-0").glob(f"{0:020d}.*"):
        shutil.move(path, store / path.name)
    assert read_records(log_dir, remote_dirs=tmp_path).read_all().equals(expected)
    assert [d.layout for d in find_directories(str(tmp_path), None)] == [PLAIN]


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        (f"orders-0-{ID}/{'s' * 22}", "Uber's on HDFS"),
        ("ns/orders/0/segment-00000000000000000000.kfs", "KafScale's"),
        (f"warehouse/orders/metadata/{'s' * 22}.puffin", "Aiven's Iceberg mode"),
    ],
)  # fmt: skip
def test_a_layout_that_is_not_read_is_refused_by_name(
    tmp_path: Path, name: str, layout: str
) -> None:
    made(tmp_path, name)
    with pytest.raises(InvalidConfigError, match=f"{layout}.*: it is not read"):
        find_directories(str(tmp_path), None)


def test_a_tree_of_no_known_or_of_another_layout_is_an_error(tmp_path: Path) -> None:
    made(tmp_path, "some/where/file.bin")
    with pytest.raises(InvalidConfigError, match="is not any that is read"):
        find_directories(str(tmp_path), None)
    with pytest.raises(InvalidConfigError, match=r"is not kafka \(aiven, kafka, plain\)"):
        find_directories(str(STORE), KAFKA)
    with pytest.raises(InvalidConfigError, match="remote layout 'uber'; there are: aiven, kafka"):
        find_directories(str(STORE), "uber")
    with pytest.raises(InvalidConfigError, match="remote storage is a directory"):
        find_directories(str(tmp_path / "some/where/file.bin"), None)


def test_a_topic_that_nobody_asks_for_is_not_listed(tmp_path: Path) -> None:
    stem = f"{0:020d}-{'s' * 22}"
    made(tmp_path, f"other-{ID}/0/{stem}.log", f"other-{ID}/0/{stem}.rsm-manifest")
    (tmp_path / f"other-{ID}/0").chmod(0o700)
    assert find_directories(str(tmp_path), None, lambda topic_id: topic_id == TOPIC_ID) == []
    assert len(find_directories(str(tmp_path), None, lambda topic_id: topic_id == ID)) == 1


def test_objects_under_a_former_prefix_belong_to_their_manifest(
    log_dir: Path, tmp_path: Path
) -> None:
    log = LogBuilder(log_dir, "orders-0").segment().batch(("a", "1"))
    log.segment().batch(("b", "2")).write()
    expected = read_records(log_dir).read_all()
    first = log_dir / "orders-0" / f"{0:020d}.log"
    manifest = Plugin().copy(first, tmp_path / "old", end_offset=0)
    target = tmp_path / "new" / manifest.relative_to(tmp_path / "old")
    target.parent.mkdir(parents=True)
    shutil.move(manifest, target)
    first.unlink()
    assert read_records(log_dir, remote_dirs=tmp_path).read_all().equals(expected)
