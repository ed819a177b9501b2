"""The Python of a local session's workers, which takes pyspark from its folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from data.copy_samples import SAMPLES
from kafkalog.spark import worker_python
from kafkalog.spark.worker_python import PYTHON, SCRIPT, ZIP, is_local, set_worker_python

# Functions of tasks, and a source that Spark finds itself.
_SESSION = """
import json, sys
import pyarrow as pa
from pyspark.sql import SparkSession
from kafkalog.spark import configure_spark, scan
from kafkalog.spark.releases import HAS_SOURCES

def told(batches):
    import sys, pyspark
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"file": [pyspark.__file__], "python": [sys.executable]})

builder = configure_spark(SparkSession.builder, master="local[1]")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
row = spark.range(0, 1, 1, 1).mapInArrow(told, "file string, python string").first()
counts = [scan(spark, sys.argv[1]).count()]
if HAS_SOURCES:
    counts.append(spark.read.format("kafkalog").load(sys.argv[1]).count())
print(json.dumps([row.file, row.python, counts]))
spark.stop()
"""


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", PYTHON, ZIP):
        monkeypatch.setenv(name, "")  # so that it is put back behind the test
        monkeypatch.delenv(name)


def test_workers_of_a_local_session_take_pyspark_from_its_folder() -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYSPARK_PYTHON", PYTHON, ZIP)}
    done = subprocess.run(
        [sys.executable, "-c", _SESSION, str(SAMPLES / "broker")],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    file, python, counts = json.loads(done.stdout)
    assert Path(file) == Path(pyspark.__file__)
    assert Path(python) == Path(sys.executable)
    assert counts[0] > 0
    assert set(counts) == {counts[0]}


@pytest.mark.usefixtures("clean_environment")
def test_local_workers_start_by_the_script() -> None:
    needed = set_worker_python("local[2]")
    assert os.environ["PYSPARK_PYTHON"] == str(SCRIPT)
    assert needed[PYTHON] == sys.executable
    assert Path(needed[ZIP]).name == "pyspark.zip"
    assert {name: os.environ[name] for name in needed} == needed


@pytest.mark.usefixtures("clean_environment")
@pytest.mark.parametrize("master", [None, "yarn", "spark://host:7077", "local-cluster[1,1,512]"])
def test_workers_elsewhere_start_by_the_interpreter(master: str | None) -> None:
    """Also behind a session that was local."""
    set_worker_python("local")
    assert set_worker_python(master) == {}
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


@pytest.mark.usefixtures("clean_environment")
def test_another_python_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert set_worker_python("local") == {}
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"


@pytest.mark.usefixtures("clean_environment")
def test_package_that_is_no_folder_has_no_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker_python, "SCRIPT", tmp_path / "kafkalog.zip" / "worker_python.sh")
    assert set_worker_python("local") == {}
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


@pytest.mark.usefixtures("clean_environment")
def test_spark_that_is_not_the_interpreters_keeps_its_zip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A distribution of Spark: its zip is all that there is of pyspark, or another release."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "python" / "lib" / "pyspark.zip")])
    assert set_worker_python("local") == {}
    other = tmp_path / "site-packages"
    (other / "pyspark").mkdir(parents=True)
    (other / "pyspark" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(other)])
    assert set_worker_python("local") == {}


def test_script_leaves_that_zip_away_and_nothing_else(tmp_path: Path) -> None:
    named, other = tmp_path / "a" / "pyspark.zip", tmp_path / "b" / "pyspark.zip"
    for path in (named, other):
        path.parent.mkdir()
        path.touch()
    link = tmp_path / "link"
    link.symlink_to(named.parent)
    places = [str(named), "/with space", f"{link}/pyspark.zip", str(other), "/*", str(named)]
    for given, left in ((places, f"/with space:{other}:/*"), ([str(named)], ""), ([], "")):
        environment = {
            "PYTHONPATH": ":".join(given), ZIP: str(named), PYTHON: sys.executable
        }  # fmt: skip
        code = "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1:], sep='|')"
        done = subprocess.run(
            [SCRIPT, "-c", code, "a b", "c"],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == f"{left}|['a b', 'c']"


def test_script_says_what_it_lacks() -> None:
    done = subprocess.run([SCRIPT, "-V"], env={}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert PYTHON in done.stderr


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", True), ("local[*]", True), ("local[2, 3]", True), ("local-cluster[1,1,1]", False),
     ("k8s://local", False), ("locally", False)],
)  # fmt: skip
def test_local_masters(master: str, expected: bool) -> None:
    assert is_local(master) is expected
