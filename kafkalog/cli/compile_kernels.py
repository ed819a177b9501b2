"""`kafkalog compile`: all kernels compiled and kept, so that no later command waits for it.

For images and for hosts that share a cache: without it each verb compiles the kernels it needs when
they are needed first.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from importlib.resources import files

from kafkalog.cli.output import ExitCode, say
from kafkalog.kernels.jit import compile_all
from kafkalog.kernels.keeping import cache_dir

# The rooms with kernels.
_ROOMS = ("kafkalog.kernels", "kafkalog.native")
# Imports numba, which is not needed where all is kept.
_COMPILER = "compiling.py"


def run(args: argparse.Namespace) -> ExitCode:
    """Import every module with kernels, and compile what is not kept yet."""
    started = time.monotonic()
    for room in _ROOMS:
        for file in sorted(files(room).iterdir(), key=lambda each: each.name):
            if file.name.endswith(".py") and file.name not in ("__init__.py", _COMPILER):
                import_module(f"{room}.{file.name.removesuffix('.py')}")
    compile_all()
    place = cache_dir() or "beside the package"
    say(f"kafkalog: kernels are kept {place} ({time.monotonic() - started:.1f} s)")
    return ExitCode.DONE
