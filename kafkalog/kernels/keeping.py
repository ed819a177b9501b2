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
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from pkgutil import get_data

from kafkalog.kernels.code_stamp import part_stamp
from kafkalog.kernels.loading import Code, processor
from kafkalog.kernels.parts import Part

_LOCK_FILE = "kafkalog-compile.lock"
# Has the name of the run that said last that it compiles.
_TOLD_FILE = "kafkalog-compile.run"
# Has the name of the run that compiled last, and the seconds that it took.
_TOOK_FILE = "kafkalog-compile.seconds"
_NO_PLACE = (
    "kafkalog: no place to keep compiled kernels: they are compiled in each process, which takes "
    "many seconds; set KAFKALOG_CACHE_DIR to a directory of your own"
)
# What an object is made by, beside numba and LLVM.
_MAKERS = ("compiling.py", "glue.py", "linking.py", "loading.py")
_KEY_LETTERS, _DIGEST_BYTES = 16, 32
# Of the files that code is kept in.
SUFFIX = ".kernel"
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


def kept_code(part: Part) -> Code:
    """The machine code of a kernel: as it is kept, or compiled now.

    A user who may write neither beside the package nor below a home directory (a broker's often
    may not) has no place for it: what came compiled with the package is used, and what did not is
    compiled in each process.
    """
    beside = Path(part.function.__code__.co_filename).parent / "__pycache__"
    place = Path(cache_dir() or beside)
    name = f"{part.name}-{_made_by()}-{part_stamp(part)[:_KEY_LETTERS]}{SUFFIX}"
    found = _read(place / name) or _read(beside / name)
    if found is not None:
        return found
    turn = Turn(str(place))
    turn.begin()
    try:
        # Whoever had the lock before may have compiled just this: hence the second look behind it.
        found = _read(place / name)
        if found is None:
            tell_once_a_run(_compiling())
            turn.compiles()
            from kafkalog.kernels.compiling import compile_kernel

            found = _keep(part, place / name, compile_kernel(part))
    finally:
        turn.end()
    return found


@cache
def _made_by() -> str:
    """What makes the code beside the kernel: another processor or compiler makes another."""
    # The package may be inside a zip file.
    sources = [get_data("kafkalog.kernels", name) for name in _MAKERS]
    facts = processor(), _compiler_versions(), sys.implementation.cache_tag, *sources
    return sha256(repr(facts).encode()).hexdigest()[:_KEY_LETTERS]


def _compiler_versions() -> list[str]:
    """numba and llvmlite as they are installed. Importing either to ask, or what reads the
    description of packages, takes longer than all else that a kernel needs to start."""
    numba = find_spec("numba")
    if numba is None or numba.origin is None:
        return []
    installed = (path.name for path in Path(numba.origin).parent.parent.iterdir())
    return sorted(name for name in installed if name.startswith(("numba-", "llvmlite-")))


def _read(path: Path) -> Code | None:
    """Machine code as it was kept; None if it is not there, or is not whole."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    # The digest is behind the code, where nobody looks who runs it.
    code = data[:-_DIGEST_BYTES]
    return Code(code, path) if data[-_DIGEST_BYTES:] == sha256(code).digest() else None


def _keep(part: Part, path: Path, data: bytes) -> Code:
    """Under its name there is all of it or nothing, whenever the process ends."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What was made for this processor of the same kernel as it was before, or was not finished.
        for old in path.parent.glob(f"{part.name}-{_made_by()}-*"):
            old.unlink(missing_ok=True)
        new.write_bytes(data + sha256(data).digest())
        new.replace(path)
    except OSError:
        tell(_NO_PLACE)
        return Code(data, None)
    return Code(data, path)
