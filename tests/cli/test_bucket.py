"""`kafkalog bucket`: what is printed, the delete list, exit codes; a bucket of S3 in place of a
directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from tests.bucket.tiered_cluster import COPIED_MS, NOW_MS, TieredCluster
from tests.remote.test_aiven import KEYS
from tests.remote.test_buckets import SECRET
from tests.remote.test_buckets import bucket as bucket  # a fixture
from tests.support.s3_server import BUCKET, S3Server

OTHER = "B" * 21 + "A"


@pytest.fixture
def cluster(tmp_path: Path) -> TieredCluster:
    return TieredCluster(tmp_path)


def words(cluster: TieredCluster, *more: str, place: str = "") -> list[str]:
    keys = [f"--remote-key={key_id}={file}" for key_id, file in KEYS.items()]
    return [
        "bucket", str(cluster.broker), "--remote-dir", place or str(cluster.store), *keys,
        "--topic=a-lz4", "--topic=b-txn", f"--now={NOW_MS}", "--workers=1", *more,
    ]  # fmt: skip


def test_the_delete_list_is_printed_with_its_bytes(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    made = cluster.again("a-lz4", OTHER, ("log", "indexes"), COPIED_MS)
    size = sum(path.stat().st_size for path in made)
    assert main(words(cluster, "--json")) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["id"] for each in found["findings"]] == ["half-upload"]
    assert found["findings"][0]["sizeInBytes"] == found["deletable"]["sizeInBytes"] == size
    assert [each["path"] for each in found["deletable"]["objects"]] == sorted(map(str, made))
    assert found["kinds"].keys() == {"half-upload"}
    before = {path: path.stat() for path in cluster.store.rglob("*")}
    assert main(words(cluster)) == 1
    out = capsys.readouterr()
    assert all(str(path) in out.out for path in made)
    assert "7 segments of " in out.err
    assert "2 objects of " in out.err
    assert {path: path.stat() for path in cluster.store.rglob("*")} == before


def test_options_that_say_nothing_are_refused(
    cluster: TieredCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(cluster, "--since=abc")) == 2
    assert "--since is for --deep" in capsys.readouterr().err
    assert main(words(cluster, "--min-age=soon")) == 2
    assert "is no duration, as 24h or 7d" in capsys.readouterr().err
    assert main(["bucket", str(cluster.broker)]) == 2
    assert "--remote-dir is needed: the remote storage to look at" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_bucket_is_judged_as_a_directory(
    cluster: TieredCluster,
    bucket: S3Server,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = cluster.again("a-lz4", OTHER, ("log", "indexes"), COPIED_MS)
    cluster.object("b-txn", 590, "log").unlink()
    (damaged,) = cluster.store.rglob("b-txn-*/0/*01159-*.log")
    data = bytearray(damaged.read_bytes())
    data[5000] ^= 1
    damaged.write_bytes(data)
    assert main(words(cluster, "--json", "--deep", f"--run-dir={cluster.store}/../runs")) == 1
    expected = json.loads(capsys.readouterr().out)
    bucket.put_tree(cluster.store)
    place = f"s3://{BUCKET}"
    runs = cluster.broker.parent / "more-runs"
    assert main(words(cluster, "--json", "--deep", f"--run-dir={runs}", place=place)) == 1
    out = capsys.readouterr()
    found = json.loads(out.out)
    assert without_paths(found) == without_paths(expected)
    assert [each["id"] for each in found["findings"]] == [
        "half-upload", "object-missing", "object-damaged",
    ]  # fmt: skip
    assert [each["path"] for each in found["deletable"]["objects"]] == [
        f"{place}/{path.relative_to(cluster.store)}" for path in made
    ]
    kept = "".join(path.read_text() for path in runs.rglob("*.json*"))
    assert SECRET not in out.out + out.err + kept


def without_paths(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in each.items() if k != "path"} for each in document["findings"]]
