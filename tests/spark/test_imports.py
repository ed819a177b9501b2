"""What a Python process that Spark starts to look up a schema has to import."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import kafkalog.spark


def test_source_does_not_wait_for_kernels_or_cleaner() -> None:
    code = (
        "import sys, pyspark_kafkalog\n"
        "heavy = ('numba', 'pandas', 'kafkalog.kernels', 'kafkalog.cleaning', 'kafkalog.swap',\n"
        "         'kafkalog.operations')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_functions_whatever_was_imported_before() -> None:
    modules = [module.name for module in pkgutil.iter_modules(kafkalog.spark.__path__)]
    assert not {"compact", "scan"} - set(kafkalog.spark.__all__)
    assert not set(modules) & set(kafkalog.spark.__all__)
    for name in modules:
        importlib.import_module(f"kafkalog.spark.{name}")
    assert all(callable(getattr(kafkalog.spark, name)) for name in kafkalog.spark.__all__)
