"""What a Python process that Spark starts to look up a schema has to import."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys

import kafkalog.spark
from data.copy_samples import SAMPLES


def imported_by(code: str, names: tuple[str, ...]) -> list[str]:
    """Those of the modules `names` that a new process has behind `code`."""
    told = f"{code}\nimport sys; print([name for name in {names!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return list(ast.literal_eval(done.stdout))


def test_name_of_the_source_asks_for_no_arrow() -> None:
    names = ("numpy", "pyarrow", "pandas", "kafkalog.reading", "kafkalog.columns")
    code = "import pyspark_kafkalog; pyspark_kafkalog.DefaultSource.name()"
    assert imported_by(code, (*names, "pyspark_kafkalog")) == ["pyspark_kafkalog"]


def test_reading_records_takes_no_pandas() -> None:
    code = f"import kafkalog; list(kafkalog.read_records({str(SAMPLES / 'broker')!r}))"
    assert imported_by(code, ("pandas", "pyarrow.compute", "pyarrow")) == ["pyarrow"]


def test_source_does_not_wait_for_kernels_or_cleaner() -> None:
    code = (
        "import pyspark_kafkalog\n"
        "pyspark_kafkalog.DefaultSource({'path': '/', 'view': 'records'}).schema()"
    )
    heavy = ("numba", "pandas", "kafkalog.kernels", "kafkalog.cleaning", "kafkalog.swap")
    assert imported_by(code, (*heavy, "kafkalog.operations", "pyarrow")) == ["pyarrow"]


def test_public_names_are_functions_whatever_was_imported_before() -> None:
    modules = [module.name for module in pkgutil.iter_modules(kafkalog.spark.__path__)]
    assert not {"compact", "scan"} - set(kafkalog.spark.__all__)
    assert not set(modules) & set(kafkalog.spark.__all__)
    for name in modules:
        importlib.import_module(f"kafkalog.spark.{name}")
    assert all(callable(getattr(kafkalog.spark, name)) for name in kafkalog.spark.__all__)
