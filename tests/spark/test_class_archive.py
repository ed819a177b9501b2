"""The archive of Spark's classes that a local session's JVM starts from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark import class_archive, configure_spark
from kafkalog.spark.archive_classes import make_archive
from kafkalog.spark.class_archive import archive_dir, archive_key, archive_name, kept_archive

_OPTIONS = "spark.driver.extraJavaOptions"
# What the session's JVM, a child of this process, has mapped; then an answer.
_SESSION = """
import os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from kafkalog.spark import configure_spark

builder = configure_spark(SparkSession.builder, master="local[1]")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(10).count() == 10
jvms = [stat.parent for stat in Path("/proc").glob("[0-9]*/stat")
        if "(java)" in stat.read_text() and stat.read_text().split()[3] == str(os.getpid())]
assert len(jvms) == 1
print(sum(line.endswith(".jsa") and sys.argv[1] in line
          for line in (jvms[0] / "maps").read_text().splitlines()) > 0)
spark.stop()
"""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where archives are kept, and nothing else of this package."""
    monkeypatch.delenv("KAFKALOG_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("PYSPARK_PYTHON", "KAFKALOG_WORKER_PYTHON", "KAFKALOG_WORKER_PYSPARK_ZIP"):
        monkeypatch.setenv(name, "")  # so that it is put back behind the test
        monkeypatch.delenv(name)
    archive_dir().mkdir(parents=True)
    return archive_dir()


def java_options(master: str | None) -> str:
    builder = SparkSession.Builder()
    builder._options = {}  # those of a class are every builder's
    configure_spark(builder, master=master)
    return str(builder._options[_OPTIONS])


def test_whole_archive_is_taken_by_local_sessions_only(place: Path) -> None:
    key = archive_key()
    assert key is not None
    assert "SharedArchiveFile" not in java_options("local[2]")
    kept = place / archive_name(key, 1000)
    kept.write_bytes(bytes(1000))
    assert f'"-XX:SharedArchiveFile={kept}"' in java_options("local[2]")
    assert "unsafe_memory_access" in java_options("local[2]")
    for master in (None, "yarn", "local-cluster[1,1,512]"):
        assert "SharedArchiveFile" not in java_options(master)


def test_cut_archive_and_those_for_others_are_left(place: Path) -> None:
    """Java maps a file that was cut, and crashes."""
    key = archive_key()
    assert key is not None
    (place / archive_name(key, 1000)).write_bytes(bytes(999))
    (place / archive_name("0" * len(key), 10)).write_bytes(bytes(10))
    assert kept_archive() is None


@pytest.mark.usefixtures("place")
def test_another_java_or_other_jars_have_another_archive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = archive_key()
    jar, java = tmp_path / "spark" / "jars" / "a.jar", tmp_path / "java" / "bin" / "java"
    for file in (jar, java):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"1")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    keys = [own, archive_key()]
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    keys.append(archive_key())
    jar.write_bytes(b"12")
    keys.append(archive_key())
    assert None not in keys
    assert len(set(keys)) == len(keys)
    jar.unlink()
    jar.parent.rmdir()
    assert archive_key() is None
    assert class_archive.archive_options() == ""


def says_mapped(place: Path) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", _SESSION, str(place)],
        env=dict(os.environ), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "[cds" not in done.stdout
    return done.stdout.split()[-1] == "True"


@pytest.mark.thorough
def test_session_starts_from_the_archive_and_without_a_cut_one(place: Path) -> None:
    kept = make_archive()
    assert list(place.iterdir()) == [kept]
    assert says_mapped(place)
    with kept.open("r+b") as file:
        file.truncate(1_000_000)
    assert not says_mapped(place)
