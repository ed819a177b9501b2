"""Helpers of kernels, called from a test."""

from __future__ import annotations

from typing import Any

from kafkalog.kernels.jit import INTERPRETED
from kafkalog.kernels.parts import part_of


def from_python(helper: Any) -> Any:
    """The helper compiled with a way in from Python, which it has not by itself."""
    if INTERPRETED:
        return helper
    import numba

    from kafkalog.kernels.compiling import dispatcher_of

    part = part_of(helper)
    assert part is not None
    return numba.njit(error_model="numpy")(dispatcher_of(part).py_func)
