"""What an installation must give: a data source Spark finds by itself, a command, types."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import kafkalog

ROOT = Path(__file__).resolve().parent.parent


def test_spark_source_is_found_from_any_directory(tmp_path: Path) -> None:
    """Spark looks for `pyspark_*` with pkgutil.iter_modules, which misses import hooks."""
    code = "import pkgutil; print(*(m.name for m in pkgutil.iter_modules()))"
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {"kafkalog", "pyspark_kafkalog"} <= set(done.stdout.split())


def test_source_class_stands_in_the_shim() -> None:
    """pyspark registers the one class named DefaultSource of each `pyspark_*` module."""
    import pyspark_kafkalog

    assert pyspark_kafkalog.DefaultSource.name() == "kafkalog"
    assert "pyspark_kafkalog" in {module.name for module in pkgutil.iter_modules()}


def test_command_is_installed_and_points_at_main() -> None:
    commands = metadata.entry_points(group="console_scripts", name="kafkalog")
    assert [command.value for command in commands] == ["kafkalog.cli.main:main"]


def test_version_is_the_one_of_the_package() -> None:
    assert metadata.version("kafkalog") == kafkalog.__version__


def test_types_are_announced() -> None:
    assert resources.files("kafkalog").joinpath("py.typed").is_file()


def test_every_locked_package_has_hashes() -> None:
    """`pip install --require-hashes` refuses a line without one, or a path of this machine."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert entries
    assert [line for line in entries if "==" not in line or not line.endswith(" \\")] == []
