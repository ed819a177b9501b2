"""Python workers take pyspark from its folder, not from the zip that Spark puts in front of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

from kafkalog.errors import CodeDiffersError
from kafkalog.spark.same_code import code_differences
from kafkalog.spark.worker_daemon import with_folders


def spark_home(home: Path, package: Path) -> str:
    """The zip of a Spark that lies at `home` and has its code unpacked at `package`."""
    (home / "python" / "lib").mkdir(parents=True)
    package.mkdir(parents=True, exist_ok=True)
    (package / "daemon.py").touch()
    return str(home / "python" / "lib" / "pyspark.zip")


def test_a_zip_gives_way_to_the_folder_beside_it(tmp_path: Path) -> None:
    packages, distribution = tmp_path / "site-packages", tmp_path / "spark-4"
    pip = spark_home(packages / "pyspark", packages / "pyspark")
    own = spark_home(distribution, distribution / "python" / "pyspark")
    paths = ["/work", pip, own, "/lib/py4j.zip"]
    folders = ["/work", str(packages), str(distribution / "python"), "/lib/py4j.zip"]
    assert with_folders(paths) == folders


def test_a_zip_without_its_folder_stays(tmp_path: Path) -> None:
    # Some other Spark beside it is not its folder.
    other = spark_home(tmp_path / "spark-4", tmp_path / "pyspark")
    paths = [other, str(tmp_path / "pyspark.zip"), "/none/python/lib/pyspark.zip", ""]
    assert with_folders(paths) == paths


@pytest.mark.parametrize(
    ("module", "is_zip"), [("pyspark.daemon", True), ("kafkalog.spark.worker_daemon", False)]
)
def test_workers_are_forked_from_a_process_that_imports_no_zip(module: str, is_zip: bool) -> None:
    path = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    done = subprocess.run(
        [sys.executable, "-v", "-m", module, "pyspark.worker"],
        env={**os.environ, "PYTHONPATH": str(path)},
        stdin=subprocess.DEVNULL,  # where Spark would ask for workers; at its end the daemon ends
        capture_output=True, check=False,
    )  # fmt: skip
    imports = [x for x in done.stderr.decode().splitlines() if x.startswith("import 'pyspark")]
    assert imports
    assert any("zipimporter" in line for line in imports) == is_zip
    # It has said by which port, or socket, it takes orders.
    assert done.stdout


@pytest.mark.parametrize(
    "said",
    [
        "No module named kafkalog.spark.worker_daemon",
        "Error while finding module specification for 'kafkalog.spark.worker_daemon'"
        " (ModuleNotFoundError: No module named 'kafkalog')",
    ],
)
def test_workers_without_this_package_are_named(said: str) -> None:
    text = f"Job aborted: Lost task 0.0\nError from python worker:\n  /opt/python: {said}\nPYTHON"
    with (
        pytest.raises(CodeDiffersError, match=r"has none like it: /opt/python: .*No module named"),
        code_differences(),
    ):
        raise PySparkRuntimeError(text)
    with pytest.raises(Py4JError, match="No module named 'pandas'"), code_differences():
        raise Py4JError("Error from python worker:\n  /opt/python: No module named 'pandas'")
