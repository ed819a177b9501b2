"""Where compiled kernels are kept, and how processes that need the same ones wait for each other.

The place is the first of these: NUMBA_CACHE_DIR; `kernels` below KAFKALOG_CACHE_DIR; beside the
package's files, if they can be written; `kafkalog/kernels` below XDG_CACHE_HOME or ~/.cache. What
came with the package, compiled when an image was made, is used wherever the place is.

Whoever finds that a kernel is not there locks the place before it compiles, and looks again behind
the lock. So of several processes that start at once, as Spark's workers do, one compiles each.

A command and its workers are one run, which KAFKALOG_RUN in their environment names: the first of
them that compiles says so, and the others nothing.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    _CacheLocator,
    _SourceFileBackedLocatorMixin,
)

_LOCK_FILE = "kafkalog-compile.lock"
# Has the name of the run that said last that it compiles.
_TOLD_FILE = "kafkalog-compile.run"
# Has the name of the run that compiled last, and the seconds that it took.
_TOOK_FILE = "kafkalog-compile.seconds"
_NO_PLACE = (
    "kafkalog: no place to keep compiled kernels: they are compiled in each process, which takes "
    "many seconds; set KAFKALOG_CACHE_DIR to a directory of your own"
)
_WAITING = "kafkalog: another process compiles kernels, waiting for it"
# One descriptor of a lock a process: closing any would give up the lock of all.
_turns = threading.RLock()
_told: set[str] = set()


def cache_dir() -> str | None:
    """The directory of kernels that are compiled now; None is beside the package's files."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return chosen
    if chosen := os.environ.get("KAFKALOG_CACHE_DIR"):
        return str(Path(chosen) / "kernels")
    own = Path(__file__).parent
    if all(os.access(folder, os.W_OK) for folder in (own, own.parent / "native")):
        return None
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return str(Path(home) / "kafkalog" / "kernels")


def tell(text: str) -> None:
    """A line on stderr, once a process. Not in a job that says nothing but its document:
    spark-submit gives what its driver says on stderr to stdout."""
    is_job = "PYSPARK_GATEWAY_PORT" in os.environ and {"--json", "json"} & set(sys.argv)
    if text not in _told and not is_job:
        _told.add(text)
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _kept_file(name: str) -> Path:
    return Path(cache_dir() or Path(__file__).parent / "__pycache__") / name


@cache
def _compiling() -> str:
    """The line that says so, with what it took here before. Once a process: the seconds grow."""
    try:
        took = f"{float(_kept_file(_TOOK_FILE).read_text().split()[-1]):.0f} s the last time here"
    except (OSError, ValueError, IndexError):
        took = "up to 25 s on one core"
    return f"kafkalog: compiling kernels (once, {took}; `kafkalog compile` does it before)"


def _add_seconds(seconds: float) -> None:
    """To those that this run took so far; behind the lock. A process without a run is one."""
    run = os.environ.get("KAFKALOG_RUN") or f"process-{os.getpid()}"
    file = _kept_file(_TOOK_FILE)
    try:
        before = file.read_text().split() if file.exists() else []
        if len(before) == 2 and before[0] == run:
            seconds += float(before[1])
        file.write_text(f"{run} {seconds:.2f}")
    except (OSError, ValueError):
        pass  # the next one is told the usual


def tell_once_a_run(text: str) -> None:
    """The same, unless another process of this run has said already that kernels are compiled."""
    run = os.environ.get("KAFKALOG_RUN", "")
    file = _kept_file(_TOLD_FILE)
    try:
        if run and file.exists() and file.read_text() == run:
            return
        if run:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(run)
    except OSError:
        pass  # said once more than needed
    tell(text)


class _BesideThePackage(_SourceFileBackedLocatorMixin, _CacheLocator):
    """numba's name for the place beside the package's files, where nothing is written."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno

    def ensure_cache_path(self) -> None:
        """It is only looked at."""

    def get_cache_path(self) -> str:
        return str(Path(self._py_file).parent / "__pycache__")


class _PackagedImpl(CompileResultCacheImpl):
    _locator_classes = [_BesideThePackage]  # noqa: RUF012 (numba's)


class PackagedCache(FunctionCache):
    """numba's cache of a function for who may write nowhere: what came with the package."""

    _impl_class = _PackagedImpl

    def load_overload(self, signature: Any, context: Any) -> Any:
        found = self._load_overload(signature, context)
        if found is None:
            tell(_NO_PLACE)
        return found

    def save_overload(self, signature: Any, data: Any) -> None:
        """Nowhere."""


class Turn:
    """One kernel's: `begin` waits until no other process compiles in this place, `end` lets the
    next one. A place that cannot be locked is no reason not to work."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._descriptor: int | None = None
        self._began = False
        self._compiling_since: float | None = None

    def begin(self) -> None:
        if self._began:
            return
        _turns.acquire()
        self._began = True
        try:
            Path(self._place).mkdir(parents=True, exist_ok=True)
            path = Path(self._place) / _LOCK_FILE
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                tell_once_a_run(_WAITING)
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
        except OSError:
            return

    def compiles(self) -> None:
        """From now until the end."""
        self._compiling_since = time.monotonic()

    def end(self) -> None:
        if not self._began:
            return
        if self._compiling_since is not None:
            _add_seconds(time.monotonic() - self._compiling_since)
            self._compiling_since = None
        # Closing gives the lock up; the file stays, for removing it would let two processes lock
        # two files.
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._began = False
        _turns.release()


def keep_in_turn(kept: Any, packaged: Any, turn: Turn) -> None:
    """Let numba's cache of a kernel look at its place, then at what came with the package, then
    wait for its turn and look again.

    kept: numba's cache; packaged: its file beside the package, or None if that is the place.
    """
    own = kept._cache_file
    load: Callable[..., Any] = kept._load_overload

    def look(signature: Any, context: Any) -> Any:
        found = load(signature, context)
        # numba's cache looks into the file that it is given at that moment: lent for one look,
        # given back whatever happens.
        if found is None and packaged is not None:
            kept._cache_file = packaged
            try:
                found = load(signature, context)
            finally:
                kept._cache_file = own
        return found

    def load_overload(signature: Any, context: Any) -> Any:
        found = look(signature, context)
        if found is None:
            # Whoever had the lock before may have compiled just this: hence the second look behind
            # the lock.
            turn.begin()
            found = look(signature, context)
            if found is None:
                tell_once_a_run(_compiling())
                turn.compiles()
        return found

    kept.load_overload = load_overload
