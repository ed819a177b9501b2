"""What an installation must give: a data source Spark finds by itself, a command, types."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path
from zipfile import ZipFile

import pytest

import kafkalog
from kafkalog.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
TOP_LEVEL = set(
    """.ci .gitignore CHANGELOG.md CONTRIBUTING.md DESIGN.md LICENSE Makefile NOTICE README.md
    SECURITY.md data docs jobs kafkalog mkdocs.yml pyproject.toml pyspark_kafkalog
    requirements-docs.in requirements-docs.lock requirements.lock spark_conf tests""".split()
)


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


def test_nothing_else_lies_at_the_top() -> None:
    """What an example writes belongs below /tmp."""
    command = ["git", "-C", str(ROOT), "ls-files"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no clone")
    assert {path.partition("/")[0] for path in done.stdout.splitlines()} == TOP_LEVEL


def test_every_locked_package_has_hashes() -> None:
    """`pip install --require-hashes` refuses a line without one, or a path of this machine."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert entries
    assert [line for line in entries if "==" not in line or not line.endswith(" \\")] == []


# Modules outside of kafkalog.spark and what starts a session, in a process that has no pyspark.
_WITHOUT_SPARK = """
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas", "delta"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import kafkalog
names = [m.name for m in pkgutil.walk_packages(kafkalog.__path__, "kafkalog.", onerror=lambda _: 0)]
with_spark = ("kafkalog.spark", "kafkalog.job", "kafkalog.query_on_spark", "kafkalog.__main__")
for name in names:
    if not name.startswith(with_spark):
        importlib.import_module(name)
from kafkalog.cli.main import main
code = main(sys.argv[1:])
assert "pyspark" not in sys.modules
sys.exit(code)
"""


def test_all_but_spark_works_without_pyspark() -> None:
    orders = str(ROOT / "data" / "samples" / "broker")
    command = [sys.executable, "-c", _WITHOUT_SPARK]
    done = subprocess.run(
        [*command, "segments", orders, "--topic", "orders"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "orders" in done.stdout
    done = subprocess.run(
        [*command, "sql", orders, "--engine", "spark", "--sql", "SELECT 1"], capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert (
        done.stderr == "kafkalog: this needs Spark: pip install 'pyspark>=3.5.3,<4.4' 'pandas<3'\n"
    )


def test_version_has_what_a_bug_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["kafkalog"] == kafkalog.__version__
    assert document["packages"]["numba"] == metadata.version("numba")
    assert document["packages"]["pyspark"] == metadata.version("pyspark")
    assert set(document["native"]) >= {"crc32c", "pread", "zstd_decompress", "lz4_compress"}


@pytest.mark.thorough
def test_wheel_has_the_package_and_its_licence_and_no_more(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as file:
        names = file.namelist()
    top = {name.partition("/")[0] for name in names}
    info = f"kafkalog-{kafkalog.__version__}.dist-info"
    assert top == {"kafkalog", "pyspark_kafkalog", info}
    assert {f"{info}/licenses/{name}" for name in ("LICENSE", "NOTICE")} <= set(names)
    assert not [name for name in names if name.endswith((".kernel", ".pyc", ".log"))]
