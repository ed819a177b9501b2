"""Fixtures of all tests: one Spark session, log dirs in memory, a fixed clock."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.processes import pytest_collection_modifyitems, pytest_xdist_make_scheduler

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW_MS = 1_750_000_000_000
# 2026-11-30T00:00:00Z, soon after the samples were made.
SAMPLES_NOW_MS = 1_795_996_800_000
_MEMORY = Path("/dev/shm")
# Each JVM of Spark lives for seconds or minutes: its second compiler costs more than it gives.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# No example fails for the time it, or its making, took: that is the machine's business, and a
# compiled kernel's.
settings.register_profile(
    "no deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("no deadline")
# pytest-xdist tells its workers a width; a table would fit it. So does readline, which pytest
# loads, to processes that are started, without Python's knowing of it.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")


@pytest.fixture(scope="session", autouse=True)
def workers_are_forked() -> Iterator[None]:
    """As in a process that has asked no bucket, whatever tests were in this one before: only while
    a test has a bucket it goes by whether the store's client is loaded.
    """
    from kafkalog.resources import process_pool

    by_client = process_pool.start_method

    def start_method() -> str:
        return by_client() if "AWS_ENDPOINT_URL" in os.environ else "fork"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process_pool, "start_method", start_method)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session: two cores, UTC, no UI. Started when the first test asks for it."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.fail("Spark needs Java 17: install openjdk-17-jre-headless, or set JAVA_HOME")
    from pyspark.sql import SparkSession

    from kafkalog.spark import configure_spark
    from tests.support.spark_jars import session_settings

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["TZ"] = "UTC"
    with tempfile.TemporaryDirectory() as scratch:
        builder = configure_spark(SparkSession.builder.master("local[2]").appName("kafkalog tests"))
        for key, value in session_settings().items():
            builder = builder.config(key, value)
        session = (
            builder.config("spark.ui.enabled", "false")
            # a small table's log in two tasks instead of fifty
            .config("spark.databricks.delta.snapshotPartitions", "2")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
            .config("spark.local.dir", scratch)
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.python.daemon.module", "tests.support.ready_workers")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture
def log_dir() -> Iterator[Path]:
    """An empty log dir, in memory where there is /dev/shm."""
    parent = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kafkalog-", dir=parent) as path:
        yield Path(path)


@pytest.fixture
def now_ms() -> int:
    """The fixed clock."""
    return NOW_MS


@pytest.fixture(scope="session", autouse=True)
def round_clock() -> Iterator[None]:
    """What a round in this process decides never depends on the day on which tests run."""
    from kafkalog.requests import run_request

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_request, "now_ms", lambda: SAMPLES_NOW_MS)
        yield


@pytest.fixture(scope="session", autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Runs are kept in the user's state directory unless they are told otherwise: not here."""
    path = tmp_path_factory.mktemp("state")
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(path)
    yield path
    os.environ.pop("XDG_STATE_HOME")
    if before is not None:
        os.environ["XDG_STATE_HOME"] = before


__all__ = ["pytest_collection_modifyitems", "pytest_xdist_make_scheduler"]
