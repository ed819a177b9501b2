"""Replicas digested by Spark tasks: the bytes that the command line writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from kafkalog.comparing.digest import DIGESTED, DigestRequest, digest_run
from kafkalog.spark.digest_replicas import spark_executor
from tests.jobs.submit import submit

pytestmark = pytest.mark.spark

NODE = str(SAMPLES / "replicas" / "node1")


@pytest.fixture
def digested(tmp_path: Path) -> bytes:
    """By the command line, under the key in `hash.key`."""
    (tmp_path / "hash.key").write_bytes(bytes(range(32)))
    words = ["--output", str(tmp_path / "one"), "--hash-key", str(tmp_path / "hash.key")]
    assert main(["digest", NODE, *words, "--workers", "1"]) == 0
    return (tmp_path / "one").read_bytes()


def test_tasks_write_the_same_digest(spark: SparkSession, tmp_path: Path, digested: bytes) -> None:
    output = tmp_path / "two"
    request = DigestRequest((NODE,), str(output), str(tmp_path / "hash.key"))
    results = digest_run(request, spark_executor(spark))
    assert [each.status for each in results] == [DIGESTED] * 3
    assert output.read_bytes() == digested
    assert list(tmp_path.glob("*.tmp")) == []


@pytest.mark.thorough
def test_spark_submit_writes_it(tmp_path: Path, digested: bytes) -> None:
    words = ["--output", str(tmp_path / "two"), "--hash-key", str(tmp_path / "hash.key")]
    done = submit("digest_replicas.py", NODE, *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "two").read_bytes() == digested
