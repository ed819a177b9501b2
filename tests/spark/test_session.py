"""Settings: the builder's, and the files for spark-submit."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from kafkalog.errors import InvalidConfigError
from kafkalog.spark import session
from kafkalog.spark.releases import WITH_DELTA, packages_conf
from kafkalog.spark.session import SESSION_CONF, configure_spark

CONF = Path(__file__).resolve().parents[2] / "spark_conf"


def settings(name: str) -> dict[str, str]:
    lines = (CONF / name).read_text(encoding="utf-8").splitlines()
    return dict(re.split(r"\s+", x, maxsplit=1) for x in lines if x and not x.startswith("#"))


@pytest.mark.parametrize("name", [path.name for path in CONF.glob("*.conf")])
def test_every_block_of_settings_has_its_reason(name: str) -> None:
    blocks = (CONF / name).read_text(encoding="utf-8").strip().split("\n\n")
    assert len(blocks) > 2
    assert [block for block in blocks if not block.startswith("# ")] == []


def test_builder_and_files_agree() -> None:
    defaults = settings("spark-defaults.conf")
    assert SESSION_CONF.items() <= defaults.items()
    assert defaults.items() <= settings("local.conf").items()
    for release in WITH_DELTA:
        name = "packages.conf" if release == "4.2" else f"packages-{release}.conf"
        assert settings(name) == {**defaults, **packages_conf(release)}


def test_workers_are_this_python_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    configure_spark(SparkSession.Builder())
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    configure_spark(SparkSession.Builder())
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"


def test_workers_without_kafkalog_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a plain script without PYSPARK_PYTHON Spark's workers are another Python."""
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I "$@"\n')
    python.chmod(0o755)
    context = SimpleNamespace(master="local[2]", pythonExec=str(python))
    with pytest.raises(
        InvalidConfigError, match=f"{python}, which has no kafkalog: .*configure_spark"
    ):
        session.register(SimpleNamespace(sparkContext=context))  # type: ignore[arg-type]
