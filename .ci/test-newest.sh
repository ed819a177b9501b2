#!/usr/bin/env bash
# What `make test-newest` does: the newest versions of the packages whose private parts are used, whatever pyproject.toml
# allows, in a folder that comes before .venv's packages; then the tests of what uses them. A warning is an error there,
# so a function that is not found any more fails the run although everything would work, slower.
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(numba lz4 zstandard cffi google-crc32c obstore cramjam)
NEWEST=$PWD/.cache/newest

rm -rf "$NEWEST"
.venv/bin/python -m pip install -q --disable-pip-version-check --upgrade --target "$NEWEST" "${PACKAGES[@]}" >&2
export PYTHONPATH=$NEWEST NUMBA_CACHE_DIR=$PWD/.cache/numba-newest
.venv/bin/python - "${PACKAGES[@]}" <<'PYTHON'
import sys
from importlib.metadata import version

print("newest:", ", ".join(f"{name} {version(name)}" for name in sys.argv[1:]))
PYTHON
.venv/bin/python -m pytest -q tests/kernels tests/native tests/batches tests/format/test_checksum.py \
  tests/format/test_compression.py tests/format/test_compression_limits.py
