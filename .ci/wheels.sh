#!/usr/bin/env bash
# Are there wheels of all that `pip install kafkalog` brings? Resolved without downloading them, for each Python and both
# machines; prints a line each. Newer Pythons are resolved only: whether they run here is for a test.
# .ci/wheels.sh [PYTHON…]
set -uo pipefail
cd "$(dirname "$0")/.."

PYTHONS=("$@")
[ ${#PYTHONS[@]} -gt 0 ] || PYTHONS=(3.11 3.12 3.13 3.14)
mapfile -t needed < <(.venv/bin/python -c '
import tomllib
print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))')

missing=0
for machine in x86_64 aarch64; do
  for python in "${PYTHONS[@]}"; do
    platforms=()
    # each tag stands for itself alone; distributions build for several
    for tag in manylinux_2_28 manylinux_2_27 manylinux_2_26 manylinux_2_24 manylinux_2_17 manylinux2014; do platforms+=(--platform "${tag}_$machine"); done
    if said=$(.venv/bin/python -m pip install --dry-run --ignore-installed --target /nowhere --only-binary=:all: \
      --disable-pip-version-check --python-version "$python" "${platforms[@]}" "${needed[@]}" 2>&1); then
      echo "$machine $python: all $(grep -o 'Would install.*' <<<"$said" | wc -w | awk '{print $1 - 2}') packages"
    else
      echo "$machine $python: $(grep ERROR <<<"$said" | tail -1)"
      missing=1
    fi
  done
done
exit $missing
