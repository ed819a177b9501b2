"""Which code this process runs: a digest over the package's files and its version.

What plans and what carries a plan out are different processes, on Spark often of different
machines: with an older kernel, or another idea of what a plan says, a task would change logs in
another way than was planned and checked. Each compares this digest with the plan's.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kafkalog import __version__
from kafkalog.errors import CodeDiffersError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_DIGEST_LETTERS = 16


def code_digest() -> str:
    """`1.0.0 (1f3a…)`: the version, and a digest of all files; read once in each process."""
    return _digest(os.getpid())


def check_same_code(planned: str) -> None:
    """CodeDiffersError if this process does not run the code that made the plan."""
    found = code_digest()
    if found != planned:
        raise CodeDiffersError(difference(planned, found, str(_package())))


def code_on_disk() -> str:
    """The same for processes of one machine, by what stat tells of the files: to read them all
    takes each of them as long as ten small partitions. Of a package in an archive its digest.
    """
    return _seen(os.getpid())


def check_code_on_disk(planned: str) -> None:
    """CodeDiffersError if the files are not those that `planned` was told of."""
    found = code_on_disk()
    if found != planned:
        raise CodeDiffersError(difference(planned, found, str(Path(__file__).parent)))


@cache
def _seen(_process: int) -> str:
    folder = Path(__file__).parent
    if not folder.is_dir():
        return code_digest()
    digest = hashlib.sha256()
    for name, stat in _stats(str(folder), ""):
        facts = f"\n{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
        digest.update(facts.encode(errors="surrogateescape"))
    return f"{__version__} (files {digest.hexdigest()[:_DIGEST_LETTERS]})"


def _stats(folder: str, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """As `_files`, and what stat tells of each."""
    with os.scandir(folder) as listed:
        entries = sorted(listed, key=lambda each: each.name)
    for entry in entries:
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _stats(entry.path, f"{name}/")
        elif not entry.name.endswith(".pyc"):
            yield name, entry.stat()


def difference(planned: str, found: str, path: str) -> str:
    """What to say of a task whose code is not the plan's."""
    return (
        f"the plan was made by kafkalog {planned}, this task runs {found} from {path}: nothing was "
        "done in it; install the same kafkalog for the driver and all workers, and mind that "
        "Python takes a folder `kafkalog` in the current directory first"
    )


@cache
def _digest(_process: int) -> str:
    """A forked worker looks for itself: files may have changed since its parent did."""
    digest = hashlib.sha256(__version__.encode())
    for name, file in _files(_package(), ""):
        data = file.read_bytes()
        digest.update(f"\n{name} {len(data)}\n".encode())
        digest.update(data)
    return f"{__version__} ({digest.hexdigest()[:_DIGEST_LETTERS]})"


def _package() -> Traversable:
    # With temporary files and random numbers, for who asks.
    from importlib.resources import files

    return files("kafkalog")


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    """Those of the package in the order of their names; not what Python and kernels keep there."""
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry, f"{name}/")
        elif not entry.name.endswith(".pyc"):
            yield name, entry
