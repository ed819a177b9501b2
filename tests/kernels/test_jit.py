from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kafkalog
from kafkalog.kernels.gather import measure
from kafkalog.kernels.jit import CHECKED, INTERPRETED, kernel

PACKAGE = Path(kafkalog.__file__).parent


def test_read_only_and_writable_arrays_are_accepted() -> None:
    lengths = np.array([3, -1, 4], np.int32)
    assert measure(lengths) == (7, 1)
    lengths.flags.writeable = False
    assert measure(lengths) == (7, 1)


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_no_other_signature_is_compiled_behind_our_back() -> None:
    with pytest.raises(TypeError):
        measure(np.array([3.5]))  # type: ignore[arg-type]


@pytest.mark.skipif(not CHECKED, reason="needs NUMBA_BOUNDSCHECK=1")
def test_a_bounds_checked_run_checks_bounds() -> None:
    from kafkalog.kernels.jit import I64, U8_IN

    @kernel((U8_IN, I64))
    def read(buf: np.ndarray[tuple[int], np.dtype[np.uint8]], pos: int) -> int:
        return int(buf[pos])

    with pytest.raises(IndexError):
        read(np.zeros(3, np.uint8), 1000)


def run(package_parent: Path, cache: Path) -> str:
    code = (
        "import numpy as np\n"
        "from kafkalog.kernels.probe import probe\n"
        "print(probe(np.array([4, 9], np.uint8)))"
    )
    names = ("PATH", "HOME", "NUMBA_BOUNDSCHECK")
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    inherited |= {"PYTHONPATH": str(package_parent), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=package_parent,
        env=inherited,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(INTERPRETED, reason="nothing is cached")
def test_a_changed_helper_recompiles_the_kernels_that_use_it(tmp_path: Path) -> None:
    copy = tmp_path / "kafkalog"
    for name in ("__init__.py", "format/__init__.py", "kernels/__init__.py"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text("")
    for name in ("errors.py", *(f"format/{p.name}" for p in (PACKAGE / "format").glob("*.py"))):
        shutil.copy(PACKAGE / name, copy / name)
    for name in ("jit.py", "status.py", "varints.py"):
        shutil.copy(PACKAGE / "kernels" / name, copy / "kernels" / name)
    (copy / "kernels" / "probe.py").write_text(
        "from kafkalog.kernels.jit import U8_IN, kernel\n"
        "from kafkalog.kernels.varints import read_varint\n"
        "@kernel((U8_IN,))\n"
        "def probe(buf):\n"
        "    return read_varint(buf, 0, buf.size)[0]\n"
    )
    cache = tmp_path / "cache"
    assert run(tmp_path, cache) == "2"
    varints = copy / "kernels" / "varints.py"
    source = varints.read_text()
    assert "(first >> 1) ^" in source
    # Of another length: within one second Python takes its own cached code for the same otherwise.
    varints.write_text(source.replace("(first >> 1) ^", "(first >> 2)  ^"))
    assert run(tmp_path, cache) == "1"
