"""The process that Spark forks Python workers from (`spark.python.daemon.module`), as Spark's own
is, but with pyspark from its folder.

Spark puts `pyspark.zip` before everything that its Python processes can import. A zip holds no
bytecode, so that each of them compiles some 150 modules before it does anything: 0.6 s of CPU. A
session's first query starts three or four such processes, one for each kind of worker. The same
code lies unpacked beside the zip, with its bytecode. Nothing of it is imported here before the zip
is out of the way.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable
from pathlib import Path

_ZIP = ("python", "lib", "pyspark.zip")


def with_folders(paths: Iterable[str]) -> list[str]:
    """The paths, with the folder in place of each `pyspark.zip` that has one of the same release
    beside it: of a distribution `python`, of what pip installed the folder of its packages.
    """
    return [str(_folder_of(Path(path)) or path) for path in paths]


def _folder_of(path: Path) -> Path | None:
    if path.parts[-3:] != _ZIP:
        return None
    home = path.parents[2]
    for folder in (home / "python", home.parent):
        package = folder / "pyspark"
        is_its_own = folder == home / "python" or package == home
        if is_its_own and (package / "daemon.py").is_file():
            return folder
    return None


if __name__ == "__main__":
    sys.path[:] = with_folders(sys.path)
    # As `python -m pyspark.daemon`: the argument behind it is the kind of worker.
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
