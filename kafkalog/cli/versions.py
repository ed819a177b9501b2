"""`kafkalog --version --json`: versions of what matters in a bug report, on one screen.

What is not installed is null; whether the C functions behind the codecs are used is asked of
`native`, which loads its kernels.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from kafkalog import __version__
from kafkalog.code_digest import code_digest
from kafkalog.kernels.keeping import cache_dir

# By the name of the distribution.
PACKAGES = (
    "numba", "llvmlite", "numpy", "pyarrow", "duckdb", "sqlglot", "zstandard", "lz4",
    "google-crc32c", "obstore", "cramjam", "cffi", "pyspark", "pandas",
)  # fmt: skip


def version_text() -> str:
    """The document of `--version --json`."""
    return json.dumps(version_document(), indent=2)


def version_document() -> dict[str, Any]:
    """Versions by name; `native`: which functions are called by address; `kernelCache`: where
    compiled kernels are kept."""
    return {
        "kafkalog": __version__,
        "code": code_digest(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in PACKAGES},
        "native": _native(),
        "kernelCache": cache_dir() or str(files("kafkalog.kernels")),
        "executable": sys.executable,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _native() -> dict[str, bool]:
    # Kernels are loaded here alone: the version by itself waits for nothing.
    from kafkalog.native import batch_headers, checksums, codec_batches

    found = codec_batches.find_functions()._asdict()
    found |= {"crc32c": checksums._extend, "crc32c_whole": checksums._whole}
    found |= {"pread": batch_headers._pread}
    return {name: bool(address) for name, address in found.items()}
