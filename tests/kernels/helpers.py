"""Helpers of kernels, called from a test."""

from __future__ import annotations

from typing import Any

import numba

from kafkalog.kernels.jit import INTERPRETED


def from_python(helper: Any) -> Any:
    """The helper compiled with a way in from Python, which it has not by itself."""
    if INTERPRETED:
        return helper
    return numba.njit(error_model="numpy")(helper.py_func)
