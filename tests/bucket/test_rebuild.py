"""`__remote_log_metadata` made anew from objects is that which the real broker wrote."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafkalog import read_records
from kafkalog.bucket.rebuild import RebuiltMetadata, rebuild_metadata
from kafkalog.bucket.request import BucketRequest
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from kafkalog.messages.remote_log_records import decode_remote_log_record
from kafkalog.remote.paths import RemoteStorage
from tests.bucket.tiered_cluster import (
    COPIED_MS,
    DELETED,
    NOW_MS,
    TieredCluster,
)
from tests.remote.test_aiven import BROKER, KEYS, STORE

TOPIC = "__remote_log_metadata"
TIERED = Path("data/samples/tiered")
OTHER = "B" * 21 + "A"


def rarely(*values: object) -> Any:
    """The same promise with other values."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def rebuilt(
    store: Path, output: Path, partitions: int | None = None, *, log_dirs: tuple[str, ...] = ()
) -> RebuiltMetadata:
    storage = RemoteStorage((str(store),), keys=tuple(KEYS.items()))
    return rebuild_metadata(BucketRequest(log_dirs, NOW_MS, storage), output, partitions)


def values_in(log_dir: Path) -> dict[tuple[str, int], tuple[int, bytes]]:
    """(segment, type of record) → partition of the topic, value."""
    rows = read_records(str(log_dir), topics=[TOPIC], columns=["partition", "value"]).read_all()
    found = {}
    for row in rows.to_pylist():
        record = decode_remote_log_record(row["value"])
        api_key = record.message.api_key  # type: ignore[union-attr]
        segment_id = record.fields["remoteLogSegmentId"]["id"]  # type: ignore[union-attr]
        found[segment_id, api_key] = row["partition"], row["value"]
    return found


def without(value: bytes, *names: str) -> dict[str, Any]:
    fields = decode_remote_log_record(value).fields  # type: ignore[union-attr]
    return {name: own for name, own in fields.items() if name not in names}


def test_a_rebuilt_record_is_the_brokers_own_byte_for_byte(tmp_path: Path) -> None:
    """Of each segment that Aiven's plug-in copied, in the partition where the broker put it; what
    finishes it but for the moment, and what the plug-in adds."""
    made = rebuilt(STORE, tmp_path / "out", 2)
    assert len(made.copies) == 8
    assert made.left_out == ()
    own, broker = values_in(tmp_path / "out"), values_in(BROKER)
    assert len(own) == 16
    assert {key: own[key] for key in own if key[1] == 0} == {
        key: broker[key] for key in own if key[1] == 0
    }
    for key, (partition, value) in own.items():
        assert partition == broker[key][0]
        names = "eventTimestampMs", "customMetadata"
        assert without(value, *names) == without(broker[key][1], *names)


def test_what_has_no_manifest_is_rebuilt_from_its_batches(tmp_path: Path) -> None:
    """Kafka's LocalTieredStorage."""
    rebuilt(TIERED / "remote", tmp_path / "out", log_dirs=(str(TIERED / "data"),))
    own, broker = values_in(tmp_path / "out"), values_in(TIERED / "data")
    assert len(own) == 10
    # Of the broker nothing stands in the storage, of the moment only when objects were written.
    names = "eventTimestampMs", "brokerId"
    assert {key: (at, without(value, *names)) for key, (at, value) in own.items()} == {
        key: (broker[key][0], without(broker[key][1], *names)) for key in own
    }


def test_a_storage_is_sound_by_the_topic_that_was_rebuilt_from_it(tmp_path: Path) -> None:
    cluster = TieredCluster(tmp_path)
    rebuilt(cluster.store, tmp_path / "out", log_dirs=(str(cluster.broker),))
    for number in (0, 1):
        shutil.rmtree(cluster.broker / f"{TOPIC}-{number}")
    run = cluster.run(is_deep=True, log_dirs=(str(cluster.broker), str(tmp_path / "out")))
    assert run.findings == ()
    assert len(run.looked) == 8


def test_the_same_storage_gives_the_same_bytes(tmp_path: Path) -> None:
    cluster = TieredCluster(tmp_path)
    written = []
    for name in ("one", "two"):
        rebuilt(cluster.store, tmp_path / name, 7)
        files = sorted((tmp_path / name).rglob("*"))
        written.append(
            {p.relative_to(tmp_path / name): p.read_bytes() for p in files if p.is_file()}
        )
    assert written[0] == written[1]
    assert len(written[0]) == 7 * 4 + 2


def half_an_upload(cluster: TieredCluster) -> None:
    cluster.again("b-txn", OTHER, ("log", "indexes"), COPIED_MS)


def a_deleted_one(cluster: TieredCluster) -> None:
    cluster.again("b-txn", OTHER, ("log", "indexes", "rsm-manifest"), COPIED_MS)
    cluster.change("b-txn", OTHER, DELETED)


def anothers_manifest(cluster: TieredCluster) -> None:
    made = cluster.again("b-txn", OTHER, ("log", "indexes", "rsm-manifest"), COPIED_MS)
    (manifest,) = (path for path in made if path.suffix == ".rsm-manifest")
    shutil.copy(cluster.object("b-txn", 590, "rsm-manifest"), manifest)


def forged_offsets(cluster: TieredCluster) -> None:
    made = cluster.again("b-txn", OTHER, ("log", "indexes", "rsm-manifest"), COPIED_MS)
    (manifest,) = (path for path in made if path.suffix == ".rsm-manifest")
    fields = json.loads(manifest.read_text())
    fields["remoteLogSegmentMetadata"]["endOffset"] = -1
    manifest.write_text(json.dumps(fields))


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (half_an_upload, "half an upload, or half deleted: .rsm-manifest is not there"),
        (a_deleted_one, "__remote_log_metadata has it as deleted"),
        rarely(anothers_manifest, "the manifest is of ("),
        rarely(forged_offsets, "a broker refuses such a segment"),
    ],
)
def test_what_cannot_be_taken_is_left_out_with_its_reason(
    tmp_path: Path, harm: Any, text: str
) -> None:
    cluster = TieredCluster(tmp_path)
    harm(cluster)
    made = rebuilt(cluster.store, tmp_path / "out", log_dirs=(str(cluster.broker),))
    (left_out,) = made.left_out
    assert left_out.segment.segment_id == OTHER
    assert text in left_out.reason
    assert {key[0] for key in values_in(tmp_path / "out")} == {
        copy.copied.segment_id for copy in made.copies
    }
    assert len(made.copies) == 8


@pytest.mark.thorough
def test_manifests_of_early_releases_are_made_up_for_by_the_batches(tmp_path: Path) -> None:
    cluster = TieredCluster(tmp_path)
    expected = rebuilt(cluster.store, tmp_path / "with", log_dirs=(str(cluster.broker),))
    for manifest in cluster.store.rglob("*.rsm-manifest"):
        stat = manifest.stat()
        fields = json.loads(manifest.read_text())
        del fields["remoteLogSegmentMetadata"]
        manifest.write_text(json.dumps(fields))
        os.utime(manifest, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
    made = rebuilt(cluster.store, tmp_path / "without", log_dirs=(str(cluster.broker),))
    names = "eventTimestampMs", "brokerId"
    own, other = values_in(tmp_path / "without"), values_in(tmp_path / "with")
    assert len(made.copies) == len(expected.copies) == 8
    assert {key: (at, without(value, *names)) for key, (at, value) in own.items()} == {
        key: (at, without(value, *names)) for key, (at, value) in other.items()
    }


def test_another_clusters_segments_are_not_taken(tmp_path: Path) -> None:
    cluster = TieredCluster(tmp_path)
    (own,) = cluster.store.glob("a-lz4-*")
    shutil.copytree(own, own.with_name(f"a-lz4-{OTHER}"))
    made = rebuilt(cluster.store, tmp_path / "out", log_dirs=(str(cluster.broker),))
    assert len(made.copies) == 8
    assert OTHER not in {copy.copied.topic_id for copy in made.copies}


def test_what_would_mislead_a_broker_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bucket", "--remote-dir", str(STORE), "--rebuild-metadata"]
    assert main(words) == 2
    assert "needs --output DIR" in capsys.readouterr().err
    assert main([*words, str(BROKER), "--output", str(BROKER / "x")]) == 2
    assert "must lie outside of the log dir" in capsys.readouterr().err
    (tmp_path / "full" / "x").mkdir(parents=True)
    assert main([*words, "--output", str(tmp_path / "full")]) == 2
    assert "is there already and not empty" in capsys.readouterr().err
    given = [
        *words,
        str(TIERED / "data"),
        f"--output={tmp_path / 'out'}",
        "--metadata-partitions=3",
    ]
    given[2] = str(TIERED / "remote")
    assert main(given) == 2
    assert "--metadata-partitions 3, and the cluster's topic has 1" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["bucket", str(BROKER), "--remote-dir", str(STORE), "--output=x"]) == 2
    assert "are for --rebuild-metadata" in capsys.readouterr().err


def test_the_verb_tells_where_the_records_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    words = ["bucket", "--remote-dir", str(STORE), "--rebuild-metadata", f"--output={output}"]
    assert main([*words, "--json"]) == 0
    out = capsys.readouterr()
    document = json.loads(out.out)
    # 50 partitions, as a broker makes without a setting.
    assert len(document["partitions"]) == 50
    assert sum(each["recordsCount"] for each in document["partitions"]) == 16
    assert document["leftOut"] == []
    assert "8 segments of " in out.err
    assert main(["verify", str(output), f"--run-dir={tmp_path}/runs"]) == 0


@pytest.mark.thorough
def test_a_storage_without_a_whole_segment_is_refused(tmp_path: Path) -> None:
    store = Path(shutil.copytree(STORE, tmp_path / "store"))
    for manifest in store.rglob("*.rsm-manifest"):
        manifest.unlink()
    with pytest.raises(InvalidConfigError, match="no segment of the storage can be taken"):
        rebuilt(store, tmp_path / "out")
