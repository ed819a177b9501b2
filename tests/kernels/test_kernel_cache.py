"""Where compiled kernels are kept: of a user who has no place, of two processes that start at once,
of a package whose folder cannot be written.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from kafkalog.kernels import keeping
from kafkalog.kernels.gather import measure
from kafkalog.kernels.jit import CHECKED, I64, INTERPRETED, kernel
from kafkalog.kernels.keeping import kept_code
from kafkalog.kernels.loading import Code, load_kernel
from kafkalog.kernels.offset_commits import fill_table
from kafkalog.kernels.parts import Part, part_of

KEPT = not INTERPRETED and not CHECKED


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
def test_a_kernel_that_cannot_be_kept_works_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    monkeypatch.setattr(keeping, "_told", set())

    @kernel((I64,))
    def double(number: int) -> int:
        return 2 * number

    @kernel((I64,))
    def treble(number: int) -> int:
        return 3 * number

    assert (double(21), treble(14), double(4)) == (42, 42, 8)
    assert "set KAFKALOG_CACHE_DIR" in capsys.readouterr().err


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:4096], lambda b: b""])
def test_what_is_not_whole_is_compiled_anew(tmp_path: Path, damage: Callable[..., bytes]) -> None:
    (tmp_path / "one.py").write_text(_KERNEL)
    cache = str(tmp_path / "cache")
    start("import one", tmp_path, KAFKALOG_CACHE_DIR=cache).communicate(timeout=600)
    (kept,) = (tmp_path / "cache").rglob("*.kernel")
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    out, err = start("import one", tmp_path, KAFKALOG_CACHE_DIR=cache).communicate(timeout=600)
    assert out == f"{cache}/kernels\n"
    assert "compiling kernels" in err
    assert kept.read_bytes() == whole


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
def test_a_bit_that_fell_over_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "code"
    code = keeping._keep(cast(Part, part_of(measure)), path, bytes(1000))
    assert keeping._read(path) == code
    for at in (0, 999, 1000, 1031):
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        (tmp_path / "other").write_bytes(data)
        assert keeping._read(tmp_path / "other") is None


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
def test_what_is_kept_needs_no_compiler(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(_KERNEL)
    cache = {"KAFKALOG_CACHE_DIR": str(tmp_path / "cache")}
    start("import one", tmp_path, **cache).communicate(timeout=600)
    code = "import one, sys; print([m for m in sys.modules if m.startswith(('numba', 'llvm'))])"
    out, err = start(code, tmp_path, **cache).communicate(timeout=600)
    assert (out.splitlines()[-1], err) == ("[]", "")


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
def test_where_no_file_may_be_run_kernels_are_loaded_from_memory(tmp_path: Path) -> None:
    """As below a file system that is mounted `noexec`: two, since the system knows them by name."""
    parts = [cast(Part, part_of(each)) for each in (measure, fill_table)]
    codes = [Code(kept_code(part).data, tmp_path / "not there") for part in parts]
    first, second = map(load_kernel, parts, codes)
    assert first(np.array([3, -1, 4], np.int32)) == (7, 1)
    table = np.full(4, -1, np.int64)
    assert second(np.array([1, 2], np.uint64), 1, table) is None
    assert first(np.array([3, -1, 4], np.int32)) == (7, 1)


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
def test_an_object_that_is_no_library_is_loaded_by_llvm() -> None:
    """As on processors for which none is made."""
    from kafkalog.kernels.compiling import compile_object

    part = cast(Part, part_of(measure))
    load = load_kernel(part, Code(compile_object(part), None))
    assert load(np.array([3, -1, 4], np.int32)) == (7, 1)


def start(code: str, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    names = (
        "NUMBA_CACHE_DIR",
        "KAFKALOG_CACHE_DIR",
        "KAFKALOG_RUN",
        "NUMBA_DISABLE_JIT",
        "NUMBA_BOUNDSCHECK",
    )
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=cwd, env=inherited | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


_KERNEL = """
from kafkalog.kernels.jit import I64, kernel
import kafkalog.kernels.keeping, sys
@kernel((I64,))
def double(number):
    return 2 * number
assert double(21) == 42
print(kafkalog.kernels.keeping.cache_dir())
"""


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
def test_of_two_processes_on_an_empty_cache_one_compiles(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(_KERNEL)
    cache = str(tmp_path / "cache")
    both = [start("import one", tmp_path, KAFKALOG_CACHE_DIR=cache) for _ in range(2)]
    said = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    texts = [err for _, err in said]
    assert sum("compiling" in text for text in texts) == 1, texts
    assert all(text.count("\n") <= 1 for text in texts)
    kept = [path.name for path in (tmp_path / "cache").rglob("*.kernel")]
    assert len(kept) == 1
    third = start("import one", tmp_path, KAFKALOG_CACHE_DIR=cache).communicate(timeout=600)
    assert third == (f"{cache}/kernels\n", "")


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
def test_of_the_processes_of_a_run_one_says_that_it_compiles(tmp_path: Path) -> None:
    """As `verify` and its workers, each with kernels of its own."""
    cache = {"KAFKALOG_CACHE_DIR": str(tmp_path / "cache")}
    told = []
    for number, run in enumerate(("a", "a", "b")):
        (tmp_path / f"own{number}.py").write_text(_KERNEL)
        process = start(f"import own{number}", tmp_path, KAFKALOG_RUN=run, **cache)
        told.append(process.communicate(timeout=600)[1])
        assert process.returncode == 0
    first, second, other = told
    assert "once, up to 25 s on one core" in first
    assert second == ""
    assert re.search(r"once, \d+ s the last time here", other)


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
def test_a_package_that_cannot_be_written_keeps_kernels_below_home_once(tmp_path: Path) -> None:
    """What came compiled with the package is used there, and the rest goes below ~/.cache."""
    (tmp_path / "one.py").write_text(_KERNEL)
    refusing = (
        "import os; access = os.access\n"
        "os.access = lambda path, mode: 'kafkalog' not in str(path) and access(path, mode)\n"
        "import one"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path / "home")}
    out, err = start(refusing, tmp_path, **environment).communicate(timeout=600)
    assert out == f"{tmp_path}/home/kafkalog/kernels\n"
    assert re.fullmatch(r"kafkalog: compiling kernels .*\n", err)
    (kept,) = (tmp_path / "home").rglob("*.kernel")
    assert start(refusing, tmp_path, **environment).communicate(timeout=600) == (out, "")
    beside = tmp_path / "__pycache__"
    beside.mkdir(exist_ok=True)
    for file in kept.parent.glob("one*.kernel"):
        shutil.move(file, beside / file.name)
    shutil.rmtree(tmp_path / "home")
    assert start(refusing, tmp_path, **environment).communicate(timeout=600) == (out, "")
    assert not list((tmp_path / "home").rglob("*.kernel"))


@pytest.mark.skipif(not KEPT, reason="nothing is kept")
def test_a_user_who_may_write_nowhere_uses_what_came_with_the_package(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(_KERNEL)
    (tmp_path / "home").write_text("no directory")
    refusing = (
        "import os; access = os.access\n"
        "os.access = lambda path, mode: 'kafkalog' not in str(path) and access(path, mode)\n"
        "import one"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path / "home")}
    out, err = start(refusing, tmp_path, **environment).communicate(timeout=600)
    assert "set KAFKALOG_CACHE_DIR" in err
    start("import one", tmp_path, KAFKALOG_CACHE_DIR=str(tmp_path / "made")).communicate()
    (kept,) = (tmp_path / "made").rglob("*.kernel")
    (tmp_path / "__pycache__").mkdir(exist_ok=True)
    for file in kept.parent.glob("one*.kernel"):
        shutil.move(file, tmp_path / "__pycache__" / file.name)
    assert start(refusing, tmp_path, **environment).communicate(timeout=600) == (out, "")
