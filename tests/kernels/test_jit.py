from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kafkalog
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.code_stamp import stamp_of
from kafkalog.kernels.copying import copy_bytes, copy_wide
from kafkalog.kernels.gather import measure
from kafkalog.kernels.jit import (
    CHECKED,
    I64,
    INTERPRETED,
    ROW_IN,
    U8_IN,
    U8_OUT,
    RowArray,
    U8Array,
    helper,
    inlined,
    kernel,
)

COMPILER = (
    "jit.py", "parts.py", "code_stamp.py", "keeping.py", "loading.py", "glue.py", "compiling.py",
    "linking.py",
)  # fmt: skip
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
def test_a_bounds_checked_run_checks_what_kernels_and_their_helpers_index() -> None:
    @inlined
    def inline_read(buf: U8Array, pos: int) -> int:
        return int(buf[pos])

    @helper
    def write(out: U8Array, pos: int) -> None:
        out[pos] = 1

    @kernel((U8_IN, ROW_IN, U8_OUT, I64, I64))
    def use(buf: U8Array, rows: RowArray, out: U8Array, what: int, pos: int) -> int:
        if what == 0:
            return int(buf[pos])
        if what == 1:
            return inline_read(buf, pos)
        if what == 2:
            write(out, pos)
            return 0
        if what == 3:
            copy_bytes(out, 0, buf, pos, 2)
            return 0
        if what == 4:
            copy_wide(out, pos, buf, 0)
            return 0
        return int(rows[pos]["position"])

    arrays = np.zeros(16, np.uint8), np.zeros(16, BATCH_ROW), np.zeros(16, np.uint8)
    for what in range(6):
        use(*arrays, what, 0)
        for pos in (16, 1 << 40, -17):
            with pytest.raises(IndexError):
                use(*arrays, what, pos)


def copy_of_the_compiler(folder: Path) -> Path:
    """A package with what kernels are compiled by, and nothing else; its room `kernels`."""
    copy = folder / "kafkalog"
    for name in ("__init__.py", "format/__init__.py", "kernels/__init__.py"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text("")
    for name in ("errors.py", *(f"format/{p.name}" for p in (PACKAGE / "format").glob("*.py"))):
        shutil.copy(PACKAGE / name, copy / name)
    for name in COMPILER:
        shutil.copy(PACKAGE / "kernels" / name, copy / "kernels" / name)
    return copy / "kernels"


# A kernel for each way to use what another file holds.
OTHER_FILE = """
from kafkalog.kernels.jit import helper, inlined
import numpy as np
NUMBER = 1
REAL = 0.5
SIZES = (1, 20)
NESTED = ((1, 2), (3, 4))
ARRAY = np.array([7, 8], np.int64)
TEXT = "one"
@inlined
def first_helper(number):
    return number + 1
@helper
def second_helper(number):
    return first_helper(number) * 10
"""
CHANGED_FILE = (
    OTHER_FILE.replace("NUMBER = 1", "NUMBER = 2")
    .replace("0.5", "0.25")
    .replace("(1, 20)", "(1, 30)")
    .replace("(3, 4)", "(3, 5)")
    .replace("[7, 8]", "[7, 9]")
    .replace('"one"', '"three"')
    .replace("number + 1", "number + 2 ")
)
PROBE = """
from kafkalog.kernels import other
from kafkalog.kernels.jit import I64, U8_IN, kernel
from kafkalog.kernels.other import ARRAY, NESTED, NUMBER, REAL, SIZES, TEXT, second_helper
@kernel((I64,))
def number(x): return x + NUMBER
@kernel((I64,))
def real(x): return int(x * REAL)
@kernel((I64,))
def item(x): return x + SIZES[1]
@kernel((I64,))
def nested(x): return x + NESTED[1][1]
@kernel((I64,))
def array(x): return x + ARRAY[1]
@kernel((I64,))
def text(x): return x + len(TEXT)
@kernel((I64,))
def attribute(x): return x + other.NUMBER
@kernel((I64,))
def tuple_attribute(x): return x + other.SIZES[1]
@kernel((I64,))
def helper_s_helper(x): return second_helper(x)
@kernel((I64,))
def helper_attribute(x): return other.second_helper(x)
@kernel((I64,))
def helper_s_kernel(x): return number(x)
def closed_over(value):
    @kernel((I64,))
    def closure(x): return x + value
    return closure
closure = closed_over(NUMBER)
@kernel((I64,))
def untouched(x): return x + 100
def all_of_them():
    from kafkalog.kernels import keeping
    compiled, keep = [], keeping._keep
    keeping._keep = lambda part, *rest: compiled.append(part) or keep(part, *rest)
    calls = (number, real, item, nested, array, text, attribute, tuple_attribute, helper_s_helper,
             helper_attribute, helper_s_kernel, closure, untouched)
    return [float(call(4)) for call in calls], len(calls) - len(compiled)
"""


def probed(package_parent: Path, cache: Path) -> str:
    """What the kernels of the probe give, in a process of its own, and how many were kept."""
    names = ("PATH", "HOME", "NUMBA_BOUNDSCHECK")
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    inherited |= {"PYTHONPATH": str(package_parent), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", "from kafkalog.kernels.probe import *; print(*all_of_them())"],
        cwd=package_parent,
        env=inherited,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(INTERPRETED or CHECKED, reason="nothing is kept")
def test_a_kept_kernel_follows_whatever_it_uses(tmp_path: Path) -> None:
    kernels, cache = copy_of_the_compiler(tmp_path), tmp_path / "cache"
    (kernels / "probe.py").write_text(PROBE)
    (kernels / "other.py").write_text(OTHER_FILE)
    before = [5, 2, 24, 8, 12, 7, 5, 24, 50, 50, 5, 5, 104]
    assert probed(tmp_path, cache) == f"{list(map(float, before))} 0"
    assert probed(tmp_path, cache) == f"{list(map(float, before))} 13"
    (kernels / "other.py").write_text(CHANGED_FILE)
    after = [6, 1, 34, 9, 13, 9, 6, 34, 60, 60, 6, 6, 104]
    assert probed(tmp_path, cache) == f"{list(map(float, after))} 1"


def test_what_could_change_unseen_is_refused() -> None:
    unseen = {"size": 3}

    def use(number: int) -> int:
        return number + unseen["size"]

    with pytest.raises(TypeError, match="could not see a change"):
        stamp_of(use)


def test_a_stamp_does_not_depend_on_where_a_function_was_made() -> None:
    def made() -> object:
        return lambda number: (lambda other: other + number)(CHECKED)

    assert stamp_of(made()) == stamp_of(made())  # type: ignore[arg-type]


_EMPTIED = """
import ctypes, gc
from kafkalog.kernels import loading
from kafkalog.kernels.join_checksums import join_two_checksums

join_two_checksums(1, 2, 3)
found = [each for each in gc.get_objects() if type(each) is type(len)]
kernel = next(each for each in found if each.__name__ == "_join_two")
loading.__dict__.clear()
gc.collect()
# Whatever memory has become free is written over.
sizes = range(8, 256, 8)
others = [ctypes.create_string_buffer(b"x" * size, size) for size in sizes for _ in range(999)]
gc.collect()
assert kernel.__name__ == "_join_two", kernel.__name__
assert kernel.__doc__ is None
"""


@pytest.mark.skipif(INTERPRETED or CHECKED, reason="no machine code is loaded")
def test_a_kernel_outlives_the_module_that_loaded_it() -> None:
    """As at the end of a process: modules are emptied, and Python looks for garbage after it."""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", _EMPTIED], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
