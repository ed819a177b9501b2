"""Where compiled kernels are kept: of a user who has no place, of two processes that start at once,
of a package whose folder cannot be written.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

from kafkalog.kernels import jit, keeping
from kafkalog.kernels.jit import I64, INTERPRETED, kernel


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_a_kernel_that_cannot_be_kept_works_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("cannot cache function 'double': no locator available")

    monkeypatch.setattr(Dispatcher, "enable_caching", refuse)
    monkeypatch.setattr(keeping, "_told", set())

    @kernel((I64,))
    def double(number: int) -> int:
        return 2 * number

    assert double(21) == 42
    assert "set KAFKALOG_CACHE_DIR" in capsys.readouterr().err


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_with_an_unknown_numba_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dispatcher, "enable_caching", lambda _: None)
    jit._warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"numba .* not known here"):

        @kernel((I64,))
        def treble(number: int) -> int:
            return 3 * number

    assert treble(14) == 42


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


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_of_two_processes_on_an_empty_cache_one_compiles(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(_KERNEL)
    cache = str(tmp_path / "cache")
    both = [start("import one", tmp_path, KAFKALOG_CACHE_DIR=cache) for _ in range(2)]
    said = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    texts = [err for _, err in said]
    assert sum("compiling" in text for text in texts) == 1, texts
    assert all(text.count("\n") <= 1 for text in texts)
    kept = [path.name for path in (tmp_path / "cache").rglob("*.nbc")]
    assert len(kept) == 1
    third = start("import one", tmp_path, KAFKALOG_CACHE_DIR=cache).communicate(timeout=600)
    assert third == (f"{cache}/kernels\n", "")


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
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


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
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
    (kept,) = (tmp_path / "home").rglob("*.nbc")
    assert start(refusing, tmp_path, **environment).communicate(timeout=600) == (out, "")
    beside = tmp_path / "__pycache__"
    beside.mkdir(exist_ok=True)
    for file in kept.parent.glob("one*.nb*"):
        shutil.move(file, beside / file.name)
    shutil.rmtree(tmp_path / "home")
    assert start(refusing, tmp_path, **environment).communicate(timeout=600) == (out, "")
    assert not list((tmp_path / "home").rglob("*.nbc"))


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_a_user_who_may_write_nowhere_uses_what_came_with_the_package(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(_KERNEL)
    (tmp_path / "home").write_text("no directory")
    refusing = (
        "import os; access = os.access\n"
        "os.access = lambda path, mode: 'kafkalog' not in str(path) and access(path, mode)\n"
        "from numba.core.caching import CacheImpl\n"
        "CacheImpl._locator_classes = CacheImpl._locator_classes[:1]\n"
        "import one"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path / "home")}
    out, err = start(refusing, tmp_path, **environment).communicate(timeout=600)
    assert "set KAFKALOG_CACHE_DIR" in err
    start("import one", tmp_path, KAFKALOG_CACHE_DIR=str(tmp_path / "made")).communicate()
    (kept,) = (tmp_path / "made").rglob("*.nbc")
    (tmp_path / "__pycache__").mkdir(exist_ok=True)
    for file in kept.parent.glob("one*.nb*"):
        shutil.move(file, tmp_path / "__pycache__" / file.name)
    assert start(refusing, tmp_path, **environment).communicate(timeout=600) == (out, "")
