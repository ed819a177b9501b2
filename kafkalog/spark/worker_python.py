"""The Python that Spark's workers are, in a session on one machine.

Spark starts each of its Python processes with `pyspark.zip` in front of everything. A zip holds no
bytecode, so each compiles what it imports of pyspark, some 90 modules: 0.7 to 1 s of CPU, four
times until a session has its first rows. Where Spark came by pip the same package is a folder with
bytecode, and the zip lies within it. `worker_python.sh` leaves that zip away and starts the
interpreter; it is the session's PYSPARK_PYTHON.

Only where the workers are sure to have all of it: with a local master, for this interpreter, and
where it finds without the zip just the folder that the zip belongs to. Executors elsewhere may have
this package by `--py-files` alone, or another Spark: for them PYSPARK_PYTHON stays as it was.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path

PYSPARK_PYTHON = "PYSPARK_PYTHON"
# What the script goes by.
PYTHON, ZIP = "KAFKALOG_WORKER_PYTHON", "KAFKALOG_WORKER_PYSPARK_ZIP"
SCRIPT = Path(__file__).with_suffix(".sh")


def set_worker_python(master: str | None) -> dict[str, str]:
    """Settle PYSPARK_PYTHON in this process, whose next session has `master`, None if that is not
    known. Returns what the workers' environment has to have as well.

    Another Python that the caller set stays.
    """
    asked = os.environ.get(PYSPARK_PYTHON)
    if asked == str(SCRIPT):  # of a session before
        asked = None
    is_own = asked is None or Path(asked).absolute() == Path(sys.executable).absolute()
    bundled = bundled_zip() if is_own and is_local(master) and os.access(SCRIPT, os.X_OK) else None
    if bundled is None:
        os.environ[PYSPARK_PYTHON] = asked or sys.executable
        return {}
    needed = {PYTHON: sys.executable, ZIP: str(bundled)}
    # A JVM that is started from now on asks for the names of sources without the session's help.
    os.environ.update(needed)
    os.environ[PYSPARK_PYTHON] = str(SCRIPT)
    return needed


def is_local(master: str | None) -> bool:
    """Whether tasks run in the driver's own JVM: `local`, `local[2]`, `local[*, 3]`, and neither a
    cluster nor `local-cluster[…]`."""
    return master is not None and re.fullmatch(r"local(\[.*\])?", master) is not None


def bundled_zip() -> Path | None:
    """The zip within the folder that this interpreter takes pyspark from where no zip is in front;
    None if it has no such folder, or no such zip."""
    places = [place for place in sys.path if not place.endswith("pyspark.zip")]
    found = PathFinder.find_spec("pyspark", places)
    if found is None or found.origin is None:
        return None
    bundled = Path(found.origin).parent / "python" / "lib" / "pyspark.zip"
    return bundled if bundled.is_file() else None
